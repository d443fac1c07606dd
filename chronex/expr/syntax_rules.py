"""The rules that the parser applies: what makes a text invalid, and the warnings on what is read all the same."""

from __future__ import annotations

from collections.abc import Mapping

from chronex.expr.diagnostics import (
    ERROR,
    PLAIN,
    SAME_MEANING,
    SAME_WORD,
    WARNING,
    Example,
    HostMessage,
    Message,
    Rule,
)

_DID_YOU_MEAN = "did you mean {meant}?"
# Plain cron knows neither L nor W nor #, so what exactly is wrong with them is of no use there.
_UNKNOWN_TO_CRON = (HostMessage(PLAIN, "{value} is not a value here", keeps_fix=False),)
_FIELD_MESSAGES = {
    "not understood": Message("{value} is not understood"),
    "look-alikes": Message("{value} is not a value: only plain ASCII characters count", _DID_YOU_MEAN),
    "another spelling": Message("{value} is not understood", _DID_YOU_MEAN),
    "empty element": Message("an element of the list is missing", "remove the extra comma"),
    "no value before step": Message("a value is missing before '/'", "use */n"),
    "open range": Message("a range needs a value on both sides of '-'"),
    "out of range": Message("value {value} out of range [{low}, {high}]"),
    "unknown name": Message("unknown name {value}", _DID_YOU_MEAN),
    "long name": Message("unknown name {value}", _DID_YOU_MEAN, fix_is=SAME_MEANING),
    "not a value": Message("{value} is not a value", "expected {expected}"),
    "foreign digits": Message("{value} is not a value: only the digits 0-9 count", "expected {expected}"),
    "question mark": Message("'?' is for the day fields of Quartz", "use *"),
    "Jenkins hash": Message(
        "'H' is Jenkins' hash",
        "use a fixed value and {{stagger:…}}",
        (HostMessage(PLAIN, "'H' is Jenkins' hash", "use a fixed value", keeps_fix=False),),
    ),
    "not POSIX": Message("{value} is not POSIX: only *, numbers, ranges and lists are allowed"),
    "letters in POSIX": Message(
        "{value} is not POSIX: only *, numbers, ranges and lists are allowed (names and L, W are not)"
    ),
    "backwards in POSIX": Message("range {value} runs backwards", "POSIX ranges do not wrap"),
}
_DAY_OF_MONTH_MESSAGES = _FIELD_MESSAGES | {
    "days before the last": Message(
        "{value}: the days before the last one go from 1 to 30", elsewhere=_UNKNOWN_TO_CRON
    ),
    "day before W": Message("value {day} out of range [1, 31] in {value}", elsewhere=_UNKNOWN_TO_CRON),
    "range before W": Message(
        "{value}: W takes one day such as 15W, not a range or a step", elsewhere=_UNKNOWN_TO_CRON
    ),
    "W beside days": Message(
        "{value} stands beside days without W, and it cannot be told whether W is meant for them too",
        "write W behind each of them, such as 1W,15W, or give two schedules",
        _UNKNOWN_TO_CRON,
    ),
    "day forms": Message("{value} is not understood", "the forms are L, LW, L-3 and 15W", _UNKNOWN_TO_CRON),
    "another day rule": Message("{value} is not understood", _DID_YOU_MEAN, _UNKNOWN_TO_CRON),
}
_DAY_OF_WEEK_MESSAGES = _FIELD_MESSAGES | {
    "last by number": Message(
        "{value}: the last one of a month is written {meant}", "", _UNKNOWN_TO_CRON, SAME_MEANING
    ),
    "number after #": Message("{value}: the number after # goes from 1 to 5", elsewhere=_UNKNOWN_TO_CRON),
    "L alone": Message("{value} needs a weekday here, such as FRIL for the last Friday", elsewhere=_UNKNOWN_TO_CRON),
    "weekday forms": Message("{value} is not understood", "the forms are FRIL and MON#2", _UNKNOWN_TO_CRON),
    "another day rule": Message("{value} is not understood", _DID_YOU_MEAN, _UNKNOWN_TO_CRON),
}


def _rule(
    code: str,
    title: str,
    explanation: str,
    bad: str,
    good: str,
    messages: Mapping[str, Message] | Message,
    severity: str = ERROR,
) -> Rule:
    cases = {"": messages} if isinstance(messages, Message) else messages
    return Rule(code, title, severity, explanation, Example(bad), Example(good), cases)


# -- fields -----------------------------------------------------------------------------------------------

