"""Options that several commands share."""

# Annotations are values here, not text: typer would evaluate each one again at every start.

from typing import Annotated

import typer

Dialect = Annotated[str, typer.Option(help="The language of the expression: chronex or posix.", metavar="DIALECT")]
Zone = Annotated[
    str | None, typer.Option("--tz", help="Zone for expressions without TZ= (default: the host's).", metavar="ZONE")
]
Since = Annotated[
    str | None, typer.Option("--from", help="Count from this ISO 8601 time (default: now).", metavar="TIME")
]
Text = Annotated[str, typer.Argument(help="The expression, in quotes.", metavar="EXPR")]
StorePath = Annotated[
    str | None,
    typer.Option(
        "--store", help="The store's directory (default: CHRONEX_STORE, else your state directory).", metavar="DIR"
    ),
]
Form = Annotated[str, typer.Option("--format", help="text or json.", metavar="FORMAT")]
Config = Annotated[
    str | None,
    typer.Option("--config", help="The job file (default: CHRONEX_CONFIG, else ./chronex.toml).", metavar="FILE"),
]
