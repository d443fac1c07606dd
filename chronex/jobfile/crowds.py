"""How many runs of a job wait at once: each from when it is planned until spread, stagger and jitter let it start.

A spread of a year on a job that runs every second would be planned a year ahead, thirty million records.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import islice

from msgspec.structs import replace

from chronex.expr.durations import format_duration
from chronex.expr.meaning import Cron, Every
from chronex.jobfile.entries import Entry
from chronex.model.policies import Cadence
from chronex.model.records import Job
from chronex.timing.job_schedule import options_of, schedule_of, timing_of

MOST_WAITING = 100_000
_YEAR_MS = 366 * 86_400_000
_SOME_YEAR = 1_798_761_600_000  # 2027: one year is as crowded as another


def check_crowd(entry: Entry, job: Job) -> None:
    options = options_of(job)
    window = (job.spread.duration_ms if job.spread else 0) + (options.jitter or 0) + (options.stagger or 0)
    if not window or not _holds_too_many(job, window):
        return
    own = entry.expect_table()
    place = entry.child("spread" if job.spread is not None and "spread" in own else "schedule")
    message = f"within {format_duration(window)} more than {MOST_WAITING} runs would wait for their start"
    place.report(message, "make the window shorter, or the schedule rarer", "J024")


def _holds_too_many(job: Job, window_ms: int) -> bool:
    timing = timing_of(job)
    body = timing.meaning.body if timing is not None else None
    if timing is None or not isinstance(body, Cron | Every) or job.cadence is Cadence.FIXED_DELAY:
        return False
    if window_ms // (body.low if isinstance(body, Every) else 1000) < MOST_WAITING:
        return False  # not even if it were due at every step
    begin = max(_SOME_YEAR, timing.low - 1)
    instants = schedule_of(replace(job, anchor_ms=begin)).between(begin, begin + _YEAR_MS + window_ms)
    return _most_within(islice(instants, 2 * MOST_WAITING), window_ms) > MOST_WAITING


def _most_within(instants: Iterable[int], window_ms: int) -> int:
    """The largest number of them in any window of that length, no further than it takes to know."""
    waiting: deque[int] = deque()
    most = 0
    for at in instants:
        waiting.append(at)
        while at - waiting[0] > window_ms:
            waiting.popleft()
        most = max(most, len(waiting))
        if most > MOST_WAITING:
            break
    return most
