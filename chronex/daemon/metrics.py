"""Metrics for Prometheus: what the journal has recorded since this daemon began, and the present state of the store.

Counters and histograms are a tally of the journal, so nothing is counted twice and nothing by two threads; gauges are
read in the same snapshot. prometheus-client only writes them: counters of its own would count what this process did,
which is more than what happened when a transaction is rolled back. It is imported when metrics are switched on.
Labels are bounded, and the events of each snapshot.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from chronex.clock import Clock
from chronex.daemon.maintenance import is_maintainer
from chronex.model.event import Event
from chronex.model.job import Job, is_name
from chronex.model.occurrence import Attempt, Occurrence
from chronex.model.policies import RecoveryStrategy
from chronex.model.records import Node
from chronex.storage import journal, keys
from chronex.storage.ports import Store
from chronex.storage.records import Reading, pages
from chronex.views.group_rows import groups_of
from chronex.views.jobs import Row, rows_of

if TYPE_CHECKING:
    from prometheus_client import Metric
    from prometheus_client.registry import Collector

MOST_JOBS = 200
MOST_TASKS = 1_000
_ALL_JOBS = 1_000_000
OTHER = "other"  # the label of every job or task beyond these
# One snapshot reads at most so many events; a periodic task keeps the tally near the end of the journal.
MOST_EVENTS = 2_000
BOUNDS_S = (0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0, 3600.0, 21600.0)
_BUCKET_BOUNDS = (*map(str, BOUNDS_S), "+Inf")  # OpenMetrics demands bounds that look like floats: 1.0, not 1

Labels = tuple[str, ...]
T = TypeVar("T")

# Help, and the names of the labels.
HISTOGRAMS: dict[str, tuple[str, Labels]] = {
    "scheduler_job_execution_duration_seconds": ("From the start of an occurrence to its end.", ("job",)),
    "scheduler_task_execution_duration_seconds": ("From the start of an attempt to its end.", ("job", "task")),
    "scheduler_job_start_lag_seconds": ("From when an occurrence was due to when it started.", ("job",)),
}
_RECOVERY_RUNS = "Occurrences started to make up for missed ones, by strategy; those that mark_missed left out."
COUNTERS: dict[str, tuple[str, Labels]] = {
    "scheduler_task_attempts_total": ("Attempts that ended, by how they ended.", ("job", "task", "status")),
    "scheduler_job_occurrences_total": ("Occurrences that ended, by how they ended.", ("job", "status")),
    "scheduler_recovery_runs_total": (_RECOVERY_RUNS, ("job", "strategy")),
    "scheduler_journal_events_total": ("Events that were written into the journal.", ()),
}
_ATTEMPT_STATUS = ("success", "timeout", "canceled", "crashed")  # anything else is a failure
_OCCURRENCE_STATUS = {
    "OccurrenceCompleted": "completed",
    "OccurrenceFailed": "failed",
    "OccurrenceFailedStale": "failed_stale",
    "OccurrenceCanceled": "canceled",
    "OccurrenceSkipped": "skipped",
    "OccurrenceMissed": "missed",
}


class Histogram:
    """How many values lie between each two bounds, and their sum."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_S) + 1)
        self.total = 0.0

    def observe(self, ms: int) -> None:
        seconds = max(ms, 0) / 1000  # a clock that was set back makes it negative
        self.counts[bisect_left(BOUNDS_S, seconds)] += 1
        self.total += seconds

    def values(self) -> list[float]:
        """Cumulative counts, then the count of all, which is the last of them, and the sum."""
        buckets: list[float] = list(accumulate(self.counts))
        return [*buckets, buckets[-1], self.total]


