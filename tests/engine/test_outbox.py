"""The outbox of channels: which ends write a row for which channel, in what order they go, and that all is bounded."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from chronex.engine import outbox
from chronex.engine.outbox import (
    CLAIM_MS,
    FIRST_PAUSE_MS,
    KEPT_MS,
    LONGEST_PAUSE_MS,
    MOST_REFUSALS,
    MOST_UNDELIVERABLE,
    MOST_WAITING,
)
from chronex.errors import ChronexError
from chronex.model.channels import Channel, ChannelKind, NoticeEvent
from chronex.model.policies import NotifyPolicy, RecoveryPolicy, RecoveryStrategy
from chronex.model.reasons import TroubleCode
from chronex.model.records import ChannelState, Notice
from chronex.model.states import AttemptState
from chronex.storage import journal
from chronex.storage.records import Reading, Records
from chronex.views.troubles import ChannelRow, of_channels
from tests.kit.machine import FIRST, START, SteppedEngine

MINUTE, HOUR = 60_000, 3_600_000
OK, BAD = AttemptState.SUCCESS, AttemptState.FAILED
MAIL = Channel(name="ops", kind=ChannelKind.MAIL, to=("ops@example.com",))
CHAT = Channel(name="chat", kind=ChannelKind.WEBHOOK, url="file:/x", on=(NoticeEvent.SUCCESS, NoticeEvent.FAILED))
CHECK = Channel(name="watch", kind=ChannelKind.HEALTHCHECKS, url="file:/x")


def nobody_is_gone(_node: str) -> bool:
    return False


def rows(machine: SteppedEngine) -> list[str]:
    def read(reading: Reading) -> list[str]:
        names = sorted(state.channel for state in outbox.states(reading))
        return [f"{name} {one.kind}" for name in names for one in outbox.all_of(reading, name)]

    return machine.read(read)


def run(machine: SteppedEngine, *ends: str) -> None:
    for number, state in enumerate(ends):
        (launch,) = machine.tick(FIRST + number * MINUTE)
        machine.end(launch, state, FIRST + number * MINUTE + 1)


def minutely(*channels: Channel, **policy: Any) -> SteppedEngine:
    return SteppedEngine(notify=NotifyPolicy(channels=channels, **policy))


@pytest.mark.parametrize(
    ("channel", "policy", "ends", "written"),
    [
        (MAIL, {}, [OK, BAD, BAD, OK], ["ops failing", "ops recovered"]),
        (MAIL, {"after_failures": 2}, [BAD, BAD, OK], ["ops failing", "ops recovered"]),
        (MAIL, {"on": (NoticeEvent.SUCCESS,)}, [OK, BAD, OK], ["ops success", "ops success"]),
        (MAIL, {"on": (NoticeEvent.OUTPUT,)}, [OK, BAD, OK], []),
        (CHAT, {}, [OK, BAD, OK], ["chat success", "chat failing", "chat success"]),
        (CHECK, {}, [OK, BAD], ["watch started", "watch success", "watch started", "watch failed"]),
        (
            CHECK,
            {"after_failures": 9, "on": (NoticeEvent.LATE,)},
            [BAD],
            ["watch started", "watch failed"],
        ),
    ],
)
def test_a_channel_is_told_what_it_asks_for(
    channel: Channel, policy: dict[str, Any], ends: list[str], written: list[str]
) -> None:
    machine = minutely(channel, **policy)
    run(machine, *ends)
    assert rows(machine) == written


@pytest.mark.parametrize(
    ("on", "after_failures", "ends", "written"),
    [
        ((NoticeEvent.OUTPUT,), 1, [(OK, 5), (OK, 0), (BAD, 5), (BAD, 0)], ["ops output", "ops output"]),
        (
            (NoticeEvent.OUTPUT, NoticeEvent.FAILED), 2, [(OK, 5), (BAD, 5), (BAD, 5), (BAD, 5)],
            ["ops output", "ops output", "ops failing", "ops output"],
        ),
        ((NoticeEvent.OUTPUT, NoticeEvent.FAILED), 1, [(BAD, 0)], ["ops failing"]),
    ],
)  # fmt: skip
def test_what_was_printed_is_told_once_for_each_run(
    on: tuple[NoticeEvent, ...], after_failures: int, ends: list[tuple[str, int]], written: list[str]
) -> None:
    """Each end has its state and how many bytes were printed; a failure that is told has the output with it."""
    machine = minutely(MAIL, on=on, after_failures=after_failures)
    for number, (state, printed) in enumerate(ends):
        (launch,) = machine.tick(FIRST + number * MINUTE)
        machine.end(launch, state, FIRST + number * MINUTE + 1, log_bytes=printed)
    assert rows(machine) == written


def test_each_channel_has_a_row_of_its_own_beside_the_command() -> None:
    machine = minutely(MAIL, CHECK, run="tell")
    run(machine, BAD)
    assert rows(machine) == ["ops failing", "watch started", "watch failed"]
    assert len(machine.read(lambda reading: reading.tx.scan(b"W"))) == 1


@pytest.mark.parametrize(
    ("strategy", "written"),
    [(RecoveryStrategy.MARK_MISSED, ["ops missed"]), (RecoveryStrategy.EXECUTE_LAST, [])],
)
def test_what_was_missed_is_told_where_nothing_makes_up_for_it(
    strategy: RecoveryStrategy, written: list[str]
) -> None:
    notify = NotifyPolicy(channels=(MAIL,))
    machine = SteppedEngine("30 * * * *", notify=notify, recovery=RecoveryPolicy(strategy))
    machine.tick(START + 4 * HOUR, awake_since=START + 4 * HOUR)
    assert rows(machine) == written
    if written:
        (notice,) = machine.read(lambda reading: outbox.waiting(reading, "ops"))
        assert notice.failures == 4


# -- delivery -----------------------------------------------------------------------------------------------------


class Box:
    """An outbox in a store by itself."""

    def __init__(self) -> None:
        self.machine = SteppedEngine()
        self.now = START

    def write(self, count: int = 1, channel: str = "ops") -> None:
        for _ in range(count):
            self.now += 1
            notice = Notice(job="j", kind="failing", at_ms=self.now, nominal_ms=START, channel=channel)
            self.machine.store.update(lambda tx, one=notice: outbox.enqueue(Records(tx, self.now), one))  # type: ignore[misc]

    def claim(self, node: str = "n1", channel: str = "ops") -> Notice | None:
        return self.machine.store.update(outbox.claim(channel, node, self.now, nobody_is_gone))

    def claimed(self) -> Notice:
        found = self.claim()
        assert found is not None
        return found

    def refuse(self, notice: Notice, *, is_final: bool = False, keep_ms: int = KEPT_MS) -> bool:
        update = outbox.refused(notice, "no", self.now, is_final=is_final, keep_ms=keep_ms)
        return self.machine.store.update(update)

    def deliver(self, notice: Notice) -> None:
        self.machine.store.update(outbox.delivered(notice, self.now, is_journaled=True))

    def state(self) -> ChannelState:
        found = self.machine.read(lambda reading: outbox.state_of(reading, "ops"))
        assert found is not None
        return found

    def count(self) -> tuple[int, int]:
        return self.machine.read(lambda r: (len(outbox.waiting(r, "ops")), len(outbox.undeliverable(r, "ops"))))

    def events(self) -> list[str]:
        return [event.name for _, event in self.machine.store.view(journal.tail) if "Notification" in event.name]


def test_the_oldest_goes_first_and_the_next_only_when_it_is_recorded() -> None:
    box = Box()
    box.write(3)
    first = box.claimed()
    assert box.claimed() == first, "the same until it is recorded: a crash sends it again"
    box.deliver(first)
    assert box.claimed().at_ms == first.at_ms + 1
    assert outbox.delivery_of(first) == f"j/{START}/failing/{first.at_ms}/ops"


def test_one_node_delivers_and_another_takes_over_when_its_claim_is_over() -> None:
    box = Box()
    box.write(2)
    first = box.claim("n1")
    assert box.claim("n2") is None
    box.now += CLAIM_MS + 1
    assert box.claim("n2") == first
    assert box.claim("n1") is None


def test_a_claim_holds_for_a_node_that_read_its_clock_before_it_was_made() -> None:
    """Four nodes ask at once, and one waits for the store with the time of its asking: it sent the notice again."""
    box = Box()
    box.write(1)
    box.claimed()
    box.now -= 5
    assert box.claim("n2") is None


def test_a_node_that_has_left_holds_nothing() -> None:
    box = Box()
    box.write(1)
    box.claimed()
    taken = box.machine.store.update(outbox.claim("ops", "n2", box.now, lambda node: node == "n1"))
    assert taken is not None


def test_a_failure_keeps_the_whole_channel_waiting_longer_each_time_up_to_half_an_hour() -> None:
    box = Box()
    box.write(2)
    pauses = []
    for _ in range(12):
        assert box.refuse(box.claimed()) is False
        assert box.claim() is None
        pauses.append(box.state().next_ms - box.now)
        box.now = box.state().next_ms
    assert box.count() == (2, 0)
    for number, pause in enumerate(pauses):
        plain = min(FIRST_PAUSE_MS * 2**number, LONGEST_PAUSE_MS)
        assert 0.8 * plain <= pause <= 1.2 * plain
    assert len({round(pause / FIRST_PAUSE_MS, 3) for pause in pauses[-4:]}) > 1, "with jitter"
    box.deliver(box.claimed())
    assert (box.state().tries, box.state().failing_since_ms, box.state().problem) == (0, None, "")


def test_a_notice_that_is_refused_again_and_again_makes_room_for_the_next() -> None:
    box = Box()
    box.write(2)
    first = box.claimed()
    for number in range(MOST_REFUSALS):
        assert box.refuse(box.claimed(), is_final=True) is (number == MOST_REFUSALS - 1)
        box.now = box.state().next_ms
    assert box.count() == (1, 1)
    assert box.claimed() != first
    assert box.events() == ["NotificationFailed"]


def test_a_notice_is_tried_for_three_days_and_then_given_up() -> None:
    box = Box()
    box.write(1)
    box.now += KEPT_MS - 1_000
    assert box.refuse(box.claimed()) is False
    box.now += LONGEST_PAUSE_MS
    assert box.refuse(box.claimed()) is True
    assert box.count() == (0, 1)


def test_what_waits_and_what_was_given_up_is_bounded_and_what_is_dropped_is_counted_and_told() -> None:
    box = Box()
    box.write(MOST_WAITING + 30)
    assert box.count() == (MOST_WAITING, 0)
    assert (box.state().dropped, box.events()) == (30, ["NotificationDropped"])
    for _ in range(MOST_UNDELIVERABLE + 10):
        box.refuse(box.claimed(), keep_ms=0)
        box.now = box.state().next_ms
    assert box.count() == (MOST_WAITING - MOST_UNDELIVERABLE - 10, MOST_UNDELIVERABLE)
    assert box.state().dropped == 40


def test_what_was_dropped_is_told_for_a_day_also_when_the_channel_answers_again() -> None:
    """With the first delivery after an outage nothing told any more that others were never sent."""
    box = Box()
    box.write(MOST_WAITING + 3)
    box.deliver(box.claimed())
    state = box.state()
    (told,) = of_channels([ChannelRow(state, MOST_WAITING - 1, 0)], box.now + 60_000)
    assert (told.code, told.words) == (
        TroubleCode.NOTICES_DROPPED, "too many waited for ops: 3 were dropped, the last 1m ago",
    )  # fmt: skip
    assert of_channels([ChannelRow(state, 0, 0)], box.now + 86_400_000) == []
    now = box.now
    box.machine.store.update(lambda tx: outbox.retry(Records(tx, now), "ops", "eve"))
    assert of_channels([ChannelRow(box.state(), 0, 0)], box.now) == [], "a person has seen to it"


def test_what_was_given_up_and_is_kept_no_longer_is_told_too() -> None:
    box = Box()
    box.write(MOST_WAITING)
    for _ in range(MOST_UNDELIVERABLE + 1):
        box.refuse(box.claimed(), keep_ms=0)
        box.now = box.state().next_ms
    codes = [trouble.code for trouble in of_channels([ChannelRow(box.state(), 0, 0)], box.now)]
    assert TroubleCode.NOTICES_DROPPED in codes


def test_a_channel_that_is_full_takes_nothing_from_another() -> None:
    box = Box()
    box.write(MOST_WAITING + 5)
    box.write(1, "chat")
    assert box.claim(channel="chat") is not None


def test_a_clock_that_was_set_back_holds_no_channel_up() -> None:
    box = Box()
    box.write(1)
    box.refuse(box.claimed())
    box.now -= 30 * 86_400_000
    assert box.claim() is not None


def test_a_person_can_send_again_or_drop_what_was_given_up() -> None:
    box = Box()
    box.write(3)
    box.refuse(box.claimed(), keep_ms=0)
    assert box.count() == (2, 1)
    store, now = box.machine.store, box.now
    assert store.update(lambda tx: outbox.retry(Records(tx, now), "ops", "eve")) == 3
    assert box.count() == (3, 0)
    assert box.claim() is not None, "at once"
    box.refuse(box.claimed(), keep_ms=0)
    assert store.update(lambda tx: outbox.drop(Records(tx, now), "ops", "eve", only_undeliverable=True)) == 1
    assert store.update(lambda tx: outbox.drop(Records(tx, now), "ops", "eve", only_undeliverable=False)) == 2
    assert box.count() == (0, 0)
    assert box.state().dropped == 3
    with pytest.raises(ChronexError, match="nothing was ever told to a channel 'opps'"):
        store.update(lambda tx: outbox.retry(Records(tx, now), "opps", "eve"))


def test_a_notice_dropped_while_it_is_sent_does_not_come_back() -> None:
    box = Box()
    box.write(1)
    notice = box.claimed()
    store, now = box.machine.store, box.now
    store.update(lambda tx: outbox.drop(Records(tx, now), "ops", "eve", only_undeliverable=False))
    box.refuse(notice)
    assert box.count() == (0, 0)
    assert replace(notice, tries=0) == notice
