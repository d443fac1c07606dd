"""One question at a time: what the schedule says no to, what the future holds, and how a time may be asked for."""

from __future__ import annotations

from datetime import datetime

import pytest
from msgspec.structs import replace

from chronex.engine.commands.actor import Actor
from chronex.engine.commands.control import pause
from chronex.engine.orders import AttemptEnd
from chronex.engine.update import apply_jobs
from chronex.model.job import Job, Task
from chronex.model.occurrence import Usage, occurrence_id
from chronex.model.policies import DstSetting, ResourceLimits, SpreadPolicy
from chronex.model.states import AttemptState
from chronex.storage.ports import Store
from chronex.storage.records import Reading, Records
from chronex.testing import HOUR, MINUTE, RandomOutcomes, SimulatedMachine
from chronex.text.instants import FIRST_MS, LAST_MS
from chronex.timing.zones import load_zone
from chronex.views.nodes import Watch
from chronex.views.why import WhyAnswer, latest_and_next, why
from chronex.views.why.answer import Cause
from chronex.views.why.ask import by_occurrence, clock_links, instant_of, read_time
from chronex.views.why.schedule_versions import version_history
from chronex_store import MemoryStore
from tests.kit.machine import FIRST, START, SteppedEngine, steady

TASK = (Task(name="main", run=("true",)),)
BERLIN = load_zone("Europe/Berlin")


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def applied(*jobs: Job, now: int = START) -> MemoryStore:
    store = MemoryStore()
    apply_jobs(store, jobs, now)
    return store


def ask(store: Store, job: str, instant: int, now: int) -> WhyAnswer:
    answer = store.view(lambda tx: why(Reading(tx), job, instant, now))
    assert answer is not None
    return answer


@pytest.mark.parametrize(
    ("schedule", "instant", "cause", "fact"),
    [
        ("0 3 * * *", "2027-02-01T03:05Z", Cause.NOT_MATCHED, "minute 5 is not in '0'"),
        ("0 3 * * *", "2027-02-01T04:00Z", Cause.NOT_MATCHED, "hour 4 is not in '3'"),
        ("0 3 * * MON", "2027-02-02T03:00Z", Cause.NOT_MATCHED, "weekday TUE is not in 'MON'"),
        ("0 3 13 * FRI", "2027-02-02T03:00Z", Cause.NOT_MATCHED, "day 2 of the month is not in '13', and weekday TUE"),
        ("0 3 L * *", "2027-02-27T03:00Z", Cause.NOT_MATCHED, "day 27 of the month is not in 'L'"),
        ("0 3 * MAR *", "2027-02-02T03:00Z", Cause.NOT_MATCHED, "month 2 (FEB) is not in 'MAR'"),
        ("*/5 * * * * *", "2027-02-02T03:00:07Z", Cause.NOT_MATCHED, "second 7 is not in '*/5'"),
        ("@every 15m", "2027-01-01T00:20Z", Cause.NOT_MATCHED, "this is 5m after one of its steps"),
        ("@once 2027-02-01T00:00:00", "2027-02-02T00:00Z", Cause.NOT_MATCHED, "it runs once, at 2027-02-01 00:00+00:00"),
        ("R/2027-02-01T00:00:00Z/P1D", "2027-02-02T01:00Z", Cause.NOT_MATCHED, "it repeats every P1D"),
        ("0 3 * * * {from:2027-03-01}", "2027-02-02T03:00Z", Cause.BEFORE_FROM, "begins only at 2027-03-01"),
        ("0 3 * * * {until:2027-02-01}", "2027-02-02T03:00Z", Cause.AFTER_UNTIL, "ended at 2027-02-01 23:59"),
    ],
)  # fmt: skip
def test_the_field_or_bound_that_says_no_is_named(schedule: str, instant: str, cause: Cause, fact: str) -> None:
    answer = ask(applied(Job(id="j", schedule=schedule, tasks=TASK)), "j", at(instant), START + 1)
    assert answer.cause is cause
    assert fact in answer.links[0].fact


def test_the_neighbours_of_an_instant_that_is_not_matched_are_told() -> None:
    answer = ask(applied(Job(id="j", schedule="0 3 * * *")), "j", at("2027-02-01T05:00Z"), START + 1)
    assert (answer.previous_ms, answer.next_ms) == (at("2027-02-01T03:00Z"), at("2027-02-02T03:00Z"))


