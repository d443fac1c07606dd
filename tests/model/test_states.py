"""The transition table, pair by pair."""

from __future__ import annotations

import pytest

from chronex.errors import IllegalTransitionError
from chronex.model import Attempt, AttemptState, Occurrence, OccurrenceState, Run, RunState, advance
from chronex.model.reasons import NO_REASON, Reason, ReasonCode
from chronex.model.states import TRANSITIONS, State, is_final, transition
from tests.kit.tables import table

TABLE = {
    OccurrenceState: {
        "pending": "queued running canceled skipped missed",
        "queued": "running canceled skipped missed",
        "running": "completed failed canceled failed_stale",
    },
    RunState: {
        "scheduled": "claimed canceled skipped",
        "claimed": "running canceled",
        "running": "success failed retry canceled",
        "retry": "scheduled failed",
        "failed": "dlq retry scheduled",
        "dlq": "scheduled",
    },
    AttemptState: {"running": "success failed timeout canceled crashed"},
}
PAIRS: list[tuple[State, State]] = [
    *((a, b) for a in OccurrenceState for b in OccurrenceState),
    *((a, b) for a in RunState for b in RunState),
    *((a, b) for a in AttemptState for b in AttemptState),
]


@table([(f"{type(a).__name__}.{a} to {b}", (a, b)) for a, b in PAIRS])
def test_every_pair_is_in_the_table_or_raises(pair: tuple[State, State]) -> None:
    source, destination = pair
    allowed = TABLE[type(source)].get(source.value, "").split()
    if destination.value in allowed:
        assert transition(source, destination).destination is destination
    else:
        with pytest.raises(IllegalTransitionError, match=f"{source} → {destination}"):
            transition(source, destination)


def test_states_of_different_kinds_never_mix() -> None:
    with pytest.raises(IllegalTransitionError):
        transition(RunState.RUNNING, AttemptState.SUCCESS)


def test_one_row_leads_to_each_destination() -> None:
    rows = [(type(t.destination), t.destination) for t in TRANSITIONS]
    assert len(rows) == len(set(rows))


@pytest.mark.parametrize(
    ("state", "final"),
    [
        (OccurrenceState.COMPLETED, True),
        (OccurrenceState.PENDING, False),
        (RunState.FAILED, False),
        (RunState.SUCCESS, True),
        (AttemptState.FAILED, True),
        (OccurrenceState.FAILED, True),
    ],
)
def test_final_states_have_no_way_out(state: State, final: bool) -> None:
    assert is_final(state) is final


def test_advance_returns_a_changed_copy() -> None:
    before = Occurrence(job="j", nominal_ms=0, due_ms=0)
    after = advance(before, OccurrenceState.SKIPPED, reason=Reason(ReasonCode.OVERLAP))
    assert (before.state, after.state, after.reason.code) == ("pending", "skipped", "overlap")
    with pytest.raises(IllegalTransitionError):
        advance(after, OccurrenceState.RUNNING)
    assert advance(Run(job="j", nominal_ms=0, task="t"), RunState.CLAIMED, owner="n").owner == "n"
    assert advance(Attempt(job="j", nominal_ms=0, task="t", number=1), AttemptState.CRASHED).reason == NO_REASON
