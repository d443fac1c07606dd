"""The table of commands, and the program that is built from it."""

# Annotations are values here, not text: typer would evaluate each one again at every start.

from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeAlias

import typer
from typer.core import TyperCommand, TyperGroup

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


def _rule() -> Declaration:
    from chronex.cli.commands.rule import rule

    return rule


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


def _reload() -> Declaration:
    from chronex.cli.commands.reload import reload

    return reload


def _edit() -> Declaration:
    from chronex.cli.commands.edit import edit

    return edit


def _add_job() -> Declaration:
    from chronex.cli.commands.add_job import add

    return add


def _at() -> Declaration:
    from chronex.cli.commands.at import at

    return at


def _rm() -> Declaration:
    from chronex.cli.commands.rm import rm

    return rm


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


def _report() -> Declaration:
    from chronex.cli.commands.report import report

    return report


def _events() -> Declaration:
    from chronex.cli.commands.events import events

    return events


def _logs() -> Declaration:
    from chronex.cli.commands.logs import logs

    return logs


def _status() -> Declaration:
    from chronex.cli.commands.status import status

    return status


def _groups() -> Declaration:
    from chronex.cli.commands.groups import groups

    return groups


def _nodes() -> Declaration:
    from chronex.cli.commands.nodes import nodes

    return nodes


def _why() -> Declaration:
    from chronex.cli.commands.why import why

    return why


def _trigger() -> Declaration:
    from chronex.cli.commands.trigger import trigger

    return trigger


def _stop() -> Declaration:
    from chronex.cli.commands.stop import stop

    return stop


def _restart() -> Declaration:
    from chronex.cli.commands.stop import restart

    return restart


def _keeper() -> Declaration:
    from chronex.cli.commands.keeper import keeper

    return keeper


def _launcher() -> Declaration:
    from chronex.cli.commands.keeper import launcher

    return launcher


def _dashboard() -> Declaration:
    from chronex.cli.commands.tui import dashboard

    return dashboard


def _browser_session() -> Declaration:
    from chronex.cli.commands.tui import browser_session

    return browser_session


def _names() -> Declaration:
    from chronex.cli.commands.program_info import names

    return names


# Started by a daemon, its keeper, the server of the dashboard or a completion script, and in no list.
_STARTED_BY_CHRONEX = {
    "keeper": _keeper,
    "launcher": _launcher,
    "dashboard": _dashboard,
    "browser-session": _browser_session,
    "names": _names,
}


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


def _backfill() -> Declaration:
    from chronex.cli.commands.backfill import backfill

    return backfill


def _notify() -> Declaration:
    from chronex.cli.commands.notify import notify

    return notify


def _dlq() -> Declaration:
    from chronex.cli.commands.dlq import dlq

    return dlq


def _state() -> Declaration:
    from chronex.cli.commands.state import state

    return state


def _store() -> Declaration:
    from chronex.cli.commands.store import store

    return store


def _torture() -> Declaration:
    from chronex.cli.commands.torture import torture

    return torture


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
    from chronex.cli.commands.program_info import completion

    return completion


def _man() -> Declaration:
    from chronex.cli.commands.program_info import man

    return man


def _version() -> Declaration:
    from chronex.cli.commands.program_info import version

    return version


