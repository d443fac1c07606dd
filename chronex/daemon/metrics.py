"""Metrics in the text format of Prometheus: what the journal tells since this daemon began, and how things stand.

Counters and histograms follow the journal, so nothing is counted twice and nothing by two threads; gauges are read in
the same snapshot. The set of labels is bounded: what comes after the first jobs is counted as "other".
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from chronex.model.records import Event, Occurrence
from chronex.storage import journal, keys
from chronex.storage.records import Reading, pages

MOST_JOBS = 200
MOST_TASKS = 1_000
OTHER = "other"
# One snapshot reads so many events at the utmost; a chore keeps the tally near the end of the journal.
MOST_EVENTS = 2_000
BOUNDS_S = (0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0, 3600.0, 21600.0)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

HELP: dict[str, tuple[str, str]] = {
    "scheduler_jobs_running_total": ("gauge", "Occurrences that run now."),
    "scheduler_jobs_in_queue_total": ("gauge", "Occurrences that wait for their turn."),
    "scheduler_jobs_paused_total": ("gauge", "Jobs that are paused."),
    "scheduler_dead_letters_total": ("gauge", "Runs in the dead-letter queue."),
    "scheduler_job_execution_duration_seconds": ("histogram", "From the start of an occurrence to its end."),
    "scheduler_task_execution_duration_seconds": ("histogram", "From the start of an attempt to its end."),
    "scheduler_job_start_lag_seconds": ("histogram", "From when an occurrence was due to when it started."),
    "scheduler_task_attempts_total": ("counter", "Attempts that ended, by how they ended."),
    "scheduler_job_occurrences_total": ("counter", "Occurrences that ended, by how they ended."),
    "scheduler_recovery_runs_total": ("counter", "Occurrences started to make up for missed ones, by strategy."),
    "scheduler_journal_events_total": ("counter", "Events that were written into the journal."),
}
_ATTEMPT_STATUS = {"success": "success", "failed": "failure", "timeout": "timeout", "canceled": "canceled",
                   "crashed": "crashed"}  # fmt: skip
_OCCURRENCE_STATUS = {
    "OccurrenceCompleted": "completed",
    "OccurrenceFailed": "failed",
    "OccurrenceFailedStale": "failed_stale",
    "OccurrenceCanceled": "canceled",
    "OccurrenceSkipped": "skipped",
    "OccurrenceMissed": "missed",
}
Labels = tuple[tuple[str, str], ...]


class Histogram:
    """Counts below each bound, their number and their sum."""

    __slots__ = ("count", "counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_S) + 1)
        self.count, self.total = 0, 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(BOUNDS_S, seconds)] += 1
        self.count += 1
        self.total += seconds

    def lines(self, name: str, labels: Labels) -> Iterator[str]:
        below = 0
        for bound, count in zip((*(f"{b:g}" for b in BOUNDS_S), "+Inf"), self.counts, strict=True):
            below += count
            yield sample(f"{name}_bucket", (*labels, ("le", bound)), below)
        yield sample(f"{name}_sum", labels, self.total)
        yield sample(f"{name}_count", labels, self.count)


class Tally:
    """What has happened since `seen`, the number of the last event that was counted."""

    def __init__(self, seen: int = 0) -> None:
        self.seen, self.began = seen, seen
        self._jobs: set[str] = set()
        self._tasks: set[tuple[str, str]] = set()
        self.counters: dict[str, dict[Labels, int]] = {}
        self.histograms: dict[str, dict[Labels, Histogram]] = {}

    def advance(self, reading: Reading, most: int = MOST_EVENTS) -> bool:
        """Count the events since the last time; True when more are waiting."""
        taken = 0
        for number, event in journal.onward(reading.tx, self.seen, most):
            self._take(reading, event)
            self.seen, taken = number, taken + 1
        return taken == most

    def _take(self, reading: Reading, event: Event) -> None:
        if event.name in _OCCURRENCE_STATUS:
            labels = (("job", self._job(event.job)), ("status", _OCCURRENCE_STATUS[event.name]))
            self._count("scheduler_job_occurrences_total", labels)
            self._occurrence_took(reading, event)
        elif event.name in ("TaskRunCompleted", "TaskRunFailed"):
            self._attempt_ended(reading, event)
        elif event.name == "OccurrenceStarted":
            self._started(reading, event)

    def _occurrence_took(self, reading: Reading, event: Event) -> None:
        found = self._occurrence(reading, event)
        if found is not None and found.started_ms is not None and found.finished_ms is not None:
            self._observe("scheduler_job_execution_duration_seconds", (("job", self._job(event.job)),),
                          found.finished_ms - found.started_ms)  # fmt: skip

    def _attempt_ended(self, reading: Reading, event: Event) -> None:
        status = _ATTEMPT_STATUS.get(str(event.data.get("state", "")), "failure")
        job, task = self._task(event.job, event.task)
        labels = (("job", job), ("task", task))
        self._count("scheduler_task_attempts_total", (*labels, ("status", status)))
        if event.nominal_ms is None or event.attempt is None:
            return
        found = reading.attempt(event.job, event.nominal_ms, event.task, event.attempt)
        if found is not None and found.started_ms is not None and found.finished_ms is not None:
            took = found.finished_ms - found.started_ms
            self._observe("scheduler_task_execution_duration_seconds", labels, took)

    def _started(self, reading: Reading, event: Event) -> None:
        labels = (("job", self._job(event.job)),)
        self._observe("scheduler_job_start_lag_seconds", labels, int(event.data.get("lag_ms", 0)))
        found = self._occurrence(reading, event)
        if found is not None and found.recovery:
            job = reading.job(event.job)
            strategy = "unknown" if job is None else job.recovery.strategy.value
            self._count("scheduler_recovery_runs_total", (*labels, ("strategy", strategy)))

    def _occurrence(self, reading: Reading, event: Event) -> Occurrence | None:
        return None if event.nominal_ms is None else reading.occurrence(event.job, event.nominal_ms)

    def _count(self, name: str, labels: Labels) -> None:
        series = self.counters.setdefault(name, {})
        series[labels] = series.get(labels, 0) + 1

    def _observe(self, name: str, labels: Labels, ms: int) -> None:
        series = self.histograms.setdefault(name, {})
        if labels not in series:
            series[labels] = Histogram()
        series[labels].observe(max(ms, 0) / 1000)

    def _job(self, job: str) -> str:
        """The job's own label, while there is room for another one."""
        if job not in self._jobs:
            if len(self._jobs) >= MOST_JOBS:
                return OTHER
            self._jobs.add(job)
        return job

    def _task(self, job: str, task: str) -> tuple[str, str]:
        named = self._job(job)
        if named == OTHER:
            return OTHER, OTHER
        if (job, task) not in self._tasks:
            if len(self._tasks) >= MOST_TASKS:
                return named, OTHER
            self._tasks.add((job, task))
        return named, task


