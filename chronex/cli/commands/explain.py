"""`chronex explain`: what an expression means, when it fires, and what clock changes do to it."""

# Annotations are values here, not text: typer would evaluate each one again at every start.

from typing import TYPE_CHECKING, Annotated

import typer

from chronex.cli.options import (
    Calendars,
    Dialect,
    Form,
    OnExcludedWord,
    Since,
    Text,
    UsageError,
    Workdays,
    ZoneName,
    check_format,
    choose,
    choose_zone,
    read_instant,
)
from chronex.cli.output import caret_lines, err, print_json, print_styled

if TYPE_CHECKING:  # the decision core is loaded only where a spread is asked for
    from chronex.decision.decide import Spread
    from chronex.expr.diagnostics import ValidationResult
    from chronex.timing.expression import Expression
    from chronex.timing.occurrences import Occurrences
    from chronex.views.expression_facts import Explanation

_Identity = Annotated[str | None, typer.Option("--id", help="The job's name, for stagger and spread.", metavar="JOB")]

_Spread = Annotated[
    str | None, typer.Option(help="Spread each run over a window of this length.", metavar="DURATION")
]
_Mode = Annotated[str, typer.Option(help="Where the window lies: after, around or before.", metavar="MODE")]
_Seed = Annotated[str, typer.Option(help="How long a choice lasts: stable, daily or weekly.", metavar="SEED")]
_Salt = Annotated[
    str, typer.Option(help="Any text; another one gives other choices of spread and stagger.", metavar="TEXT")
]
_Target = Annotated[
    str | None,
    typer.Option(
        "--as", help="The equivalent for systemd, quartz, kubernetes or cron, or why not.", metavar="PROGRAM"
    ),
]


def explain(
    text: Text,
    count: Annotated[int, typer.Option("-n", "--count", help="How many runs.", metavar="N", min=0, max=1000)] = 10,
    since: Since = None,
    tz: ZoneName = None,
    identity: _Identity = None,
    dialect: Dialect = "chronex",
    form: Form = "text",
    spread: _Spread = None,
    mode: _Mode = "after",
    dist: Annotated[
        str, typer.Option(help="uniform, skewEarly[:S], skewLate[:S], normal[:…], exponential[:…].", metavar="NAME")
    ] = "uniform",
    seed: _Seed = "stable",
    salt: _Salt = "",
    only: Annotated[
        str, typer.Option(help="Clauses that must hold, such as dow=MON-FRI;between=08:00-20:00.", metavar="CLAUSES")
    ] = "",
    avoid: Annotated[str, typer.Option(help="Clauses that must not hold.", metavar="CLAUSES")] = "",
    calendar: Calendars = None,
    on_excluded: OnExcludedWord = "skip",
    workday: Workdays = None,
    target: _Target = None,
) -> int:
    """Say what an expression means, when it fires, and what clock changes do to it.

    With --as, say instead what to write for another program, proven by five years of instants. Exit 1 if nothing is.

    Example: chronex explain "TZ=Asia/Seoul 0 9 * * MON-FRI <jitter:30s>" -n 3
    """
    from chronex.cli.calendar_options import calendar_rules_of
    from chronex.expr.parser import DIALECTS
    from chronex.timing import parse_and_validate
    from chronex.views.expression_facts import Question
    from chronex.views.expression_facts import explain as facts_about

    check_format(form)
    choose("--dialect", dialect, DIALECTS)
    choice = choose_zone(tz)
    since_ms = read_instant(since, choice.zone)
    expression, result = parse_and_validate(text, dialect, choice.zone.tzinfo, since_ms)
    if expression is None:
        _print_invalid(text, dialect, form, result)
        return 2
    if target is not None:
        return _print_equivalent(text, expression, expression.occurrences(choice.zone.tzinfo), target, since_ms, form)
    window = None
    if spread is not None:
        zone = expression.occurrences(choice.zone.tzinfo).zone
        chosen = {"window_mode": mode, "seed_strategy": seed, "salt": salt, "only": only, "avoid": avoid}
        window = _read_spread(spread, identity, zone.name, dist, chosen)
    rules = calendar_rules_of(calendar, on_excluded, workday, (since_ms, choice.zone), expression)
    question = Question(since_ms, count, identity, window, rules)
    found = facts_about(text, expression, result.warnings, choice, question)
    _print_found(found, form)
    return 0


def _print_equivalent(
    text: str, expression: "Expression", timing: "Occurrences", target: str, since_ms: int, form: str
) -> int:
    from chronex.cli.equivalent_output import equivalent_fields, render_equivalent
    from chronex.imports.equivalents import TARGETS, equivalent
    from chronex.lint.cron_programs import program_of_machine

    choose("--as", target, TARGETS)
    program = program_of_machine()
    found = equivalent(timing.meaning, timing.zone, target, program, since_ms // 1000)
    if form == "json":
        print_json(equivalent_fields(text, str(expression), found, program))
    else:
        print_styled(render_equivalent(found, timing.zone, program))
    return 0 if found.reason is None else 1


def _print_found(found: "Explanation", form: str) -> None:
    if form == "json":
        print_json(found.to_dict(), ensure_ascii=False)
        return
    from chronex.cli.explain_text import render

    print_styled(render(found))


def _print_invalid(text: str, dialect: str, form: str, result: "ValidationResult") -> None:
    if form == "json":
        print_json({"expression": text, "dialect": dialect, "diagnostics": result.to_list()})
        return
    found = sorted((*result.errors, *result.warnings), key=lambda d: (d.start, d.end))
    for line in caret_lines(text, found):
        err(line)


def _read_spread(length: str, identity: str | None, zone: str, dist: str, chosen: dict[str, str]) -> "Spread":
    """The spread of --spread and the options beside it; `chosen` has those that are taken as they are written."""
    from datetime import timedelta

    from chronex.decision import make_spread
    from chronex.decision.distributions import parse_distribution
    from chronex.text.durations import parse_duration

    window = parse_duration(length)
    if window is None:
        raise UsageError(f"--spread: {length!r} is not a duration; write 2h or 90m")
    if not identity:
        raise UsageError("--spread needs --id: the chosen second depends on the job's identity")
    name, parameters = parse_distribution(dist)
    return make_spread(
        identity=identity,
        timezone=zone,
        window_duration=timedelta(milliseconds=window),
        distribution=name,
        distribution_params=parameters,
        **chosen,
    )
