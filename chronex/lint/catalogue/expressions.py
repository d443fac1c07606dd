"""The rules on expressions themselves: syntax, meaning, clock, options."""

# ruff: noqa: E501  # prose and examples, one rule a paragraph

from __future__ import annotations

from chronex.expr.codes import TITLES
from chronex.expr.diagnostics import ERROR, WARNING
from chronex.lint.catalogue.rule import Example, Rule


def _rule(code: str, text: str, bad: str, good: str, severity: str = ERROR) -> Rule:
    return Rule(code, TITLES[code], severity, text, Example(bad), Example(good))


def _warning(code: str, text: str, bad: str, good: str) -> Rule:
    return _rule(code, text, bad, good, WARNING)


RULES = (
    _rule("E001", "A six-field expression starts with the second, 0 to 59.", "75 0 9 * * *", "15 0 9 * * *"),
    _rule("E002", "The minute goes from 0 to 59.", "60 9 * * *", "0 10 * * *"),
    _rule("E003", "The hour goes from 0 to 23; midnight is 0.", "0 24 * * *", "0 0 * * *"),
    _rule("E004", "The day of the month goes from 1 to 31; `L` is the last one, `15W` the weekday nearest to the 15th. "
                  "`L` and `W` stand alone, not in a list.", "0 9 0 * *", "0 9 1 * *"),
    _rule("E005", "The month goes from 1 to 12 or from JAN to DEC.", "0 9 1 13 *", "0 9 1 12 *"),
    _rule("E006", "The day of the week goes from 0 to 7, where 0 and 7 are Sunday, or from SUN to SAT; `FRIL` is the "
                  "last Friday of the month, `MON#2` its second Monday.", "0 9 * * MNO", "0 9 * * MON"),
    _rule("E007", "A step is a positive number: `*/5` is every fifth.", "*/0 * * * *", "*/5 * * * *"),
    _rule("E010", "An expression is five or six fields, a word such as `@daily`, `@every 30m` or `@once …`, or an ISO "
                  "repeating interval; `TZ=…` may stand before it and options in braces after it.",
          "@wekly", "@weekly"),
    _rule("E011", "A zone is an IANA name such as Europe/Berlin, in exactly that spelling.",
          "TZ=Asia/Seul 0 9 * * *", "TZ=Asia/Seoul 0 9 * * *"),
    _rule("E012", "`@once` takes a date with a time, such as 2027-03-01T09:00:00, or a distance such as +20m.",
          "@once 2027-03-01", "@once 2027-03-01T09:00:00"),
    _rule("E013", "`@every` takes a positive duration such as 30m, 1h30m or 500ms.", "@every 30min", "@every 30m"),
    _rule("E014", "A random interval is written with its shorter duration first.", "@every 2h-1h", "@every 1h-2h"),
    _rule("E015", "The options are from, jitter, max, stagger, tag, until and window.",
          "0 9 * * * {jiter:30s}", "0 9 * * * {jitter:30s}"),
    _rule("E016", "Each option has a type: jitter, stagger and window take a duration, from and until a date, max a "
                  "count, tag words joined by +.", "0 9 * * * {window:soon}", "0 9 * * * {window:15m}"),
    _rule("E017", "A relative `@once` counts a positive duration from now.", "@once +0s", "@once +20m"),
    _rule("E020", "What starts after it ends never runs.",
          "0 9 * * * {from:2028-01-01, until:2027-06-30}", "0 9 * * * {from:2027-01-01, until:2027-06-30}"),
    _rule("E021", "`max` is how often a schedule may fire in all.", "0 9 * * * {max:0}", "0 9 * * * {max:10}"),
    _warning("E022", "A jitter of more than half the interval lets two runs come so close that they look like one.",
             "@every 10m {jitter:8m}", "@every 10m {jitter:2m}"),
    _rule("E023", "`window` is how late a run may start; nothing starts within no time.",
          "0 9 * * * {window:0s}", "0 9 * * * {window:15m}"),
    _rule("E024", "`stagger` keeps jobs apart by up to its duration.",
          "0 * * * * {stagger:0s}", "0 * * * * {stagger:5m}"),
    _warning("E025", "A stagger longer than the interval moves a run behind the next one.",
             "@every 10m {stagger:15m}", "@every 10m {stagger:5m}"),
    _warning("W001", "A tag given twice is kept twice and means nothing more.",
             "0 9 * * * {tag:a+a}", "0 9 * * * {tag:a+b}"),
    _warning("W101", "No date matches, today or in 400 years. The expression is valid, and nothing will ever run.",
             "0 9 30 2 *", "0 9 28 2 *"),
    _warning("W102", "When both day fields are restricted, cron fires when EITHER matches: on every 13th and on every "
                     "Friday, not only on Friday the 13th.", "0 0 13 * FRI", "0 0 * * FRI#2"),
    _warning("W103", "A step counts from the start of its field and starts again there, so that the last distance is "
                     "shorter than the others.", "*/7 * * * *", "*/6 * * * *"),
    _warning("W104", "A `*` in the minutes beside a single hour is 60 runs in that hour. Who wants one writes 0.",
             "* 2 * * *", "0 2 * * *"),
    _warning("W105", "A month that lacks the day is skipped: day 31 runs in seven months of the year.",
             "0 0 31 * *", "0 0 L * *"),
    _warning("W106", "`*/2` restricts the days, so that the other day field is joined by OR; crons disagree here, some "
                     "require both.", "0 9 */2 * MON", "0 9 * * MON"),
    _warning("W107", "A step of 1 changes nothing.", "*/1 * * * *", "* * * * *"),
    _warning("W108", "Quartz writes ? for a day field that is left open; here that is *.", "0 9 ? * MON", "0 9 * * MON"),
    _warning("W109", "The bounds, or the date of `@once`, leave no run.",
             "0 9 * * * {until:2026-12-31}", "0 9 * * * {until:2027-12-31}"),
    _warning("W111", "In spring the clock skips an hour. A run inside it fires at its end, is merged with another, or is "
                     "skipped, as the host has it.", "TZ=Europe/Berlin 30 2 * * *", "TZ=Europe/Berlin 30 3 * * *"),
    _warning("W112", "In autumn an hour comes twice. A run inside it fires once or twice, as the host and the kind of "
                     "schedule have it.", "TZ=America/New_York 30 1 * * *", "TZ=America/New_York 30 3 * * *"),
    _warning("W121", "Stagger and jitter together move a run further than its window allows, and then it is skipped.",
             "0 9 * * * {jitter:20m, window:15m}", "0 9 * * * {jitter:5m, window:15m}"),
    _warning("W122", "A jitter of more than half the distance between runs lets two of them come close together.",
             "*/10 * * * * {jitter:8m}", "*/10 * * * * {jitter:2m}"),
    _warning("W123", "The last of two values counts.", "0 9 * * * {max:3, max:5}", "0 9 * * * {max:5}"),
    _warning("W124", "A window longer than the distance between runs lets a late run meet the next one.",
             "*/10 * * * * {window:30m}", "*/10 * * * * {window:5m}"),
)  # fmt: skip
