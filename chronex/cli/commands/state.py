"""`chronex state get|set|list`: the values of the task that runs the command, or of a named one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from chronex.cli.options import Form, StorePath, UsageError, check_format
from chronex.cli.output import err, print_result
from chronex.text.terminal import terminal_safe

if TYPE_CHECKING:
    from chronex.cli.store_session import StoreSession
    from chronex.model.occurrence import Attempt
    from chronex.storage.records import Reading, Records

state = typer.Typer(
    help="Small values that a task keeps between its runs.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Name = Annotated[str, typer.Argument(help="The value's name.", metavar="NAME")]
StateOfJob = Annotated[
    str | None, typer.Option("--job", help="The job (default: the one that runs this).", metavar="JOB")
]
StateOfTask = Annotated[
    str | None, typer.Option("--task", help="The task (default: the one that runs this, or the only one).")
]


@state.command("get")
def get(
    name: Name, job: StateOfJob = None, task: StateOfTask = None, store: StorePath = None, form: Form = "text"
) -> int:
    """Print a value. Exit 1: there is none of that name.

    Example: chronex state get cursor --job import
    """
    check_format(form)
    return run_get(name, job, task, store, form)


@state.command("set")
def set_value(
    name: Name,
    value: Annotated[str | None, typer.Argument(help="The value; none with --remove.", metavar="VALUE")] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Forget it.")] = False,
    job: StateOfJob = None,
    task: StateOfTask = None,
    store: StorePath = None,
) -> int:
    """Keep a value. Inside a run it counts when the attempt succeeds, and not at all when it fails.

    Example: chronex state set cursor 4711 --job import
    """
    if (value is None) != remove:
        raise UsageError("give a VALUE to keep, or --remove to forget it")
    return run_set(name, value, job, task, store)


@state.command("list")
def list_values(
    job: StateOfJob = None, task: StateOfTask = None, store: StorePath = None, form: Form = "text"
) -> int:
    """List the values of a task.

    Example: chronex state list --job import
    """
    check_format(form)
    return run_list(job, task, store, form)


class StateOwner(NamedTuple):
    """A task; and the attempt of it that runs this command, whose changes count when it succeeds."""

    job: str
    task: str
    attempt: Attempt | None = None


def run_get(name: str, job: str | None, task: str | None, store: str | None, form: str) -> int:
    from chronex.cli.store_session import open_session
    from chronex.engine.task_state import check_state
    from chronex.text.suggestions import nearest

    check_state(name)
    with open_session(store) as session:
        values = session.read(lambda reading: _values(reading, _owner(reading, job, task)))
        if name not in values:
            meant = nearest(name, values)
            hint = f"did you mean {meant}?" if meant else "`chronex state list` shows what there is"
            err(terminal_safe(f"chronex: no value {name!r} is kept; {hint}"))
            return 1
        print_result(form, lambda: {"name": name, "value": values[name]}, lambda: [values[name]])
        return 0


def run_set(name: str, value: str | None, job: str | None, task: str | None, store: str | None) -> int:
    """Keep the value; None removes it."""
    from chronex.cli.store_session import open_session
    from chronex.engine.task_state import check_state

    check_state(name, value)
    with open_session(store) as session:
        session.change(lambda records: _set(records, session, _owner(records, job, task), name, value))
        return 0


def run_list(job: str | None, task: str | None, store: str | None, form: str) -> int:
    from chronex.cli.store_session import open_session

    with open_session(store) as session:
        values = session.read(lambda reading: _values(reading, _owner(reading, job, task)))
        print_result(
            form,
            lambda: dict(sorted(values.items())),
            lambda: [f"{name:24} {value}" for name, value in sorted(values.items())] or ["nothing is kept"],
        )
        return 0


def _values(reading: Reading, owner: StateOwner) -> dict[str, str]:
    from chronex.engine.task_state import seen_by, task_state

    if owner.attempt is not None:
        return seen_by(reading.tx, owner.attempt)
    return task_state(reading.tx, owner.job, owner.task)


def _set(records: Records, session: StoreSession, owner: StateOwner, name: str, value: str | None) -> None:
    from chronex.engine.commands.actor import record_command
    from chronex.engine.task_state import put_state, stage

    if owner.attempt is not None:
        stage(records, owner.attempt, {name: value})
        return
    put_state(records, owner.job, owner.task, name, value)
    data = {"name": name, "removed": value is None}
    record_command(records, "TaskStateSet", session.actor, owner.job, task=owner.task, data=data)


def _owner(reading: Reading, job: str | None, task: str | None) -> StateOwner:
    """The named task; else the task that runs this command, as its environment says."""
    from chronex.engine.commands import job_named
    from chronex.engine.task_state import running_attempt
    from chronex.errors import NotPossibleError

    own_job = os.environ.get("CHRONEX_JOB", "")
    own_task = os.environ.get("CHRONEX_TASK", "")
    if job is None and not own_job:
        raise UsageError("say which job: --job JOB (inside a run it is known)")
    is_own = (job or own_job, task or own_task) == (own_job, own_task)
    if is_own and own_job and own_task:
        attempt = running_attempt(reading, os.environ.get("CHRONEX_ATTEMPT", ""))
        if attempt is None:
            raise NotPossibleError("the attempt that runs this command is over: its state can no longer be changed")
        return StateOwner(own_job, own_task, attempt)
    known = job_named(reading, job or own_job)
    return StateOwner(known.id, _task_name(known.id, [one.name for one in known.tasks], task))


def _task_name(job: str, names: list[str], task: str | None) -> str:
    from chronex.text.suggestions import nearest

    if task is None and len(names) != 1:
        raise UsageError(f"say which task: --task with one of {', '.join(names) or 'none'}")
    if task is not None and task not in names:
        meant = nearest(task, names)
        raise UsageError(f"{job} has no task {task!r}; " + (f"did you mean {meant}?" if meant else ", ".join(names)))
    return task or names[0]
