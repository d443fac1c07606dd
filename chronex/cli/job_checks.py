"""Checks of what jobs need on this machine: users, directories, files of variables, secrets.

Nothing is changed, and no value of a secret is told.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from chronex.cli.check_verdicts import Check, CheckVerdict
from chronex.model.job import Call, Job, Task
from chronex.run.accounts import Rights, group_id, needs_root, rights_of, user_id
from chronex.run.env_file import variables_of_files
from chronex.run.environment import Inheritance
from chronex.run.request import AttemptRequest, NotStarted
from chronex.run.secret_values import secret_values


def job_checks(jobs: Sequence[Job], environ: Mapping[str, str]) -> Iterator[Check]:
    """`environ` is the environment that the daemon has, or would have."""
    tasks = [(job, task) for job in jobs for task in job.tasks if not isinstance(task.run, Call)]
    inheritance = Inheritance(environ)
    yield from _all_of("users", tasks, _user, sum(task.user is not None for _, task in tasks))
    yield from _all_of("directories", tasks, _directory, sum(task.directory is not None for _, task in tasks))
    yield from _all_of("variables", tasks, _env_file, sum(len(task.env_file) for _, task in tasks))
    in_daemon = partial(_secrets, inheritance=inheritance)
    yield from _all_of("secrets", tasks, in_daemon, sum(len(task.secrets) for _, task in tasks))


def _all_of(
    topic: str, tasks: Sequence[tuple[Job, Task]], check: Callable[[Job, Task], Iterator[Check]], count: int
) -> Iterator[Check]:
    """What is wrong, or that all of them are as they should be; nothing where no job has one."""
    wrong = [one for job, task in tasks for one in check(job, task)]
    yield from wrong
    if count and not wrong:
        yield Check(topic, CheckVerdict.FINE, f"{count} looked for")


def _name(job: Job, task: Task) -> str:
    return f"job {job.id}" if len(job.tasks) == 1 else f"job {job.id}, task {task.name}"


def _user(job: Job, task: Task) -> Iterator[Check]:
    where = _name(job, task)
    if task.user is not None and user_id(task.user) is None:
        yield Check("users", CheckVerdict.WRONG, f"{where}: no user {task.user!r} on this machine",
                    "make one, or name another in user")  # fmt: skip
    elif task.group is not None and group_id(task.group) is None:
        yield Check("users", CheckVerdict.WRONG, f"{where}: no group {task.group!r} on this machine",
                    "make one, or name another in group")  # fmt: skip
    elif (problem := needs_root(task.process_settings)) is not None:
        yield Check("users", CheckVerdict.WRONG, f"{where}: {problem}", "chronex service install --system, as root")


def _directory(job: Job, task: Task) -> Iterator[Check]:
    if task.directory is None:
        return
    where = f"{_name(job, task)}: the directory {task.directory}"
    rights = rights_of(task.user, task.group)
    try:
        mode = os.stat(task.directory).st_mode
    except OSError as problem:
        reason = (problem.strerror or str(problem)).lower()
        yield Check("directories", CheckVerdict.WRONG, f"{where}: {reason}", "make it, or name another")
        return
    if not stat.S_ISDIR(mode):
        yield Check("directories", CheckVerdict.WRONG, f"{where} is a file", "name a directory")
    elif rights is not None and not rights.may_enter(task.directory):
        who = task.user or "the daemon"
        yield Check("directories", CheckVerdict.WRONG, f"{where} is closed to {who}", "open it, or name another")


def _env_file(job: Job, task: Task) -> Iterator[Check]:
    found = variables_of_files(task.env_file)
    if isinstance(found, NotStarted):
        yield Check("variables", CheckVerdict.WRONG, f"{_name(job, task)}: {found.error}", "make it, or mend it")


def _secrets(job: Job, task: Task, inheritance: Inheritance) -> Iterator[Check]:
    """Each by itself, as a start would fetch it. Commands are not run: they may ask somebody, or cost something."""
    for name in task.secrets:
        source = task.secret_sources.get(name, "")
        if source.startswith("command:"):
            continue
        asked = AttemptRequest(
            attempt_id="", number=1, job=job.id, task=task.name, occurrence_id="", nominal_ms=0,
            secrets=(name,), secret_sources={name: source} if source else {},
        )  # fmt: skip
        found = secret_values(asked, inheritance, {})
        if isinstance(found, NotStarted):
            message, _, advice = found.error.partition("; ")
            yield Check("secrets", CheckVerdict.WRONG, f"{_name(job, task)}: {message}",
                        advice or "put it there, or name another source")  # fmt: skip


def may_run(path: str, rights: Rights | None) -> bool:
    """By the user whose command it is, as far as that user is known."""
    return os.access(path, os.X_OK) if rights is None else rights.may_run(path)