E001 = _rule(
    "E001",
    "second out of range or not understood",
    "A six-field expression starts with the second, 0 to 59.",
    "75 0 9 * * *",
    "15 0 9 * * *",
    _FIELD_MESSAGES,
)
E002 = _rule(
    "E002",
    "minute out of range or not understood",
    "The minute goes from 0 to 59.",
    "60 9 * * *",
    "0 10 * * *",
    _FIELD_MESSAGES,
)
E003 = _rule(
    "E003",
    "hour out of range or not understood",
    "The hour goes from 0 to 23; midnight is 0.",
    "0 24 * * *",
    "0 0 * * *",
    _FIELD_MESSAGES,
)
E004 = _rule(
    "E004",
    "day of month out of range or not understood",
    "The day of the month goes from 1 to 31; `L` is the last one, `15W` the weekday nearest to the 15th, "
    "`15,L` the 15th and the last one.",
    "0 9 0 * *",
    "0 9 1 * *",
    _DAY_OF_MONTH_MESSAGES,
)
E005 = _rule(
    "E005",
    "month out of range or not understood",
    "The month goes from 1 to 12 or from JAN to DEC.",
    "0 9 1 13 *",
    "0 9 1 12 *",
    _FIELD_MESSAGES,
)
E006 = _rule(
    "E006",
    "day of week out of range or not understood",
    "The day of the week goes from 0 to 7, where 0 and 7 are Sunday, or from SUN to SAT; `FRIL` is the "
    "last Friday of the month, `MON#2` its second Monday.",
    "0 9 * * MNO",
    "0 9 * * MON",
    _DAY_OF_WEEK_MESSAGES,
)
E007 = _rule(
    "E007",
    "step is not a positive number",
    "A step is a positive number: `*/5` is every fifth.",
    "*/0 * * * *",
    "*/5 * * * *",
    {
        "not positive": Message("step must be positive, got {value}"),
        "not a number": Message("step must be a positive number, got {value}"),
        "steps in POSIX": Message(
            "{value} is not POSIX: only *, numbers, ranges and lists are allowed (steps are not)"
        ),
    },
)
FIELD_RULES = {rule.code: rule for rule in (E001, E002, E003, E004, E005, E006)}

# -- structure --------------------------------------------------------------------------------------------

_FIELD_COUNT = "expected 5 or 6 fields, got {count}"
_PLAIN_COUNT = "expected 5 fields, got {count}"
_NOT_FIELDS = HostMessage(
    PLAIN, "an interval in words is no schedule here", "write five fields such as */5 * * * *", keeps_fix=False
)
_COMMAND_HINT = "a command does not belong to the expression"

