"""The rules on valid expressions that do what their writer may not expect; timing/advice.py finds them."""

from __future__ import annotations

from collections.abc import Mapping

from chronex.expr.diagnostics import INFO, PLAIN, SAME_MEANING, WARNING, Example, HostMessage, Message, Rule


def _rule(
    code: str,
    title: str,
    explanation: str,
    bad: str,
    good: str,
    messages: Mapping[str, Message] | Message,
    *,
    silent_for: tuple[str, ...] = (),
) -> Rule:
    cases = {"": messages} if isinstance(messages, Message) else messages
    silent = frozenset(silent_for)
    return Rule(code, title, WARNING, explanation, Example(bad), Example(good), cases, silent)


# -- which days and times ---------------------------------------------------------------------------------

_NO_SUCH_DAY = "there is no day {day} in {months}: skipped"

W101 = _rule(
    "W101",
    "never fires",
    "No date matches, today or in 400 years. The expression is valid, and nothing will ever run.",
    "0 9 30 2 *",
    "0 9 28 2 *",
    {
        "cron": Message("never fires: no day of {months} matches"),
        "calendar event": Message("never elapses: no date from now on matches"),
    },
)
W102 = _rule(
    "W102",
    "day of month OR day of week",
    "When both day fields are restricted, cron fires when EITHER matches: on every 13th and on every "
    "Friday, not only on Friday the 13th.",
    "0 0 13 * FRI",
    "0 0 * * FRI#2",
    Message("fires when the day of month OR the day of week matches, not only when both do"),
)
_LONG_STEP = "step {step} is longer than the field: only its first value matches"
W103 = _rule(
    "W103",
    "step does not divide the field",
    "A step counts from the start of its field and starts again there, so that the last distance is "
    "shorter than the others.",
    "*/7 * * * *",
    "*/6 * * * *",
    {
        "uneven": Message("*/{step} starts again with each {unit}: the last distance is {rest}, not {step}"),
        "uneven days": Message("*/{step} starts again on day 1 of each month: the last distance is shorter"),
        "longer than the field": Message(_LONG_STEP),
        "interval": Message(
            _LONG_STEP, "an interval is written @every {step}{letter}", (HostMessage(PLAIN, _LONG_STEP),)
        ),
        "longer from a value": Message("step {step} is longer than the field: only {first} matches"),
    },
)
W104 = _rule(
    "W104",
    "every minute of an hour",
    "A `*` in the minutes beside a single hour is 60 runs in that hour. Who wants one writes 0.",
    "* 2 * * *",
    "0 2 * * *",
    Message("fires every minute from {hour:02}:00 to {hour:02}:59, 60 times", "for once write 0"),
)
W105 = _rule(
    "W105",
    "rare or missing dates",
    "A month that lacks the day is skipped: day 31 runs in seven months of the year.",
    "0 0 31 * *",
    "0 0 L * *",
    {
        "fifth weekday": Message("not every month has a fifth one: those months are skipped"),
        "leap day": Message("29 February exists in leap years only"),
        "no such day": Message(_NO_SUCH_DAY),
        "last day meant": Message(
            _NO_SUCH_DAY,
            "L is the last day of each month",
            (HostMessage(PLAIN, _NO_SUCH_DAY, keeps_fix=False),),
        ),
    },
)
W106 = _rule(
    "W106",
    "stepped days beside the other day field",
    "`*/2` restricts the days, so that the other day field is joined by OR; crons disagree here, some require both.",
    "0 9 */2 * MON",
    "0 9 * * MON",
    Message(
        "{value} counts as a restriction, so either day field may match",
        "other crons require both here",
        (
            HostMessage(
                "crontab", "{value} begins with *, so cron fires only when both day fields match", severity=INFO
            ),
        ),
    ),
)
W107 = _rule(
    "W107",
    "redundant step",
    "A step of 1 changes nothing.",
    "*/1 * * * *",
    "* * * * *",
    Message("*/1 is the same as *", fix_is=SAME_MEANING),
)
W108 = _rule(
    "W108",
    "question mark read as *",
    "Quartz writes ? for a day field that is left open; here that is *. Quartz also counts weekdays from 1 for "
    "Sunday, where 1 is Monday here: a number in a text that came from there means another day.",
    "0 9 ? * MON",
    "0 9 * * MON",
    {
        "": Message("'?' is Quartz's way to leave a day field open", "read as *", fix_is=SAME_MEANING),
        "numbered weekdays": Message(
            "'?' is Quartz's way to leave a day field open, and there 1 is Sunday: in {text} 1 is Monday here",
            "write weekdays by name",
        ),
    },
    silent_for=("kubernetes",),  # there the question mark is a part of the language
)

