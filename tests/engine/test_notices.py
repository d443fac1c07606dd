"""Notices: which ends and which times write one, and that their number is bounded."""

from __future__ import annotations

from typing import Any

import pytest

from chronex.engine.notices import MOST_WAITING, note_late, overdue, put_notice, waiting
from chronex.model.job import Job
from chronex.model.policies import NotifyPolicy
from chronex.model.reasons import NO_REASON
from chronex.model.records import Notice
from chronex.model.states import AttemptState
from chronex.storage import keys
from chronex.storage.ports import Transaction
from chronex.storage.records import Records
from tests.kit.machine import FIRST, START, SteppedEngine

MINUTE, HOUR = 60_000, 3_600_000
OK, BAD = AttemptState.SUCCESS, AttemptState.FAILED


def notices(world: SteppedEngine) -> list[Notice]:
    return world.read(lambda reading: reading.scan(keys.NOTICE, Notice))


def kinds(world: SteppedEngine) -> list[str]:
    return [notice.kind for notice in notices(world)]


def run(world: SteppedEngine, *ends: str) -> None:
    """One occurrence each minute that ends so."""
    for number, state in enumerate(ends):
        (launch,) = world.tick(FIRST + number * MINUTE)
        world.end(launch, state, FIRST + number * MINUTE + 1)


@pytest.mark.parametrize(
    ("policy", "ends", "written"),
    [
        (NotifyPolicy("x"), [OK, OK], []),
        (NotifyPolicy("x"), [BAD], ["failing"]),
        (NotifyPolicy("x"), [BAD, BAD, BAD], ["failing"]),
        (NotifyPolicy("x"), [BAD, OK, OK], ["failing", "recovered"]),
        (NotifyPolicy("x"), [BAD, OK, BAD], ["failing", "recovered", "failing"]),
        (NotifyPolicy("x", after_failures=3), [BAD, BAD, OK], []),
        (NotifyPolicy("x", after_failures=3), [BAD, BAD, BAD, BAD, OK], ["failing", "recovered"]),
        (NotifyPolicy("x", on_recovery=False), [BAD, OK], ["failing"]),
        (None, [BAD, OK], []),
    ],
)
def test_an_end_writes_a_notice(policy: NotifyPolicy | None, ends: list[str], written: list[str]) -> None:
    world = SteppedEngine(notify=policy)
    run(world, *ends)
    assert kinds(world) == written


def test_a_notice_says_which_occurrence_and_how_many_failures() -> None:
    world = SteppedEngine(notify=NotifyPolicy("x", after_failures=2))
    run(world, BAD, BAD)
    (notice,) = notices(world)
    assert (notice.job, notice.nominal_ms, notice.failures) == ("job", FIRST + MINUTE, 2)
    assert notice.reason


# -- late --------------------------------------------------------------------------------------------------------

HOURLY = "0 * * * *"
FIRST_HOUR = START + HOUR


def late_since(world: SteppedEngine, now: int) -> int | None:
    job = world.stored()
    return world.read(lambda reading: overdue(reading, job, now))


@pytest.mark.parametrize(
    ("changes", "now", "expected"),
    [
        ({}, FIRST_HOUR + 10 * MINUTE - 1, None),
        ({}, FIRST_HOUR + 10 * MINUTE, FIRST_HOUR),
        ({}, FIRST_HOUR + 3 * HOUR, FIRST_HOUR + 2 * HOUR),
        ({"expect_within_ms": None}, FIRST_HOUR + HOUR, None),
        ({"enabled": False}, FIRST_HOUR + HOUR, None),
    ],
)
def test_the_latest_instant_that_should_have_completed(
    changes: dict[str, Any], now: int, expected: int | None
) -> None:
    policy: dict[str, Any] = {"expect_within_ms": 10 * MINUTE, **changes}
    world = SteppedEngine(HOURLY, **policy)
    assert late_since(world, now) == expected


@pytest.mark.parametrize(("state", "expected"), [(OK, None), (BAD, FIRST_HOUR)])
def test_only_work_that_completed_counts(state: str, expected: int | None) -> None:
    world = SteppedEngine(HOURLY, expect_within_ms=10 * MINUTE)
    (launch,) = world.tick(FIRST_HOUR)
    world.end(launch, state, FIRST_HOUR + 1)
    assert late_since(world, FIRST_HOUR + 10 * MINUTE) == expected


@pytest.mark.parametrize(("notify", "written"), [(NotifyPolicy("x"), ["late"]), (None, [])])
def test_lateness_is_recorded_once_with_an_event_and_a_notice(
    notify: NotifyPolicy | None, written: list[str]
) -> None:
    world = SteppedEngine(HOURLY, expect_within_ms=10 * MINUTE, notify=notify)
    now = FIRST_HOUR + 10 * MINUTE
    first, second = (world.store.update(lambda tx: note_late(Records(tx, now), "job")) for _ in range(2))
    assert (first, second) == (True, False)
    assert world.stored().progress.late_ms == FIRST_HOUR
    assert world.event_names().count("JobLate") == 1
    assert kinds(world) == written


def test_a_job_that_is_gone_is_not_late() -> None:
    world = SteppedEngine(HOURLY)
    assert not world.store.update(lambda tx: note_late(Records(tx, START), "other"))


@pytest.mark.parametrize(
    ("late_ms", "state", "written"),
    [
        (FIRST_HOUR, OK, ["on_time"]),
        (FIRST_HOUR - HOUR, OK, ["on_time"]),  # a later occurrence than the late one
        (FIRST_HOUR + HOUR, OK, []),  # an earlier one than the late one
        (FIRST_HOUR, BAD, []),
    ],
)
def test_a_late_job_is_on_time_when_the_late_occurrence_or_a_later_one_completes(
    late_ms: int, state: str, written: list[str]
) -> None:
    world = SteppedEngine(HOURLY, notify=NotifyPolicy("x", after_failures=9))
    (launch,) = world.tick(FIRST_HOUR)
    late = world.stored().progressed(late_ms=late_ms).progress
    world.store.update(lambda tx: Records(tx, FIRST_HOUR).put(late))
    world.end(launch, state, FIRST_HOUR + 1)
    assert kinds(world) == written
    assert world.stored().progress.late_ms == (None if written else late_ms)


# -- those that wait ---------------------------------------------------------------------------------------------


def test_a_notice_waits_until_its_next_try() -> None:
    world = SteppedEngine()

    def put(tx: Transaction) -> None:
        for number, next_ms in enumerate((0, START, START + 1)):
            notice = Notice(job="job", kind="late", at_ms=START + number, next_ms=next_ms)
            Records(tx, START).put(notice)

    world.store.update(put)
    due = world.read(lambda reading: waiting(reading, START, 10))
    assert [notice.next_ms for notice in due] == [0, START]
    assert len(world.read(lambda reading: waiting(reading, START, 1))) == 1


def test_no_more_than_the_bound_wait() -> None:
    world = SteppedEngine()
    job = Job(id="job", schedule="@daily")

    def put(tx: Transaction) -> None:
        for number in range(MOST_WAITING + 5):
            put_notice(Records(tx, START + number), job, "failing", START + number, NO_REASON, 1)

    world.store.update(put)
    assert len(notices(world)) == MOST_WAITING
