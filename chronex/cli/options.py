"""Options that several commands share.

The annotations of declarations are values, not text, so that typer need not evaluate them at every start.
"""

from typing import Annotated

import typer

Dialect = Annotated[str, typer.Option(help="The language of the expression: chronex or posix.", metavar="DIALECT")]
ZoneName = Annotated[
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
JobName = Annotated[str, typer.Argument(help="The job's name.", metavar="JOB")]
OfJob = Annotated[str | None, typer.Option("--job", help="Those of this job.", metavar="JOB")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for the end; exit 1 unless it went well.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
AsOf = Annotated[str, typer.Option("--as-of", help="With the job's version of: then or now.", metavar="WHEN")]
Reason = Annotated[str, typer.Option(help="Why, for the journal.", metavar="TEXT")]
