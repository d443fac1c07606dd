"""What a program asks and orders of its store: jobs at run time, commands, history, why."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from chronex.daemon.embedded import EmbeddedEngine
from chronex.daemon.job_control import JobControl
from chronex.engine.commands import TriggerAnswer
from chronex.engine.orders import Launch
from chronex.engine.update import Change, Policy, apply_jobs
from chronex.engine.update.sources import JobSource
from chronex.errors import (
    ChronexError,
    JobSourceError,
    NotPossibleError,
    StaleUpdateError,
    UnknownIdError,
    UnknownJobError,
)
from chronex.jobfile import SchedulerSettings
from chronex.jobfile.program_jobs import InvalidJobError
from chronex.model import Call, Job, OverlapPolicy, Task
from chronex.model.channels import Channel, ChannelKind, NoticeEvent
from chronex.model.policies import FailureStrategy, NotifyPolicy, Overrides
from chronex.model.reasons import ReasonCode
from chronex.model.states import OccurrenceState
from chronex.run.callables import TaskContext
from chronex.run.functions import Calls
from chronex.storage import journal
from chronex.storage.records import Reading
from chronex.testing import DAY, HOUR, MINUTE, FakeClock, MemoryStore, ProcessOutcome, SimulatedMachine
from chronex.views.why import Cause

NEW_YEAR = datetime(2027, 1, 1, tzinfo=UTC)
DO = (Task(name="main", run=("true",)),)
OPS = Channel(name="ops", kind=ChannelKind.MAIL, to=("ops@example.com",))


class Desk(JobControl):
    """A program whose engine does not run: every answer is the store's."""

    def __init__(self, machine: SimulatedMachine, name: str = "billing") -> None:
        super().__init__(name, Calls(), SchedulerSettings(timezone="Europe/Berlin"), machine.clock)
        self.machine = machine
        self.noted = 0

    @property
    def store(self) -> MemoryStore:
        assert isinstance(self.machine.store, MemoryStore)
        return self.machine.store

    @property
    def _is_open(self) -> bool:
        return True

    def note_functions(self) -> None:
        self.noted += 1

    def stored(self, job: str) -> Job:
        found = self.store.view(lambda tx: Reading(tx).job(job))
        assert found is not None
        return found

    def names(self) -> list[str]:
        return [row.job.id for row in self.rows()]


def succeeds(_launch: Launch) -> ProcessOutcome:
    return ProcessOutcome()


def desk(*jobs: Job, outcome: Callable[[Launch], ProcessOutcome] = succeeds) -> Desk:
    found = Desk(SimulatedMachine(start=NEW_YEAR, outcome=outcome))
    if jobs:
        found.apply(jobs)
    return found


def hourly(name: str = "tidy", **more: Any) -> Job:
    return Job(**{"id": name, "schedule": "@hourly", "tasks": DO, **more})


# -- jobs ------------------------------------------------------------------------------------------------------------


def send(context: TaskContext, to: str, copies: int = 1) -> None:
    """A function for jobs."""


def plain() -> None:
    """One that needs no context."""


def test_a_job_is_added_changed_and_removed_while_the_others_stay() -> None:
    found = desk(hourly())
    assert found.add("mail", "0 9 * * *", send, args=["ann"], kwargs={"copies": 2}, retry=3).change is Change.NEW
    mail = found.stored("mail")
    name = "billing/tests.daemon.test_job_control.send"
    assert mail.tasks == (Task(name="main", run=Call(name, ("ann",), {"copies": 2})),)
    assert (mail.retry.max, mail.timezone, mail.source) == (3, "Europe/Berlin", "program billing (added)")
    assert found.calls.has(name)
    assert found.noted == 1
    assert found.update("mail", schedule="0 10 * * *", overlap="queue").version == 2
    changed = found.stored("mail")
    assert (changed.schedule, changed.overlap, changed.retry.max) == ("0 10 * * *", OverlapPolicy.QUEUE, 3)
    assert changed.tasks == mail.tasks
    assert found.names() == ["mail", "tidy"]
    assert found.remove("mail").change is Change.REMOVED
    assert found.names() == ["tidy"]


def test_what_was_added_may_become_a_part_of_the_code() -> None:
    found = desk()
    found.add(hourly())
    found.declare(hourly(description="declared now"))
    assert (found.stored("tidy").source, found.stored("tidy").version) == ("program billing", 2)


