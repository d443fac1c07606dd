"""explain, next and fmt: read an expression, answer, exit."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

from chronex.cli.arguments import UsageError, ZoneChoice, choose_zone, read_instant
from chronex.cli.carets import caret_lines
from chronex.cli.spread import SpreadOptions, read_spread
from chronex.cli.terminal import err, out
from chronex.errors import ExpressionError
from chronex.expr.parser import DIALECTS
from chronex.text.suggestions import nearest
from chronex.timing import parse, validate
from chronex.timing.expression import Expression
from chronex.timing.occurrences import LAST_MS


def choose(option: str, value: str, allowed: tuple[str, ...]) -> str:
    """One of a few words, or a usage error that names them."""
    if value not in allowed:
        meant = nearest(value, allowed)
        hint = f"did you mean {meant}?" if meant else f"use {', '.join(allowed[:-1])} or {allowed[-1]}"
        raise UsageError(f"{option}: {value!r} is not known; {hint}")
    return value


def read_expression(text: str, dialect: str, choice: ZoneChoice, since: int) -> Expression | None:
    """The expression, or None after its mistakes have been shown on standard error."""
    choose("--dialect", dialect, DIALECTS)
    try:
        return parse(text, dialect, choice.zone.tzinfo, reference_ms=since)
    except ExpressionError as error:
        for line in caret_lines(text, error.diagnostics):
            err(line)
        return None


def run_explain(
    text: str,
    count: int,
    since_text: str | None,
    tz: str | None,
    identity: str | None,
    dialect: str,
    form: str,
    asked: SpreadOptions | None,
) -> int:
    from chronex.cli.explain import explain

    choose("--format", form, ("text", "json"))
    choose("--dialect", dialect, DIALECTS)
    choice = choose_zone(tz)
    since = read_instant(since_text, choice.zone)
    result = validate(text, dialect, choice.zone.tzinfo, since)
    if not result.is_valid:
        return _show_invalid(text, form, result.to_list(), dialect, choice, since)
    expression = parse(text, dialect, choice.zone.tzinfo, reference_ms=since)
    zone = expression.occurrences(choice.zone.tzinfo).zone
    spread = None if asked is None else read_spread(asked, zone, identity)
    found = explain(text, expression, result.warnings, choice, since, count, identity, spread)
    if form == "json":
        import json

        out(json.dumps(found.to_dict(), indent=2, ensure_ascii=False))
        return 0
    from chronex.cli.explain_text import render

    for line in render(found):
        out(line)
    return 0


def _show_invalid(
    text: str, form: str, diagnostics: list[dict[str, object]], dialect: str, choice: ZoneChoice, since: int
) -> int:
    if form == "json":
        import json

        out(json.dumps({"expression": text, "dialect": dialect, "diagnostics": diagnostics}, indent=2))
    else:
        read_expression(text, dialect, choice, since)
    return 2


def run_next(text: str, count: int, since_text: str | None, tz: str | None, dialect: str, form: str = "text") -> int:
    from chronex.cli.explain import iso

    choose("--format", form, ("text", "json"))
    choice = choose_zone(tz)
    since = read_instant(since_text, choice.zone)
    expression = read_expression(text, dialect, choice, since)
    if expression is None:
        return 2
    timing = expression.occurrences(choice.zone.tzinfo)
    limit = min(count, expression.options.max or count)
    instants = (iso(ms, timing.zone) for ms in islice(timing.between(since + 1, LAST_MS, since), limit))
    shown = _print_list(instants) if form == "json" else _print_lines(instants)
    if not shown:
        err(f"chronex: no occurrence after {iso(since, timing.zone)}")
        return 1
    return 0


def _print_lines(instants: Iterable[str]) -> int:
    count = 0
    for count, instant in enumerate(instants, 1):  # noqa: B007  how many there were
        out(instant)
    return count


def _print_list(instants: Iterable[str]) -> int:
    import json

    found = list(instants)
    out(json.dumps(found, indent=2))
    return len(found)


def run_fmt(texts: list[str], dialect: str, form: str = "text") -> int:
    """A relative `@once +20m` stays relative: formatting a text does not decide when it counts from."""
    choose("--dialect", dialect, DIALECTS)
    choose("--format", form, ("text", "json"))
    rows = [_formatted(text, dialect) for text in texts]
    if form == "json":
        import json

        told = [{**row, "diagnostics": [found.to_dict() for found in row["diagnostics"]]} for row in rows]
        out(json.dumps(told, indent=2, ensure_ascii=False))
    for row in rows if form == "text" else ():
        if row["canonical"] is not None:
            out(row["canonical"])
            continue
        for line in caret_lines(row["expression"], row["diagnostics"]):
            err(line)
    return 0 if all(row["canonical"] is not None for row in rows) else 2


def _formatted(text: str, dialect: str) -> dict[str, Any]:
    try:
        return {"expression": text, "canonical": str(parse(text, dialect)), "diagnostics": ()}
    except ExpressionError as error:
        return {"expression": text, "canonical": None, "diagnostics": error.diagnostics}
