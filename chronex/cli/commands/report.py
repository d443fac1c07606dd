"""`chronex report`: the execution report of one occurrence, the same that its `on_complete` hook was given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from chronex.cli.options import Form, StorePath, UsageError, check_format
from chronex.cli.output import JobZones, paint, print_json, print_styled, time_text
from chronex.text.terminal import terminal_safe

if TYPE_CHECKING:
    from chronex.engine.execution_report import Report, TaskReport, TryReport
    from chronex.model.occurrence import Occurrence
    from chronex.storage.records import Reading
    from chronex.timing.zones import Zone
    from chronex.views.nodes import LeftAttempt

    Left = dict[str, LeftAttempt]  # by task

_KINDS = ("occ_", "run_", "attempt_")
# The newest occurrences may all have been skipped; the search for one that ran ends after this many.
_MOST_WITHOUT_RUN = 1_000
_COLOURS = {"succeeded": "green", "completed": "green", "canceled": "yellow", "completed_with_errors": "yellow"}
_WORSE = {"failed": "red", "timed_out": "red", "crashed": "red"}


def report(
    what: Annotated[
        str,
        typer.Argument(
            help="A job (its newest run), the id of an occurrence, a beginning of it, or JOB@TIME.",
            metavar="JOB|OCCURRENCE",
        ),
    ],
    store: StorePath = None,
    form: Form = "text",
) -> int:
    """Show the execution report of an occurrence: each task with its attempts, their times, and how it ended.

    Example: chronex report backup
    """

    check_format(form)
    return run_report(what, store, form)


def run_report(what: str, store: str | None, form: str) -> int:
    import msgspec

    from chronex.cli.store_session import read_store_now, store_watch
    from chronex.engine.execution_report import report_of

    def find(reading: Reading, now_ms: int) -> tuple[Report, Zone, list[LeftAttempt]]:
        occurrence = _occurrence(reading, what)
        zone = JobZones(reading).of(occurrence.job, occurrence.version)
        left = store_watch(reading, now_ms).left_of(occurrence.job, occurrence.nominal_ms)
        return report_of(reading, reading.version_run(occurrence), occurrence), zone, left

    (found, zone, left), _ = read_store_now(store, find)
    if form == "json":
        print_json(msgspec.to_builtins(found))
    else:
        print_styled(_lines(found, zone, {one.attempt.task: one for one in left}))
    return 0


def _occurrence(reading: Reading, what: str) -> Occurrence:
    """A job stands for its newest occurrence that ran, else for its newest."""
    from chronex.engine.commands.names import job_named, occurrence_named
    from chronex.model.job import is_name

    if "@" in what or what.startswith(_KINDS):
        return occurrence_named(reading, what)
    newest = reading.occurrences(what, limit=_MOST_WITHOUT_RUN) if is_name(what) else []
    if not newest:
        job_named(reading, what)
        raise UsageError(f"{what} has not run yet; chronex show {what} says when it will")
    return next((one for one in newest if one.started_ms is not None), newest[0])


def _lines(report: Report, zone: Zone, left: Left) -> list[str]:
    tasks = (line for task in report.tasks for line in _task(task, zone, left.get(task.task)))
    return [*_head(report, zone, left), *tasks, _sum(report)]


def _head(report: Report, zone: Zone, left: Left) -> Iterator[str]:
    from chronex.text.durations import brief_duration

    took = "" if report.duration_ms is None else f" after {brief_duration(report.duration_ms)}"
    why = f": {terminal_safe(report.reason)}" if report.reason else ""
    yield f"{paint(report.job, 'bold')}  {report.occurrence}"
    # Nobody watches what a scheduler that is gone has left: it is not said to run unless its command is seen.
    is_unknown = bool(left) and not any(one.is_alive for one in left.values())
    yield f"status     {'unknown' if is_unknown else _status(report.status)}{took}{why}"
    yield f"scheduled  {time_text(report.nominal_ms, zone)}"
    if report.started_ms is not None:
        late = f", {brief_duration(report.wait_ms)} after it was due" if report.wait_ms else ""
        yield f"started    {time_text(report.started_ms, zone)}{late}"
    if report.ended_ms is not None:
        yield f"ended      {time_text(report.ended_ms, zone)}"
    if report.on_failure:
        yield f"tasks      {report.mode}, on failure {report.on_failure}, version {report.version}"
    if report.node:
        yield f"node       {report.node}"
    asked = [f"by {report.triggered_by}"] if report.triggered_by else []
    asked += [f"replay of {report.replay_of}"] if report.replay_of else []
    asked += ["a missed instant is made up for"] if report.recovery else []
    if asked:
        yield f"asked      {terminal_safe(', '.join(asked))}"


def _task(task: TaskReport, zone: Zone, left: LeftAttempt | None) -> Iterator[str]:
    from chronex.text.durations import brief_duration

    took = "" if task.duration_ms is None else f" after {brief_duration(task.duration_ms)}"
    why = f": {terminal_safe(task.reason)}" if task.reason else ""
    status = f"{_status(task.status)}{took}{why}"
    if left is not None:
        status = f"{_status(task.status) if left.is_alive else 'unknown'}: {left.words}"
    yield f"task       {paint(terminal_safe(task.task), 'bold')}  {status}"
    facts = [_many(task.attempts, "attempt")]
    facts += [f"on failure {task.on_failure}"] if task.on_failure else []
    facts += [f"ran {brief_duration(task.running_ms)}, paused {brief_duration(task.pausing_ms)}"] * bool(
        task.pausing_ms
    )
    facts += [f"since then {terminal_safe(task.since_then)}"] if task.since_then else []
    yield f"           {', '.join(facts)}"
    if task.earlier_tries:
        yield f"  …        {_many(task.earlier_tries, 'earlier attempt')}"
    for one in task.tries if task.attempts > 1 else ():
        yield _try(one, zone)


def _try(one: TryReport, zone: Zone) -> str:
    from chronex.text.durations import brief_duration

    pause = "" if one.pause_ms is None else f" after a pause of {brief_duration(one.pause_ms)}"
    took = "" if one.duration_ms is None else f" in {brief_duration(one.duration_ms)}"
    why = f": {terminal_safe(one.reason)}" if one.reason else ""
    began = time_text(one.started_ms, zone) or "not started"
    return f"  {one.number:<8} {began}{pause}, {_status(one.status)}{took}{why}"


def _sum(report: Report) -> str:
    from chronex.text.durations import brief_duration

    totals = report.totals
    ends = {"succeeded": totals.succeeded, "failed": totals.failed, "canceled": totals.canceled}
    ended = [f"{count} {how}" for how, count in (ends | {"skipped": totals.skipped}).items() if count]
    parts = [_many(totals.tasks, "task") + (f" ({', '.join(ended)})" if ended else "")]
    parts.append(f"{_many(totals.attempts, 'attempt')}, {_many(totals.retries, 'retry')}")
    parts.append(f"ran {brief_duration(totals.running_ms)}, paused {brief_duration(totals.pausing_ms)}")
    return f"in all     {', '.join(parts)}"


def _status(status: str) -> str:
    colour = (_COLOURS | _WORSE).get(status)
    words = status.replace("_", " ")
    return words if colour is None else paint(words, colour)


def _many(count: int, what: str) -> str:
    plural = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{count} {what if count == 1 else plural}"