def test_what_was_added_outlives_a_start_of_the_program_and_what_its_code_declared_does_not() -> None:
    found = desk(hourly("declared"))
    found.add(hourly("added"))
    Desk(found.machine).apply([hourly("new")])
    assert found.names() == ["added", "new"]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"schedule": "@daily"}, {"schedule": "@daily"}),
        ({"enabled": False}, {"enabled": False}),
        ({"timeout": timedelta(minutes=5)}, {"tasks": (Task(name="main", run=("true",), timeout_ms=300_000),)}),
        ({"run": "make tidy"}, {"tasks": (Task(name="main", run="make tidy"),)}),
        ({"tasks": [{"name": "a", "run": ["b"]}]}, {"tasks": (Task(name="a", run=("b",)),)}),
    ],
)  # fmt: skip
def test_an_update_changes_what_it_names(keys: dict[str, Any], expected: dict[str, Any]) -> None:
    found = desk(hourly(metadata={"team": "data"}))
    found.update("tidy", **keys)
    stored = found.stored("tidy")
    assert {name: getattr(stored, name) for name in expected} == expected
    assert (stored.metadata, stored.version, stored.source) == ({"team": "data"}, 2, "program billing")


def test_a_whole_job_replaces_the_one_of_its_name() -> None:
    found = desk(hourly(metadata={"team": "data"}))
    found.update(hourly(description="new"))
    assert (found.stored("tidy").metadata, found.stored("tidy").description) == ({}, "new")


def test_an_update_of_a_relative_time_counts_from_now_and_of_something_else_leaves_it() -> None:
    found = desk()
    found.add("once", "@once +1h", ["true"])
    assert found.stored("once").schedule == "@once 2027-01-01T01:00:00Z"
    found.machine.clock.advance(MINUTE)
    found.update("once", description="later")
    assert found.stored("once").schedule == "@once 2027-01-01T01:00:00Z"
    found.update("once", schedule="@once +1h")
    assert found.stored("once").schedule == "@once 2027-01-01T01:01:00Z"


def jobs_of_others() -> Desk:
    found = desk(hourly())
    apply_jobs(found.store, [hourly("theirs")], found.machine.now, owns=JobSource("program shipping"))
    return found


