"""`chronex at`: a command that runs once, at a time as at(1) takes it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from chronex.cli.options import Form, StorePath, UsageError, ZoneName, check_format, choose_zone, store_location
from chronex.cli.output import print_result, rfc3339, time_text
from chronex.text.terminal import terminal_safe

if TYPE_CHECKING:
    from chronex.model.job import Job
    from chronex.storage.records import Reading

# What has run stays for this long under its name; its history stays as long as that of other jobs.
_KEPT_MS = 7 * 86_400_000
_ALL_JOBS = 1_000_000


def at(
    time: Annotated[str, typer.Argument(help="now + 2h, 14:30, tomorrow 09:00, or RFC 3339.", metavar="TIME")],
    command: Annotated[
        list[str], typer.Argument(help="What to run; one word is a line for the shell.", metavar="COMMAND…")
    ],
    name: Annotated[
        str | None, typer.Option(help="The job's name (default: from the command).", metavar="NAME")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say when it would run; change nothing.")] = False,
    tz: ZoneName = None,
    store: StorePath = None,
    form: Form = "text",
) -> int:
    """Run a command once. It is in no job file: the store has it, `chronex rm` takes it back.

    Example: chronex at tomorrow 09:00 --dry-run -- echo good morning
    """
    check_format(form)
    return run_at(time, command, name, tz, store, form, dry_run=dry_run)


def run_at(
    words: str, command: list[str], name: str | None, tz: str | None, store: str | None, form: str, *, dry_run: bool
) -> int:
    from chronex.cli.store_session import store_now
    from chronex.timing.at_times import read_at_time

    choice = choose_zone(tz)
    found = read_at_time(words, store_now(store), choice.zone)
    if found.problem:
        raise UsageError(f"{words!r}: {found.problem}")
    for count in range(1, len(command) + 1):
        longer = " ".join((words, *command[:count]))
        if not read_at_time(longer, store_now(store), choice.zone).problem:
            raise UsageError(
                f"{longer!r} is a time as a whole, and then nothing to run is left; put -- between the two"
            )
    job = _job(name, command, found.ms, choice.zone.name)
    if not dry_run:
        job = _put(job, store, is_named=name is not None)
    when = f"{time_text(found.ms, choice.zone)} ({choice.zone.name}, {choice.source})"
    said = f"dry run: nothing was changed; it would run once, {when}" if dry_run else f"{job.id} runs once, {when}"
    data = {"job": job.id, "at": rfc3339(found.ms), "timezone": choice.zone.name, "dry_run": dry_run}
    print_result(form, lambda: data, lambda: [terminal_safe(said)])
    return 0


def _job(name: str | None, command: list[str], at_ms: int, zone: str) -> Job:
    """It runs where it was asked for, as at(1) does it; the environment is that of every job."""
    import shlex

    from chronex.engine.update.sources import AT
    from chronex.imports.command_names import name_of_command
    from chronex.imports.import_result import JobNames
    from chronex.model.job import Job, Task, check_new_name

    is_line = len(command) == 1 and len(command[0].split()) > 1
    run = command[0] if is_line else tuple(command)
    chosen = name or JobNames().give(f"at-{name_of_command(command[0] if is_line else shlex.join(command))}")
    check_new_name(chosen)
    task = Task(name="main", run=run, directory=os.getcwd())
    return Job(id=chosen, schedule=f"@once {rfc3339(at_ms)}", timezone=zone, tasks=(task,), source=AT)


def _put(job: Job, store: str | None, *, is_named: bool) -> Job:
    from msgspec.structs import replace

    from chronex.cli.store_session import StoreSession
    from chronex.engine.update.single_jobs import add_job, remove_job
    from chronex.engine.update.sources import AT, JobSource
    from chronex.storage.records import Reading
    from chronex_store.opening import open_location

    location = store_location(store)
    with open_location(location, create=True) as opened:
        session, sources = StoreSession(location, opened), (JobSource(AT),)
        for old in opened.view(lambda tx: _long_done(Reading(tx), opened.now())):
            remove_job(opened, old, opened.now(), str(session.actor), sources)
        if not is_named:
            job = replace(job, id=opened.view(lambda tx: _free_name(Reading(tx), job.id)))
        add_job(opened, job, opened.now(), str(session.actor), sources)
        session.warn_without_daemon("it does not start before one does")
    return job


def _free_name(reading: Reading, stem: str) -> str:
    """The name, with a number where a job has it, or had it and has runs of its own in the history."""
    from chronex.engine.update import kept_versions

    number, name = 1, stem
    while reading.job(name) is not None or kept_versions(reading, name):
        number += 1
        name = f"{stem}-{number}"
    return name


def _long_done(reading: Reading, now_ms: int) -> list[str]:
    """Jobs of `at` whose time came long ago: without this the list of jobs would grow for ever."""
    from chronex.engine.update.sources import AT
    from chronex.timing.job_schedule import schedule_of

    done = (job for job in reading.jobs(limit=_ALL_JOBS) if job.source == AT)
    return [job.id for job in done if schedule_of(job).next(now_ms - _KEPT_MS) is None]
