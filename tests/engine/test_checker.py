"""The checker of the simulation can fail: each row breaks the engine in one way, and is found by its rule."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from chronex.engine import decisions, lines
from chronex.engine import plan as planning
from chronex.engine.admit import START, Admission
from chronex.engine.lifecycle import Lifecycle
from chronex.engine.orders import Launch
from chronex.engine.plan import Plan
from chronex.engine.retries import retry_of
from chronex.model.job import Job, Task
from chronex.model.occurrence import Occurrence
from chronex.model.policies import Cadence, OverlapPolicy, RecoveryPolicy, RecoveryStrategy, RetryPolicy
from chronex.model.reasons import NO_REASON
from chronex.model.states import OccurrenceState
from chronex.storage.records import Records
from chronex.testing import DAY, HOUR, MINUTE
from tests.engine.simulator.campaign import simulate
from tests.engine.simulator.checker import check
from tests.engine.simulator.expected_schedule import AfterEnd, Cron
from tests.engine.simulator.faults import MachineFault, PlannedMachineFault
from tests.engine.simulator.faulty_machine import FaultyMachine
from tests.engine.simulator.workload import NEW_YEAR, DrawnJob

Break = Callable[[pytest.MonkeyPatch], None]


def a_morning(schedule: str = "*/7 * * * *", slots: int = 1, **policies: Any) -> FaultyMachine:
    """Seven hours, with two of sleep in them."""
    policies.setdefault("overlap", OverlapPolicy.QUEUE)
    policies.setdefault("recovery", RecoveryPolicy(RecoveryStrategy.EXECUTE_LAST))
    job = Job(id="job", schedule=schedule, tasks=(Task(name="a", run=("true",)), Task(name="b")), **policies)
    fields = schedule.partition(" {")[0]
    machine = FaultyMachine(Random(4), [DrawnJob(job, Cron(fields))], NEW_YEAR, slots=slots, store_faults=())
    machine.run_until(NEW_YEAR + 3 * HOUR)
    machine.inject(PlannedMachineFault(0, MachineFault.SLEEP, 2 * HOUR, 0.0))
    machine.run_until(NEW_YEAR + 7 * HOUR)
    return machine


def drop_an_occurrence(patch: pytest.MonkeyPatch) -> None:
    calls = count()

    def plan(*arguments: Any) -> Plan:
        made = planning.plan_job(*arguments)
        return replace(made, planned=()) if next(calls) == 20 else made

    patch.setattr(decisions, "plan_job", plan)


def double_an_occurrence(patch: pytest.MonkeyPatch) -> None:
    calls = count()

    def plan(*arguments: Any) -> Plan:
        made = planning.plan_job(*arguments)
        if next(calls) != 20:
            return made
        occurrence, outcome = made.planned[0]
        again = occurrence.nominal_ms + MINUTE
        twin = made.planned[0]._replace(
            occurrence=replace(occurrence, nominal_ms=again, due_ms=again), outcome=replace(outcome, nominal_ms=again)
        )
        return replace(made, planned=(*made.planned, twin))

    patch.setattr(decisions, "plan_job", plan)


def launch_twice(patch: pytest.MonkeyPatch) -> None:
    start = Lifecycle.start

    def twice(self: Lifecycle, *arguments: Any) -> bool:
        started = start(self, *arguments)
        self.orders.extend([order for order in self.orders if isinstance(order, Launch)][-1:])
        return started

    patch.setattr(Lifecycle, "start", twice)


def admit_always(patch: pytest.MonkeyPatch) -> None:
    def admit(*arguments: Any) -> Admission:
        return START

    patch.setattr(lines, "admit", admit)


def forget_the_pool(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Records, "count_active", lambda self, limit, owner=None: 0)


def lose_the_reason(patch: pytest.MonkeyPatch) -> None:
    end = Lifecycle.end_unstarted
    patch.setattr(
        Lifecycle, "end_unstarted", lambda self, occurrence, state, reason: end(self, occurrence, state, NO_REASON)
    )


def revive_what_has_ended(patch: pytest.MonkeyPatch) -> None:
    finish = Lifecycle._finish

    def restart(self: Lifecycle, occurrence: Occurrence, *outcome: Any, **when: Any) -> None:
        finish(self, occurrence, *outcome, **when)
        earlier = self.records.occurrence(occurrence.job, occurrence.nominal_ms - 7 * MINUTE)
        if earlier is not None:
            self.records.put(replace(earlier, state=OccurrenceState.RUNNING))

    patch.setattr(Lifecycle, "_finish", restart)


def run_all_that_was_missed(patch: pytest.MonkeyPatch) -> None:
    policy = RecoveryPolicy(RecoveryStrategy.EXECUTE_ALL)
    recover = planning.recovery_outcomes
    patch.setattr(planning, "recovery_outcomes", lambda _, *missed: recover(policy, *missed))


def forget_an_end(patch: pytest.MonkeyPatch) -> None:
    calls, ended = count(), Lifecycle.attempt_ended

    def forget(self: Lifecycle, *arguments: Any) -> None:
        if next(calls) != 20:
            ended(self, *arguments)

    patch.setattr(Lifecycle, "attempt_ended", forget)


def start_early(patch: pytest.MonkeyPatch) -> None:
    due = Records.due
    patch.setattr(Records, "due", lambda self, until, limit: due(self, until + MINUTE, limit))


def complete_without_the_second_task(patch: pytest.MonkeyPatch) -> None:
    def continue_or_finish(self: Lifecycle, job: Job, occurrence: Occurrence) -> None:
        self._finish(occurrence, OccurrenceState.COMPLETED, NO_REASON)

    patch.setattr(Lifecycle, "continue_or_finish", continue_or_finish)


def forget_waiting_retries(patch: pytest.MonkeyPatch) -> None:
    """An occurrence between two attempts is not in the way of the next one."""
    active = Records.active

    def running(self: Records, job: str | None = None, limit: int = 1000) -> list[Occurrence]:
        found = active(self, job, limit)
        return [one for one in found if retry_of(self.runs(one.job, one.nominal_ms)) is None]

    patch.setattr(Records, "active", running)
    patch.setattr(Records, "count_active", lambda self, limit, owner=None: len(running(self)))
    patch.setattr(Records, "is_active", lambda self, job: bool(running(self, job)))


def await_retries_for_ever(patch: pytest.MonkeyPatch) -> None:
    """The execution timeout holds for what runs, and not for a retry that waits."""
    end_run = Lifecycle._end_run

    def without_deadline(self: Lifecycle, job: Job, occurrence: Occurrence, *rest: Any) -> None:
        end_run(self, job, replace(occurrence, deadline_ms=None), *rest)

    patch.setattr(Lifecycle, "_end_run", without_deadline)


RETRIES = {"retry": RetryPolicy(3, 6 * MINUTE)}
CASES: list[tuple[Break, set[str], dict[str, Any]]] = [
    (drop_an_occurrence, {"instants"}, {}),
    (double_an_occurrence, {"instants"}, {}),
    (launch_twice, {"doubled"}, {}),
    (admit_always, {"overlap"}, {"slots": 5}),
    (forget_the_pool, {"pool"}, {"overlap": OverlapPolicy.ALLOW}),
    (lose_the_reason, {"outcomes"}, {}),
    (revive_what_has_ended, {"transitions"}, {}),
    (run_all_that_was_missed, {"recovery"}, {}),
    (forget_an_end, {"strays"}, {}),
    (start_early, {"placement"}, {"schedule": "*/7 * * * * {stagger:3m}"}),
    (complete_without_the_second_task, {"completion"}, {}),
    (forget_waiting_retries, {"overlap"}, RETRIES),
    (await_retries_for_ever, {"deadlines"}, {**RETRIES, "execution_timeout_ms": 5 * MINUTE}),
]


@pytest.mark.parametrize(("break_it", "rules", "policies"), CASES, ids=[case[0].__name__ for case in CASES])
def test_a_broken_engine_is_found(
    break_it: Break, rules: set[str], policies: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    break_it(monkeypatch)
    assert rules <= {finding.rule for finding in check(a_morning(**policies))}


def test_an_engine_that_is_not_broken_has_no_findings() -> None:
    tried: list[dict[str, Any]] = []
    for _, _, policies in CASES:
        if policies not in tried:
            assert check(a_morning(**policies)) == [], policies
            tried.append(policies)
    assert len(tried) == 6


def test_a_delay_that_does_not_wait_for_the_end_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bug of seed 1, put back."""
    from chronex.timing import job_schedule

    job = Job(id="job", schedule="@every 5m", tasks=(Task(name="a", run=("true",)),), cadence=Cadence.FIXED_DELAY)
    drawn = [DrawnJob(job, AfterEnd(NEW_YEAR, 5 * MINUTE))]
    assert check(simulate(2, DAY, drawn, NEW_YEAR)) == []
    monkeypatch.setattr(decisions, "schedule_of", job_schedule._schedule_of)
    assert {finding.rule for finding in check(simulate(2, DAY, drawn, NEW_YEAR))} == {"instants"}


def test_a_queue_that_falls_behind_under_cancel_running_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def crowded() -> FaultyMachine:
        often = Job(id="often", schedule="* * * * *", tasks=(Task(name="a"),), overlap=OverlapPolicy.CANCEL_RUNNING)
        long = Job(id="long", schedule="*/20 * * * *", tasks=(Task(name="a"),))
        drawn = [DrawnJob(often, Cron(often.schedule)), DrawnJob(long, Cron(long.schedule))]
        machine = FaultyMachine(Random(4), drawn, NEW_YEAR, slots=1, store_faults=())
        machine.run_until(NEW_YEAR + DAY // 4)
        return machine

    assert check(crowded()) == []
    monkeypatch.setattr(decisions, "gives_way", lambda *_: False)
    assert {finding.rule for finding in check(crowded())} == {"newest"}
