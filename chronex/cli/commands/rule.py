"""`chronex rule`: the page of a rule of the linter, or the list of them."""

from __future__ import annotations

from typing import Annotated

import typer

from chronex.cli.options import Form, check_format


def rule(
    code: Annotated[str | None, typer.Argument(help="The code of a rule; none: all of them.", metavar="CODE")] = None,
    form: Form = "text",
) -> int:
    """Show what a rule of lint says, with a bad and a good example.

    Example: chronex rule W111
    """
    check_format(form)
    return run_rule(code, form)


def run_rule(code: str | None, form: str) -> int:
    from chronex.cli.lint_io import print_rule, print_rules

    if code is None:
        print_rules(form)
    elif form == "json":
        print_rules(form, only=code)
    else:
        print_rule(code, "chronex rule")
    return 0
