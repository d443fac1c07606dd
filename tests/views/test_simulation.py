"""The simulation decides as the engine does: the same jobs and clock give the same outcomes."""

from __future__ import annotations

from heapq import heappop, heappush
from random import Random

import pytest
from msgspec.structs import replace

from chronex.engine.engine import Engine
from chronex.engine.orders import AttemptEnd, Cancel, Launch, Order
from chronex.engine.update import apply_jobs
from chronex.engine.update.sources import JobSource
from chronex.model.groups import GroupSettings, StartRate
from chronex.model.job import Job, Task
from chronex.model.occurrence import Attempt
from chronex.model.policies import Cadence, DstSetting, OverlapPolicy, SpreadPolicy
from chronex.model.states import AttemptState
from chronex.storage.records import Reading
from chronex.views.simulation import simulate_runs
from chronex_store import MemoryStore

BEGIN = 1_806_100_200_000  # Saturday before Berlin's clocks go forward, 2027-03-27 05:30 UTC
HOUR = 3_600_000
PlayedRow = tuple[str, int, str, str, int | None, int | None]


def job(name: str, schedule: str, **more: object) -> Job:
    return Job(id=name, schedule=schedule, timezone="Europe/Berlin", tasks=(Task(name="t", run=("true",)),), **more)  # type: ignore[arg-type]


