"""Graphs and chains under crashes, sleep, full disks and clock steps: what must hold holds, and a break is found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chronex.engine import chains, following, lifecycle, task_graph
from chronex.engine.chains import Successor, WaitVerdict
from chronex.model.reasons import NO_REASON
from chronex.model.states import OccurrenceState
from chronex.testing import DAY, HOUR, WEEK
from tests.engine.simulator.graphs import check_graphs, simulate_graphs

AT_ONCE = 4


def run(seed: int, length: int = DAY) -> None:
    findings = check_graphs(simulate_graphs(seed, length))
    shown = "\n".join(f"  {finding.rule}: {finding.what}" for finding in findings[:10])
    assert not findings, f"seed {seed}, {len(findings)} findings\n{shown}"


@pytest.mark.parametrize("first", range(0, 8, AT_ONCE))
def test_a_simulated_day_of_graphs_keeps_every_promise(first: int) -> None:
    for seed in range(first, first + AT_ONCE):
        run(seed, DAY // 4)


@pytest.mark.parametrize("seed", [232, 615])
def test_two_that_waited_for_their_parents_are_no_burst(seed: int) -> None:
    """`verify` took them for one: both were due before the first of them could start, which was missed or not."""
    run(seed)


@pytest.mark.torture
@pytest.mark.parametrize("first", range(0, 1_000, 20))
def test_a_simulated_day_of_graphs_keeps_every_promise_for_many_seeds(first: int) -> None:
    for seed in range(first, first + 20):
        run(seed)


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(20))
def test_a_simulated_week_of_graphs_keeps_every_promise(seed: int) -> None:
    run(seed, WEEK)


# -- the checker can fail ------------------------------------------------------------------------------------------

Break = Callable[[pytest.MonkeyPatch], None]


def start_before_the_needs_have_ended(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(task_graph, "readiness", lambda job, task, runs: task_graph._READY)


def forget_the_limit_of_a_matrix(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(task_graph, "_under_way", lambda job, task, runs: -100)


def forgive_a_failure(patch: pytest.MonkeyPatch) -> None:
    outcome_of = task_graph.outcome_of

    def good(job: Any, runs: Any) -> Any:
        state, reason, errors = outcome_of(job, runs)
        completed = OccurrenceState.COMPLETED
        return (completed, NO_REASON, 0) if state is OccurrenceState.FAILED else (state, reason, errors)

    patch.setattr(lifecycle, "outcome_of", good)


def lose_a_child(patch: pytest.MonkeyPatch) -> None:
    calls = iter(range(10_000))

    def some(*arguments: Any) -> Successor | None:
        found = chains.successor(*arguments)
        return None if next(calls) % 7 == 3 else found

    patch.setattr(following, "successor", some)


def start_the_child_of_a_failure(patch: pytest.MonkeyPatch) -> None:
    def always(*arguments: Any) -> Successor | None:
        found = chains.successor(*arguments)
        return None if found is None else found._replace(reason=NO_REASON)

    patch.setattr(following, "successor", always)


def start_without_waiting(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(following, "wait_verdict", lambda found: WaitVerdict())


def never_let_go(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(following.Followers, "decide_waiting", lambda self, waiting: None)


CASES: list[tuple[Break, set[str]]] = [
    (start_before_the_needs_have_ended, {"needs"}),
    (forget_the_limit_of_a_matrix, {"at_most"}),
    (forgive_a_failure, {"outcomes"}),
    (lose_a_child, {"children"}),
    (start_the_child_of_a_failure, {"children"}),
    (start_without_waiting, {"waits"}),
    (never_let_go, {"waits"}),
]


@pytest.mark.parametrize(("break_it", "rules"), CASES, ids=[case[0].__name__ for case in CASES])
def test_a_broken_graph_is_found(break_it: Break, rules: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    break_it(monkeypatch)
    found: set[str] = set()
    for seed in range(12):
        found |= {finding.rule for finding in check_graphs(simulate_graphs(seed, 4 * HOUR))}
        if rules <= found:
            return
    assert rules <= found
