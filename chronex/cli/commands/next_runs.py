"""`chronex next`: the next instants of an expression, for scripts."""

# Annotations are values here, not text: typer would evaluate each one again at every start.

from collections.abc import Iterable
from typing import Annotated

import typer

from chronex.cli.options import (
    Calendars,
    Dialect,
    Form,
    OnExcludedWord,
    Since,
    Text,
    Workdays,
    ZoneName,
    check_format,
    choose,
    choose_zone,
    read_instant,
)
from chronex.cli.output import caret_lines, err, out, print_json


def next_runs(
    text: Text,
    count: Annotated[
        int, typer.Option("-n", "--count", help="How many instants.", metavar="N", min=1, max=1_000_000)
    ] = 1,
    since: Since = None,
    tz: ZoneName = None,
    dialect: Dialect = "chronex",
    form: Form = "text",
    calendar: Calendars = None,
    on_excluded: OnExcludedWord = "skip",
    workday: Workdays = None,
) -> int:
    """Print the next instants, one ISO 8601 time a line or a list of them in JSON, for scripts.

    Example: chronex next "0 9 * * MON-FRI" -n 3 --from 2027-01-01 --tz Europe/Berlin
    """
    from itertools import islice

    from chronex.cli.calendar_options import calendar_rules_of
    from chronex.errors import ExpressionError
    from chronex.expr.parser import DIALECTS
    from chronex.text.instants import LAST_MS, rfc3339_in
    from chronex.timing import parse

    check_format(form)
    choice = choose_zone(tz)
    since_ms = read_instant(since, choice.zone)
    choose("--dialect", dialect, DIALECTS)
    try:
        expression = parse(text, dialect, choice.zone.tzinfo, reference_ms=since_ms)
    except ExpressionError as error:
        for line in caret_lines(text, error.diagnostics):
            err(line)
        return 2
    timing = expression.occurrences(choice.zone.tzinfo)
    limit = min(count, expression.options.max or count)
    instants = timing.between(since_ms + 1, LAST_MS, since_ms)
    rules = calendar_rules_of(calendar, on_excluded, workday, (since_ms, choice.zone), expression)
    if rules is not None:
        from chronex.timing.calendar_schedule import with_calendars
        from chronex.timing.job_schedule import ExpressionSchedule

        instants = with_calendars(ExpressionSchedule(timing, since_ms), rules, timing.zone).between(since_ms, LAST_MS)
    found = (rfc3339_in(ms, timing.zone.tzinfo) for ms in islice(instants, limit))
    if not _print(found, form):
        err(f"chronex: no occurrence after {rfc3339_in(since_ms, timing.zone.tzinfo)}")
        return 1
    return 0


def _print(instants: Iterable[str], form: str) -> bool:
    """False when there were none. Lines are printed as they are found: a reader such as head may stop early."""
    if form == "json":
        found = list(instants)
        print_json(found)
        return bool(found)
    is_any = False
    for instant in instants:
        out(instant)
        is_any = True
    return is_any
