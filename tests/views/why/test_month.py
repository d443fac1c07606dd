"""`why` against a month that knows what happened to it: every policy in play, every instant asked for."""

from __future__ import annotations

from collections import Counter

import pytest

from chronex.model.occurrence import occurrence_id
from chronex.storage.ports import ReadTransaction
from chronex.storage.records import Reading
from chronex.testing import HOUR, MINUTE
from chronex.views.why import WhyAnswer, why
from chronex.views.why.answer import Cause
from tests.kit.machine import START
from tests.views.why.month import Hourly, RecordedMonth, a_month

MISSED = {Cause.DOWN, Cause.SUPERSEDED, Cause.FOLDED, Cause.TOO_OLD}


def answers(machine: RecordedMonth, job: str, instants: list[int]) -> dict[int, WhyAnswer]:
    def ask(tx: ReadTransaction) -> dict[int, WhyAnswer]:
        reading = Reading(tx)
        found = {instant: why(reading, job, instant, machine.now) for instant in instants}
        return {instant: answer for instant, answer in found.items() if answer is not None}

    return machine.store.view(ask)


# One that waited for missed runs of its job is skipped for the run that would have been in its way without them.
_ALIKE = {Cause.OVERLAP_ON_TIME: Cause.OVERLAP}


def check_month(seed: int, slots: int = 50, orphans: bool = False, weeks: int = 4) -> Counter[Cause]:
    machine, families = a_month(seed, slots, orphans, weeks)
    seen: Counter[Cause] = Counter()
    for job in machine.jobs:
        if job.id == "edited":
            check_edited(machine)
            continue
        instants = families[job.id].instants(START, machine.now - 1)
        due = {o.nominal_ms: o.due_ms for o in machine.occurrences(job.id)}
        known = machine.expected_causes(job, instants, due)
        found = answers(machine, job.id, instants)
        wrong = [
            (job.id, i, known[i], found[i].cause, found[i].summary)
            for i in instants
            if _ALIKE.get(found[i].cause, found[i].cause) != known[i]
        ]
        assert not wrong, (len(wrong), wrong[:5])
        for instant in instants:
            check_names(machine, instant, found[instant])
        beside = answers(machine, job.id, [instant + MINUTE for instant in instants[::50]])
        assert {answer.cause for answer in beside.values()} == {Cause.NOT_MATCHED}
        seen.update(known.values())
    return seen


def check_names(machine: RecordedMonth, instant: int, answer: WhyAnswer) -> None:
    """The outage, the run in the way and who paused are those of the month."""
    if answer.cause in MISSED:
        outage = machine.outage_of(instant)
        assert outage is not None
        named = answer.names["outage"]
        assert named["until_ms"] == outage[1]
        # The last sign of life: in this machine without heartbeats, the last event before it.
        assert named["from_ms"] is None or outage[0] - 2 * HOUR <= named["from_ms"] <= outage[0]
    if answer.cause is Cause.OVERLAP:
        assert answer.names["other"] in {occurrence_id(answer.job, nominal) for nominal in machine.running_at(answer)}
    if answer.cause is Cause.PAUSED:
        begins = {begin for begin, _ in machine.pauses[answer.job]}
        assert answer.names["paused_ms"] in begins
        assert "alice" in answer.names["paused_by"]


def check_edited(machine: RecordedMonth) -> None:
    """Before the edit only the old schedule held, after it only the new one; both sides know of the other."""
    at, _ = machine.edits["edited"]
    old, new = Hourly(11), Hourly(41)
    before = answers(machine, "edited", new.instants(START, at))
    assert {answer.cause for answer in before.values()} == {Cause.REPLACED}
    assert {answer.names["newer_version"] for answer in before.values()} == {2}
    after = answers(machine, "edited", old.instants(at, machine.now - 1))
    assert {answer.cause for answer in after.values()} == {Cause.NOT_MATCHED}
    for instants, version in ((old.instants(START, at), 1), (new.instants(at, machine.now - 1), 2)):
        found = answers(machine, "edited", instants)
        assert all(answer.occurrence for answer in found.values())
        # One that still waited for a place when the edit came is done by the new version.
        assert {answer.names["version"] for answer in found.values()} - {2} == {version} - {2}


def test_every_instant_of_a_week_is_explained_as_the_machine_knows_it() -> None:
    """`make torture` has whole months."""
    seen = check_month(0, weeks=1)
    assert len(seen) >= 13, seen


@pytest.mark.torture
@pytest.mark.parametrize(("slots", "orphans"), [(50, False), (50, True), (3, False)])
@pytest.mark.parametrize("seed", range(40))
def test_a_month_is_explained_for_many_seeds(seed: int, slots: int, orphans: bool) -> None:
    check_month(seed, slots, orphans)
