"""`chronex rm`: a job taken out of its job file and out of the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from chronex.cli.options import Config, Form, JobName, StorePath, UsageError, check_format
from chronex.cli.output import err, print_result
from chronex.text.terminal import terminal_safe

if TYPE_CHECKING:
    from chronex.cli.store_session import StoreSession
    from chronex.model.job import Job


def rm(
    job: JobName,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what it would take out; change nothing.")] = False,
    config: Config = None,
    store: StorePath = None,
    form: Form = "text",
) -> int:
    """Take a job out of its job file and out of the store; its history stays. What is taken out is printed.

    Example: chronex rm hello --dry-run
    """
    check_format(form)
    return run_rm(job, config, store, form, dry_run=dry_run)


def run_rm(name: str, config: str | None, store: str | None, form: str, *, dry_run: bool) -> int:
    """0: it is gone, or would be; 2: it stands in no table of its own, and nothing was changed."""
    from chronex.cli.store_session import open_session
    from chronex.engine.commands import job_named
    from chronex.engine.update.sources import AT

    with open_session(store) as session:
        job = session.read(lambda reading: job_named(reading, name))
        if job.source == AT:
            return _remove_at(session, job, form, dry_run=dry_run)
        return _remove_from_file(session, job, config, form, dry_run=dry_run)


def _remove_at(session: StoreSession, job: Job, form: str, *, dry_run: bool) -> int:
    from chronex.engine.update.single_jobs import remove_job
    from chronex.engine.update.sources import AT, JobSource

    if not dry_run:
        remove_job(session.store, job.id, session.store.now(), str(session.actor), (JobSource(AT),))
    _print(job.id, None, "", form, dry_run=dry_run)
    return 0


def _remove_from_file(session: StoreSession, job: Job, config: str | None, form: str, *, dry_run: bool) -> int:
    from chronex.cli.job_edits import file_of_job, only_difference
    from chronex.daemon.reload import file_source
    from chronex.engine.update.single_jobs import remove_job
    from chronex.jobfile import JobFileError
    from chronex.jobfile.text_edits import without_job

    edited = file_of_job(job, config, job.id)
    found = without_job(edited.text, job.id)
    if found is None:
        raise UsageError(
            f"{terminal_safe(str(edited.file))} has no table [jobs.{job.id}] that can be taken out by itself; "
            f"take it out with: chronex edit {job.id}"
        )
    is_part = edited.source != edited.file
    new = None if is_part and not found.text.strip() else found.text.encode()
    try:
        before, after = edited.jobs_with(edited.old).jobs, edited.jobs_with(new).jobs
    except JobFileError as error:
        for problem in error.problems:
            err(terminal_safe(str(problem)))
        err("nothing was changed")
        return 2
    if only_difference(before, after) != {job.id}:
        raise UsageError(f"another job needs it or would change; take it out with: chronex edit {job.id}")
    if not dry_run:
        with edited.written(new):
            source = file_source(edited.source)
            remove_job(session.store, job.id, session.store.now(), str(session.actor), (source,))
    _print(job.id, str(edited.file), found.removed, form, dry_run=dry_run)
    return 0


def _print(job: str, file: str | None, text: str, form: str, *, dry_run: bool) -> None:
    from_file = f" from {file}" if file else ""
    said = f"dry run: nothing was changed; this would go{from_file}" if dry_run else f"removed    {job}{from_file}"
    lines = [*text.rstrip("\n").splitlines(), said] if text else [said]
    data = {"job": job, "file": file, "dry_run": dry_run, "removed": text}
    print_result(form, lambda: data, lambda: [terminal_safe(line) for line in lines])
