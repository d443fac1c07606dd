"""The table of commands, and the program that is built from it."""

# Annotations are values here, not text: typer would evaluate each one again at every start.

from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeAlias

import typer
from typer.core import TyperCommand

# A command is declared by a function, or by a Typer of its own where it has commands below it.
Declaration: TypeAlias = "Callable[..., int | None] | typer.Typer"


# The functions below import the module of one command and return its declaration. Only the module of the command
# that runs is loaded, and an editor can follow each of them.


def _explain() -> Declaration:
    from chronex.cli.commands.explain import explain

    return explain


def _next() -> Declaration:
    from chronex.cli.commands.next_runs import next_runs

    return next_runs


def _lint() -> Declaration:
    from chronex.cli.commands.lint import lint

    return lint


def _fmt() -> Declaration:
    from chronex.cli.commands.fmt import fmt

    return fmt


def _lsp() -> Declaration:
    from chronex.cli.commands.lsp import lsp

    return lsp


def _init() -> Declaration:
    from chronex.cli.commands.init import init

    return init


def _apply() -> Declaration:
    from chronex.cli.commands.apply import apply

    return apply


def _run() -> Declaration:
    from chronex.cli.commands.run import run

    return run


def _tui() -> Declaration:
    from chronex.cli.commands.tui import tui

    return tui


def _list() -> Declaration:
    from chronex.cli.commands.list_jobs import list_jobs

    return list_jobs


def _show() -> Declaration:
    from chronex.cli.commands.show import show

    return show


def _history() -> Declaration:
    from chronex.cli.commands.history import history

    return history


def _logs() -> Declaration:
    from chronex.cli.commands.logs import logs

    return logs


def _status() -> Declaration:
    from chronex.cli.commands.status import status

    return status


def _why() -> Declaration:
    from chronex.cli.commands.why import why

    return why


def _trigger() -> Declaration:
    from chronex.cli.commands.trigger import trigger

    return trigger


def _pause() -> Declaration:
    from chronex.cli.commands.pause import pause

    return pause


def _resume() -> Declaration:
    from chronex.cli.commands.pause import resume

    return resume


def _cancel() -> Declaration:
    from chronex.cli.commands.cancel import cancel

    return cancel


def _replay() -> Declaration:
    from chronex.cli.commands.replay import replay

    return replay


def _dlq() -> Declaration:
    from chronex.cli.commands.dlq import dlq

    return dlq


def _state() -> Declaration:
    from chronex.cli.commands.state import state

    return state


def _verify() -> Declaration:
    from chronex.cli.commands.verify import verify

    return verify


def _doctor() -> Declaration:
    from chronex.cli.commands.doctor import doctor

    return doctor


def _backup() -> Declaration:
    from chronex.cli.commands.backup import backup

    return backup


def _restore() -> Declaration:
    from chronex.cli.commands.backup import restore

    return restore


def _simulate() -> Declaration:
    from chronex.cli.commands.simulate import simulate

    return simulate


def _import() -> Declaration:
    from chronex.cli.commands.import_jobs import import_jobs

    return import_jobs


def _service() -> Declaration:
    from chronex.cli.commands.service import service

    return service


def _completion() -> Declaration:
    from chronex.cli.commands.completion import completion

    return completion


def _man() -> Declaration:
    from chronex.cli.commands.completion import man

    return man


def _version() -> Declaration:
    from chronex.cli.commands.version import version

    return version


# Each command and how its declaration is loaded, in the order of the help.
COMMANDS: dict[str, Callable[[], Declaration]] = {
    "explain": _explain,
    "next": _next,
    "lint": _lint,
    "fmt": _fmt,
    "lsp": _lsp,
    "init": _init,
    "apply": _apply,
    "run": _run,
    "tui": _tui,
    "list": _list,
    "show": _show,
    "history": _history,
    "logs": _logs,
    "status": _status,
    "why": _why,
    "trigger": _trigger,
    "pause": _pause,
    "resume": _resume,
    "cancel": _cancel,
    "replay": _replay,
    "dlq": _dlq,
    "state": _state,
    "verify": _verify,
    "doctor": _doctor,
    "backup": _backup,
    "restore": _restore,
    "simulate": _simulate,
    "import": _import,
    "service": _service,
    "completion": _completion,
    "man": _man,
    "version": _version,
}
# `chronex why backup -2h`: a time before now is no option, and no -h either.
_SETTINGS: dict[str, dict[str, Any]] = {"why": {"ignore_unknown_options": True, "help_option_names": ["--help"]}}


class PlainCommand(TyperCommand):
    """A usage line as manual pages have it: JOB is needed, [TIME] is not."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [piece[1:-1] if piece.startswith("{") else piece for piece in super().collect_usage_pieces(ctx)]


def normalized(arguments: Sequence[str]) -> list[str]:
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
    first = arguments[0] if arguments else ""
    for name in [first] if first in COMMANDS else COMMANDS:
        _add(app, name)
    return app


def _add(app: typer.Typer, name: str) -> None:
    declared = COMMANDS[name]()
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
        from chronex.cli.commands.version import version as show_version

        show_version()
        raise typer.Exit