class MetricsTally:
    """What has happened since `seen`, the number of the last event that was counted."""

    def __init__(self, seen: int = 0, node: str = "") -> None:
        """`node` is whose events are counted, where machines share the store; empty for those of all."""
        self.seen = seen
        self._node = node
        self.is_maintainer = False  # then what no node wrote is counted here too
        self._began = seen
        self._jobs: set[str] = set()
        self._tasks: set[tuple[str, str]] = set()
        self.counters: defaultdict[str, Counter[Labels]] = defaultdict(Counter)
        self.histograms: defaultdict[str, defaultdict[Labels, Histogram]] = defaultdict(
            lambda: defaultdict(Histogram)
        )

    def advance(self, reading: Reading, most: int = MOST_EVENTS) -> bool:
        """Count the events since the last time; True when more are waiting."""
        events = list(journal.onward(reading.tx, self.seen, most))
        for number, event in events:
            if self._is_own(event):
                self._take(reading, event)
            self.seen = number
        self.counters["scheduler_journal_events_total"][()] = self.seen - self._began
        return len(events) == most

    def _is_own(self, event: Event) -> bool:
        """Each event is counted by one node: summed over all of them, the counts are those of the store."""
        if not self._node:
            return True
        wrote = event.data.get("node")
        return wrote == self._node if wrote else self.is_maintainer

    def _take(self, reading: Reading, event: Event) -> None:
        if event.name in _OCCURRENCE_STATUS:
            label = self._job(event.job)
            status = "completed_with_errors" if event.data.get("errors") else _OCCURRENCE_STATUS[event.name]
            self.counters["scheduler_job_occurrences_total"][label, status] += 1
            found = self._occurrence(reading, event)
            self._observe_duration("scheduler_job_execution_duration_seconds", (label,), found)
            if event.name == "OccurrenceMissed":
                self._count_marked(reading, event, 1)
        elif event.name == "OccurrencesMissed":  # too many for a record each
            count = int(event.data.get("count", 0))
            self.counters["scheduler_job_occurrences_total"][self._job(event.job), "missed"] += count
            self._count_marked(reading, event, count)
        elif event.name in ("TaskRunCompleted", "TaskRunFailed"):
            self._attempt_ended(reading, event)
        elif event.name == "OccurrenceStarted":
            self._occurrence_started(reading, event)

    def _attempt_ended(self, reading: Reading, event: Event) -> None:
        state = str(event.data.get("state", ""))
        labels = self._task(event.job, event.task)
        status = state if state in _ATTEMPT_STATUS else "failure"
        self.counters["scheduler_task_attempts_total"][*labels, status] += 1
        if event.nominal_ms is not None and event.attempt is not None:
            found = reading.attempt(event.job, event.nominal_ms, event.task, event.attempt)
            self._observe_duration("scheduler_task_execution_duration_seconds", labels, found)

    def _occurrence_started(self, reading: Reading, event: Event) -> None:
        label = self._job(event.job)
        self.histograms["scheduler_job_start_lag_seconds"][label,].observe(int(event.data.get("lag_ms", 0)))
        found = self._occurrence(reading, event)
        if found is not None and found.recovery:
            self.counters["scheduler_recovery_runs_total"][label, _strategy(reading, event.job)] += 1

    def _count_marked(self, reading: Reading, event: Event, count: int) -> None:
        """What a strategy that runs nothing has decided; the missed ones of other strategies are not its runs."""
        strategy = _strategy(reading, event.job)
        if strategy == RecoveryStrategy.MARK_MISSED and count:
            self.counters["scheduler_recovery_runs_total"][self._job(event.job), strategy] += count

    def _occurrence(self, reading: Reading, event: Event) -> Occurrence | None:
        return None if event.nominal_ms is None else reading.occurrence(event.job, event.nominal_ms)

    def _observe_duration(self, name: str, labels: Labels, found: Occurrence | Attempt | None) -> None:
        if found is not None and found.started_ms is not None and found.finished_ms is not None:
            self.histograms[name][labels].observe(found.finished_ms - found.started_ms)

    def has_label(self, job: str) -> bool:
        """Whether the job has a label of its own; it gets one where there is one left."""
        return _has_label(self._jobs, job, MOST_JOBS)

    def _job(self, job: str) -> str:
        return job if self.has_label(job) else OTHER

    def _task(self, job: str, task: str) -> tuple[str, str]:
        label = self._job(job)
        if label != OTHER and _has_label(self._tasks, (job, task), MOST_TASKS):
            return label, task
        return label, OTHER


def _strategy(reading: Reading, job: str) -> str:
    found = reading.job(job) if is_name(job) else None  # what the journal says is not trusted
    return "unknown" if found is None else found.recovery.strategy.value


def _has_label(known: set[T], name: T, most: int) -> bool:
    """Whether this name has a label of its own: the first ones have, up to the limit."""
    if name not in known and len(known) < most:
        known.add(name)
    return name in known


