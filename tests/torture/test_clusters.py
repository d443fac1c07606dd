"""Campaigns in several clusters at a time: how rounds are shared, and what their verdicts say together."""

from __future__ import annotations

from typing import Any

import pytest

from chronex.torture.clusters import joined, share
from chronex.torture.judgement import CampaignVerdict


@pytest.mark.parametrize(
    ("rounds", "count", "shares"),
    [(8, 1, [8]), (8, 4, [2, 2, 2, 2]), (10, 4, [3, 3, 2, 2]), (2, 4, [1, 1, 0, 0])],
)
def test_all_clusters_together_have_all_rounds(rounds: int, count: int, shares: list[int]) -> None:
    assert [share(rounds, count, number) for number in range(count)] == shares


def figures(**changes: Any) -> dict[str, Any]:
    return {
        "rounds": {"kill": 2}, "outcomes": {"completed": 5}, "nodes": {"given_up": 1}, "occurrences": 5, "executions": 6,
        "executed_again": 1, "acknowledged": 4, "events": 30, "given_up_after_ms": 2_000, "verify": "holds",
        "longest_pause_ms": 1_500, "could_not_begin_ms": 300,
        "start_lag_ms": {"median": 3, "p95": 40, "max": 50}, **changes,
    }  # fmt: skip


def test_counts_are_summed_and_the_worst_of_all_else_is_told() -> None:
    other = figures(
        rounds={"kill": 1, "cut": 1}, outcomes={"completed": 1, "skipped": 1}, given_up_after_ms=900, verify="open",
        longest_pause_ms=7_000,
        start_lag_ms={"median": 9, "p95": 20, "max": 70},
    )  # fmt: skip
    found = joined([CampaignVerdict((), figures()), CampaignVerdict(("lost",), other)])
    assert found.findings == ("lost",)
    assert not found.holds
    assert found.figures == figures(
        rounds={"kill": 3, "cut": 1}, outcomes={"completed": 6, "skipped": 1}, nodes={"given_up": 2}, occurrences=10,
        executions=12, executed_again=2, acknowledged=8, events=60, verify="holds, open", longest_pause_ms=7_000,
        could_not_begin_ms=600,
        start_lag_ms={"median": 9, "p95": 40, "max": 70},
    )  # fmt: skip


def test_a_cluster_that_did_not_go_on_is_a_finding_and_hides_no_figures() -> None:
    found = joined([CampaignVerdict(("the campaign does not go on",), {}), CampaignVerdict((), figures())])
    assert (found.holds, found.figures) == (False, figures())
