"""The verdict on a campaign: an instant without its outcome, a run that nobody recorded, a promise that was broken."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from chronex.engine.update import apply_jobs
from chronex.model.job import Job, Task
from chronex.model.occurrence import Occurrence
from chronex.model.states import OccurrenceState
from chronex.storage import keys
from chronex.storage.records import Reading, Records
from chronex.torture.judgement import Watched, judge
from chronex.torture.witness import Span, WitnessedRun
from tests.kit.cluster import Cluster
from tests.kit.machine import START


def campaign() -> tuple[Cluster, list[WitnessedRun]]:
    """A quiet one: every run came to its end."""
    job = Job(id="tick", schedule="@every 10s", tasks=(Task(name="main", run=("true",)),))
    cluster = Cluster([job], 2, 5, START, {"tick": 2_000})
    cluster.run(65_000)
    apply_jobs(cluster.store, [replace(job, enabled=False)], cluster.now)
    cluster.run(5_000)
    runs = [
        WitnessedRun(
            _id(one.attempt.nominal_ms), one.attempt.id, one.attempt.fence, one.started_ms / 1000,
            (one.ended_ms or 0) / 1000, ended=True,
        )
        for one in cluster.begun
    ]  # fmt: skip
    return cluster, runs


def _id(nominal_ms: int) -> str:
    return Occurrence(job="tick", nominal_ms=nominal_ms, due_ms=nominal_ms).id


def nominal(cluster: Cluster, number: int) -> int:
    return sorted(one.attempt.nominal_ms for one in cluster.begun)[number]


def change(cluster: Cluster, number: int, **changes: Any) -> None:
    def write(records: Records) -> None:
        found = records.occurrence("tick", nominal(cluster, number))
        assert found is not None
        records.put(replace(found, **changes))

    cluster.store.update(lambda tx: write(Records(tx, cluster.now)))


def test_a_quiet_campaign_holds() -> None:
    cluster, runs = campaign()
    verdict = judge(cluster.store, {"tick": 10_000}, runs, [("tick", nominal(cluster, 0))])
    assert verdict.findings == ()
    assert verdict.figures["occurrences"] == len(runs) == 6


def test_an_instant_without_a_record_is_found() -> None:
    cluster, runs = campaign()
    cluster.store.update(lambda tx: Records(tx, 0).delete(keys.occurrence_key("tick", nominal(cluster, 2))))
    found = judge(cluster.store, {"tick": 10_000}, runs, []).findings
    assert any("has no outcome" in one for one in found)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"state": OccurrenceState.QUEUED, "finished_ms": None}, "is still queued"),
        ({"started_ms": None}, "ran, and the store has no start of it"),
        ({"state": OccurrenceState.CANCELED}, "was canceled (), and nobody had asked for that"),
    ],
)
def test_a_record_that_does_not_fit_what_happened_is_found(changes: dict[str, Any], words: str) -> None:
    cluster, runs = campaign()
    change(cluster, 2, **changes)
    found = judge(cluster.store, {"tick": 10_000}, runs, []).findings
    assert any(words in one for one in found), found


def test_what_is_completed_without_its_command_having_ended_is_found() -> None:
    cluster, runs = campaign()
    runs[1] = runs[1]._replace(ended=False)
    found = judge(cluster.store, {"tick": 10_000}, runs, []).findings
    assert [one for one in found if "its command never came to its end" in one]


def test_a_promise_that_was_broken_is_found() -> None:
    cluster, runs = campaign()
    found = judge(cluster.store, {"tick": 10_000}, runs, [("tick", START + 1)]).findings
    assert [one for one in found if one.endswith("was acknowledged and is lost")]


def test_two_at_a_time_are_found() -> None:
    cluster, runs = campaign()
    runs.append(runs[3]._replace(attempt="attempt_other", begun=runs[3].begun + 0.05, fence=99))
    runs[3] = runs[3]._replace(last=runs[3].begun + 1)
    assert [one for one in judge(cluster.store, {"tick": 10_000}, runs, []).findings if "twice at a time" in one]
    assert cluster.store.view(lambda tx: Reading(tx).job("tick")) is not None


def test_two_of_one_group_that_ran_at_a_time_are_found() -> None:
    cluster, runs = campaign()
    begun = sorted(runs, key=lambda one: one.begun)
    late = begun[0]._replace(last=begun[1].begun + 0.5)
    assert judge(cluster.store, {"tick": 10_000}, [late, *begun[1:]], []).findings == ()
    (found,) = judge(cluster.store, {"tick": 10_000}, [late, *begun[1:]], [], in_turn=["tick"]).findings
    assert found.startswith(f"{late.attempt} and {begun[1].attempt} of one group ran at a time")


def test_a_cluster_that_stands_still_is_found() -> None:
    """The runs of the quiet campaign are ten seconds apart; and they end before the watch does."""
    cluster, runs = campaign()
    begun = sorted(one.begun for one in runs)
    for longest_s, until, count in ((11, begun[-1], 0), (9, begun[-1], 1), (11, begun[-1] + 12, 1)):
        watched = Watched(Span(begun[0], until), (), longest_s)
        verdict = judge(cluster.store, {"tick": 10_000}, runs, [], watched=watched)
        assert len([one for one in verdict.findings if one.startswith("nothing began anywhere for")]) == count
    assert verdict.figures["longest_pause_ms"] == 12_000