Command = Callable[[Any], Any]
REFUSED: dict[str, tuple[Command, type[Exception], str]] = {
    "a job that is there": (lambda d: d.add(hourly()), NotPossibleError, "a job 'tidy' already; update it"),
    "a job of another program": (lambda d: d.add(hourly("theirs")), JobSourceError, "belongs to program shipping"),
    "a change of another's": (lambda d: d.update("theirs", enabled=False), JobSourceError, "belongs to program shipping"),
    "the removal of another's": (lambda d: d.remove("theirs"), JobSourceError, "belongs to program shipping"),
    "a change of nothing": (lambda d: d.update("tydy", enabled=False), UnknownJobError, "did you mean tidy"),
    "the removal of nothing": (lambda d: d.remove("tydy"), UnknownJobError, "did you mean tidy"),
    "a bad expression": (lambda d: d.add("x", "99 * * * *", plain), InvalidJobError, "job 'x': minute: value 99"),
    "a bad change": (lambda d: d.update("tidy", overlap="skp"), InvalidJobError, "overlap cannot be 'skp'; did you mean"),
    "an unknown key": (lambda d: d.add("x", "@daily", plain, retires=3), InvalidJobError, "unknown key 'retires'"),
    "a job twice": (lambda d: d.apply([hourly(), hourly()]), InvalidJobError, "job 'tidy' is given twice"),
    "arguments that do not fit": (
        lambda d: d.add("x", "@daily", send, kwargs={"copies": 2}),
        ChronexError, r"send\(\) takes .* and would be called with \(context, copies=2\); give what is missing",
    ),
    "arguments that are a text": (
        lambda d: d.add("x", "@daily", send, args="ann"), ChronexError, r"args takes a list of arguments, not str; write \['ann'\]"
    ),
    "arguments without an order": (lambda d: d.add("x", "@daily", send, args={"ann"}), ChronexError, "a list .*, not set"),
    "names that are no names": (lambda d: d.add("x", "@daily", send, kwargs={1: 2}), ChronexError, "kwargs takes names as its keys, not 1"),
    "names without values": (lambda d: d.add("x", "@daily", send, kwargs=["to"]), ChronexError, "kwargs takes a dict, not list"),
    "an argument that no store holds": (
        lambda d: d.add("x", "@daily", send, args=["\udcff"]), ChronexError, "the arguments of 'billing.* cannot be stored"
    ),
    "arguments of a command": (lambda d: d.add("x", "@daily", ["true"], args=[1]), ChronexError, "are for a function"),
    "an unknown executor": (
        lambda d: d.add("x", "@daily", plain, executor="thred"), ChronexError, r"executor cannot be 'thred'; did you mean thread"
    ),
    "a sync function on the loop": (
        lambda d: d.add("x", "@daily", plain, executor="async"), ChronexError, r"plain\(\) is not async, .* executor='thread'"
    ),
    "a function inside a function in a process": (
        lambda d: d.add("x", "@daily", lambda: None, executor="process"), ChronexError, "another process cannot find"
    ),
    "an override": (lambda d: d.trigger("tidy", on_failure="ignore"), ChronexError, "on_failure cannot be 'ignore'"),
    "a timeout of nothing": (lambda d: d.trigger("tidy", timeout=timedelta(0)), ChronexError, "longer than 0"),
    "a timeout that is no time": (lambda d: d.trigger("tidy", timeout=5), ChronexError, "timeout takes a timedelta or a text such as '10m', not int"),
    "a timeout in other words": (lambda d: d.trigger("tidy", timeout="5 min"), ChronexError, "timeout: '5 min' is not a duration; did you mean 5m"),
    "a key's time in other words": (lambda d: d.trigger("tidy", idempotency_key="k", ttl="soon"), ChronexError, "ttl: 'soon' is not a duration; write 10m"),
    "another policy of change": (lambda d: d.update("tidy", policy="gracefull"), ChronexError, "policy cannot be 'gracefull'; did you mean graceful"),
    "another policy of all": (lambda d: d.apply([], policy="later"), ChronexError, "policy cannot be 'later'; it is one of immediate"),
    "less than nothing of the past": (lambda d: d.history(limit=-1), ChronexError, "limit cannot be -1; write 0 or more"),
    "less than nothing to come": (lambda d: d.next_runs("tidy", -1), ChronexError, "count cannot be -1; write 0 or more"),
    "a job that is no name": (lambda d: d.trigger(None), ChronexError, "a job is named by text, not NoneType"),
    "a trigger of nothing": (lambda d: d.trigger("tydy"), UnknownJobError, "did you mean tidy"),
    "a pause that is over": (lambda d: d.pause("tidy", timedelta(seconds=-1)), NotPossibleError, "in the future"),
    "a cancel of nothing": (lambda d: d.cancel("occ_00000000"), UnknownIdError, "no occurrence, run or attempt"),
    "an unknown state": (lambda d: d.history(state="faild"), ChronexError, "no state 'faild'; did you mean failed"),
    "a time without a zone": (lambda d: d.history(since=datetime(2027, 1, 1)), TypeError, "has no time zone"),
    "why of nothing": (lambda d: d.why("tydy"), UnknownJobError, "did you mean tidy"),
    "why at no time": (lambda d: d.why("tidy", "noon"), ChronexError, "'noon' is not a time"),
    "the runs of nothing": (lambda d: d.next_runs("tydy"), UnknownJobError, "did you mean tidy"),
    "no reason": (lambda d: d.replay("occ_0", " "), ChronexError, 'reason is required, for example reason="the disk'),
    "no reason for many": (lambda d: d.replay_range("tidy", ""), ChronexError, "reason is required"),
    "parameters without names": (lambda d: d.trigger("tidy", parameters="x"), ChronexError, "parameters takes a dict, not str"),
    "a parameter that is no text": (lambda d: d.trigger("tidy", parameters={"n": 1}), ChronexError, "'n': 1; write str"),
    "a function that is none": (lambda d: d.add("x", "@daily", 5), ChronexError, "run takes a list of arguments or a line"),
    "another version": (lambda d: d.replay("occ_0", "x", as_of="later"), ChronexError, "it is then .* or now"),
}  # fmt: skip


