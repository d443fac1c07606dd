"""`chronex explain`: what an expression means, when it fires, and what clock changes do to it."""

# Annotations are values here, not text: typer would evaluate each one again at every start.

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from chronex.cli.arguments import UsageError, check_format, choose, choose_zone, read_instant
from chronex.cli.options import Dialect, Form, Since, Text, ZoneName
from chronex.cli.output import caret_lines, err, print_json, print_painted

if TYPE_CHECKING:  # the decision core is loaded only where a spread is asked for
    from chronex.decision.decide import Spread
    from chronex.expr.diagnostics import ValidationResult


def explain(
    text: Text,
    count: Annotated[int, typer.Option("-n", "--count", help="How many runs.", metavar="N", min=0, max=1000)] = 10,
    since: Since = None,
    tz: ZoneName = None,
    identity: Annotated[
        str | None, typer.Option("--id", help="The job's name, for stagger and spread.", metavar="JOB")
    ] = None,
    dialect: Dialect = "chronex",
    form: Form = "text",
    spread: Annotated[
        str | None, typer.Option(help="Spread each run over a window of this length.", metavar="DURATION")
    ] = None,
    mode: Annotated[
        str, typer.Option(help="Where the window lies: after, around or before.", metavar="MODE")
    ] = "after",
    dist: Annotated[
        str, typer.Option(help="uniform, skewEarly[:S], skewLate[:S], normal[:…], exponential[:…].", metavar="NAME")
    ] = "uniform",
    seed: Annotated[
        str, typer.Option(help="How long a choice lasts: stable, daily or weekly.", metavar="SEED")
    ] = "stable",
    salt: Annotated[str, typer.Option(help="Changes every choice.", metavar="TEXT")] = "",
    only: Annotated[
        str, typer.Option(help="Clauses that must hold, such as dow=MON-FRI;between=08:00-20:00.", metavar="CLAUSES")
    ] = "",
    avoid: Annotated[str, typer.Option(help="Clauses that must not hold.", metavar="CLAUSES")] = "",
) -> int:
    """Say what an expression means, when it fires, and what clock changes do to it.

    Example: chronex explain "TZ=Asia/Seoul 0 9 * * MON-FRI <jitter:30s>" -n 3
    """
    window = None if spread is None else SpreadOptions(spread, mode, dist, seed, salt, only, avoid)
    return run_explain(text, ExplainOptions(count, since, tz, identity, dialect, form, window))


class SpreadOptions(NamedTuple):
    window: str
    mode: str
    distribution: str
    seed: str
    salt: str
    only: str
    avoid: str


class ExplainOptions(NamedTuple):
    most: int
    since: str | None
    tz: str | None
    identity: str | None
    dialect: str
    form: str
    spread: SpreadOptions | None


def run_explain(text: str, options: ExplainOptions) -> int:
    from chronex.expr.parser import DIALECTS
    from chronex.timing import parse_and_validate
    from chronex.views.expression_facts import Question
    from chronex.views.expression_facts import explain as facts_about

    check_format(options.form)
    choose("--dialect", options.dialect, DIALECTS)
    choice = choose_zone(options.tz)
    since = read_instant(options.since, choice.zone)
    expression, result = parse_and_validate(text, options.dialect, choice.zone.tzinfo, since)
    if expression is None:
        _print_invalid(text, options, result)
        return 2
    zone = expression.occurrences(choice.zone.tzinfo).zone
    spread = None if options.spread is None else _read_spread(options.spread, zone.name, options.identity)
    question = Question(since, options.most, options.identity, spread)
    found = facts_about(text, expression, result.warnings, choice, question)
    if options.form == "json":
        print_json(found.to_dict(), ensure_ascii=False)
        return 0
    from chronex.cli.explain_text import render

    print_painted(render(found))
    return 0


def _print_invalid(text: str, options: ExplainOptions, result: "ValidationResult") -> None:
    if options.form == "json":
        print_json({"expression": text, "dialect": options.dialect, "diagnostics": result.to_list()})
        return
    found = sorted((*result.errors, *result.warnings), key=lambda d: (d.start, d.end))
    for line in caret_lines(text, found):
        err(line)


def _read_spread(options: SpreadOptions, zone: str, identity: str | None) -> "Spread":
    from datetime import timedelta

    from chronex.decision import make_spread
    from chronex.decision.distributions import parse_distribution
    from chronex.text.durations import parse_duration

    window = parse_duration(options.window)
    if window is None:
        raise UsageError(f"--spread: {options.window!r} is not a duration; write 2h or 90m")
    if not identity:
        raise UsageError("--spread needs --id: the chosen second depends on the job's identity")
    name, parameters = parse_distribution(options.distribution)
    return make_spread(
        identity=identity,
        timezone=zone,
        window_mode=options.mode,
        window_duration=timedelta(milliseconds=window),
        distribution=name,
        distribution_params=parameters,
        seed_strategy=options.seed,
        salt=options.salt,
        only=options.only,
        avoid=options.avoid,
    )