# -- bounds and clock changes -----------------------------------------------------------------------------

W109 = _rule(
    "W109",
    "no occurrence left",
    "The bounds, or the date of `@once`, leave no run.",
    "0 9 * * * {until:2026-12-31}",
    "0 9 * * * {until:2027-12-31}",
    {
        "moment outside": Message("no occurrence: the moment lies outside from/until"),
        "moment passed": Message("the moment has passed: it never fires"),
        "none left": Message("no occurrence is left"),
        "none between": Message("no occurrence lies between from and until"),
    },
)
W111 = _rule(
    "W111",
    "falls in a clock gap",
    "In spring the clock skips an hour. A run inside it fires at its end, is merged with another, or is "
    "skipped, as the host has it.",
    "TZ=Europe/Berlin 30 2 * * *",
    "TZ=Europe/Berlin 30 3 * * *",
    Message("on {date} in {zone} {effect}"),
)
W112 = _rule(
    "W112",
    "falls in a clock overlap",
    "In autumn an hour comes twice. A run inside it fires once or twice, as the host and the kind of "
    "schedule have it.",
    "TZ=America/New_York 30 1 * * *",
    "TZ=America/New_York 30 3 * * *",
    Message("on {date} in {zone} {effect}"),
    silent_for=("github",),  # GitHub does not say what an hour that comes twice does
)

# -- options ----------------------------------------------------------------------------------------------

E022 = _rule(
    "E022",
    "jitter exceeds half the interval",
    "A jitter of more than half the interval lets two runs come so close that they look like one.",
    "@every 10m {jitter:8m}",
    "@every 10m {jitter:2m}",
    Message("{jitter} exceeds 50% of schedule interval"),
)
E025 = _rule(
    "E025",
    "stagger exceeds the interval",
    "A stagger longer than the interval moves a run behind the next one.",
    "@every 10m {stagger:15m}",
    "@every 10m {stagger:5m}",
    Message("{stagger} exceeds schedule interval"),
)
W121 = _rule(
    "W121",
    "offsets exceed the window",
    "Stagger and jitter together move a run further than its window allows, and then it is skipped.",
    "0 9 * * * {jitter:20m, window:15m}",
    "0 9 * * * {jitter:5m, window:15m}",
    Message("stagger and jitter of up to {total} exceed the window: such runs are skipped"),
)
W122 = _rule(
    "W122",
    "jitter exceeds half the shortest distance",
    "A jitter of more than half the distance between runs lets two of them come close together.",
    "*/10 * * * * {jitter:8m}",
    "*/10 * * * * {jitter:2m}",
    Message("{jitter} exceeds 50% of the shortest distance of {shortest}"),
)
W124 = _rule(
    "W124",
    "window longer than the distance between runs",
    "A window longer than the distance between runs lets a late run meet the next one.",
    "*/10 * * * * {window:30m}",
    "*/10 * * * * {window:5m}",
    Message("longer than the shortest distance of {shortest}: a late run meets the next one"),
)
ADVICE_RULES = (
    W101, W102, W103, W104, W105, W106, W107, W108, W109, W111, W112, E022, E025, W121, W122, W124,
)  # fmt: skip
