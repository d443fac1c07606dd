"""How far views look for the next run: past what is barred as a whole, and never further than they say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, NamedTuple

import pytest

from chronex.cli.update_output import effect_lines
from chronex.engine.commands.control import pause
from chronex.engine.update.diff import UpdateOptions
from chronex.model.calendars import CalendarRules, JobCalendar, OnExcluded
from chronex.model.job import Job
from chronex.model.policies import OverlapPolicy, SpreadPolicy
from chronex.model.reasons import TroubleCode
from chronex.storage.records import Records
from chronex.testing import DAY, HOUR, MINUTE, SimulatedMachine
from chronex.text.instants import epoch_ms
from chronex.timing.job_schedule import schedule_of
from chronex.timing.zones import utc_zone
from chronex.views import coming_runs
from chronex.views.apply_preview import preview
from chronex.views.coming_runs import MOST_BARRED, RunSearch, startable
from chronex.views.jobs import Row, Situation, detail_of, rows_of, upcoming_runs
from chronex.views.status import store_status
from tests.views.test_previews_midway import ANN, a_job, job_of

MONDAY = datetime(2027, 3, 1, 9, tzinfo=UTC)
EVERY_DAY = JobCalendar(name="always", weekdays=(1, 2, 3, 4, 5, 6, 7))
WEEKEND = JobCalendar(name="weekend", weekdays=(6, 7))
WORKWEEK = JobCalendar(name="week", weekdays=(1, 2, 3, 4, 5))


def spread(only: str, minutes: int = 10, mode: str = "after") -> SpreadPolicy:
    return SpreadPolicy(mode=mode, duration_ms=minutes * MINUTE, only=only)


@pytest.fixture
def placed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The instants for which a view asks where they start."""
    asked: list[int] = []
    plain = coming_runs.forecast_run

    def counted(job: Job, nominal_ms: int, now_ms: int) -> coming_runs.ForecastRun:
        asked.append(nominal_ms)
        return plain(job, nominal_ms, now_ms)

    monkeypatch.setattr(coming_runs, "forecast_run", counted)
    return asked


