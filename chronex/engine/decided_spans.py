"""Which instants of a job were decided before its clock was set: spans that outlive the records of history."""

from __future__ import annotations

from chronex.model.job import Job
from chronex.model.policies import Cadence
from chronex.timing.job_schedule import is_interval, is_random

# A clock is set back a few times in the life of a job; the spans of the latest instants are kept.
MOST_SPANS = 32


def spans_with_latest(job: Job) -> tuple[tuple[int, int], ...]:
    """The spans that were decided, with the one that ends at the cursor; those that touch become one."""
    begin, end = job.progress.decided_from_ms, job.progress.cursor_ms
    if begin is None or end is None or end <= begin or not _has_fixed_instants(job):
        return job.progress.decided
    merged: list[tuple[int, int]] = []
    for first, last in sorted((*job.progress.decided, (begin, end))):
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return tuple(merged[-MOST_SPANS:])


def _has_fixed_instants(job: Job) -> bool:
    """Does it have the same instants when they are asked for again? Some intervals count from what was before."""
    if not is_interval(job):
        return True
    return job.cadence is not Cadence.FIXED_DELAY and not is_random(job)
