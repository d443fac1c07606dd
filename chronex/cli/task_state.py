"""state get, set and list: of the task that runs the command, or of one that is named."""

from __future__ import annotations

import os
from typing import NamedTuple

from chronex.cli.acting import Desk, at_desk, show
from chronex.cli.arguments import UsageError
from chronex.cli.terminal import err, inert
from chronex.engine.commands import job_named
from chronex.engine.commands.actor import tell
from chronex.engine.task_state import check_state, put_state, running_attempt, seen_by, stage, task_state
from chronex.errors import NotPossibleError
from chronex.model.records import Attempt
from chronex.storage.records import Ledger, Reading
from chronex.text.suggestions import nearest


class Whose(NamedTuple):
    """A task; and the attempt of it that runs this command, whose changes count when it succeeds."""

    job: str
    task: str
    attempt: Attempt | None = None


def run_get(name: str, job: str | None, task: str | None, store: str | None, form: str) -> int:
    check_state(name)

    def work(desk: Desk) -> int:
        values = desk.look(lambda reading: _values(reading, _whose(reading, job, task)))
        if name not in values:
            meant = nearest(name, values)
            hint = f"did you mean {meant}?" if meant else "`chronex state list` shows what there is"
            err(inert(f"chronex: no value {name!r} is kept; {hint}"))
            return 1
        show(form, {"name": name, "value": values[name]}, values[name])
        return 0

    return at_desk(store, work)


def run_set(name: str, value: str | None, remove: bool, job: str | None, task: str | None, store: str | None) -> int:
    if (value is None) != remove:
        raise UsageError("give a VALUE to keep, or --remove to forget it")
    check_state(name, value)

    def work(desk: Desk) -> int:
        desk.act(lambda ledger: _set(ledger, desk, _whose(ledger, job, task), name, value))
        return 0

    return at_desk(store, work)


def run_list(job: str | None, task: str | None, store: str | None, form: str) -> int:
    def work(desk: Desk) -> int:
        values = desk.look(lambda reading: _values(reading, _whose(reading, job, task)))
        lines = [f"{name:24} {value}" for name, value in sorted(values.items())] or ["nothing is kept"]
        show(form, dict(sorted(values.items())), *lines)
        return 0

    return at_desk(store, work)


def _values(reading: Reading, whose: Whose) -> dict[str, str]:
    if whose.attempt is not None:
        return seen_by(reading.tx, whose.attempt)
    return task_state(reading.tx, whose.job, whose.task)


def _set(ledger: Ledger, desk: Desk, whose: Whose, name: str, value: str | None) -> None:
    if whose.attempt is not None:
        stage(ledger, whose.attempt, {name: value})
        return
    put_state(ledger, whose.job, whose.task, name, value)
    tell(
        ledger, "TaskStateSet", desk.asker, whose.job, task=whose.task, data={"name": name, "removed": value is None}
    )


def _whose(reading: Reading, job: str | None, task: str | None) -> Whose:
    """What is named; else the task that this command is run by, as its environment says."""
    own = os.environ.get("CHRONEX_JOB", ""), os.environ.get("CHRONEX_TASK", "")
    if job is None and not own[0]:
        raise UsageError("say which job: --job JOB (inside a run it is known)")
    if (job or own[0], task or own[1]) == own and all(own):
        attempt = running_attempt(reading, os.environ.get("CHRONEX_ATTEMPT", ""))
        if attempt is None:
            raise NotPossibleError("the attempt that runs this command is over: its state can no longer be changed")
        return Whose(*own, attempt)
    known = job_named(reading, job or own[0])
    names = [one.name for one in known.tasks]
    if task is None and len(names) != 1:
        raise UsageError(f"say which task: --task with one of {', '.join(names) or 'none'}")
    if task is not None and task not in names:
        meant = nearest(task, names)
        raise UsageError(
            f"{known.id} has no task {task!r}; " + (f"did you mean {meant}?" if meant else ", ".join(names))
        )
    return Whose(known.id, task or names[0])
