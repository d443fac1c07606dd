"""`chronex run`: reads the job file, then starts the daemon on the store."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from chronex.cli.arguments import UsageError, host_zone
from chronex.cli.places import JOB_FILE, is_named, job_file_path, read_file, store_path
from chronex.cli.terminal import err, inert
from chronex.clock import wall_ms
from chronex.errors import StoreInUseError
from chronex.jobfile import JobFile, JobFileError, SchedulerSettings, read_job_file, read_triggers
from chronex.model.records import Job, Task
from chronex.text.durations import parse_duration
from chronex.timing import read

if TYPE_CHECKING:
    from chronex.daemon.headless import Foreground

IN_USE = 75
_MOST_BYTES = 1 << 20


def load(path: Path) -> JobFile:
    """The job file, every schedule and directory absolute; UsageError when it cannot be read."""
    try:
        data = read_file(path, _MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read {inert(str(path))}: {_unread(error)}") from None
    reader = read_triggers if path.suffix == ".json" else read_job_file
    found = reader(data, str(path), host_zone().zone.name)
    now = wall_ms()
    jobs = tuple(_placed(_absolute(job, now), path.parent) for job in found.jobs)
    if path.suffix == ".json":
        # Trigger definitions own what they brought, wherever they are applied from.
        jobs = tuple(replace(job, source=str(path.resolve())) for job in jobs)
    return dataclasses.replace(found, jobs=jobs)


def _unread(error: OSError) -> str:
    hint = "chronex init writes a starter" if isinstance(error, FileNotFoundError) else "name the job file"
    return f"{(error.strerror or str(error)).lower()}; {hint}"


def _absolute(job: Job, now_ms: int) -> Job:
    """`@once +20m` counts from the moment it is applied."""
    if "+" not in job.schedule:
        return job
    meaning = read(job.schedule, job.dialect).meaning
    if meaning is None or not meaning.is_relative:
        return job
    return replace(job, schedule=str(meaning.resolved(now_ms)), written=job.schedule)


def _placed(job: Job, beside: Path) -> Job:
    """A relative directory is meant beside the job file, wherever a daemon is started later; ~ is who applies it."""
    if all(task.directory is None for task in job.tasks):
        return job
    return replace(job, tasks=tuple(_in_place(task, beside) for task in job.tasks))


def _in_place(task: Task, beside: Path) -> Task:
    if task.directory is None:
        return task
    with contextlib.suppress(RuntimeError):  # no home is known for that user: the text stays what it says
        return replace(task, directory=os.path.abspath(beside / Path(task.directory).expanduser()))
    return task


def load_or_tell(config: str | None) -> JobFile | None:
    path = job_file_path(config, os.environ)
    if not is_named(config, os.environ) and not path.exists():
        raise UsageError(f"no job file: neither ./{JOB_FILE} nor {path} is there; chronex init writes a starter")
    try:
        return load(path)
    except JobFileError as error:
        for problem in error.problems:
            err(inert(str(problem)))
        return None


def warn(found: JobFile) -> None:
    for warning in found.warnings:
        err(inert(str(warning)))


def run_daemon(
    config: str | None,
    store: str | None,
    *,
    once: bool,
    duration: str | None,
    log_format: str,
    beside: Foreground | None = None,
) -> int:
    """Apply the job file where there is one, and run until stopped; 75 when another daemon holds the store."""
    from chronex.daemon.headless import run_headless
    from chronex.daemon.logs import FORMATTERS, log_event, log_to
    from chronex.daemon.reload import JobFileSource

    seconds = _seconds(duration)
    path = job_file_path(config, os.environ)
    is_wanted = is_named(config, os.environ) or path.exists()
    found = load_or_tell(config) if is_wanted else None
    if found is None and is_wanted:
        return 2
    settings = found.settings if found is not None else SchedulerSettings(timezone=host_zone().zone.name)
    jobs = found.jobs if found is not None else None
    file = JobFileSource(path.absolute(), lambda: load(path)) if found is not None else None
    place = store_path(store, os.environ)
    # The screen belongs to the dashboard where there is one; the journal has every event.
    stream = sys.stderr if beside is None else None
    try:
        with log_to(stream, FORMATTERS[log_format]()):
            if found is None:
                fields = {"looked_for": str(path), "so": "the jobs that the store has are run"}
                log_event(logging.getLogger(__name__), "no job file", fields)
            return run_headless(place, jobs, settings, once=once, seconds=seconds, file=file, foreground=beside)
    except StoreInUseError as error:
        err(f"chronex: {error}")
        return IN_USE


def _seconds(duration: str | None) -> float | None:
    if duration is None:
        return None
    ms = parse_duration(duration)
    if ms is None:
        raise UsageError(f"--for: {duration!r} is not a duration; write 90s or 10m")
    return ms / 1000