@pytest.mark.parametrize(
    ("dst", "instant", "cause", "fact"),
    [
        (None, "2027-03-28T03:00+02:00", Cause.WILL_RUN, "moved: 02:30 does not exist on this day"),
        (DstSetting(gap="skip"), "2027-03-28T03:00+02:00", Cause.NOT_MATCHED, "02:30 does not exist: 1 run skipped"),
        (None, "2027-10-31T02:30+02:00", Cause.WILL_RUN, "first pass only"),
        (None, "2027-10-31T02:30+01:00", Cause.NOT_MATCHED, "fires once, on the first pass"),
        (DstSetting(overlap="both"), "2027-10-31T02:30+01:00", Cause.WILL_RUN, "second pass"),
    ],
)
def test_what_a_clock_change_does_to_the_instant(
    dst: DstSetting | None, instant: str, cause: Cause, fact: str
) -> None:
    job = Job(id="j", schedule="30 2 * * *", timezone="Europe/Berlin", dst=dst, tasks=TASK)
    answer = ask(applied(job), "j", at(instant), START)
    assert answer.cause is cause
    assert any(fact in link.fact for link in answer.links), answer.links


NOON = "2027-01-02T12:00Z"


@pytest.mark.parametrize(
    ("changes", "cause", "fact"),
    [
        ({}, Cause.WILL_RUN, "unless an earlier occurrence still runs or waits: then it is skipped"),
        ({"enabled": False}, Cause.DISABLED, "the job is disabled"),
        ({"schedule": "0 12 * * * {max:1}"}, Cause.MAX_REACHED, "0 of at most 1 executions"),
        ({"schedule": "0 12 * * * {window:5m}"}, Cause.WILL_RUN, "unless it cannot start within 5m"),
        ({"schedule": "0 12 * * * {jitter:5m}"}, Cause.WILL_RUN, "jitter will add up to 5m"),
        ({"schedule": "0 12 * * * {stagger:5m}"}, Cause.WILL_RUN, "stagger adds"),
        ({"spread": SpreadPolicy(duration_ms=HOUR)}, Cause.WILL_RUN, "spread chooses"),
        ({"spread": SpreadPolicy(duration_ms=HOUR, only="hours=3")}, Cause.UNSCHEDULABLE, "MaxAttempts"),
    ],
)
def test_what_will_happen_and_what_could_prevent_it(changes: dict[str, object], cause: Cause, fact: str) -> None:
    job = replace(Job(id="j", schedule="0 12 * * *", tasks=TASK), **changes)
    answer = ask(applied(job), "j", at(NOON), START)
    assert answer.cause is cause, answer
    assert any(fact in link.fact for link in answer.links), answer.links


def test_a_paused_job_says_by_whom_and_until_when() -> None:
    store = applied(Job(id="j", schedule="0 12 * * *", tasks=TASK))
    store.update(lambda tx: pause(Records(tx, START), "j", Actor("alice", "cli", "here"), until_ms=at(NOON) + 1))
    assert ask(store, "j", at(NOON), START).cause is Cause.PAUSED
    assert "alice@here" in ask(store, "j", at(NOON), START).summary
    assert ask(store, "j", at(NOON) + 24 * HOUR, START).cause is Cause.WILL_RUN


def test_before_it_was_applied_after_it_was_removed_and_while_it_was_disabled() -> None:
    job = Job(id="j", schedule="0 * * * *", tasks=TASK)
    store = applied(job)
    apply_jobs(store, [replace(job, enabled=False)], START + 5 * HOUR)
    apply_jobs(store, [], START + 9 * HOUR)
    now = START + 20 * HOUR
    assert ask(store, "j", START - HOUR, now).cause is Cause.NOT_YET_APPLIED
    assert ask(store, "j", START + 7 * HOUR, now).cause is Cause.DISABLED
    assert ask(store, "j", START + 10 * HOUR, now).cause is Cause.JOB_REMOVED
    assert store.view(lambda tx: why(Reading(tx), "nobody", START, now)) is None


def test_what_no_scheduler_has_looked_at_is_undecided() -> None:
    answer = ask(applied(Job(id="j", schedule="0 * * * *", tasks=TASK)), "j", START + HOUR, START + 2 * HOUR)
    assert answer.cause is Cause.UNDECIDED
    assert "no scheduler has ever run" in answer.summary


def test_a_backlog_too_long_to_list_is_explained_too() -> None:
    machine = SimulatedMachine(
        [Job(id="j", schedule="* * * * *", tasks=TASK)], outcome=RandomOutcomes(1, fail_share=0)
    )
    machine.run_until(START + HOUR)
    machine.crash()
    machine.pass_time(20 * HOUR)
    machine.boot()
    machine.run_until(machine.now + MINUTE)
    answer = ask(machine.store, "j", START + 2 * HOUR, machine.now)
    assert answer.cause is Cause.SUPERSEDED
    assert not answer.occurrence
    assert answer.names["outage"]["until_ms"] == START + 21 * HOUR


