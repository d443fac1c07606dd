"""`chronex pause` and `chronex resume`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from chronex.cli.options import Form, StorePath, UsageError, check_format, read_duration
from chronex.cli.output import print_result, time_text, timed, zone_of
from chronex.text.terminal import terminal_safe

if TYPE_CHECKING:
    from chronex.model.job import Job
    from chronex.storage.records import Records


_Jobs = Annotated[str, typer.Argument(help="The job's name, or a pattern such as 'etl-*'.", metavar="[JOB]")]
_Every = Annotated[bool, typer.Option("--all", help="All jobs.")]
_Tag = Annotated[str, typer.Option("--tag", help="All jobs with this tag.", metavar="TAG")]


def pause(
    job: _Jobs = "",
    duration: Annotated[str | None, typer.Option("--for", help="Resume by itself.", metavar="DURATION")] = None,
    every: _Every = False,
    tag: _Tag = "",
    store: StorePath = None,
    form: Form = "text",
) -> int:
    """Hold a job's schedule: runs that come due in the pause are skipped, and the journal says who paused.

    A command that runs already goes on.

    Example: chronex pause backup --for 2h
    """
    check_format(form)
    return run_pause(job, duration, store, form, every=every, tag=tag)


def resume(
    job: _Jobs = "", every: _Every = False, tag: _Tag = "", store: StorePath = None, form: Form = "text"
) -> int:
    """End a pause.

    Example: chronex resume backup
    """
    check_format(form)
    return run_resume(job, store, form, every=every, tag=tag)


def run_pause(
    job: str, duration: str | None, store: str | None, form: str, *, every: bool = False, tag: str = ""
) -> int:
    from chronex.cli.store_session import open_session
    from chronex.engine import commands
    from chronex.engine.commands.names import jobs_selected

    is_one = _check_choice(job, every=every, tag=tag)
    length = read_duration("--for", duration)
    with open_session(store) as session:
        until = None if length is None else session.store.now() + length

        def hold(records: Records) -> list[Job]:
            """All of them in one transaction: either every job is paused or none."""
            found = jobs_selected(records, job, tag, every=every)
            return [commands.pause(records, one.id, session.actor, until_ms=until) for one in found]

        paused = session.change(hold)
        print_result(form, lambda: _json(paused, is_one=is_one), lambda: [_paused_line(one, until) for one in paused])
        return 0


def run_resume(job: str, store: str | None, form: str, *, every: bool = False, tag: str = "") -> int:
    from chronex.cli.store_session import open_session
    from chronex.engine import commands
    from chronex.engine.commands.names import jobs_selected

    is_one = _check_choice(job, every=every, tag=tag)
    with open_session(store) as session:

        def go_on(records: Records) -> list[tuple[Job, Job]]:
            found = jobs_selected(records, job, tag, every=every)
            return [(one, commands.resume(records, one.id, session.actor)) for one in found]

        resumed = session.change(go_on)
        # Of many, only those that were paused are worth a line.
        shown = [pair for pair in resumed if is_one or pair[0].progress.paused]
        lines = [_resumed_line(before, after) for before, after in shown] or ["none of them was paused"]
        print_result(form, lambda: _json([after for _, after in shown], is_one=is_one), lambda: lines)
        return 0


def _check_choice(job: str, *, every: bool, tag: str) -> bool:
    """Is one job named, and not several? A tag may be narrowed by a pattern."""
    if every and (job or tag):
        raise UsageError("--all stands alone: it means every job")
    if not (every or job or tag):
        raise UsageError("name a job, a pattern such as 'etl-*', --tag TAG or --all")
    return not every and not tag and not set(job) & set("*?[")


def _paused_line(job: Job, until: int | None) -> str:
    end = f"until {time_text(until, zone_of(job))}" if until is not None else "until resumed"
    return f"paused {terminal_safe(job.shown_name)} {end}; what is due meanwhile is skipped"


def _resumed_line(before: Job, after: Job) -> str:
    name = terminal_safe(after.shown_name)
    return f"resumed {name}" if before.progress.paused else f"{name} was not paused"


def _json(jobs: list[Job], *, is_one: bool) -> Any:
    """One object for one job that was named, else a list."""
    return pause_json(jobs[0]) if is_one else [pause_json(job) for job in jobs]


def pause_json(job: Job) -> dict[str, Any]:
    until = job.progress.paused_until_ms if job.progress.paused else None
    return {
        "job": job.id,
        "paused": job.progress.paused,
        **timed("until", until),
        "by": job.progress.paused_by or None,
    }