GROUPS = (
    GroupSettings("g", limit=2),
    GroupSettings("h", limit=1),
    GroupSettings("slow", rate=StartRate(2, 25 * 60_000)),
)
CASES: dict[str, tuple[list[Job], dict[str, int], int]] = {
    "plain": ([job("a", "*/10 * * * *"), job("b", "30 2 * * *")], {"a": 1000, "b": 5000}, 50),
    "skip": ([job("a", "*/5 * * * *")], {"a": 7 * 60_000}, 50),
    "queue": ([job("a", "*/5 * * * *", overlap=OverlapPolicy.QUEUE)], {"a": 7 * 60_000}, 50),
    "queue_one": ([job("a", "*/5 * * * *", overlap=OverlapPolicy.QUEUE_ONE)], {"a": 17 * 60_000}, 50),
    "allow": ([job("a", "*/5 * * * *", overlap=OverlapPolicy.ALLOW)], {"a": 17 * 60_000}, 50),
    "cancel_running": ([job("a", "*/5 * * * *", overlap=OverlapPolicy.CANCEL_RUNNING)], {"a": 7 * 60_000}, 50),
    "cancel_running in a full pool": (
        [job("a", "*/5 * * * *", overlap=OverlapPolicy.CANCEL_RUNNING), job("b", "3 8-20 * * *")],
        {"a": 7 * 60_000, "b": 31 * 60_000},
        1,
    ),
    "pool": ([job(c, "*/10 * * * *") for c in "abcd"], dict.fromkeys("abcd", 4 * 60000), 2),
    "window": ([job(c, "*/10 * * * * {window:2m}") for c in "abc"], dict.fromkeys("abc", 4 * 60000), 1),
    "max": ([job("a", "*/10 * * * * {max:7}"), job("b", "@every 7m {max:3}")], {"a": 1000, "b": 1000}, 50),
    "from and until": ([job("a", "*/10 * * * * {from:2027-03-27T08:00, until:2027-03-27T10:00}")], {"a": 1000}, 50),
    "fixed delay": ([job("a", "@every 10m", cadence=Cadence.FIXED_DELAY)], {"a": 5 * 60_000}, 50),
    "fixed delay beside another": (
        [job("a", "*/20 * * * *"), job("b", "@every 10m", cadence=Cadence.FIXED_DELAY)],
        {"a": 1000, "b": 5 * 60_000},
        50,
    ),
    "spread": ([job("a", "0 * * * *", spread=SpreadPolicy(duration_ms=HOUR, mode="around"))], {"a": 60_000}, 50),
    "dst": ([job("a", "30 2 * * *", dst=DstSetting(gap="skip")), job("b", "*/30 * * * *")], {"a": 1, "b": 1}, 50),
    "groups": (
        [job(c, "*/10 * * * *", groups={"g": 1}, overlap=OverlapPolicy.QUEUE) for c in "abc"],
        dict.fromkeys("abc", 3 * 60_000 + 7),
        50,
    ),
    "weights and priorities": (
        [job("a", "*/10 * * * *", groups={"g": 2}, priority=-20), job("b", "*/7 * * * *", groups={"g": 1}, priority=9),
         job("c", "*/9 * * * *", groups={"h": 1, "g": 1}), job("d", "*/6 * * * *", groups={"h": 1})],
        {"a": 4 * 60_000, "b": 5 * 60_000, "c": 3 * 60_000, "d": 2 * 60_000},
        2,
    ),
    "rates": (
        [job(c, "*/10 * * * *", groups={"slow": 1, "h": 1}, overlap=OverlapPolicy.ALLOW) for c in "abc"],
        {"a": 4 * 60_000, "b": 50_000, "c": 13 * 60_000},
        3,
    ),
    "priorities in the pool": (
        [job("a", "*/5 * * * *"), job("b", "*/4 * * * *", priority=30), job("c", "*/3 * * * *", priority=-9)],
        {"a": 3 * 60_000, "b": 2 * 60_000, "c": 60_000},
        1,
    ),
    "disabled": ([job("a", "* * * * *", enabled=False)], {}, 50),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_rehearsal_ends_as_the_engine_does(name: str) -> None:
    jobs, durations, slots = CASES[name]
    end = BEGIN + (30 if name == "dst" else 15) * HOUR
    played = [
        (p.occurrence.job, p.occurrence.nominal_ms, str(p.state), str(p.reason), p.started_ms, p.ended_ms)
        for p in simulate_runs(jobs, BEGIN, end, durations.__getitem__, slots, Random(7), GROUPS)
    ]
    real = by_engine(jobs, durations, slots, end)
    started_by_then = {(job, nominal) for job, nominal, *_ in real}
    assert real or name == "disabled"
    assert sorted(f for f in played if (f[0], f[1]) in started_by_then) == real
    assert {(job, nominal) for job, nominal, *_ in played if nominal <= end} >= started_by_then


def by_engine(jobs: list[Job], durations: dict[str, int], slots: int, end: int) -> list[PlayedRow]:
    """The real engine on a memory store; each attempt ends well after its time, or at once when canceled."""
    store = MemoryStore()
    engine = Engine(store, "node", slots, Random(7))
    apply_jobs(store, jobs, BEGIN, owns=JobSource("", groups=GROUPS))
    now, ends, count = BEGIN, list[tuple[int, int, Attempt]](), 0
    canceled: set[str] = set()

    def carry_out(orders: tuple[Order, ...]) -> None:
        nonlocal count
        for order in orders:
            if isinstance(order, Launch):
                count += 1
                heappush(ends, (now + durations[order.job.id], count, order.attempt))
            elif isinstance(order, Cancel):
                canceled.add(order.attempt.id)
                ended = AttemptEnd(state=AttemptState.CANCELED, reason=order.reason, retryable=False)
                carry_out(store.update(engine.ended(order.attempt, ended, now)))

    while now <= end:
        tick = engine.tick(now, BEGIN)
        carry_out(tick.orders)
        if tick.has_more:
            continue
        due = [at for at in (tick.next_ms, ends[0][0] if ends else None) if at is not None]
        now = max(now, min(due, default=end + 1))
        while ends and ends[0][0] <= now:
            _, _, attempt = heappop(ends)
            if attempt.id not in canceled:
                carry_out(store.update(engine.ended(attempt, AttemptEnd(state=AttemptState.SUCCESS), now)))
    done = store.view(lambda tx: Reading(tx).finished(limit=100_000))
    return sorted(
        (o.job, o.nominal_ms, str(o.state), str(o.reason), o.started_ms, o.finished_ms if o.started_ms else None)
        for o in done
    )


def test_a_season_of_many_runs_is_counted_without_a_store() -> None:
    jobs = [replace(job(f"j{i}", f"{i} */6 * * *")) for i in range(20)]
    played = list(simulate_runs(jobs, BEGIN, BEGIN + 100 * 24 * HOUR, lambda _: 1000, 50, Random(1)))
    assert len(played) == 20 * (100 * 4 + 1), (
        "the clocks go forward, and six o'clock of the last day is still reached"
    )
