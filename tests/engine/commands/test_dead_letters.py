"""Dead letters: a task that always fails blocks no other job, can be replayed and dropped, and their number is bounded."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from chronex.engine.commands import (
    bound_dead_letters,
    dead_letter,
    dead_letters,
    drop_dead_letter,
    replay_dead_letter,
)
from chronex.errors import NotPossibleError, UnknownIdError
from chronex.model.job import Task
from chronex.model.policies import RetryPolicy
from chronex.model.reasons import free_text
from chronex.model.states import RunState
from chronex.storage.records import Records
from chronex.testing import DAY, HOUR, MINUTE
from tests.kit.machine import FIRST, ONE, START, TWO, SteppedEngine

PILL = Task(name="one", run=("false",), env={"LEVEL": "9"}, secrets=("TOKEN",))


def buried(machine: SteppedEngine, at: int = FIRST) -> str:
    (launch,) = machine.tick(at)
    machine.end(launch, "failed", at + 5, exit_code=1, reason=free_text("exit code 1"))
    return machine.run(at).id


def letters(machine: SteppedEngine) -> list[str]:
    return machine.read(lambda reading: [run.id for run in dead_letters(reading)])


def test_a_poison_pill_fails_with_growing_pauses_becomes_a_dead_letter_and_blocks_no_other_job() -> None:
    machine = SteppedEngine("0 * * * *", tasks=(PILL,), retry=RetryPolicy(max=3, interval_ms=MINUTE, jitter=0))
    nominal = START + HOUR
    tries: list[int] = []
    now = nominal
    while len(tries) < 4:
        for launch in machine.tick(now):
            tries.append(now)
            machine.end(launch, "failed", now, exit_code=1, reason=free_text("exit code 1"))
        now += MINUTE
    assert [b - a for a, b in pairwise(tries)] == [MINUTE, 2 * MINUTE, 4 * MINUTE]
    assert letters(machine) == [machine.run(nominal).id]
    assert len(machine.tick(nominal + HOUR)) == 1, "the next occurrence starts all the same"


def test_a_dead_letter_has_its_attempts_its_version_and_names_without_values() -> None:
    machine = SteppedEngine(tasks=(PILL,))
    name = buried(machine)
    found = machine.read(lambda reading: dead_letter(reading, name[:14]))
    assert [(a.number, a.exit_code) for a in found.attempts] == [(1, 1)]
    assert found.occurrence is not None
    assert found.occurrence.version == 1
    assert set(found.run.environment) >= {"LEVEL", "TOKEN"}
    assert "9" not in found.run.environment


def test_a_replay_runs_it_again_and_the_dead_letters_are_empty() -> None:
    machine = SteppedEngine("0 0 1 1 *", tasks=(ONE, PILL_TWO, THREE_AFTER))
    nominal = START + 365 * DAY
    (first,) = machine.tick(nominal, awake_since=nominal)
    (second,) = machine.launches_after(first, "success", nominal + 1)
    machine.end(second, "failed", nominal + 2)
    (name,) = letters(machine)
    machine.ask(replay_dead_letter, name, at=nominal + 10)
    assert letters(machine) == []
    (again,) = machine.tick(nominal + 11)
    assert (again.task.name, again.occurrence.scheduled_ms) == ("two", nominal), "what succeeded is not done again"
    (behind,) = machine.launches_after(again, "success", nominal + 12)
    assert behind.task.name == "three", "what its failure kept from running runs now"
    machine.end(behind, "success", nominal + 13)
    assert machine.occurrence(again.occurrence.nominal_ms).state.value == "completed"


PILL_TWO, THREE_AFTER = TWO, Task(name="three", run=("true",))


def test_of_two_replays_one_wins_and_the_other_is_refused() -> None:
    machine = SteppedEngine()
    name = buried(machine)
    machine.ask(replay_dead_letter, name, at=FIRST + 10)
    with pytest.raises(NotPossibleError, match=r"replayed: occ_.*not a dead letter"):
        machine.ask(replay_dead_letter, name, at=FIRST + 11)


def test_a_dropped_letter_is_gone_with_who_dropped_it() -> None:
    machine = SteppedEngine()
    name = buried(machine)
    machine.ask(drop_dead_letter, name, at=FIRST + 10, reason="known")
    run = machine.run(FIRST)
    assert (letters(machine), run.state) == ([], RunState.CANCELED)
    assert str(run.reason) == "dropped by ann@desk (cli): known"


def test_a_run_that_is_no_dead_letter_is_refused() -> None:
    machine = SteppedEngine()
    (launch,) = machine.tick(FIRST)
    machine.end(launch, "success", FIRST + 1)
    with pytest.raises(NotPossibleError, match="is success, not a dead letter"):
        machine.ask(drop_dead_letter, machine.run(FIRST).id)
    with pytest.raises(UnknownIdError):
        machine.ask(drop_dead_letter, "run_00000000")


@pytest.mark.parametrize(
    ("bounds", "kept"), [({"most": 2}, 2), ({"oldest_ms": 2 * MINUTE}, 3), ({"most": 9, "oldest_ms": 9 * DAY}, 5)]
)
def test_their_number_is_bounded_by_count_and_age_the_oldest_first(bounds: dict[str, Any], kept: int) -> None:
    machine = SteppedEngine()
    names = [buried(machine, FIRST + n * MINUTE) for n in range(5)]
    now = FIRST + 4 * MINUTE + 5
    dropped = machine.store.update(lambda tx: bound_dead_letters(Records(tx, now), **bounds))
    assert dropped == 5 - kept
    assert letters(machine) == names[::-1][:kept]
