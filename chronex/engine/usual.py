"""What the runs of a job usually take: the median and the 95th percentile of those that completed last."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from chronex.model.job import Job
from chronex.model.occurrence import Attempt, Occurrence
from chronex.model.states import OccurrenceState
from chronex.storage.records import Reading

LAST_RUNS = 50
# With fewer runs nobody knows yet what is usual.
LEAST_RUNS = 5
_SEARCHED = 200
_BLOCK = 512
# A run is slow when it takes half again as long as 19 of 20 runs do, and at least ten seconds longer.
SLOW_FACTOR = 1.5
LEAST_EXCESS_MS = 10_000


class UsualBand(NamedTuple):
    """Half of the runs had at most `median`, 19 of 20 at most `p95`."""

    median: int
    p95: int


class RunUsage(NamedTuple):
    """What all attempts of one run took together, and the largest of them; None where nothing of it is known."""

    cpu_ms: int
    peak_kib: int | None
    read_bytes: int
    written_bytes: int
    limits_by: str = ""


class Usual(NamedTuple):
    """Of the last `runs` that completed; a band is None where none of them says anything of it."""

    runs: int
    duration_ms: UsualBand | None = None
    cpu_ms: UsualBand | None = None
    peak_kib: UsualBand | None = None
    read_bytes: UsualBand | None = None
    written_bytes: UsualBand | None = None


def band_of(values: Iterable[int]) -> UsualBand | None:
    """By rank: both are values that occurred."""
    found = sorted(values)
    if not found:
        return None
    return UsualBand(_at_rank(found, 50), _at_rank(found, 95))


def _at_rank(found: Sequence[int], percent: int) -> int:
    return found[-(-len(found) * percent // 100) - 1]


def usage_of(attempts: Iterable[Attempt]) -> RunUsage | None:
    used = [attempt.usage for attempt in attempts if attempt.usage is not None]
    if not used:
        return None
    peaks = [one.peak_kib for one in used if one.peak_kib is not None]
    return RunUsage(
        sum(one.cpu_ms for one in used),
        max(peaks, default=None),
        sum(one.blocks_read for one in used) * _BLOCK,
        sum(one.blocks_written for one in used) * _BLOCK,
        used[-1].limits_by,
    )


def completed_runs(reading: Reading, job_id: str) -> list[Occurrence]:
    """The last ones that completed, the newest first."""
    found = reading.occurrences(job_id, limit=_SEARCHED)
    return [one for one in found if one.state is OccurrenceState.COMPLETED and _duration(one) is not None][:LAST_RUNS]


def _duration(occurrence: Occurrence) -> int | None:
    if occurrence.started_ms is None or occurrence.finished_ms is None:
        return None
    return max(0, occurrence.finished_ms - occurrence.started_ms)


def usual_duration(reading: Reading, job_id: str) -> UsualBand | None:
    """None as long as too few runs have completed."""
    durations = [ms for one in completed_runs(reading, job_id) if (ms := _duration(one)) is not None]
    return band_of(durations) if len(durations) >= LEAST_RUNS else None


def usual_of(reading: Reading, job_id: str) -> Usual | None:
    """None as long as too few runs have completed."""
    runs = completed_runs(reading, job_id)
    if len(runs) < LEAST_RUNS:
        return None
    used = [usage for one in runs if (usage := usage_of(reading.attempts(one.job, one.nominal_ms))) is not None]
    return Usual(
        len(runs),
        band_of(ms for one in runs if (ms := _duration(one)) is not None),
        band_of(one.cpu_ms for one in used),
        band_of(one.peak_kib for one in used if one.peak_kib is not None),
        band_of(one.read_bytes for one in used),
        band_of(one.written_bytes for one in used),
    )


class SlowRun(NamedTuple):
    """A run that takes longer than its job's runs usually do, and still runs."""

    occurrence: Occurrence
    running_ms: int
    usual: UsualBand


def slow_run(reading: Reading, job: Job, now_ms: int) -> SlowRun | None:
    """The run of a job with `expect = "usual"` that is slow and was not told yet."""
    if not job.expect_usual:
        return None
    noted_ms = job.progress.slow_ms
    running = [
        one
        for one in reading.active(job.id)
        if one.started_ms is not None and (noted_ms is None or one.nominal_ms > noted_ms)
    ]
    usual = usual_duration(reading, job.id) if running else None
    if usual is None:
        return None
    longest = max(int(usual.p95 * SLOW_FACTOR), usual.p95 + LEAST_EXCESS_MS)
    for one in running:
        running_ms = now_ms - (one.started_ms or now_ms)
        if running_ms > longest:
            return SlowRun(one, running_ms, usual)
    return None