@pytest.mark.parametrize(("command", "kind", "words"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_is_refused_and_changes_nothing(command: Command, kind: type[Exception], words: str) -> None:
    found = jobs_of_others()
    before = found.store.view(journal.head)
    with pytest.raises(kind, match=words):
        command(found)
    assert found.store.view(journal.head) == before


def test_times_are_written_as_in_a_job_too() -> None:
    found = desk(hourly())
    given = found.trigger("tidy", timeout="10m", idempotency_key="k", ttl="1h").occurrence
    assert given.overrides == Overrides(timeout_ms=10 * MINUTE)
    found.update("tidy", policy="graceful", description="later")


def test_a_function_whose_job_was_refused_is_not_known() -> None:
    found = desk()
    for schedule, overlap in (("@daily", "skp"), ("99 * * * *", "skip")):
        with pytest.raises(InvalidJobError):
            found.add("mail", schedule, lambda: None, overlap=overlap, on_start=lambda report: None)
    assert (found.calls.names, found.noted) == ((), 0)
    found.add("mail", "@daily", lambda: None)
    assert found.calls.names == ("billing/mail",)


def test_a_stale_change_is_refused() -> None:
    found = desk(hourly())
    seen = found.store.view(journal.head)
    found.update("tidy", description="by ann")
    with pytest.raises(StaleUpdateError, match="tidy"):
        found.update("tidy", description="by bob", basis=seen)
    assert found.stored("tidy").description == "by ann"


def test_a_graceful_change_lets_the_next_run_of_the_old_schedule_happen() -> None:
    found = desk(hourly())
    found.update("tidy", schedule="@daily", policy=Policy.GRACEFUL)
    assert [run.scheduled.hour for run in found.next_runs("tidy", 2)] == [1, 0]


# -- commands ----------------------------------------------------------------------------------------------------------


def test_a_trigger_has_its_parameters_and_policies() -> None:
    found = desk(hourly())
    asked = found.trigger(
        "tidy", parameters={"level": "full"}, timeout=timedelta(minutes=1), retries=2, on_failure="continue"
    )
    assert asked.answer is TriggerAnswer.PENDING
    assert asked.occurrence.parameters == {"level": "full"}
    expected = Overrides(timeout_ms=60_000, retries=2, on_failure=FailureStrategy.CONTINUE)
    assert asked.occurrence.overrides == expected
    found.machine.run_for(MINUTE)
    done = found.occurrence(asked)
    assert (done.state, done.manual, done.is_good) == (OccurrenceState.COMPLETED, True, True)
    assert done.triggered_by.endswith("(api)")
    assert done.duration == timedelta(seconds=1)


def test_a_key_that_is_held_makes_a_second_trigger_nothing() -> None:
    found = desk(hourly())
    first = found.trigger("tidy", idempotency_key="order-7", ttl=timedelta(hours=1))
    found.machine.run_for(MINUTE)
    again = found.trigger("tidy", idempotency_key="order-7")
    assert (again.answer, again.reason.code) == (TriggerAnswer.SKIPPED, ReasonCode.IDEMPOTENT)
    assert again.reason.detail == first.occurrence.id


def test_a_pause_holds_the_schedule_until_it_is_resumed_or_over() -> None:
    found = desk(hourly())
    found.pause("tidy")
    assert found.row("tidy").is_paused
    assert found.next_runs("tidy") == []
    found.resume("tidy")
    found.pause("tidy", timedelta(hours=2))
    assert found.next_runs("tidy", 1)[0].due == NEW_YEAR + timedelta(hours=2)
    found.pause("tidy", NEW_YEAR + timedelta(hours=3))
    found.machine.run_for(4 * HOUR)
    assert [run.state.value for run in found.history("tidy")] == ["completed", "skipped", "skipped"]


def test_what_waits_is_canceled_at_once_and_what_runs_by_its_engine() -> None:
    found = desk(hourly(), outcome=lambda launch: ProcessOutcome(duration_ms=DAY))
    asked = found.trigger("tidy")
    assert found.cancel(asked, "not today").is_over
    second = found.trigger("tidy")
    found.machine.run_for(MINUTE)
    assert not found.cancel(second.occurrence.id).is_over
    found.machine.run_for(MINUTE)
    assert [run.state for run in found.history("tidy")] == [OccurrenceState.CANCELED] * 2
    assert "not today" in found.history("tidy")[1].reason


def fails_until_noon(launch: Launch) -> ProcessOutcome:
    return ProcessOutcome(exit_code=1 if launch.attempt.created_ms < 1_798_761_600_000 + 12 * HOUR else 0)


def test_what_failed_is_replayed_one_by_one_or_in_a_range() -> None:
    found = desk(hourly(), outcome=fails_until_noon)
    found.machine.run_for(12 * HOUR + MINUTE)
    failed = found.history("tidy", state="failed")
    assert len(failed) == 11
    one = found.replay(failed[0], "the disk was full")
    assert (one.original.id, one.occurrence.replay_of) == (failed[0].id, failed[0].id)
    many = found.replay_range(
        "tidy", "the disk was full", since=NEW_YEAR + timedelta(hours=2), until=NEW_YEAR + timedelta(hours=5)
    )
    assert [again.original.nominal_ms // HOUR % 24 for again in many] == [2, 3, 4]
    found.machine.run_for(MINUTE)
    assert [found.occurrence(again.occurrence.id).state for again in many] == [OccurrenceState.COMPLETED] * 3


def test_more_replays_than_a_queue_holds_are_refused() -> None:
    found = desk(hourly(schedule="* * * * *"), outcome=fails_until_noon)
    found.machine.run_for(2 * HOUR)
    with pytest.raises(NotPossibleError, match="more than 100 occurrences are meant"):
        found.replay_range("tidy", "all of them")


# -- questions ---------------------------------------------------------------------------------------------------------


def test_history_is_filtered_by_job_time_and_state() -> None:
    found = desk(hourly(), hourly("other"), outcome=fails_until_noon)
    found.machine.run_for(14 * HOUR + MINUTE)
    since, until = NEW_YEAR + timedelta(hours=10), NEW_YEAR + timedelta(hours=13)
    assert [run.scheduled.hour for run in found.history("tidy", since=since, until=until)] == [12, 11, 10]
    assert [run.scheduled.hour for run in found.history("tidy", since=timedelta(hours=2))] == [14, 13]
    both = found.history(since=since, until=until, state=["failed"])
    assert sorted((run.job, run.scheduled.hour) for run in both) == [
        ("other", 10),
        ("other", 11),
        ("tidy", 10),
        ("tidy", 11),
    ]
    assert len(found.history(limit=3)) == 3
    first = found.history("tidy", state="failed")[-1]
    assert (first.scheduled, first.started) == (NEW_YEAR + timedelta(hours=1), NEW_YEAR + timedelta(hours=1))
    assert (first.reason, first.errors) == ("main: exit code 1", 0)


def test_why_answers_for_a_time_an_id_and_without_either() -> None:
    found = desk(hourly(), outcome=fails_until_noon)
    found.machine.run_for(2 * HOUR + MINUTE)
    last, coming = found.why("tidy")
    assert (last.cause, coming.cause) == (Cause.FAILED, Cause.WILL_RUN)
    (at,) = found.why("tidy", NEW_YEAR + timedelta(hours=1))
    assert at.occurrence == found.history("tidy")[-1].id
    assert [answer.occurrence for answer in found.why("tidy", at.occurrence)] == [at.occurrence]
    assert [answer.cause for answer in found.why("tidy", "-30m")] == [Cause.FAILED]


def test_status_names_what_needs_a_person() -> None:
    found = desk(hourly(), outcome=fails_until_noon)
    found.machine.run_for(2 * HOUR + MINUTE)
    status = found.status()
    assert [row.job.id for row in status.failing] == ["tidy"]
    assert "tidy failed 2 times in a row: chronex why tidy" in status.attention()


def test_the_next_runs_say_whether_their_second_is_drawn() -> None:
    found = desk(hourly(), hourly("late", schedule="0 * * * * {jitter:5m}"))
    assert [(run.due.hour, run.is_certain) for run in found.next_runs("tidy", 2)] == [(1, True), (2, True)]
    assert [run.is_certain for run in found.next_runs("late", 1)] == [False]


def test_a_clock_of_ones_own_says_what_now_is() -> None:
    clock = FakeClock(NEW_YEAR)
    found = Desk(SimulatedMachine(start=NEW_YEAR, clock=clock))
    found.add("once", "@once +1d", plain)
    clock.advance(DAY)
    assert found.next_runs("once")[0].due == NEW_YEAR + timedelta(days=1)


# -- channels -----------------------------------------------------------------------------------------------------


def test_a_change_of_one_key_keeps_the_channels_of_a_job() -> None:
    """Also those that came with the job as values, which the program cannot name."""
    desk = Desk(SimulatedMachine())
    desk.channels = {"ops": OPS}
    desk.add("named", "@daily", "x", notify=["ops"])
    own = Channel(name="own", kind=ChannelKind.COMMAND, run=("tell",))
    desk.add(Job(id="given", schedule="@daily", tasks=DO, notify=NotifyPolicy(channels=(own,))))
    for name in ("named", "given"):
        desk.update(name, schedule="@hourly")
    stored = desk.store.view(lambda tx: [(job.schedule, job.notify) for job in Reading(tx).jobs()])
    assert stored == [
        ("@hourly", NotifyPolicy(channels=(own,))),
        ("@hourly", NotifyPolicy(channels=(OPS,))),
    ]


def test_jobs_of_an_engine_name_its_channels() -> None:
    engine = EmbeddedEngine(MemoryStore(), channels={"ops": {"mail": "ops@example.com"}})

    @engine.job("@daily", notify={"to": ["ops"], "on": ["failed"]})
    def tidy() -> None:
        """Nothing to do."""

    assert engine.declared[0].notify == NotifyPolicy(channels=(OPS,), on=(NoticeEvent.FAILED,))
    with pytest.raises(InvalidJobError, match="there is no channel 'chat'"):
        engine.add("other", "@daily", "x", notify={"to": ["chat"]})