def test_what_retention_removed_is_forgotten_not_denied() -> None:
    machine = SimulatedMachine(
        [Job(id="j", schedule="0 * * * *", tasks=TASK)], outcome=RandomOutcomes(1, fail_share=0)
    )
    machine.run_until(START + 10 * HOUR)
    machine.store.update(
        lambda tx: Records(tx, machine.now).delete(b"O" + b"j\0" + (START + HOUR + (1 << 63)).to_bytes(8, "big"))
    )
    assert ask(machine.store, "j", START + HOUR, machine.now).cause is Cause.FORGOTTEN


def test_without_a_time_the_last_thing_and_the_next() -> None:
    machine = SimulatedMachine(
        [Job(id="j", schedule="0 * * * *", tasks=TASK)], outcome=RandomOutcomes(1, fail_share=0)
    )
    machine.run_until(START + 3 * HOUR + 30 * MINUTE)
    last, upcoming = machine.store.view(lambda tx: latest_and_next(Reading(tx), "j", machine.now))
    assert (last.instant_ms, last.cause) == (START + 3 * HOUR, Cause.COMPLETED)
    assert (upcoming.instant_ms, upcoming.cause) == (START + 4 * HOUR, Cause.WILL_RUN)


def test_where_no_scheduler_runs_the_time_that_has_just_passed_is_told_too() -> None:
    machine = SimulatedMachine(
        [Job(id="j", schedule="0 * * * *", tasks=TASK)], outcome=RandomOutcomes(1, fail_share=0)
    )
    machine.run_until(START + 3 * HOUR + 30 * MINUTE)
    now = START + 5 * HOUR + MINUTE
    nobody = Watch(has_scheduler=False)
    answers = machine.store.view(lambda tx: latest_and_next(Reading(tx), "j", now, nobody))
    assert [(one.instant_ms, one.cause) for one in answers] == [
        (START + 3 * HOUR, Cause.COMPLETED),
        (START + 5 * HOUR, Cause.UNDECIDED),
        (START + 6 * HOUR, Cause.WILL_RUN),
    ]


# -- times in words ----------------------------------------------------------------------------------------------

NOW = "2027-02-01T10:20:30+01:00"


@pytest.mark.parametrize(
    ("text", "instant", "width"),
    [
        ("2027-01-05T03:00", "2027-01-05T03:00+01:00", MINUTE),
        ("2027-01-05 03:00:07", "2027-01-05T03:00:07+01:00", 1000),
        ("2027-01-05T03:00Z", "2027-01-05T03:00Z", MINUTE),
        ("2027-01-05", "2027-01-05T00:00+01:00", 24 * HOUR),
        ("03:00", "2027-02-01T03:00+01:00", MINUTE),
        ("3:00:05", "2027-02-01T03:00:05+01:00", 1000),
        ("yesterday", "2027-01-31T00:00+01:00", 24 * HOUR),
        ("Yesterday 3:00", "2027-01-31T03:00+01:00", MINUTE),
        ("tomorrow 03:00:05", "2027-02-02T03:00:05+01:00", 1000),
        ("today", "2027-02-01T00:00+01:00", 24 * HOUR),
        ("-2h", "2027-02-01T08:20:30+01:00", 1),
        ("+1h30m", "2027-02-01T11:50:30+01:00", 1),
        ("now", NOW, 1),
    ],
)
def test_a_time_is_read_in_the_zone_of_the_job(text: str, instant: str, width: int) -> None:
    asked = read_time(text, BERLIN, at(NOW))
    assert asked is not None
    assert (asked.at_ms, asked.width_ms) == (at(instant), width)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "yesterday noon",
        "yesterday 25:00",
        "25:00",
        "-",
        "-2",
        "+x",
        "2027-13-01",
        "03:60",
        "\x1b[2J",
        "9" * 500,
    ],
)
def test_what_is_no_time_is_refused(text: str) -> None:
    assert read_time(text, BERLIN, at(NOW)) is None


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2027-01-01T02:00", START + 2 * HOUR),  # the minute holds 02:00:30 + jitter-free nominal
        ("-10m", START + 2 * HOUR),
        ("+10m", START + 3 * HOUR),
        ("2027-01-01T02:30", START + 2 * HOUR + 30 * MINUTE),
        ("9999-12-31", LAST_MS + 1 - 24 * HOUR),
        ("+3600000d", LAST_MS),
        ("-3600000d", FIRST_MS),
    ],
)
def test_the_occurrence_that_is_meant(text: str, instant: int) -> None:
    machine = SimulatedMachine(
        [Job(id="j", schedule="0 * * * *", tasks=TASK)], outcome=RandomOutcomes(1, fail_share=0)
    )
    machine.run_until(START + 2 * HOUR + 15 * MINUTE)

    def meant(reading: Reading) -> int:
        history = version_history(reading, "j")
        asked = read_time(text, load_zone("UTC"), machine.now)
        assert history is not None
        assert asked is not None
        return instant_of(reading, history, asked, machine.now)

    assert machine.store.view(lambda tx: meant(Reading(tx))) == instant
    wanted = occurrence_id("j", START + 2 * HOUR)
    assert machine.store.view(lambda tx: by_occurrence(Reading(tx), "j", wanted)) == START + 2 * HOUR
    assert machine.store.view(lambda tx: by_occurrence(Reading(tx), "j", "occ_none")) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2027-03-28T02:30", "does not exist on that day"),
        ("2027-10-31T02:30", "happens twice on that day; the first is meant, the second is 2027-10-31 02:30+01:00"),
    ],
)
def test_a_wall_time_that_is_missing_or_doubled_is_told(text: str, words: str) -> None:
    job = Job(id="j", schedule="30 2 * * *", timezone="Europe/Berlin")
    asked = read_time(text, BERLIN, START)
    assert asked is not None
    assert words in clock_links(job, asked)[0].fact