E010 = _rule(
    "E010",
    "the expression's structure is wrong",
    "An expression is five or six fields, a word such as `@daily`, `@every 30m` or `@once …`, or an ISO "
    "repeating interval; `TZ=…` may stand before it and options in braces after it.",
    "@wekly",
    "@weekly",
    {
        "too long": Message("the expression has {length} characters", "at most {limit} are read"),
        "byte": Message("byte 0x{number:02X} is not UTF-8 and not allowed", "schedules are plain ASCII"),
        "character": Message("character U+{number:04X} ({name}) is not allowed", "use a plain space between fields"),
        "blank": Message(
            "character U+{number:04X} ({name}) is not allowed",
            "use a plain space between fields",
            fix_is=SAME_MEANING,
        ),
        "foreign zone key": Message("a zone is written TZ=Area/City, not {value}", fix_is=SAME_MEANING),
        "no opening bracket": Message("{value} has no opening bracket", "options are written {{key:value}}"),
        "not closed": Message("the options block is not closed", "{wanted} is missing"),
        "other bracket": Message("{opener} is closed by {wanted}, not {value}", fix_is=SAME_MEANING),
        "after the options": Message("nothing may follow the options block"),
        "empty options": Message("the options block is empty", "remove it", fix_is=SAME_MEANING),
        "missing option": Message("an option is missing between the brackets"),
        "no schedule": Message(
            "the schedule is missing",
            "write five fields such as 0 9 * * MON-FRI, or @daily",
            (HostMessage(PLAIN, "the schedule is missing", "write five fields such as 17 4 * * MON-FRI"),),
        ),
        "field count": Message(_FIELD_COUNT, elsewhere=(HostMessage(PLAIN, _PLAIN_COUNT),)),
        "seven fields": Message(
            _FIELD_COUNT,
            "a seventh field for years is not supported, use {{from:…, until:…}}",
            (HostMessage(PLAIN, _PLAIN_COUNT),),
        ),
        "in words": Message("an interval is written @every", _DID_YOU_MEAN, (_NOT_FIELDS,)),
        "time in words": Message("a schedule is written in fields", _DID_YOU_MEAN, (_NOT_FIELDS,)),
        "AWS rate": Message("rate(…) is for AWS", _DID_YOU_MEAN, (_NOT_FIELDS,)),
        "AWS cron": Message(
            "cron(…) is for AWS, which has a year at the end and counts Sunday as 1",
            "write five fields without cron( )",
            (HostMessage(PLAIN, "cron(…) is for AWS, which has a year at the end and counts Sunday as 1"),),
        ),
        "AWS cron in five fields": Message(
            "cron(…) is for AWS, which has a year at the end",
            _DID_YOU_MEAN,
            (HostMessage(PLAIN, "cron(…) is for AWS, which has a year at the end", _DID_YOU_MEAN),),
        ),
        "calendar event": Message(
            "this is a calendar event of systemd",
            _DID_YOU_MEAN,
            (HostMessage(PLAIN, "this is a calendar event of systemd", _DID_YOU_MEAN),),
        ),
        "quotes": Message("the quotes do not belong to the expression", "remove them"),
        "blanks in a field": Message("a field has no blanks in it", _DID_YOU_MEAN),
        "zone at the end": Message(
            "a zone stands in front of the fields",
            _DID_YOU_MEAN,
            (HostMessage(PLAIN, "a zone does not belong to the schedule", keeps_fix=False),),
        ),
        "moment": Message(
            "one moment is written @once",
            _DID_YOU_MEAN,
            (HostMessage(PLAIN, "one moment is no schedule here", "write five fields", keeps_fix=False),),
        ),
        "command": Message(_COMMAND_HINT, "keep the five fields before it"),
        "iCalendar": Message("this is a rule of iCalendar", "write fields such as 0 9 * * MON"),
        "comment": Message(
            "a comment does not belong to the expression",
            "remove it",
            (HostMessage(PLAIN, "a comment does not belong to the schedule", "remove it"),),
            SAME_MEANING,
        ),
        "with a command": Message(_FIELD_COUNT, _COMMAND_HINT, (HostMessage(PLAIN, _PLAIN_COUNT, _COMMAND_HINT),)),
        "nickname without @": Message(
            _FIELD_COUNT,
            _DID_YOU_MEAN,
            (
                HostMessage(PLAIN, _PLAIN_COUNT, _DID_YOU_MEAN),
                HostMessage("github", _PLAIN_COUNT, "write five fields such as 17 4 * * *", keeps_fix=False),
            ),
            SAME_MEANING,
        ),
        "field count in POSIX": Message("expected 5 fields in the posix dialect, got {count}"),
        "after a nickname": Message("{nickname} takes nothing after it"),
        "@reboot": Message(
            "@reboot is a word of cron; here it is @start: once each time the machine has started", "write @start"
        ),
        "no blank": Message("a blank is missing in {value}", _DID_YOU_MEAN),
        "misspelt nickname": Message("unknown alias {value}", _DID_YOU_MEAN, fix_is=SAME_WORD),
        "unknown nickname": Message("unknown alias {value}", "the words are {known}"),
        "repeating interval": Message(
            "a repeating interval is written R[n]/start/period, such as R5/2026-01-01T09:00:00/P1M, or R[n]/period"
        ),
    },
)
_SUCH_AS = "use an IANA name such as {example}"

E011 = _rule(
    "E011",
    "unknown time zone",
    "A zone is an IANA name such as Europe/Berlin, in exactly that spelling.",
    "TZ=Asia/Seul 0 9 * * *",
    "TZ=Asia/Seoul 0 9 * * *",
    {
        "missing": Message("the zone after TZ= is missing", "write TZ=Europe/Berlin with no space in it"),
        "misspelt": Message("unknown timezone {value}", _DID_YOU_MEAN, fix_is=SAME_WORD),
        "unknown": Message("unknown timezone {value}"),
        "of several places": Message("unknown timezone {value}", _SUCH_AS),
        "misspelt beside the expression": Message("unknown time zone {value}", _DID_YOU_MEAN, fix_is=SAME_WORD),
        "unknown beside the expression": Message("unknown time zone {value}", _SUCH_AS),
        "misspelt in a crontab": Message("unknown time zone {value}, which {host} takes for UTC", _DID_YOU_MEAN),
        "unknown in a crontab": Message("unknown time zone {value}, which {host} takes for UTC", _SUCH_AS),
    },
)

# -- @once, @every, repeating intervals -------------------------------------------------------------------

_DURATIONS = {
    "misspelt duration": Message("{value} is not a duration", _DID_YOU_MEAN),
    "not a duration": Message("{value} is not a duration", "write a duration such as 30m or 1h30m"),
    "too long": Message("{value} is longer than the calendar goes", "at most 9,999 years"),
}

