"""Simulated weeks of jobs in groups: no limit and no rate is exceeded, nobody is overtaken, and every turn is given.

To repeat one: `python -m pytest tests/engine/test_simulated_groups.py -k "seed and 3"`, or `run(3)` in a debugger.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from chronex.engine import lines
from chronex.engine.group_limits import lacking
from chronex.engine.lines import Lines
from chronex.model.groups import GroupSettings, StartRate
from chronex.model.job import Job, Task
from chronex.model.policies import OverlapPolicy
from chronex.model.reasons import NO_REASON
from chronex.storage.records import Records
from chronex.testing import DAY, MINUTE, WEEK
from tests.engine.simulator.campaign import simulate
from tests.engine.simulator.checker import check
from tests.engine.simulator.expected_schedule import Cron
from tests.engine.simulator.faulty_machine import FaultyMachine
from tests.engine.simulator.workload import NEW_YEAR, STARTS, DrawnJob, draw_grouped


def run(seed: int, length: int = WEEK) -> FaultyMachine:
    random = Random(f"groups {seed}")
    start = random.choice(STARTS)
    drawn, groups = draw_grouped(random, start, random.choice((2, 3, 5, 8)))
    machine = simulate(seed, length, drawn, start, groups)
    findings = check(machine)
    shown = "\n".join(f"  {finding.rule}: {finding.what}" for finding in findings[:10])
    assert not findings, f"seed {seed}, {length // DAY} days, {len(findings)} findings\n{shown}"
    return machine


@pytest.mark.parametrize("seed", [0, 1706])
def test_a_simulated_week_of_groups_keeps_every_promise(seed: int) -> None:
    run(seed)


@pytest.mark.torture
@pytest.mark.parametrize("first", range(1_000, 6_000, 50))
def test_a_simulated_week_of_groups_keeps_every_promise_for_many_seeds(first: int) -> None:
    for seed in range(first, first + 50):
        run(seed)


def test_the_seeds_meet_limits_rates_weights_and_priorities() -> None:
    """Drawn, not run: what the campaign will meet."""
    met: Counter[str] = Counter()
    for seed in range(60):
        drawn, groups = draw_grouped(Random(f"groups {seed}"), NEW_YEAR, 4)
        for group in groups:
            met.update((f"limit {group.limit}", "rate" if group.rate else "no rate"))
        for each in drawn:
            met.update(f"weight {weight}" for weight in each.job.groups.values())
            met.update((f"groups {len(each.job.groups)}", f"priority {each.job.priority}"))
    wanted = [
        "limit 1",
        "limit 2",
        "limit 3",
        "limit None",
        "rate",
        "weight 2",
        "groups 2",
        "groups 0",
        "priority 100",
        "priority -20",
    ]
    assert [what for what in wanted if met[what] < 5] == []


# -- the rules can fail ----------------------------------------------------------------------------------------

Break = Callable[[pytest.MonkeyPatch], None]
GROUPS = (GroupSettings("one", limit=1), GroupSettings("slow", rate=StartRate(2, 20 * MINUTE)))


def a_morning() -> FaultyMachine:
    def drawn(name: str, fields: str, **more: Any) -> DrawnJob:
        more.setdefault("overlap", OverlapPolicy.QUEUE)
        return DrawnJob(Job(id=name, schedule=fields, tasks=(Task(name="a", run=("true",)),), **more), Cron(fields))

    jobs = [
        drawn("a", "*/11 * * * *", groups={"one": 1}),
        drawn("b", "*/7 * * * *", groups={"one": 1, "slow": 1}, priority=3),
        drawn("c", "*/13 * * * *", groups={"slow": 1}, priority=20),
        drawn("d", "*/9 * * * *", groups={"one": 1}),
    ]
    machine = FaultyMachine(Random(4), jobs, NEW_YEAR, slots=50, store_faults=(), groups=GROUPS)
    machine.run_until(NEW_YEAR + 3 * DAY // 8)
    return machine


def forget_the_limit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Records, "holders", lambda self, group, limit=1: [])


def forget_the_rate(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lines, "lacking", without_rate(lacking))


def without_rate(decide: Callable[..., Any]) -> Callable[..., Any]:
    return lambda use, *rest: decide(use._replace(rate=None), *rest)


def let_everyone_in(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lines, "lacking", lambda *_: NO_REASON)


def let_newcomers_pass(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Lines, "_first_ms", lambda self, name: None)


def forget_priorities(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lines, "order_of", lambda now_ms, priority, is_catch_up: now_ms)


def give_no_turn(patch: pytest.MonkeyPatch) -> None:
    def heads(self: Lines) -> Iterator[Any]:
        return iter(())

    patch.setattr(Lines, "heads", heads)


def hold_no_places_between_attempts(patch: pytest.MonkeyPatch) -> None:
    """A start that does not keep its places in the record: they are free again at once."""
    patch.setattr("chronex.engine.decisions.places_of", lambda job, occurrence: {})


CASES: list[tuple[Break, set[str]]] = [
    (forget_the_limit, {"places"}),
    (forget_the_rate, {"rates"}),
    (let_everyone_in, {"places", "rates"}),
    (let_newcomers_pass, {"line_order"}),
    (forget_priorities, {"line_order"}),
    (give_no_turn, {"turns"}),
    (hold_no_places_between_attempts, {"places"}),
]


def test_a_morning_of_groups_has_no_findings_and_many_who_wait() -> None:
    machine = a_morning()
    assert check(machine) == []
    assert machine.lines.waited > 20


@pytest.mark.parametrize(("break_it", "rules"), CASES, ids=[case[0].__name__ for case in CASES])
def test_an_engine_that_breaks_its_groups_is_found(
    break_it: Break, rules: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    break_it(monkeypatch)
    assert rules <= {finding.rule for finding in check(a_morning())}