def test_what_is_due_while_a_retry_waits_is_told_as_skipped_and_later_ones_are_not() -> None:
    machine = SteppedEngine(retry=steady(3, 150_000))
    (launch,) = machine.tick(FIRST)
    machine.end(launch, AttemptState.FAILED, FIRST + 100)
    told = [ask(machine.store, "job", FIRST + n * MINUTE, FIRST + 200) for n in (1, 2, 3)]
    assert [answer.cause for answer in told] == [Cause.RETRY_WAITS, Cause.RETRY_WAITS, Cause.WILL_RUN]
    assert told[0].summary == "it will be skipped: an earlier occurrence waits for its retry"
    assert told[0].links[1].fact.startswith("that of 2027-01-01 00:01+00:00 waits for its retry until")


@pytest.mark.parametrize(
    ("usage", "told"),
    [
        (
            Usage(1, 9_216, limits_by="process"),
            "main: its memory was limited to 64MiB, process by process: a process that asks for more than 128MiB is refused "
            "it, and may fail for that; at its peak it had 9.0MiB",
        ),
        (Usage(1, None, limits_by="cgroup, process"), "its peak is not known"),
        (Usage(1, 9_216, limits_by="cgroup"), None),
        (None, None),
    ],
)
def test_a_failure_under_a_memory_limit_of_processes_is_told_with_its_peak(
    usage: Usage | None, told: str | None
) -> None:
    """A program that is refused memory ends as it likes, mostly with exit code 1."""
    limited = Task(name="main", run=("true",), limits=ResourceLimits(memory=64 * 2**20))
    machine = SteppedEngine(tasks=(limited,))
    (launch,) = machine.tick(FIRST)
    end = AttemptEnd(AttemptState.FAILED, exit_code=1, usage=usage)
    machine.store.update(machine.engine.ended(launch.attempt, end, FIRST + 100))
    facts = [link.fact for link in ask(machine.store, "job", FIRST, FIRST + 200).links]
    assert (
        [told in fact for fact in facts if "memory" in fact] == [True]
        if told
        else not any("memory" in f for f in facts)
    )


def test_the_outage_is_told_into_which_jitter_had_put_a_run() -> None:
    """It was planned before the outage, so its instant lies before that."""
    job = Job(id="j", schedule="0 * * * * {jitter:30m}", tasks=(Task(name="t", run=("true",)),))
    machine = SimulatedMachine([job], start=START + HOUR // 2)
    machine.run_until(START + HOUR + 1)
    machine.go_down(40 * MINUTE)
    machine.run_for(5 * MINUTE)
    answer = ask(machine.store, "j", START + HOUR, machine.now)
    assert (answer.cause, answer.names["strategy"]) == (Cause.COMPLETED, "execute_last")
    assert answer.names["outage"]["until_ms"] == START + HOUR + 40 * MINUTE + 1


def test_an_edit_after_the_clock_was_set_back_is_the_newest_version() -> None:
    """Versions were ordered by the time of their edit: of what is to come the older one, made "later", answered."""
    machine = SimulatedMachine([Job(id="j", schedule="0 3 * * *", tasks=TASK)], start=START + HOUR)
    machine.set_clock(-30 * MINUTE)
    machine.run_for(MINUTE)
    machine.apply([Job(id="j", schedule="0 4 * * *", tasks=TASK)])
    answers = [ask(machine.store, "j", START + hours * HOUR, machine.now) for hours in (3, 4)]
    assert [answer.cause for answer in answers] == [Cause.NOT_MATCHED, Cause.WILL_RUN]
