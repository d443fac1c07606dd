"""`chronex show JOB`: one job in full, with the policies that hold after the cascade, or its versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from chronex.cli.options import Form, StorePath, check_format
from chronex.cli.output import hinted, out, print_json, print_styled, time_text, timed, zone_of
from chronex.text.terminal import terminal_safe

if TYPE_CHECKING:
    from chronex.model.job import Job
    from chronex.storage.records import Reading
    from chronex.views.jobs import Detail
    from chronex.views.nodes import Watch
    from chronex.views.troubles import Trouble

_VERSION_FIELDS_NOT_SHOWN = ("id", "written")


def show(
    job: Annotated[str, typer.Argument(help="The job.", metavar="JOB")],
    versions: Annotated[bool, typer.Option("--versions", help="Its versions, and what each changed.")] = False,
    graph: Annotated[
        bool, typer.Option("--graph", help="Its tasks as a graph, as they stand in its latest run.")
    ] = False,
    store: StorePath = None,
    form: Form = "text",
) -> int:
    """Show one job in full: its next runs, its tasks, the policies that hold, and how it has been.

    Example: chronex show backup
    """

    check_format(form)
    if versions:
        return run_versions(job, store, form)
    if graph:
        return run_graph(job, store, form)
    return run_show(job, store, form)


def run_show(name: str, store: str | None, form: str) -> int:
    from chronex.cli.job_output import detail_json, detail_lines
    from chronex.cli.store_session import print_troubles, read_store_now, store_watch, troubles_of
    from chronex.engine.commands.names import job_named
    from chronex.views.jobs import detail_of, with_usage

    def find(reading: Reading, now_ms: int) -> tuple[Detail, list[Trouble], Watch]:
        detail = with_usage(reading, detail_of(reading, job_named(reading, name), now_ms))
        return detail, troubles_of(reading, now_ms), store_watch(reading, now_ms)

    (detail, troubles, watch), now_ms = read_store_now(store, find)
    if form == "json":
        print_json(detail_json(detail))
    else:
        print_styled(detail_lines(detail, now_ms, zone_of(detail.job), watch))
        print_troubles(troubles)
    return 0


# -- the graph of its tasks -------------------------------------------------------------------------------------


def run_graph(name: str, store: str | None, form: str) -> int:
    from chronex.cli.graph_output import graph_json, graph_lines
    from chronex.cli.store_session import read_store_now, store_watch
    from chronex.engine.commands.names import job_named
    from chronex.views.job_graph import JobGraph, graph_of, latest_occurrence, unwatched

    def find(reading: Reading, now_ms: int) -> tuple[Job, JobGraph]:
        job = job_named(reading, name)
        graph = graph_of(reading, job, latest_occurrence(reading, job.id))
        if graph.occurrence is None:
            return job, graph
        left = store_watch(reading, now_ms).left_of(job.id, graph.occurrence.nominal_ms)
        alive = {one.attempt.task for one in left if one.is_alive}
        steps = {task.step for task in job.tasks if task.name in alive}
        return job, unwatched(graph, steps) if left else graph

    (job, graph), _ = read_store_now(store, find)
    if form == "json":
        print_json(graph_json(graph))
    else:
        print_styled(graph_lines(graph, zone_of(job)))
    return 0


# -- versions ---------------------------------------------------------------------------------------------------


def run_versions(name: str, store: str | None, form: str) -> int:
    from chronex.cli.store_session import read_store

    versions = read_store(store, lambda reading: _kept_versions(reading, name))
    earlier: list[Job | None] = [*versions[1:], None]
    rows = [_version_json(job, before) for job, before in zip(versions, earlier, strict=True)]
    if form == "json":
        print_json(rows)
        return 0
    for job, row in zip(versions, rows, strict=True):
        by = f" by {row['by']}" if row["by"] else ""
        out(terminal_safe(f"version {row['version']}  {time_text(job.updated_ms, zone_of(job))}{by}"))
        for change in row["changes"]:
            out(terminal_safe(f"  {change['field']:20} {_short(change['from'])} -> {_short(change['to'])}"))
        for task in row["retired_tasks"]:
            out(terminal_safe(f"  {'task retired':20} {task}: no run from this version on has it"))
    out(terminal_safe(hinted(f"back to an earlier one: chronex apply --rollback {versions[0].id} VERSION")))
    return 0


def _kept_versions(reading: Reading, name: str) -> list[Job]:
    from chronex.engine.commands.names import job_id_named
    from chronex.engine.update import kept_versions
    from chronex.errors import UnknownJobError
    from chronex.model.job import is_name
    from chronex.text.suggestions import nearest

    job = job_id_named(reading, name)
    found = kept_versions(reading, job) if is_name(job) else []
    if not found:
        raise UnknownJobError(name, nearest(name, (job.shown_name for job in reading.jobs(limit=100_000))))
    return found


def _version_json(job: Job, before: Job | None) -> dict[str, Any]:
    return {
        "version": job.version,
        **timed("applied", job.updated_ms),
        "by": job.updated_by or None,
        "schedule": job.schedule,
        "source": job.source or None,
        "changes": [] if before is None else changes_between(before, job),
        "retired_tasks": []
        if before is None
        else [task.name for task in before.tasks if job.task(task.name) is None],
    }


def _shown_definition(job: Job) -> Job:
    """Without the paths of web addresses, which may be all that keeps strangers out."""
    from msgspec.structs import replace

    from chronex.model.channels import masked_url

    written = job.as_written()
    if written.notify is None:
        return written
    channels = tuple(replace(one, url=masked_url(one.url) if one.url else "") for one in written.notify.channels)
    return replace(written, notify=replace(written.notify, channels=channels))


def changes_between(before: Job, after: Job) -> list[dict[str, Any]]:
    """The fields of the definition that differ, each with both values."""
    import msgspec

    old, new = (msgspec.to_builtins(_shown_definition(job)) for job in (before, after))
    names = sorted({*old, *new} - {*_VERSION_FIELDS_NOT_SHOWN})
    return [
        {"field": name, "from": old.get(name), "to": new.get(name)}
        for name in names
        if old.get(name) != new.get(name)
    ]


def _short(value: Any) -> str:
    import msgspec

    text = "-" if value is None else value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else f"{text[:59]}…"
