"""`chronex fmt`: expressions in canonical form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from chronex.cli.options import Dialect, Form, check_format, choose
from chronex.cli.output import caret_lines, err, out, print_json

if TYPE_CHECKING:
    from chronex.expr.diagnostics import Diagnostic


def fmt(
    texts: Annotated[list[str], typer.Argument(help="Expressions, in quotes.", metavar="EXPR…")],
    dialect: Dialect = "chronex",
    form: Form = "text",
) -> int:
    """Print expressions in canonical form.

    Example: chronex fmt "0 09 * * mon-fri <jitter:90s>"
    """
    from chronex.expr.parser import DIALECTS

    choose("--dialect", dialect, DIALECTS)
    check_format(form)
    return run_fmt(texts, dialect, form)


class Formatted(NamedTuple):
    """`canonical` is None for a text with errors."""

    expression: str
    canonical: str | None
    diagnostics: tuple[Diagnostic, ...]


def run_fmt(texts: list[str], dialect: str, form: str) -> int:
    found = [_formatted(text, dialect) for text in texts]
    if form == "json":
        rows = [{**one._asdict(), "diagnostics": [d.to_dict() for d in one.diagnostics]} for one in found]
        print_json(rows, ensure_ascii=False)
    else:
        for one in found:
            _print(one)
    return 0 if all(one.canonical is not None for one in found) else 2


def _print(one: Formatted) -> None:
    if one.canonical is not None:
        out(one.canonical)
        return
    for line in caret_lines(one.expression, one.diagnostics):
        err(line)


def _formatted(text: str, dialect: str) -> Formatted:
    """A relative `@once +20m` stays relative: formatting a text does not decide from when it counts."""
    from chronex.errors import ExpressionError
    from chronex.timing import parse

    try:
        return Formatted(text, str(parse(text, dialect)), ())
    except ExpressionError as error:
        return Formatted(text, None, error.diagnostics)
