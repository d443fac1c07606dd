"""Metrics as a scraper sees them: parsed by Prometheus' own client, asked for through a socket and of a daemon."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from chronex.clock import SYSTEM_CLOCK
from chronex.daemon.metrics import BOUNDS_S, MOST_JOBS, MOST_TASKS, MetricsCollector, MetricsTally, PageWriter
from chronex.engine.orders import Launch
from chronex.model.event import Event
from chronex.model.groups import GroupSettings
from chronex.model.job import Job, JobProgress, Task
from chronex.model.policies import RecoveryPolicy, RecoveryStrategy
from chronex.model.states import OccurrenceState
from chronex.storage.journal import append
from chronex.storage.records import Reading
from chronex.testing import DAY, HOUR, MINUTE, RandomOutcomes, SimulatedMachine
from chronex.testing.machine import ProcessOutcome
from chronex_store import MemoryStore
from tests.kit.cluster import Cluster
from tests.kit.machine import AT_ONCE, START
from tests.kit.waits import DEADLINE_S
from tests.kit.work import assert_cheap
from tests.tui.examples import FixedClock

ROOT = Path(__file__).parent.parent.parent
TASK = (Task(name="main", run=("true",)),)


def scraped(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (found.name, tuple(sorted(found.labels.items()))): found.value
        for family in text_string_to_metric_families(text)
        for found in family.samples
    }


def registry_of(machine: SimulatedMachine) -> CollectorRegistry:
    collector = MetricsCollector(machine.store, FixedClock(machine.now), MetricsTally())
    while collector.advance():
        pass
    registry = CollectorRegistry()
    registry.register(collector)
    return registry


def page_of(machine: SimulatedMachine) -> str:
    return generate_latest(registry_of(machine)).decode()


@pytest.mark.parametrize("encode", [generate_latest, generate_openmetrics])
def test_a_page_is_what_the_library_writes_also_when_only_values_are_new(
    encode: Callable[[Collector], bytes],
) -> None:
    machine = SimulatedMachine([Job(id="a", schedule="*/10 * * * *", tasks=TASK)], outcome=RandomOutcomes(3))
    machine.store.update(lambda tx: append(tx, Event(name="OccurrenceMissed", at_ms=1, job='x"\\\n\u2028 1')))
    collector = MetricsCollector(machine.store, FixedClock(machine.now), MetricsTally())
    registry = CollectorRegistry()
    registry.register(collector)
    writer = PageWriter(encode)
    for hours in (0, 1, 2, 30):
        machine.run_until(START + hours * HOUR)
        page = writer.page(collector.values())
        assert page == encode(registry)
        assert scraped(generate_latest(registry).decode())
    parse = parse_openmetrics if encode is generate_openmetrics else text_string_to_metric_families
    assert [sample for family in parse(page.decode()) for sample in family.samples if sample.labels.get("job") == "a"]


def test_a_page_with_known_series_is_cheap() -> None:
    """The largest page: names and labels of 24,000 lines are not written again."""
    tally = MetricsTally()
    for number in range(MOST_TASKS):
        job, task = f"job-{number % MOST_JOBS}", f"task-{number}"
        tally.histograms["scheduler_task_execution_duration_seconds"][job, task].observe(number)
        for status in ("success", "failure", "timeout"):
            tally.counters["scheduler_task_attempts_total"][job, task, status] += 1
    collector = MetricsCollector(MemoryStore(), SYSTEM_CLOCK, tally)
    writer = PageWriter(generate_latest)
    writer.page(collector.values())
    assert_cheap(lambda: writer.page(collector.values()), 80, "a page of known series")


def test_what_is_counted_is_what_happened() -> None:
    machine = SimulatedMachine(
        [Job(id="a", schedule="*/10 * * * *", tasks=TASK), Job(id="b", schedule="0 * * * *", tasks=TASK)],
        outcome=RandomOutcomes(3),
    )
    machine.run_until(START + DAY // 2)
    machine.crash()
    machine.pass_time(3 * HOUR)
    machine.boot()
    machine.run_until(START + DAY)
    found = scraped(page_of(machine))
    for job in ("a", "b"):
        history = machine.occurrences(job)
        for state in (OccurrenceState.COMPLETED, OccurrenceState.FAILED, OccurrenceState.MISSED):
            counted = found.get(("scheduler_job_occurrences_total", (("job", job), ("status", state.value))), 0)
            assert counted == sum(o.state is state for o in history)
        attempts = [
            v for (n, labels), v in found.items() if n == "scheduler_task_attempts_total" and ("job", job) in labels
        ]
        assert sum(attempts) == sum(1 for p in machine.processes if p.job == job and p.attempt_id not in machine.live)
        took = sum(o.finished_ms - o.started_ms for o in history if o.finished_ms and o.started_ms) / 1000
        assert found["scheduler_job_execution_duration_seconds_sum", (("job", job),)] == pytest.approx(took)
        assert found["scheduler_job_start_lag_seconds_count", (("job", job),)] == sum(
            o.started_ms is not None for o in history
        )
        labels = (("job", job), ("strategy", "execute_last"))
        assert found["scheduler_recovery_runs_total", labels] == sum(
            o.recovery and o.started_ms is not None for o in history
        )


@pytest.mark.parametrize(
    ("strategy", "runs", "missed"),
    [
        (RecoveryStrategy.EXECUTE_ALL, 1_000, 6_200),
        (RecoveryStrategy.EXECUTE_LAST, 1, 7_199),
        (RecoveryStrategy.MARK_MISSED, 7_200, 7_200),  # those that it left out
        (RecoveryStrategy.COMPRESSED, 1, 7_199),
    ],
)
def test_recovery_is_counted_by_strategy_and_what_was_too_much_for_records_too(
    strategy: RecoveryStrategy, runs: int, missed: int
) -> None:
    """Two hours of a job of every second: most of the missed ones are a span of the journal."""
    job = Job(id="a", schedule="* * * * * *", tasks=TASK, recovery=RecoveryPolicy(strategy))
    machine = SimulatedMachine([job], outcome=lambda _launch: ProcessOutcome(duration_ms=1))
    machine.run_for(MINUTE)
    machine.pace = AT_ONCE
    machine.go_down(2 * HOUR)
    machine.run_for(MINUTE)
    found = scraped(page_of(machine))
    assert found["scheduler_recovery_runs_total", (("job", "a"), ("strategy", strategy.value))] == runs
    assert found["scheduler_job_occurrences_total", (("job", "a"), ("status", "missed"))] == missed


FAMILIES = {
    "scheduler_jobs_running": "gauge",
    "scheduler_jobs_running_total": "untyped",
    "scheduler_jobs_in_queue": "gauge",
    "scheduler_jobs_in_queue_total": "untyped",
    "scheduler_jobs_paused": "gauge",
    "scheduler_jobs_paused_total": "untyped",
    "scheduler_dead_letters": "gauge",
    "scheduler_dead_letters_total": "untyped",
    "scheduler_job_last_success_timestamp_seconds": "gauge",
    "scheduler_job_last_start_timestamp_seconds": "gauge",
    "scheduler_job_next_run_timestamp_seconds": "gauge",
    "scheduler_job_execution_duration_seconds": "histogram",
    "scheduler_task_execution_duration_seconds": "histogram",
    "scheduler_job_start_lag_seconds": "histogram",
    "scheduler_task_attempts_total": "counter",
    "scheduler_job_occurrences_total": "counter",
    "scheduler_recovery_runs_total": "counter",
    "scheduler_journal_events_total": "counter",
}


def test_the_page_has_every_family_with_help_and_type() -> None:
    lines = page_of(SimulatedMachine()).splitlines()
    assert [line.split()[2:] for line in lines if line.startswith("# TYPE")] == [[*row] for row in FAMILIES.items()]
    helped = [line.split(maxsplit=3)[2:] for line in lines if line.startswith("# HELP")]
    assert [name for name, words in helped if words.endswith(".")] == list(FAMILIES)
    documented = (ROOT / "docs" / "operating.md").read_text()
    assert not [name for name in FAMILIES if f"`{name}`" not in documented]


def test_both_formats_say_the_same() -> None:
    machine = SimulatedMachine([Job(id="a", schedule="*/10 * * * *", tasks=TASK)], outcome=RandomOutcomes(3))
    machine.run_until(START + DAY // 8)
    registry = registry_of(machine)
    text = generate_openmetrics(registry).decode()
    families = list(parse_openmetrics(text))
    assert scraped(page_of(machine)) == {
        (found.name, tuple(sorted(found.labels.items()))): found.value
        for family in families
        for found in family.samples
    }
    bounds = [
        s.labels["le"] for f in families for s in f.samples if s.name == "scheduler_job_start_lag_seconds_bucket"
    ]
    assert bounds == [*map(str, BOUNDS_S), "+Inf"]


def test_a_gauge_has_the_same_value_under_both_names() -> None:
    machine = SimulatedMachine(
        [Job(id="a", schedule="@daily", tasks=TASK, progress=JobProgress(paused=True))], outcome=RandomOutcomes(1)
    )
    found = scraped(page_of(machine))
    assert found["scheduler_jobs_paused", ()] == found["scheduler_jobs_paused_total", ()] == 1


def test_a_job_tells_when_it_last_succeeded_last_started_and_will_run_next() -> None:
    """`never` fails at 00:30 and has succeeded never; `off` is paused without an end and has no next run."""
    jobs = [
        Job(id="a", schedule="0 * * * *", tasks=TASK),
        Job(id="never", schedule="30 0 * * *", tasks=TASK),
        Job(id="off", schedule="@daily", tasks=TASK, progress=JobProgress(paused=True)),
    ]

    def outcome(launch: Launch) -> ProcessOutcome:
        return ProcessOutcome(2_000, exit_code=int(launch.attempt.job == "never"))

    machine = SimulatedMachine(jobs, outcome=outcome)
    machine.run_until(START + HOUR + 10 * MINUTE)
    found = scraped(page_of(machine))
    second = START // 1000

    def told(name: str) -> dict[str, float]:
        full = f"scheduler_job_{name}_timestamp_seconds"
        return {labels[0][1]: value - second for (metric, labels), value in found.items() if metric == full}

    assert told("last_success") == {"a": 3_602}
    assert told("last_start") == {"a": 3_600, "never": 1_800}
    assert told("next_run") == {"a": 7_200, "never": 86_400 + 1_800}


def test_the_next_run_of_a_job_may_be_on_record() -> None:
    """It has its jitter already; the metric had the instant behind it."""
    machine = SimulatedMachine([Job(id="a", schedule="0 1 * * * {jitter:5h}", tasks=TASK)])
    machine.run_until(START + HOUR + 1)
    (drawn,) = machine.occurrences("a")
    found = scraped(page_of(machine))
    assert found["scheduler_job_next_run_timestamp_seconds", (("job", "a"),)] == drawn.due_ms / 1000


def test_times_of_jobs_are_told_of_the_first_jobs_alone() -> None:
    jobs = [Job(id=f"job-{number:03}", schedule="@daily", tasks=TASK) for number in range(MOST_JOBS + 3)]
    found = scraped(page_of(SimulatedMachine(jobs)))
    names = [labels[0][1] for metric, labels in found if metric == "scheduler_job_next_run_timestamp_seconds"]
    assert names == [f"job-{number:03}" for number in range(MOST_JOBS)]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (apt install prometheus)")
def test_promtool_finds_nothing_to_say() -> None:
    """Of a page on which every family has a series."""
    jobs = [Job(id=name, schedule="*/10 * * * *", tasks=TASK, groups={"database": 1}) for name in "ab"]
    machine = SimulatedMachine(jobs, outcome=RandomOutcomes(3))
    machine.apply(jobs, groups=[GroupSettings("database", limit=1)])
    machine.run_until(START + 3 * HOUR)
    machine.go_down(2 * HOUR)
    machine.run_for(MINUTE)
    page = page_of(machine)
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=page, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert (checked.stdout + checked.stderr, checked.returncode) == ("", 0)
    told = {name.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count") for name, _ in scraped(page)}
    assert told >= set(FAMILIES)


def test_jobs_beyond_the_limit_are_counted_as_other() -> None:
    store = MemoryStore()
    many = [Event(name="OccurrenceCompleted", at_ms=1, job=f"job-{n}", nominal_ms=n) for n in range(MOST_JOBS + 50)]
    many += [
        Event(name="TaskRunFailed", at_ms=1, job="job-9999", task=f"t{n}", nominal_ms=1, attempt=1) for n in range(9)
    ]
    store.update(lambda tx: append(tx, *many))
    tally = MetricsTally()
    store.view(lambda tx: tally.advance(Reading(tx)))
    series = tally.counters["scheduler_job_occurrences_total"]
    assert len(series) == MOST_JOBS + 1
    assert series["other", "completed"] == 50
    assert tally.counters["scheduler_task_attempts_total"] == {("other", "other", "failure"): 9}


def test_tasks_beyond_the_limit_are_counted_as_other() -> None:
    store = MemoryStore()
    many = [
        Event(name="TaskRunFailed", at_ms=1, job="a", task=f"t{n}", nominal_ms=1, attempt=1)
        for n in range(MOST_TASKS + 9)
    ]
    store.update(lambda tx: append(tx, *many))
    tally = MetricsTally()
    store.view(lambda tx: tally.advance(Reading(tx)))
    assert tally.counters["scheduler_task_attempts_total"]["a", "other", "failure"] == 9


@pytest.mark.parametrize("hostile", ['a"} 1\nevil_metric 1', "\\", 'x"y', "a\nb", "\\n"])
def test_no_label_leaves_its_quotes(hostile: str) -> None:
    store = MemoryStore()
    store.update(lambda tx: append(tx, Event(name="OccurrenceMissed", at_ms=1, job=hostile)))
    registry = CollectorRegistry()
    registry.register(MetricsCollector(store, SYSTEM_CLOCK, MetricsTally()))
    found = scraped(generate_latest(registry).decode())
    assert found["scheduler_job_occurrences_total", (("job", hostile), ("status", "missed"))] == 1
    assert not [name for name, _ in found if "evil" in name]


def test_on_a_shared_store_each_node_counts_its_own_and_the_sums_are_those_of_the_store() -> None:
    job = Job(id="job", schedule="@every 20s", tasks=(Task(name="main", run=("true",)),))
    cluster = Cluster([job], 3, 11, START, {"job": 1_000})
    cluster.run(20 * 60_000)
    nodes = cluster.store.view(lambda tx: Reading(tx).nodes())
    clock = FixedClock(cluster.now)
    pages = {
        node.name: {
            one.name: one for one in MetricsCollector(cluster.store, clock, MetricsTally(0, node.id), node).values()
        }
        for node in nodes
    }
    counted = {
        name: sum(
            values[0] for labels, values in page["scheduler_job_occurrences_total"].series if "completed" in labels
        )
        for name, page in pages.items()
    }
    assert sum(counted.values()) == sum(one.ended_ms is not None for one in cluster.begun)
    for name, count in counted.items():
        assert count == sum(one.host == name and one.ended_ms is not None for one in cluster.begun)
        assert {labels[-1] for _, one in pages[name].items() for labels, _ in one.series} == {name}
    gauges = [name for name, page in pages.items() if any(one.kind == "gauge" for one in page.values())]
    assert len(gauges) == 1, "what the store is like is told by one of them"
