"""The rule on calendar events that systemd refuses; calendar_event.py finds them."""

from __future__ import annotations

from chronex.expr.diagnostics import ERROR, Message, Rule
from chronex.lint.rules.rule_examples import timer

_DID_YOU_MEAN = "did you mean {meant}?"

W161 = Rule(
    "W161",
    "calendar event not understood",
    ERROR,
    "systemd refuses the calendar event, and with it the timer: weekdays, date, time and zone, in "
    "this order, as systemd.time(7) has them.",
    bad=timer("Mon..Fri 25:00"),
    good=timer("Mon..Fri 09:00"),
    messages={
        "not ASCII": Message("only ASCII letters, digits and signs are read here"),
        "empty": Message("the calendar event is empty", "write one such as daily or Mon..Fri 09:00"),
        "order": Message("{value} is not expected here", "the order is weekdays, date, time, zone"),
        "misspelt zone": Message("unknown time zone {value}", _DID_YOU_MEAN),
        "unknown zone": Message("unknown time zone {value}", "use an IANA name such as Europe/Berlin"),
        "epoch": Message("@ is followed by seconds since 1970"),
        "end of the week": Message(
            "{value} runs over the end of the week, which systemd refuses", "write {first}..Sun,Mon..{last}"
        ),
        "misspelt weekday": Message("{value} is not a weekday", _DID_YOU_MEAN),
        "not a weekday": Message(
            "{value} is not a weekday", "a calendar event starts with weekdays, a date or a time"
        ),
        "not a date": Message("{value} is not a date", "write *-*-* as year-month-day"),
        "not a time": Message("{value} is not a time", "write hour:minute or hour:minute:second"),
        "repetition": Message("a repetition is a positive number, not {value}"),
        "star with a step": Message("{value}: * stands alone, without a range or a step", "write {meant}"),
        "star in a range": Message("{value}: * stands alone, without a range or a step"),
        "backwards": Message("the range {value} runs backwards, which systemd refuses"),
        "not a number": Message("{value} is not a {part}"),
        "out of range": Message("{part} {value} is out of range [{low}, {high}]"),
    },
    is_fix_safe=True,
)
SYSTEMD_RULES = (W161,)
