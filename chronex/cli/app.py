"""The table of commands, and the program that is built from it."""

# Annotations are values here, not text: typer would evaluate each one again at every start.

from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

# Each command and where it is declared, in the order of the help. A declaration is a function, or a Typer of its
# own for a command with commands below it.
COMMANDS: dict[str, str] = {
    "explain": "expressions:explain",
    "next": "expressions:next_runs",
    "lint": "editor:lint",
    "fmt": "expressions:fmt",
    "lsp": "editor:lsp",
    "init": "jobs:init",
    "apply": "updates:apply",
    "run": "jobs:run",
    "tui": "dashboard:tui",
    "list": "jobs:list_jobs",
    "show": "jobs:show",
    "history": "jobs:history",
    "logs": "jobs:logs",
    "status": "watch:status",
    "why": "watch:why",
    "trigger": "acts:trigger",
    "pause": "acts:pause",
    "resume": "acts:resume",
    "cancel": "acts:cancel",
    "replay": "acts:replay",
    "dlq": "acts:dlq",
    "state": "state:state",
    "verify": "verify:verify",
    "doctor": "stores:doctor",
    "backup": "stores:backup",
    "restore": "stores:restore",
    "simulate": "simulation:simulate",
    "import": "imports:import_schedules",
    "service": "service:service",
    "completion": "reference:completion",
    "man": "reference:man",
    "version": "expressions:show_version",
}
# `chronex why backup -2h`: a time before now is no option, and no -h either.
_SETTINGS: dict[str, dict[str, Any]] = {"why": {"ignore_unknown_options": True, "help_option_names": ["--help"]}}


class PlainCommand(TyperCommand):
    """A usage line as manual pages have it: JOB is needed, [TIME] is not."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [piece[1:-1] if piece.startswith("{") else piece for piece in super().collect_usage_pieces(ctx)]


def understood(arguments: Sequence[str]) -> list[str]:
    """The arguments as they are meant: `chronex why backup -2h` has no option -h, but `chronex why -h` has."""
    words = list(arguments)
    if words[:1] == ["why"]:
        end = words.index("--") if "--" in words else len(words)
        words[:end] = ["--help" if word == "-h" else word for word in words[:end]]
    return words


def app_for(arguments: Sequence[str]) -> typer.Typer:
    """The program for these arguments. Building a command costs a millisecond, so only the one asked for is built;
    where none is recognised, all are, for help and for the error message."""
    app = typer.Typer(
        name="chronex",
        help="Cron you can see, explain and trust.",
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(root)
    asked = arguments[0] if arguments else ""
    for name in [asked] if asked in COMMANDS else COMMANDS:
        _add(app, name)
    return app


def _add(app: typer.Typer, name: str) -> None:
    topic, _, attribute = COMMANDS[name].partition(":")
    declared = getattr(import_module(f"chronex.cli.surface.{topic}"), attribute)
    if isinstance(declared, typer.Typer):
        for below in declared.registered_commands:
            below.cls = PlainCommand
        app.add_typer(declared, name=name)
    else:
        app.command(name, cls=PlainCommand, context_settings=_SETTINGS.get(name))(declared)


def root(
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.", is_eager=True)] = False,
) -> None:
    if version:
        from chronex.cli.surface.expressions import show_version

        show_version()
        raise typer.Exit
