"""Task state commits with the attempt's success, or not at all."""

from __future__ import annotations

import pytest

from chronex.engine import task_state
from chronex.engine.orders import Launch
from chronex.errors import TaskStateError
from chronex.model.states import AttemptState
from chronex.storage.records import Reading, Records
from tests.kit.machine import FIRST, SteppedEngine, steady


def stage(machine: SteppedEngine, launch: Launch, **changes: str | None) -> None:
    machine.store.update(lambda tx: task_state.stage(Records(tx, FIRST), launch.attempt, changes))


def state(machine: SteppedEngine) -> dict[str, str]:
    return machine.store.view(lambda tx: task_state.task_state(tx, "job", "one"))


def begun() -> tuple[SteppedEngine, Launch]:
    machine = SteppedEngine("0 * * * *", retry=steady(1))
    machine.store.update(lambda tx: task_state.put_state(Records(tx, FIRST), "job", "one", "old", "0"))
    (launch,) = machine.tick(FIRST + 59 * 60_000)
    return machine, launch


def test_what_is_staged_is_seen_by_its_attempt_alone_and_counts_with_its_success() -> None:
    machine, launch = begun()
    stage(machine, launch, seen="42", old=None)
    assert state(machine) == {"old": "0"}
    assert machine.store.view(lambda tx: task_state.seen_by(tx, launch.attempt)) == {"seen": "42"}
    machine.end(launch, AttemptState.SUCCESS, launch.occurrence.nominal_ms + 1)
    assert state(machine) == {"seen": "42"}
    assert machine.store.view(lambda tx: task_state.staged_state(tx, launch.attempt)) == {}


@pytest.mark.parametrize("end", [s for s in AttemptState if s not in (AttemptState.RUNNING, AttemptState.SUCCESS)])
def test_any_other_end_drops_it(end: AttemptState) -> None:
    machine, launch = begun()
    stage(machine, launch, seen="42", old=None)
    machine.end(launch, end, launch.occurrence.nominal_ms + 1)
    assert state(machine) == {"old": "0"}
    assert machine.store.view(lambda tx: task_state.staged_state(tx, launch.attempt)) == {}


def test_what_a_callable_returns_wins_over_what_was_staged_by_a_command_of_its_own() -> None:
    machine, launch = begun()
    stage(machine, launch, both="staged", only="staged")
    machine.end(
        launch, AttemptState.SUCCESS, launch.occurrence.nominal_ms + 1, task_state={"both": "returned", "old": None}
    )
    assert state(machine) == {"both": "returned", "only": "staged"}


def test_an_attempt_that_is_over_stages_nothing() -> None:
    machine, launch = begun()
    machine.end(launch, AttemptState.FAILED, launch.occurrence.nominal_ms + 1)
    with pytest.raises(TaskStateError, match="is over"):
        stage(machine, launch, late="1")


def test_the_running_attempt_is_found_by_the_id_its_command_was_given() -> None:
    machine, launch = begun()

    def find(attempt_id: str) -> object:
        return machine.store.view(lambda tx: task_state.running_attempt(Reading(tx), attempt_id))

    assert find(launch.attempt.id) == launch.attempt
    assert find("attempt_of_nobody") is None
    machine.end(launch, AttemptState.SUCCESS, launch.occurrence.nominal_ms + 1)
    assert find(launch.attempt.id) is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"": "x"}, "1 to 128 bytes"),
        ({"n" * 129: "x"}, "1 to 128 bytes"),
        ({"two\nlines": "x"}, "printable"),
        ({"\ud800": "x"}, "UTF-8"),
        ({"n": "x" * 16_385}, "has 16385 bytes"),
        ({f"n{number}": "x" for number in range(257)}, "at most 256 names"),
    ],
)
def test_what_cannot_be_kept_is_refused_when_it_is_staged(changes: dict[str, str], message: str) -> None:
    machine, launch = begun()
    with pytest.raises(TaskStateError, match=message):
        stage(machine, launch, **changes)
    assert machine.store.view(lambda tx: task_state.staged_state(tx, launch.attempt)) == {}