# Each command, how its declaration is loaded, and its line of the help, in the order of the help. The line stands
# here too so that `chronex --help` loads no command; a test holds it to the declaration.
COMMANDS: dict[str, tuple[Callable[[], Declaration], str]] = {
    "explain": (_explain, "Say what an expression means, when it fires, and what clock changes do to it."),
    "next": (_next, "Print the next instants, one ISO 8601 time a line or a list of them in JSON, for scripts."),
    "lint": (
        _lint,
        "Find mistakes and surprises in job files, crontabs, workflows, CronJobs, timers and expressions.",
    ),
    "rule": (_rule, "Show what a rule of lint says, with a bad and a good example."),
    "fmt": (_fmt, "Print expressions in canonical form."),
    "lsp": (
        _lsp,
        "Serve editors over standard input and output: the findings of lint, hover, hints, completion and fixes.",
    ),
    "init": (_init, "Write a commented starter chronex.toml."),
    "apply": (_apply, "Bring the jobs of the store to what the job file says."),
    "edit": (
        _edit,
        "Edit the job file in $VISUAL or $EDITOR, see what the edit does, and apply it or leave all as it was.",
    ),
    "add": (_add_job, "Write a job into the job file and apply it."),
    "at": (_at, "Run a command once."),
    "rm": (_rm, "Take a job out of its job file and out of the store; its history stays."),
    "reload": (_reload, "Have the daemon apply its job file again: all of it or nothing."),
    "run": (_run, "Apply the job file and run its jobs until stopped, with the dashboard."),
    "stop": (_stop, "Stop the daemon; commands go on unless it is told otherwise."),
    "restart": (_restart, "Replace the daemon by a new one, of the version that is installed now."),
    "tui": (_tui, "Look at a store live: what runs, what failed and why, what comes next."),
    "list": (_list, "List the jobs with state, next run and last result."),
    "show": (_show, "Show one job in full: its next runs, its tasks, the policies that hold, and how it has been."),
    "history": (_history, "Show what became of past occurrences, newest first, each with its reason."),
    "report": (
        _report,
        "Show the execution report of an occurrence: each task with its attempts, their times, and how it ended.",
    ),
    "events": (_events, "Show the journal: what the schedulers and people did, one line an event, the newest last."),
    "logs": (_logs, "Show what attempts have written."),
    "status": (
        _status,
        "Show on one screen whether a scheduler runs, what runs and comes next, and what needs attention.",
    ),
    "groups": (
        _groups,
        "List the groups of the store: their limits and rates, who holds places since when, and who waits.",
    ),
    "nodes": (
        _nodes,
        "List the schedulers of the store: process, host, version, last heartbeat, and whether each lives.",
    ),
    "why": (
        _why,
        "Say why a job ran, ran late, failed, or did not run at a time; without TIME: the last run and the next.",
    ),
    "trigger": (_trigger, "Run a job now; its overlap policy is respected."),
    "pause": (
        _pause,
        "Hold a job's schedule: runs that come due in the pause are skipped, and the journal says who paused.",
    ),
    "resume": (_resume, "End a pause."),
    "cancel": (
        _cancel,
        "Cancel an occurrence that runs or waits, or all of a job: TERM, then KILL after the grace period.",
    ),
    "replay": (
        _replay,
        "Run what has ended once more, at its old scheduled time; with --job and a range the list is shown first.",
    ),
    "backfill": (
        _backfill,
        "Run the times of a span that a job never ran, also before it existed. Ctrl-C cancels; ask again to go on.",
    ),
    "dlq": (_dlq, "Dead letters: runs that failed for good."),
    "notify": (_notify, "Channels of notices: which there are, whether they work, and what waits for them."),
    "state": (_state, "Small values that a task keeps between its runs."),
    "torture": (
        _torture,
        "Try a cluster on your own database: start nodes on a schema made for it, hurt them, and judge what is left.",
    ),
    "verify": (_verify, "Check the journal against the formal model and your own properties."),
    "doctor": (
        _doctor,
        "Check the store and the machine: records, space, permissions; zone data, clock, service, and "
        "whether the programs that jobs name are found.",
    ),
    "backup": (_backup, "Write the whole store and its logs to one file; safe while a daemon runs."),
    "restore": (_restore, "Put a backup and its logs in the store's place; what was there is kept beside it."),
    "store": (_store, "The store as a whole: copy it, and look after one in a database: migrate, check, roles."),
    "simulate": (
        _simulate,
        "Play the coming days of all jobs through the real planner: crowded hours, runs that will be "
        "skipped or late.",
    ),
    "import": (
        _import,
        "Carry schedules over, and tell of each job whether it is the same, what differs and what is lost.",
    ),
    "service": (_service, "Run Chronex as a service of your user: systemd on Linux, launchd on macOS."),
    "completion": (_completion, "Print a completion script for a shell."),
    "man": (_man, "Print the manual page, for `chronex man | man -l -`."),
    "version": (_version, "Show the version."),
}
# What the help calls each kind of command.
SECTIONS: dict[str, tuple[str, ...]] = {
    "Schedules": ("explain", "next", "fmt", "lint", "rule", "lsp", "simulate"),
    "Jobs": ("init", "apply", "edit", "add", "at", "rm", "import"),
    "The daemon": ("run", "stop", "restart", "reload", "service"),
    "What happens": (
        "tui", "list", "show", "status", "history", "report", "events", "logs", "why", "groups", "nodes",
    ),
    "What you decide": ("trigger", "pause", "resume", "cancel", "replay", "backfill", "dlq", "notify", "state"),
    "The store": ("verify", "doctor", "backup", "restore", "store", "torture"),
    "This program": ("completion", "man", "version"),
}  # fmt: skip
# `chronex why backup -2h`: a time before now is no option, and no -h either.
_SETTINGS: dict[str, dict[str, Any]] = {"why": {"ignore_unknown_options": True, "help_option_names": ["--help"]}}


class SectionedGroup(TyperGroup):
    """The help lists commands by kind, each with its whole line."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for title, names in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, COMMANDS[name][1]) for name in names])


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
    if words[:1] == ["at"] and "--" in words:
        words = _with_one_time(words)
    return words


_AT_VALUES = frozenset({"--name", "--tz", "--store", "--format"})


def _with_one_time(words: list[str]) -> list[str]:
    """`chronex at now + 2h -- tool`: the words up to the dashes that are no options are one time."""
    end = words.index("--")
    options: list[str] = []
    spoken: list[str] = []
    at = 1
    while at < end:
        is_option = words[at].startswith("--")
        count = 2 if words[at] in _AT_VALUES else 1
        (options if is_option else spoken).extend(words[at : at + count] if is_option else words[at : at + 1])
        at += count if is_option else 1
    return ["at", *options, *([" ".join(spoken)] if spoken else []), *words[end:]]


def app_for(arguments: Sequence[str]) -> typer.Typer:
    """The program for these arguments. Loading and building a command costs a millisecond or two, so only the one
    that runs is built; where none is recognised, all are listed by name, for help and for the error message."""
    app = _without_commands()
    name = next((word for word in arguments if not word.startswith("-")), "")
    if name in COMMANDS:
        _add(app, name)
        return app
    if name in _STARTED_BY_CHRONEX:
        app.command(name, hidden=True)(_STARTED_BY_CHRONEX[name]())
        return app
    for listed in COMMANDS:
        app.command(listed, help=COMMANDS[listed][1])(_only_listed)
    return app


def whole_app() -> typer.Typer:
    """The program with every command, for completion and the manual page."""
    app = _without_commands()
    for name in COMMANDS:
        _add(app, name)
    return app


def _without_commands() -> typer.Typer:
    app = typer.Typer(
        name="chronex",
        cls=SectionedGroup,
        help="Cron you can see, explain and trust.",
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(root)
    return app


def _only_listed() -> None:
    """Stands for a command that is listed and not run."""


def _add(app: typer.Typer, name: str) -> None:
    declared = COMMANDS[name][0]()
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
        from chronex.cli.commands.program_info import version as show_version

        show_version()
        raise typer.Exit