class MetricValues(NamedTuple):
    """One metric of a page: `series` has the values of each set of labels, in the order of the library's samples."""

    name: str
    words: str
    kind: str
    label_names: Labels
    series: list[tuple[Labels, list[float]]]


class MetricsCollector:
    """The tally and the gauges of one snapshot, also as a `prometheus_client.registry.Collector`."""

    def __init__(self, store: Store, clock: Clock, tally: MetricsTally, node: Node | None = None) -> None:
        """`node` is who tells them, where machines share the store: its name becomes a label of every series."""
        self._node = node
        self._store = store
        self._clock = clock
        self._tally = tally

    def advance(self) -> bool:
        """Count a bounded number of new events; True when more are waiting."""
        return self._store.view(lambda tx: self._advance(Reading(tx)))

    def _advance(self, reading: Reading) -> bool:
        if self._node is not None:
            self._tally.is_maintainer = is_maintainer(reading.nodes(), self._node.id, self._clock.wall_ms())
        return self._tally.advance(reading)

    def values(self) -> list[MetricValues]:
        return self._store.view(lambda tx: list(self._values(Reading(tx))))

    def collect(self) -> list[Metric]:
        return [_as_metric(values, values.series) for values in self.values()]

    def _values(self, reading: Reading) -> Iterator[MetricValues]:
        if self._node is None:
            yield from self._unlabelled(reading)
            return
        name = self._node.name or self._node.host
        for one in self._unlabelled(reading):
            series = [((*labels, name), values) for labels, values in one.series]
            yield one._replace(label_names=(*one.label_names, "node"), series=series)

    def _unlabelled(self, reading: Reading) -> Iterator[MetricValues]:
        """What the store as a whole is like is told by the one node that looks after it."""
        self._advance(reading)
        now_ms = self._clock.wall_ms()
        if self._node is None or self._tally.is_maintainer:
            jobs = reading.jobs(limit=_ALL_JOBS)
            for name, words, value in _gauges(reading, jobs, now_ms):
                yield MetricValues(name, words, "gauge", (), [((), [value])])
                # Its first name. promtool leaves `_total` to counters, and says nothing of what has no type.
                yield MetricValues(f"{name}_total", words, "unknown", (), [((), [value])])
            yield from self._job_times(reading, jobs, now_ms)
        yield from _group_gauges(reading)
        for name, (words, label_names) in HISTOGRAMS.items():
            histograms = sorted(self._tally.histograms[name].items(), key=lambda pair: pair[0])
            yield MetricValues(
                name, words, "histogram", label_names, [(labels, found.values()) for labels, found in histograms]
            )
        for name, (words, label_names) in COUNTERS.items():
            counts = sorted(self._tally.counters[name].items())
            yield MetricValues(name, words, "counter", label_names, [(labels, [count]) for labels, count in counts])

    def _job_times(self, reading: Reading, jobs: Iterable[Job], now_ms: int) -> Iterator[MetricValues]:
        """Only of jobs with a label of their own: of many together no time could be told."""
        rows = rows_of(reading, now_ms, [job for job in jobs if self._tally.has_label(job.id)])
        for name, (words, time_of) in _JOB_TIMES.items():
            times = [((row.job.id,), time_of(row)) for row in rows]
            yield MetricValues(
                f"scheduler_job_{name}_timestamp_seconds",
                words,
                "gauge",
                ("job",),
                [(labels, [ms / 1000]) for labels, ms in times if ms is not None],
            )


# By the middle of their names. A job has no series for what has not happened or will not happen.
_JOB_TIMES: dict[str, tuple[str, Callable[[Row], int | None]]] = {
    "last_success": ("When an occurrence last completed.", lambda row: row.job.progress.last_success_ms),
    "last_start": ("When an occurrence last started.", lambda row: row.job.progress.last_run_ms),
    "next_run": ("When the next occurrence is due.", lambda row: None if row.next is None else row.next.due_ms),
}


def _as_metric(metric: MetricValues, series: Iterable[tuple[Labels, list[float]]]) -> Metric:
    """The metric with some of its series as prometheus-client has it."""
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
        UnknownMetricFamily,
    )

    if metric.kind == "histogram":
        histogram = HistogramMetricFamily(metric.name, metric.words, labels=metric.label_names)
        for labels, (*buckets, _count, total) in series:
            histogram.add_metric(labels, list(zip(_BUCKET_BOUNDS, buckets, strict=True)), total)
        return histogram
    single: CounterMetricFamily | GaugeMetricFamily | UnknownMetricFamily
    kinds = {"counter": CounterMetricFamily, "gauge": GaugeMetricFamily, "unknown": UnknownMetricFamily}
    single = kinds[metric.kind](metric.name, metric.words, labels=metric.label_names)
    for labels, (value,) in series:
        single.add_metric(labels, value)
    return single


