"""`after`: what the end of one job means for those that follow it, with and without a schedule of their own."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from chronex.engine.clock_steps import rewind
from chronex.engine.commands import backfill, cancel, pause, replay, trigger
from chronex.engine.orders import AttemptEnd, Launch
from chronex.engine.update import apply_jobs
from chronex.engine.update.job_chains import LONGEST_CHAIN
from chronex.errors import JobChainError, NotPossibleError
from chronex.model.event import Event
from chronex.model.job import Job
from chronex.model.occurrence import Occurrence, occurrence_id
from chronex.model.policies import OverlapPolicy, RecoveryPolicy, RecoveryStrategy
from chronex.model.reasons import Reason, ReasonCode, text_of
from chronex.model.states import AttemptState, OccurrenceState
from chronex.storage.journal import append
from chronex.storage.records import Reading, Records
from chronex.testing import HOUR, MINUTE
from chronex.verify import verify_store
from tests.kit.machine import ANN, ONE, START, SteppedEngine

GOOD, BAD = AttemptState.SUCCESS, AttemptState.FAILED
AT = START + HOUR
HOURLY = "0 * * * *"
DONE, FAILED, SKIPPED = OccurrenceState.COMPLETED, OccurrenceState.FAILED, OccurrenceState.SKIPPED


def job(name: str, schedule: str = "", after: Iterable[str] = (), **more: object) -> Job:
    return Job(id=name, schedule=schedule, after=tuple(after), tasks=(ONE,), **more)  # type: ignore[arg-type]


class Chain(SteppedEngine):
    """Several jobs; what is started runs until the test ends it, by the name of its job."""

    def __init__(self, *jobs: Job, places: int = 10) -> None:
        super().__init__("0 0 1 1 *", places=places)
        begun = Event(name="SchedulerStarted", at_ms=START, data={"node": "node-1"})
        self.store.update(lambda tx: append(tx, begun))
        apply_jobs(self.store, jobs, START)
        self.jobs = jobs
        self.running: dict[str, list[Launch]] = {}

    def go(self, now: int, awake_since: int | None = None) -> list[str]:
        """A tick; the names of the jobs that start."""
        begun = self.tick(now, awake_since)
        for launch in begun:
            self.running.setdefault(launch.job.id, []).append(launch)
        return [launch.job.id for launch in begun]

    def over(self, name: str, now: int, state: AttemptState = GOOD) -> list[str]:
        """The oldest run of the job ends, and a tick follows at once; who starts."""
        launch = self.running[name].pop(0)
        end = AttemptEnd(state, reason=Reason(ReasonCode.EXIT_CODE, "exit code 1") if state is BAD else Reason())
        orders = self.store.update(self.engine.ended(launch.attempt, end, now))
        begun = [order for order in orders if isinstance(order, Launch)]
        for launch in begun:
            self.running.setdefault(launch.job.id, []).append(launch)
        return [launch.job.id for launch in begun] + self.go(now)

    def of(self, name: str) -> list[Occurrence]:
        """The occurrences of a job, the oldest first."""
        return self.read(lambda reading: reading.occurrences(name))[::-1]

    def states(self, name: str) -> list[tuple[int, str, str]]:
        return [(one.nominal_ms, one.state.value, text_of(one.reason)) for one in self.of(name)]

    def verify(self) -> list[str]:
        """What of the formal model the journal violates."""
        return [str(one) for one in verify_store(self.store).violated()]


ETL, REPORT, MAIL = job("etl", HOURLY), job("report", after=["etl"]), job("mail", after=["report"])


# -- without a schedule ----------------------------------------------------------------------------------------


def test_each_completed_occurrence_brings_one_of_the_child_at_the_same_time() -> None:
    chain = Chain(ETL, REPORT)
    assert chain.go(AT) == ["etl"]
    assert chain.of("report") == []
    assert chain.over("etl", AT + 5) == ["report"]
    (child,) = chain.of("report")
    assert (child.nominal_ms, child.parents, child.state.value) == (AT, {"etl": AT}, "running")
    chain.over("report", AT + 9)
    assert chain.go(AT + HOUR) == ["etl"]
    assert chain.over("etl", AT + HOUR + 1) == ["report"]
    assert [one.nominal_ms for one in chain.of("report")] == [AT, AT + HOUR]
    assert chain.verify() == []


def test_the_child_is_there_in_the_transaction_that_ends_the_parent() -> None:
    """Whoever reads the store sees both or neither, also where nothing else ever runs."""
    chain = Chain(ETL, REPORT)
    chain.go(AT)
    (launch,) = chain.running["etl"]
    chain.store.update(chain.engine.ended(launch.attempt, AttemptEnd(GOOD), AT + 5))
    assert [one.state.value for one in chain.of("report")] == ["pending"]


@pytest.mark.parametrize(
    ("end", "reason"),
    [(BAD, "etl failed"), (AttemptState.CANCELED, "etl was canceled")],
)
def test_a_parent_that_did_not_complete_leaves_the_child_skipped_with_its_id(end: AttemptState, reason: str) -> None:
    chain = Chain(ETL, REPORT, MAIL)
    chain.go(AT)
    assert chain.over("etl", AT + 5, end) == []
    assert chain.states("report") == [(AT, "skipped", f"{reason}: {occurrence_id('etl', AT)}")]
    assert chain.states("mail") == [(AT, "skipped", f"report was skipped: {occurrence_id('report', AT)}")]
    assert chain.verify() == []


def test_a_parent_that_was_skipped_or_missed_leaves_the_child_skipped() -> None:
    chain = Chain(replace(ETL, recovery=RecoveryPolicy(RecoveryStrategy.MARK_MISSED)), REPORT)
    chain.go(AT + 1, awake_since=AT + 1)
    assert chain.states("report") == [(AT, "skipped", f"etl was missed: {occurrence_id('etl', AT)}")]
    chain.ask(pause, "etl", at=AT + 2)
    chain.go(AT + HOUR)
    assert chain.states("report")[1][2].startswith("etl was skipped: occ_")
    assert chain.verify() == []


def test_a_child_of_several_parents_comes_when_the_last_of_them_has_ended_at_its_time() -> None:
    both = job("both", after=["etl", "billing"])
    chain = Chain(ETL, job("billing", "0,30 * * * *"), both)
    chain.go(START + 30 * MINUTE)
    chain.over("billing", START + 31 * MINUTE)
    assert chain.of("both") == [], "etl has nothing at half past"
    assert sorted(chain.go(AT)) == ["billing", "etl"]
    assert chain.over("billing", AT + 1) == []
    assert chain.over("etl", AT + 2) == ["both"]
    assert chain.of("both")[0].parents == {"etl": AT, "billing": AT}


def test_one_bad_parent_of_several_is_named_once_all_have_ended() -> None:
    chain = Chain(ETL, job("billing", HOURLY), job("both", after=["etl", "billing"]))
    chain.go(AT)
    chain.over("billing", AT + 1, BAD)
    assert chain.of("both") == []
    assert chain.over("etl", AT + 2) == []
    assert chain.states("both") == [(AT, "skipped", f"billing failed: {occurrence_id('billing', AT)}")]


def test_a_triggered_parent_brings_its_child_and_a_part_of_one_does_not() -> None:
    chain = Chain(ETL, REPORT)
    asked = chain.ask(trigger, "etl", at=START + 5)
    chain.go(START + 6)
    assert chain.over("etl", START + 7) == ["report"]
    assert chain.of("report")[0].nominal_ms == asked.occurrence.nominal_ms
    chain.over("report", START + 8)
    chain.ask(trigger, "etl", at=START + 9, only=("one",))
    chain.go(START + 10)
    assert chain.over("etl", START + 11) == []
    assert chain.verify() == []


def test_a_paused_child_is_skipped_and_a_disabled_one_has_nothing() -> None:
    chain = Chain(ETL, REPORT, job("off", after=["etl"], enabled=False))
    chain.ask(pause, "report", at=START + 1)
    chain.go(AT)
    assert chain.over("etl", AT + 5) == []
    assert [state for _, state, _ in chain.states("report")] == ["skipped"]
    assert chain.of("off") == []


def test_a_replay_asks_before_it_runs_the_children_again() -> None:
    chain = Chain(ETL, REPORT, MAIL)
    chain.go(AT)
    chain.over("etl", AT + 5, BAD)
    alone = chain.store.update(lambda tx: replay(Records(tx, AT + 10), occurrence_id("etl", AT), ANN, "fixed"))
    chain.go(AT + 11)
    assert chain.over("etl", AT + 12) == []
    assert alone.occurrence.with_children is False
    chain.store.update(
        lambda tx: replay(Records(tx, AT + 20), occurrence_id("etl", AT), ANN, "fixed", with_children=True)
    )
    chain.go(AT + 21)
    assert chain.over("etl", AT + 22) == ["report"]
    again = chain.of("report")[-1]
    assert (again.scheduled_ms, again.replay_of) == (AT, occurrence_id("report", AT))
    assert chain.over("report", AT + 23) == ["mail"]
    assert chain.of("mail")[-1].scheduled_ms == AT
    assert chain.verify() == []


def test_a_backfill_of_the_parent_runs_the_child_for_the_same_times() -> None:
    chain = Chain(ETL, REPORT)
    earlier = START - HOUR
    chain.store.update(lambda tx: backfill.fill(Records(tx, START + 1), "etl", earlier, ANN, "history"))
    chain.go(START + 2)
    assert chain.over("etl", START + 3) == ["report"]
    assert chain.of("report")[0].scheduled_ms == earlier
    with pytest.raises(NotPossibleError, match="it follows etl, and a backfill of that runs it too"):
        chain.read(lambda reading: backfill.plan_backfill(reading, "report", 0, 1, backfill.BackfillScope.ALL, 1))


def test_the_child_obeys_its_own_overlap_policy() -> None:
    chain = Chain(ETL, replace(REPORT, overlap=OverlapPolicy.QUEUE))
    for hour in (0, 1):
        chain.go(AT + hour * HOUR)
        chain.over("etl", AT + hour * HOUR + 1)
    assert [one.state.value for one in chain.of("report")] == ["running", "queued"]


def after_all(chain: Chain, now: int) -> list[str]:
    """Everything that runs ends, one after the other, until nothing does; who was started, in order."""
    begun: list[str] = []
    while running := [name for name, launches in chain.running.items() if launches]:
        now += MINUTE
        begun += chain.over(running[0], now)
    return begun


DIAMONDS = {
    "one way is longer": [job("k", after=["etl"]), job("g", after=["k", "etl"])],
    "two ways": [job("k", after=["etl"]), job("l", after=["etl"]), job("g", after=["k", "l"])],
    "two ways, one longer": [
        job("k", after=["etl"]), job("l", after=["etl"]), job("m", after=["l"]), job("n", after=["m"]), job("g", after=["k", "n"]),
    ],
    "a switched off one on the longer way": [
        job("k", after=["etl"]), job("l", after=["etl"]), job("m", after=["l"]), job("g", after=["k", "m"]),
    ],
}  # fmt: skip


@pytest.mark.parametrize("how", ["replay", "backfill"])
@pytest.mark.parametrize("name", DIAMONDS)
def test_who_is_reached_by_several_ways_runs_again_once(name: str, how: str) -> None:
    """It followed the old run of the longer way at once, and then the new one too."""
    jobs = DIAMONDS[name]
    chain = Chain(ETL, *jobs)
    chain.go(AT)
    assert sorted(after_all(chain, AT)) == sorted(one.id for one in jobs)
    begins = AT + 30 * MINUTE
    if name.startswith("a switched off"):
        jobs = [replace(one, enabled=one.id != "l") for one in jobs]
        apply_jobs(chain.store, [ETL, *jobs], begins)
    etl = occurrence_id("etl", AT)
    chain.store.update(
        lambda tx: (
            replay(Records(tx, begins), etl, ANN, "fixed", with_children=True)
            if how == "replay"
            else backfill.fill(Records(tx, begins), "etl", AT, ANN, "history")
        )
    )
    assert chain.go(begins) == ["etl"]
    again = after_all(chain, begins)
    expected = ["g", "k"] if name.startswith("a switched off") else sorted(one.id for one in jobs)
    assert sorted(again) == expected
    newest = chain.of("g")[-1]
    assert newest.scheduled_ms == AT
    for parent, nominal_ms in newest.parents.items():
        assert chain.of(parent)[-1].nominal_ms == nominal_ms, "the newest run of each"
    assert chain.verify() == []


@pytest.mark.parametrize("names", [("k", "g"), ("z", "g"), ("a", "b")], ids="".join)
def test_who_is_reached_by_several_ways_is_skipped_once(names: tuple[str, str]) -> None:
    """Where the replayed one fails, all that follow it are skipped at once; whichever of them is asked first."""
    near, far = names
    chain = Chain(ETL, job(near, after=["etl"]), job(far, after=[near, "etl"]))
    chain.go(AT)
    after_all(chain, AT)
    begins = AT + 30 * MINUTE
    chain.store.update(
        lambda tx: replay(Records(tx, begins), occurrence_id("etl", AT), ANN, "again", with_children=True)
    )
    chain.go(begins)
    chain.over("etl", begins + 1, BAD)
    assert [state for _, state, _ in chain.states(near)] == ["completed", "skipped"]
    assert [state for _, state, _ in chain.states(far)] == ["completed", "skipped"]


# -- with a schedule -------------------------------------------------------------------------------------------

MONTHLY = job("monthly", HOURLY, ["etl"])


def test_a_child_with_a_schedule_waits_for_the_newest_occurrence_of_its_parent() -> None:
    """It is named first, so that it is planned before its parent: it waits for what its parent will have."""
    chain = Chain(job("aa", HOURLY, ["etl"]), ETL)
    assert chain.go(AT) == ["etl"]
    assert chain.states("aa") == [(AT, "queued", "waits for etl")]
    assert chain.read(lambda reading: reading.count_active(10)) == 1, "who waits takes no slot"
    assert chain.over("etl", AT + 5 * MINUTE) == ["aa"]
    (child,) = chain.of("aa")
    assert (child.parents, child.waits_for) == ({"etl": AT}, ())
    chain.over("aa", AT + 6 * MINUTE)
    assert chain.verify() == []


def test_a_parent_that_has_completed_already_lets_it_start_on_time() -> None:
    chain = Chain(job("late", "30 * * * *", ["etl"]), ETL)
    chain.go(AT)
    chain.over("etl", AT + 1)
    assert chain.go(AT + 30 * MINUTE) == ["late"]
    assert chain.of("late")[-1].parents == {"etl": AT}


@pytest.mark.parametrize("when", ["before", "while it waits"])
def test_a_failed_parent_leaves_it_skipped(when: str) -> None:
    chain = Chain(ETL, job("half", "30 * * * *", ["etl"]))
    chain.go(START + 30 * MINUTE)
    assert chain.states("half") == [(START + 30 * MINUTE, "skipped", "etl has not run yet")]
    chain.go(AT)
    if when == "before":
        chain.over("etl", AT + 1, BAD)
        chain.go(AT + 30 * MINUTE)
    else:
        chain.go(AT + 30 * MINUTE)
        assert chain.states("half")[1][1] == "queued"
        chain.over("etl", AT + 31 * MINUTE, BAD)
    assert chain.states("half")[1] == (AT + 30 * MINUTE, "skipped", f"etl failed: {occurrence_id('etl', AT)}")
    assert chain.verify() == []


@pytest.mark.parametrize("end", [GOOD, BAD], ids=["completed", "failed"])
def test_a_clock_that_is_set_back_keeps_nobody_waiting_for_what_is_decided(end: AttemptState) -> None:
    """The parent has hours to pass a second time, and none of their instants is to come: its end is the last word."""
    chain = Chain(job("aa", HOURLY, ["etl"]), ETL)
    for hour in range(3):
        chain.go(AT + hour * HOUR)
        chain.over("etl", AT + hour * HOUR + MINUTE)
        chain.over("aa", AT + hour * HOUR + 2 * MINUTE)
    last = AT + 3 * HOUR
    assert chain.go(last) == ["etl"]
    back = AT + 90 * MINUTE
    rewind(chain.store, back)
    assert chain.over("etl", back + 1, end) == (["aa"] if end is GOOD else [])
    assert chain.of("aa")[-1].state is (OccurrenceState.RUNNING if end is GOOD else SKIPPED)


def test_it_waits_no_longer_than_its_window() -> None:
    chain = Chain(ETL, job("child", f"{HOURLY} {{window:10m}}", ["etl"]))
    chain.go(AT)
    assert chain.go(AT + 10 * MINUTE) == []
    assert chain.states("child")[0][1] == "queued"
    chain.go(AT + 10 * MINUTE + 1)
    assert chain.states("child") == [(AT, "skipped", "etl had not completed within the window")]
    assert chain.over("etl", AT + 11 * MINUTE) == []


def test_several_that_wait_are_decided_by_the_overlap_policy_when_they_are_let_go() -> None:
    every = job("every", "*/10 * * * *", ["etl"], overlap=OverlapPolicy.SKIP)
    chain = Chain(ETL, every)
    for minute in (0, 10, 20):
        chain.go(AT + minute * MINUTE)
    waiting = [one for one in chain.of("every") if one.state is OccurrenceState.QUEUED]
    assert len(waiting) == 3
    assert chain.over("etl", AT + 21 * MINUTE) == ["every"]
    assert [one.state.value for one in chain.of("every")[-3:]] == ["running", "skipped", "skipped"]
    assert chain.verify() == []


def test_so_many_wait_at_most() -> None:
    chain = Chain(replace(ETL, schedule="0 1 * * *"), job("every", "* * * * *", ["etl"]))
    chain.go(AT)
    for minute in range(1, 110):
        chain.go(AT + minute * MINUTE)
    waiting = [one for one in chain.of("every") if one.state is OccurrenceState.QUEUED]
    assert len(waiting) == 100
    assert "the queue of the job is full" in chain.states("every")[-1][2]


def test_who_asks_for_it_by_hand_does_not_wait() -> None:
    chain = Chain(ETL, MONTHLY)
    chain.ask(trigger, "monthly", at=START + 1)
    assert chain.go(START + 2) == ["monthly"]


def test_what_waits_can_be_canceled_and_is_withdrawn_with_its_job() -> None:
    chain = Chain(ETL, MONTHLY)
    chain.go(AT)
    waiting = chain.of("monthly")[0]
    chain.ask(cancel, waiting, at=AT + 1)
    assert chain.states("monthly")[0][1] == "canceled"
    chain.over("etl", AT + 2)
    chain.go(AT + HOUR)
    apply_jobs(chain.store, [ETL], AT + HOUR + 1)
    assert chain.states("monthly")[1][1:] == ("canceled", "the job was removed")


def test_a_parent_that_no_longer_counts_lets_it_go() -> None:
    chain = Chain(ETL, job("billing", "0 0 1 1 *"), MONTHLY)
    chain.go(AT)
    apply_jobs(chain.store, [ETL, chain.jobs[1], replace(MONTHLY, after=())], AT + 1)
    assert chain.go(AT + 2) == ["monthly"]


@pytest.mark.parametrize("then", ["never ran", "has completed", "has failed", "runs"])
def test_other_parents_are_asked_when_the_edit_that_names_them_is_applied(then: str) -> None:
    """It was let go, and ran though the parent that its file names never had."""
    chain = Chain(ETL, job("billing", "50 0 * * *" if then != "never ran" else "0 0 1 1 *"), MONTHLY)
    chain.go(AT - 10 * MINUTE)
    if then.startswith("has"):
        chain.over("billing", AT - 5 * MINUTE, GOOD if then == "has completed" else BAD)
    assert chain.go(AT) == ["etl"]
    apply_jobs(chain.store, [ETL, chain.jobs[1], replace(MONTHLY, after=("billing",))], AT + 1)
    begun = chain.go(AT + 2)
    assert begun == (["monthly"] if then == "has completed" else [])
    state, reason = chain.states("monthly")[-1][1:]
    billing = occurrence_id("billing", AT - 10 * MINUTE)
    assert (state, reason) == {
        "never ran": ("skipped", "billing has not run yet"),
        "has completed": ("running", ""),
        "has failed": ("skipped", f"billing failed: {billing}"),
        "runs": ("queued", "waits for billing"),
    }[then]
    if then == "runs":
        assert chain.over("etl", AT + 3) == []
        assert chain.over("billing", AT + 4) == ["monthly"]
    assert chain.verify() == []


def test_it_waits_for_the_child_of_a_parent_too() -> None:
    chain = Chain(ETL, REPORT, job("aa", HOURLY, ["report"]))
    chain.go(AT)
    assert chain.states("aa") == [(AT, "queued", "waits for report")]
    assert chain.over("etl", AT + 1) == ["report"]
    assert chain.states("aa")[0][1] == "queued"
    assert chain.over("report", AT + 2) == ["aa"]


def test_an_end_reads_only_who_follows_it() -> None:
    """A thousand jobs that follow others cost nothing at the end of one that nobody follows."""
    chain = Chain(ETL, REPORT, job("lonely", HOURLY))
    chain.go(AT)
    assert chain.read(lambda reading: reading.followers("lonely")) == []
    assert [one.id for one in chain.read(lambda reading: reading.followers("etl"))] == ["report"]
    assert chain.read(lambda reading: Reading(reading.tx).children("etl")) == ["report"]


# -- apply -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("jobs", "words"),
    [
        ([job("a", after=["b"]), job("b", after=["c"]), job("c", after=["a"])], "a -> b -> c -> a"),
        ([job("a", after=["a"])], "a -> a"),
        (
            [ETL, *(job(f"j{n}", after=[f"j{n - 1}" if n else "etl"]) for n in range(60))],
            "61 jobs follow one another",
        ),
        ([job("a", after=["elt"]), ETL], "a follows elt, and there is no such job; did you mean etl?"),
    ],
)
def test_an_order_that_cannot_be_kept_is_refused_with_the_way(jobs: list[Job], words: str) -> None:
    chain = Chain()
    with pytest.raises(JobChainError, match=words):
        apply_jobs(chain.store, jobs, START + 1)
    assert chain.read(lambda reading: reading.job("a")) is None


def test_a_parent_is_not_removed_while_a_child_stays() -> None:
    chain = Chain(ETL, REPORT)
    with pytest.raises(JobChainError, match=r"etl would be removed, and report follows it \(report -> etl\)"):
        apply_jobs(chain.store, [REPORT], START + 1)
    apply_jobs(chain.store, [], START + 1)
    assert chain.read(lambda reading: reading.children("etl")) == []


def test_a_parent_may_belong_to_another_source() -> None:
    chain = Chain(ETL)
    apply_jobs(chain.store, [REPORT], START + 1, owns=lambda one: one.id == "report")
    chain.go(AT)
    assert chain.over("etl", AT + 1) == ["report"]


def test_a_lattice_of_jobs_is_asked_for_once_each_and_decided_to_its_end() -> None:
    """Two ways at each of twenty steps would be a million ways to the last; a failure at the top skips them all."""
    jobs = [ETL]
    for step in range(20):
        before = [f"s{step - 1}a", f"s{step - 1}b"] if step else ["etl"]
        jobs += [job(f"s{step}{letter}", after=before) for letter in "ab"]
    chain = Chain(*jobs, job("aa", HOURLY, ["s19a", "s19b"]))
    chain.go(AT)
    assert chain.states("aa")[0][1] == "queued"
    chain.over("etl", AT + 1, BAD)
    assert {chain.of(one.id)[0].state.value for one in jobs[1:]} == {"skipped"}
    assert chain.states("aa")[0][1] == "skipped"


def test_a_failure_at_the_top_of_the_longest_chain_reaches_its_end() -> None:
    jobs = [ETL, *(job(f"j{n}", after=[f"j{n - 1}" if n else "etl"]) for n in range(LONGEST_CHAIN - 1))]
    chain = Chain(*jobs)
    chain.go(AT)
    chain.over("etl", AT + 1, BAD)
    assert chain.of(f"j{LONGEST_CHAIN - 2}")[0].state is SKIPPED
