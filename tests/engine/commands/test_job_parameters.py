"""Parameters of a job: what a trigger and a replay may give, and what a run of the schedule gets."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from chronex.engine.commands import replay, trigger
from chronex.engine.update import apply_jobs
from chronex.errors import NotPossibleError
from chronex.model.job_parameters import Parameter, ParameterType
from chronex.storage.records import Records
from tests.kit.machine import ANN, FIRST, SteppedEngine

PARAMETERS = {
    "level": Parameter(type=ParameterType.INTEGER, default="1"),
    "region": Parameter(type=ParameterType.CHOICE, choices=("eu", "us"), default="eu", required=True),
    "note": Parameter(),
}


def machine() -> SteppedEngine:
    return SteppedEngine(parameters=PARAMETERS)


def test_a_run_of_the_schedule_gets_the_defaults() -> None:
    stepped = machine()
    (launch,) = stepped.tick(FIRST)
    assert launch.occurrence.parameters == {"level": "1", "region": "eu"}
    assert stepped.occurrence(FIRST).parameters == {"level": "1", "region": "eu"}


def test_a_trigger_gives_its_own_over_the_defaults() -> None:
    stepped = machine()
    stepped.ask(trigger, "job", at=FIRST - 30_000, parameters={"region": "us", "note": "x"})
    (launch,) = stepped.tick(FIRST - 29_000)
    assert launch.occurrence.parameters == {"level": "1", "region": "us", "note": "x"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, r"job needs the parameter region \(one of eu, us\)"),
        (
            {"region": "ue"},
            "the parameter region of job: 'ue' is none of eu, us; did you mean eu?",
        ),
        (
            {"region": "eu", "level": "two"},
            "the parameter level of job: 'two' is not a whole number",
        ),
        ({"region": "eu", "levl": "2"}, "job has no parameter 'levl'; did you mean level?"),
        ({"region": "eu", "quite-another": "2"}, "it has level, region, note"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_sentence(given: dict[str, str], words: str) -> None:
    stepped = machine()
    with pytest.raises(NotPossibleError, match=words):
        stepped.ask(trigger, "job", at=FIRST - 1, parameters=given)
    assert stepped.read(lambda reading: reading.occurrences("job")) == []


def test_a_job_without_a_table_takes_any() -> None:
    stepped = SteppedEngine()
    stepped.ask(trigger, "job", at=FIRST - 30_000, parameters={"what": "ever"})
    (launch,) = stepped.tick(FIRST - 29_000)
    assert launch.occurrence.parameters == {"what": "ever"}


def test_a_replay_is_checked_against_the_version_that_runs() -> None:
    stepped = machine()
    (launch,) = stepped.tick(FIRST)
    stepped.end(launch, "success", FIRST + 1)
    narrower = {**PARAMETERS, "region": Parameter(type=ParameterType.CHOICE, choices=("us",), default="us")}
    apply_jobs(stepped.store, [replace(stepped.job, parameters=narrower)], FIRST + 2)

    original = stepped.occurrence(FIRST)

    def again(as_of: str, at: int) -> dict[str, str]:
        found = stepped.store.update(lambda tx: replay(Records(tx, at), original, ANN, "again", as_of=as_of))
        return found.occurrence.parameters

    with pytest.raises(NotPossibleError, match=r"the parameter region of job: .* is none of us"):
        again("now", FIRST + 3)
    assert again("then", FIRST + 4) == {"level": "1", "region": "eu"}
