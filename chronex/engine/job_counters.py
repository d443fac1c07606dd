"""How an end changes the progress of its job: counters, the streak of failures, the pause that it brings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from chronex.model.event import Event
from chronex.model.job import Job, JobProgress

# While a scheduler runs, one is enough: what is due in a pause is skipped at once.
MOST_PAUSES = 64
PAUSED_BY = "pause_after_failures"


def counted(job: Job, now_ms: int, last_run_ms: int | None, more: Mapping[str, int]) -> JobProgress:
    """The progress after an occurrence that counts `more`; paused where its job has failed too often in a row."""
    progress = job.progress
    counters: dict[str, Any] = {name: getattr(progress.counters, name) + step for name, step in more.items()}
    if "failed" in more:
        counters["failures_in_a_row"] = progress.counters.failures_in_a_row + 1
    elif "completed" in more:
        counters["failures_in_a_row"] = 0
    changed = replace(
        progress,
        counters=replace(progress.counters, **counters),
        last_run_ms=progress.last_run_ms if last_run_ms is None else last_run_ms,
        last_success_ms=now_ms if "completed" in more else progress.last_success_ms,
    )
    limit = job.pause_after_failures
    has_failed = "failed" in more and limit is not None and changed.counters.failures_in_a_row >= limit
    if not has_failed or progress.is_paused_at(now_ms):
        return changed
    return replace(
        changed,
        paused=True,
        paused_until_ms=None,
        paused_by=PAUSED_BY,
        paused_from_ms=now_ms,
        pauses=pauses_with_last(progress),
    )


def pause_event(job: Job, progress: JobProgress, now_ms: int) -> Event | None:
    """The event of a pause that a streak of failures brought; None where there is none."""
    if not progress.paused or progress.paused_by != PAUSED_BY or progress.paused_from_ms != now_ms:
        return None
    if job.progress.is_paused_at(now_ms):
        return None
    failures = progress.counters.failures_in_a_row
    return Event(name="JobPaused", at_ms=now_ms, job=job.id, actor=PAUSED_BY, data={"failures": failures})


def pauses_with_last(progress: JobProgress) -> tuple[tuple[int, int], ...]:
    """Its pauses before the one that begins now. Those before the cursor were skipped and are forgotten first."""
    begin, end = progress.paused_from_ms, progress.paused_until_ms
    if begin is None or end is None or end <= begin:
        return progress.pauses
    pauses = (*progress.pauses, (begin, end))
    if len(pauses) > MOST_PAUSES:
        pauses = tuple(pause for pause in pauses if pause[1] > (progress.cursor_ms or 0))
    return pauses[-MOST_PAUSES:]