FAR: dict[str, tuple[str, dict[str, Any], str]] = {
    "minutes of a weekend": ("* * * * *", {"spread": spread("dow=SAT")}, "2027-03-05T23:50"),
    "hours of December": ("0 * * * *", {"spread": spread("months=DEC")}, "2027-12-01T00:00"),
    "seconds of a minute": ("* * * * * *", {"spread": spread("between=03:00-03:00", 1)}, "2027-03-02T02:59"),
    "before": ("* * * * *", {"spread": spread("dow=SAT", 26 * 60, "before")}, "2027-03-06T00:00"),
    "around": ("* * * * *", {"spread": spread("dow=SAT", 26 * 60, "around")}, "2027-03-05T11:00"),
    "a place in the week that is dark": (
        "* * * * *", {"spread": spread("hours=0", 1), "calendars": CalendarRules(blackout=(WORKWEEK,))}, "2027-03-06T00:00",
    ),
    "staggered seconds behind a blackout": (
        "* * * * * * {stagger:2h}", {"calendars": CalendarRules(blackout=(WORKWEEK,))}, "2027-03-05T22:00",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("schedule", "policy", "not_before"), FAR.values(), ids=FAR)
def test_what_is_barred_for_long_is_passed_over(
    schedule: str, policy: dict[str, Any], not_before: str, placed: list[int]
) -> None:
    """`list` and `show` said that no run follows, 400 instants later; `status`, that the job never runs."""
    job = a_job(schedule, overlap=OverlapPolicy.ALLOW, **policy)
    first = next(startable(job, epoch_ms(MONDAY), epoch_ms(MONDAY)))
    assert len(placed) < 150
    away_ms = first.nominal_ms - epoch_ms(datetime.fromisoformat(not_before).replace(tzinfo=UTC))
    assert 0 <= away_ms < 2 * HOUR
    before = list(schedule_of(job).between(first.nominal_ms - DAY, first.nominal_ms - 1))[-300:]
    assert not any(coming_runs.forecast_run(job, nominal, epoch_ms(MONDAY)).runs for nominal in before)


@pytest.mark.parametrize("name", FAR)
def test_what_starts_from_a_time_on_is_what_starts_without_it_from_then_on(name: str) -> None:
    """The timeline left out the first run behind instants that no place in a spread is left for."""
    schedule, policy, not_before = FAR[name]
    job = a_job(schedule, overlap=OverlapPolicy.ALLOW, **policy)
    since_ms = epoch_ms(datetime.fromisoformat(not_before).replace(tzinfo=UTC)) - HOUR
    whole = list(islice(startable(job, since_ms, epoch_ms(MONDAY)), 90))
    for asked_ms in (epoch_ms(MONDAY) + HOUR, whole[0].due_ms, whole[3].due_ms, whole[3].due_ms + 1):
        found = islice(startable(job, since_ms, epoch_ms(MONDAY), asked_ms), 3)
        assert list(found) == [run for run in whole if run.due_ms >= asked_ms][:3]


def test_a_paused_job_of_seconds_has_its_first_run_behind_the_pause() -> None:
    machine = SimulatedMachine([a_job("* * * * * * {stagger:2h}", overlap=OverlapPolicy.ALLOW)], start=MONDAY)
    machine.store.update(lambda tx: pause(Records(tx, machine.now), "j", ANN, until_ms=machine.now + 9 * HOUR))
    (first,) = machine.read(lambda reading: upcoming_runs(reading, job_of(reading), machine.now, 1))
    assert first.due_ms - machine.now - 9 * HOUR in range(1_000)


class Said(NamedTuple):
    """Of the one job of a store: its row, what `show` and a dry run print, and what `status` complains about."""

    row: Row
    shown: str
    dry_run: list[str]
    troubles: list[str]


def said_of(job: Job) -> Said:
    from chronex.cli.job_output import _no_run

    machine = SimulatedMachine([job], start=MONDAY)
    (row,) = machine.read(lambda reading: rows_of(reading, machine.now))
    detail = machine.read(lambda reading: detail_of(reading, job_of(reading), machine.now))
    status = machine.read(lambda reading: store_status(reading, machine.now, lambda _process: True))
    troubles = [one.words for one in status.troubles(machine.now) if one.code is TroubleCode.JOB_NEVER_RUNS]
    empty = SimulatedMachine([], start=MONDAY)
    (effect,) = empty.read(lambda reading: preview(reading, [job], machine.now, UpdateOptions())).effects
    lines = [line for line in effect_lines(effect, utc_zone()) if "no run" not in line]
    shown = _no_run(detail, machine.now, utc_zone())
    return Said(row, shown, lines, troubles)


def test_where_nothing_was_found_it_is_said_how_far_that_was_looked_for(placed: list[int]) -> None:
    """It may come behind that: of 1,440 minutes its spread draws the one of its window once in years."""
    rare = a_job("0 9 * * * {window:1m}", spread=spread("", 24 * 60))
    search = RunSearch()
    assert list(startable(rare, epoch_ms(MONDAY) + DAY, epoch_ms(MONDAY), None, search)) == []
    assert len(placed) == MOST_BARRED
    last = MONDAY + timedelta(days=1 + MOST_BARRED, seconds=-1)  # a spread may begin a second before its time
    assert search.stopped_ms == epoch_ms(last)
    said = said_of(rare)
    assert said.row.next is None
    assert said.row.not_before_ms == epoch_ms(last)
    assert said.row.is_active
    assert said.row.situation is Situation.WAITING
    assert said.shown == "not before Wed 2028-04-05 08:59:59+00:00; what comes then was not looked at"
    assert said.dry_run == ["  first     not before 2028-04-05 08:59:59+00:00; what comes then was not looked at"]
    assert said.troubles == ["j does not run: none of its next 400 times can start"]


NEVER = {
    "a stagger behind its window": a_job("*/5 * * * * {stagger:2h, window:1m}"),
    "clauses that leave no second": a_job("* * * * *", spread=spread("date=2020-01-01")),
    "no working day, and a stagger behind its window": a_job(
        "0 */6 * * * {stagger:2h, window:1m}",
        calendars=CalendarRules(only=(WEEKEND,), on_excluded=OnExcluded.PREVIOUS_WORKDAY),
    ),
}


@pytest.mark.parametrize("job", NEVER.values(), ids=NEVER)
def test_what_never_starts_is_known_without_a_search(job: Job, placed: list[int]) -> None:
    said = said_of(job)
    assert len([nominal for nominal in placed if nominal > epoch_ms(MONDAY) + 8 * DAY]) <= 2
    assert (said.row.next, said.row.not_before_ms, said.row.situation) == (None, None, Situation.DONE)
    assert said.shown == "never"
    assert said.dry_run == ["  never     nothing of its schedule will start"]
    assert said.troubles == ["j never runs: none of its times can start"]


def test_a_year_that_was_decided_before_the_clock_was_set_back_is_one_step(placed: list[int]) -> None:
    now_ms = epoch_ms(MONDAY)
    job = a_job("* * * * * *").progressed(decided=((now_ms - HOUR, now_ms + 365 * DAY),))
    first = next(startable(job, now_ms, now_ms))
    assert first.nominal_ms == now_ms + 365 * DAY + 1_000
    assert len(placed) <= 1