E012 = _rule(
    "E012",
    "not an ISO 8601 date-time",
    "`@once` takes a date with a time, such as 2027-03-01T09:00:00, or a distance such as +20m.",
    "@once 2027-03-01",
    "@once 2027-03-01T09:00:00",
    {
        "once": Message("invalid datetime format {value}", "write 2027-03-01T09:00:00+09:00 or +20m"),
        "repeating": Message("invalid datetime format {value}", "write 2027-03-01T09:00:00"),
        "no such moment": Message("{value} does not exist: {why}"),
        "offset at the end only": Message("{value} has no offset and the end has one", "write the offset at both"),
    },
)
E013 = _rule(
    "E013",
    "not a positive duration",
    "`@every` takes a positive duration such as 30m, 1h30m or 500ms.",
    "@every 30min",
    "@every 30m",
    {
        **_DURATIONS,
        "missing": Message("duration is missing", "write @every 30m"),
        "zero": Message("duration must be positive"),
        "period": Message("{value} is not a positive ISO 8601 period", "write P1M, P3W or PT90M"),
        "end before start": Message("the end must lie after the start"),
    },
)
E014 = _rule(
    "E014",
    "the shorter duration of a range comes first",
    "A random interval is written with its shorter duration first.",
    "@every 2h-1h",
    "@every 1h-2h",
    Message("min duration must be less than max"),
)
E017 = _rule(
    "E017",
    "not a positive relative duration",
    "A relative `@once` counts a positive duration from now.",
    "@once +0s",
    "@once +20m",
    {
        **_DURATIONS,
        "zero": Message("relative duration must be positive"),
        "after the calendar": Message("relative duration ends after the year 9999"),
    },
)

# -- options ----------------------------------------------------------------------------------------------

E015 = _rule(
    "E015",
    "unknown option",
    "The options are from, jitter, max, stagger, tag, until and window.",
    "0 9 * * * {jiter:30s}",
    "0 9 * * * {jitter:30s}",
    {
        "misspelt": Message("unknown option {value}", _DID_YOU_MEAN, fix_is=SAME_WORD),
        "unknown": Message("unknown option {value}", "the options are {known}"),
        "zone": Message("a zone is no option", "write TZ={zone} in front of the schedule"),
        "with an equals sign": Message("a colon stands between an option and its value", _DID_YOU_MEAN),
    },
)
E016 = _rule(
    "E016",
    "option value of the wrong type",
    "Each option has a type: jitter, stagger and window take a duration, from and until a date, max a "
    "count, tag words joined by +.",
    "0 9 * * * {window:soon}",
    "0 9 * * * {window:15m}",
    {
        "no value": Message("option {value} has no value", "write {name}:…"),
        "misspelt duration": Message("expected duration, got {value}", _DID_YOU_MEAN),
        "not a duration": Message("expected duration, got {value}", "write a duration such as 1h30m"),
        "not a date": Message("expected date or datetime, got {value}", "write 2027-01-31 or 2027-01-31T09:00:00"),
        "no such date": Message("{value} does not exist: {why}"),
        "not a count": Message("expected positive integer, got {value}"),
        "not a tag": Message("expected tags (a letter, then letters, digits, _ or -, joined by +), got {value}"),
    },
)
E020 = _rule(
    "E020",
    "'from' is not before 'until'",
    "What starts after it ends never runs.",
    "0 9 * * * {from:2028-01-01, until:2027-06-30}",
    "0 9 * * * {from:2027-01-01, until:2027-06-30}",
    Message("'from' must be before 'until'"),
)
E021 = _rule(
    "E021",
    "count is not positive",
    "`max` is how often a schedule may fire in all.",
    "0 9 * * * {max:0}",
    "0 9 * * * {max:10}",
    {
        "not positive": Message("must be positive, got {count}"),
        "too many": Message("{value} repetitions are too many"),
    },
)
E023 = _rule(
    "E023",
    "window is not positive",
    "`window` is how late a run may start; nothing starts within no time.",
    "0 9 * * * {window:0s}",
    "0 9 * * * {window:15m}",
    Message("must be positive"),
)
E024 = _rule(
    "E024",
    "stagger is not positive",
    "`stagger` keeps jobs apart by up to its duration.",
    "0 * * * * {stagger:0s}",
    "0 * * * * {stagger:5m}",
    Message("must be positive"),
)
W001 = _rule(
    "W001",
    "duplicate tag",
    "A tag given twice is kept twice and means nothing more.",
    "0 9 * * * {tag:a+a}",
    "0 9 * * * {tag:a+b}",
    Message("duplicate tag '{tag}'"),
    WARNING,
)
W123 = _rule(
    "W123",
    "option given twice",
    "The last of two values counts.",
    "0 9 * * * {max:3, max:5}",
    "0 9 * * * {max:5}",
    Message("option '{name}' is given twice", "this one, the last, counts"),
    WARNING,
)
SYNTAX_RULES = (
    *FIELD_RULES.values(), E007, E010, E011, E012, E013, E014, E015, E016, E017, E020, E021, E023, E024, W001, W123,
)  # fmt: skip
