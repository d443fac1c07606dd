"""`chronex add`: a job written into the job file, and applied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from chronex.cli.options import Config, Form, StorePath, UsageError, check_format, store_location
from chronex.cli.output import err, print_result, rfc3339, time_text, zone_of
from chronex.text.terminal import terminal_safe

if TYPE_CHECKING:
    from chronex.cli.job_edits import EditedFile
    from chronex.model.job import Job


def add(
    name: Annotated[str, typer.Argument(help="The job's name.", metavar="NAME")],
    schedule: Annotated[str, typer.Argument(help="The expression, in quotes.", metavar="SCHEDULE")],
    command: Annotated[
        list[str], typer.Argument(help="What to run; one word is a line for the shell.", metavar="COMMAND…")
    ],
    directory: Annotated[str | None, typer.Option(help="Where to run it.", metavar="DIR")] = None,
    user: Annotated[str | None, typer.Option(help="As whom to run it.", metavar="USER")] = None,
    description: Annotated[str | None, typer.Option(help="One line for people.", metavar="TEXT")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what it would write, and change nothing.")] = False,
    config: Config = None,
    store: StorePath = None,
    form: Form = "text",
) -> int:
    """Write a job into the job file and apply it. Only this job: other changes of the file wait for `apply`.

    Example: chronex add tidy "0 4 * * *" -- find /tmp -mtime +7 -delete
    """
    check_format(form)
    table: dict[str, Any] = {"schedule": schedule}
    table |= {} if description is None else {"description": description}
    table["run"] = command[0] if len(command) == 1 and len(command[0].split()) > 1 else command
    table |= {key: value for key, value in (("directory", directory), ("user", user)) if value is not None}
    return run_add(name, table, config, store, form, dry_run=dry_run)


def run_add(
    name: str, table: dict[str, Any], config: str | None, store: str | None, form: str, *, dry_run: bool
) -> int:
    """0: it is in the file and in the store; 2: the job has a mistake, and nothing was changed."""
    from chronex.cli.job_edits import file_for_new_job, jobs_before, only_difference
    from chronex.cli.job_file import print_warnings, refuse_what_needs_root
    from chronex.cli.store_session import store_now
    from chronex.jobfile import JobFileError
    from chronex.jobfile.text_edits import with_job
    from chronex.model.job import check_new_name

    check_new_name(name)
    edited = file_for_new_job(config, name)
    new = with_job(edited.text, name, table).encode()
    try:
        before = jobs_before(edited)
        _refuse_taken(name, before, edited)
        found = edited.jobs_with(new)
    except JobFileError as error:
        for problem in error.problems:
            err(terminal_safe(str(problem)))
        err("nothing was changed")
        return 2
    if only_difference(before, found.jobs) != {name}:
        raise UsageError(
            f"{terminal_safe(str(edited.file))} cannot take the job by itself; write it with: chronex edit"
        )
    refuse_what_needs_root(found)
    print_warnings(found)
    job = found.job(name)
    assert job is not None, "it was just read"
    if not dry_run:
        _put(edited, new, job, store)
    _print(edited, job, new.decode().removeprefix(edited.text).lstrip("\n"), form, store_now(store), dry_run=dry_run)
    return 0


def _refuse_taken(name: str, before: tuple[Job, ...], edited: EditedFile) -> None:
    taken = next((job.id for job in before if job.id.lower() == name.lower()), None)
    if taken is not None:
        file = terminal_safe(str(edited.source))
        raise UsageError(f"{file} has a job {taken!r} already; change it with: chronex edit {taken}")


def _put(edited: EditedFile, new: bytes, job: Job, store: str | None) -> None:
    from chronex.cli.store_session import StoreSession
    from chronex.daemon.reload import file_source
    from chronex.engine.update.single_jobs import add_job
    from chronex_store.opening import open_location

    location = store_location(store)
    with open_location(location, create=True) as opened:
        session = StoreSession(location, opened)
        with edited.written(new):
            add_job(opened, job, opened.now(), str(session.actor), (file_source(edited.source),))
        session.warn_without_daemon("nothing starts yet")


def _print(edited: EditedFile, job: Job, text: str, form: str, now_ms: int, *, dry_run: bool) -> None:
    from chronex.timing.job_schedule import schedule_of

    next_ms = schedule_of(job.progressed(anchor_ms=now_ms)).next(now_ms)
    shown = "no run" if next_ms is None else time_text(next_ms, zone_of(job))
    file = str(edited.file)

    def lines() -> list[str]:
        if not dry_run:
            return [terminal_safe(f"new        {job.id} in {file}; next run: {shown}")]
        written = [terminal_safe(line) for line in text.splitlines()]
        return [
            *written,
            terminal_safe(f"dry run: nothing was changed; this would go into {file}; next run: {shown}"),
        ]

    data = {"job": job.id, "file": file, "dry_run": dry_run, "next": None if next_ms is None else rfc3339(next_ms)}
    print_result(form, lambda: data, lines)