def gauges(reading: Reading, now_ms: int) -> dict[str, int]:
    """How things stand, by the keys of the indexes; only the jobs themselves are read."""
    return {
        "scheduler_jobs_running_total": _entries(reading, keys.ACTIVE + keys.OCCURRENCE),
        "scheduler_jobs_in_queue_total": _entries(reading, keys.QUEUED + keys.OCCURRENCE),
        "scheduler_jobs_paused_total": sum(job.is_paused_at(now_ms) for job in reading.jobs(limit=1_000_000)),
        "scheduler_dead_letters_total": _entries(reading, keys.DEAD_LETTER),
    }


def _entries(reading: Reading, prefix: bytes) -> int:
    return sum(len(rows) for rows in pages(reading.tx, prefix))


def exposition(tally: Tally, standing: dict[str, int]) -> str:
    """The whole page, every family with its help and its type."""
    lines: list[str] = []
    for name, (kind, words) in HELP.items():
        lines += [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]
        lines += _family(name, kind, tally, standing)
    return "\n".join(lines) + "\n"


def _family(name: str, kind: str, tally: Tally, standing: dict[str, int]) -> Iterable[str]:
    if name == "scheduler_journal_events_total":
        return [sample(name, (), tally.seen - tally.began)]
    if kind == "gauge":
        return [sample(name, (), standing[name])]
    if kind == "counter":
        return [sample(name, labels, value) for labels, value in sorted(tally.counters.get(name, {}).items())]
    series = sorted(tally.histograms.get(name, {}).items(), key=lambda pair: pair[0])
    return [line for labels, histogram in series for line in histogram.lines(name, labels)]


def sample(name: str, labels: Labels, value: float) -> str:
    inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
    return f"{name}{{{inside}}} {value}" if inside else f"{name} {value}"


def _escaped(text: str) -> str:
    """No name can leave its quotes, whatever a store holds."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