class _Metrics(list["Metric"]):
    """Metrics that an encoder of prometheus-client takes for a registry."""

    def collect(self) -> list[Metric]:
        return self


class PageWriter:
    """Writes pages in one format. prometheus-client writes every line once; later pages only get new values.

    The largest page has 24,000 lines. The library takes 0.3 to 0.5 s for it, most of it for names and labels, which
    never change; with those kept, a page takes 0.04 s. Labels are bounded, so what is kept is as well.
    """

    def __init__(self, encode: Callable[[Collector], bytes]) -> None:
        self._encode = encode
        self._end = encode(_Metrics()).decode()
        self._heads: dict[str, str] = {}
        self._lines: defaultdict[str, dict[Labels, list[str]]] = defaultdict(dict)  # each without its value

    def page(self, metrics: Iterable[MetricValues]) -> bytes:
        from prometheus_client.utils import floatToGoString

        written: list[str] = []
        for metric in metrics:
            written.append(self._head(metric))
            lines = self._lines_of(metric)
            for labels, values in metric.series:
                for line, value in zip(lines[labels], values, strict=True):
                    written.append(f"{line} {floatToGoString(value)}\n")
        return ("".join(written) + self._end).encode()

    def _head(self, metric: MetricValues) -> str:
        if metric.name not in self._heads:
            self._heads[metric.name] = self._encoded(metric, ())
        return self._heads[metric.name]

    def _lines_of(self, metric: MetricValues) -> dict[Labels, list[str]]:
        known = self._lines[metric.name]
        new = [pair for pair in metric.series if pair[0] not in known]
        if new:
            text = self._encoded(metric, new).removeprefix(self._head(metric))
            lines = iter(text.split("\n"))  # not splitlines: a label may contain other line separators
            for labels, values in new:
                known[labels] = [next(lines).rpartition(" ")[0] for _ in values]
        return known

    def _encoded(self, metric: MetricValues, series: Iterable[tuple[Labels, list[float]]]) -> str:
        return self._encode(_Metrics([_as_metric(metric, series)])).decode().removesuffix(self._end)


def _gauges(reading: Reading, jobs: Iterable[Job], now_ms: int) -> Iterator[tuple[str, str, int]]:
    """Name, help and value, counted by the keys of the indexes; only the jobs themselves are read."""
    paused = sum(job.progress.is_paused_at(now_ms) for job in jobs)
    waiting = (keys.QUEUED + keys.OCCURRENCE, keys.PARKED + keys.OCCURRENCE, keys.IN_LINE)
    queued = sum(_entries(reading, prefix) for prefix in waiting)
    yield "scheduler_jobs_running", "Occurrences that run now.", _entries(reading, keys.ACTIVE + keys.OCCURRENCE)
    yield "scheduler_jobs_in_queue", "Occurrences that wait for their turn.", queued
    yield "scheduler_jobs_paused", "Jobs that are paused.", paused
    yield "scheduler_dead_letters", "Runs in the dead-letter queue.", _entries(reading, keys.DEAD_LETTER)


def _group_gauges(reading: Reading) -> Iterator[MetricValues]:
    """By group: the places that are taken, how many there are, and how many wait for one."""
    rows = groups_of(reading, 0)
    limited = [row for row in rows if row.group.limit is not None]
    gauges = (
        ("scheduler_group_held", "Places of the group that are taken.", {row: row.held for row in rows}),
        ("scheduler_group_waiting", "Occurrences that wait in its line.", {row: row.waiting for row in rows}),
        ("scheduler_group_limit", "Places that the group has.", {row: row.group.limit or 0 for row in limited}),
    )
    for name, words, values in gauges:
        series: list[tuple[Labels, list[float]]] = [((row.group.name,), [value]) for row, value in values.items()]
        if series:
            yield MetricValues(name, words, "gauge", ("group",), series)


def _entries(reading: Reading, prefix: bytes) -> int:
    return sum(len(rows) for rows in pages(reading.tx, prefix))
