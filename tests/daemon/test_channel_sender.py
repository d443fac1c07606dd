"""Channels end to end: what a simulated week writes reaches real servers once and in order, whatever they do."""

from __future__ import annotations

import asyncio
import json
import shlex
import threading
from email import message_from_bytes
from pathlib import Path

import pytest
from msgspec.structs import replace

from chronex.channels.delivery import on_thread
from chronex.channels.notice_message import Sender
from chronex.daemon import channel_sender
from chronex.daemon.channel_sender import ChannelSender
from chronex.daemon.notify import Notifier
from chronex.engine import outbox
from chronex.engine.update import apply_jobs
from chronex.failpoints import POINTS
from chronex.jobfile.notify_table import SmtpSettings
from chronex.model.channels import Channel, ChannelKind
from chronex.model.job import Job, Task
from chronex.model.policies import NotifyPolicy
from chronex.run import LogDirectory, RunContext
from chronex.storage.records import Reading, Records
from chronex.testing import HOUR, MINUTE, RandomOutcomes, SimulatedMachine
from tests.kit.servers import Behaviour, WebServer, http_answer, mail_server, refusing_port, web_server
from tests.kit.waits import DEADLINE_S

TASK = (Task(name="main", run=("true",)),)


def hook(url: str, name: str = "chat") -> Channel:
    return Channel(name=name, kind=ChannelKind.WEBHOOK, url=url, template="json")


def machine_with(*channels: Channel, **changes: object) -> SimulatedMachine:
    job = Job(
        id="j", schedule="0 * * * *", tasks=TASK, timezone="Europe/Berlin", notify=NotifyPolicy(channels=channels)
    )
    return SimulatedMachine([replace(job, **changes)], outcome=RandomOutcomes(1))


class Sending:
    """The sender of one node, driven step by step."""

    def __init__(
        self, machine: SimulatedMachine, directory: Path, node: str = "n1", smtp: SmtpSettings | None = None
    ) -> None:
        found = RunContext.of_this_process(LogDirectory(directory / "logs"))
        fields = {name: getattr(found, name) for name in found.__dataclass_fields__}
        self.context = RunContext(**{**fields, "clock": machine.clock})
        self.machine = machine
        self.sender = ChannelSender(machine.store, self.context, Sender("db1", node, store="/srv/store"), smtp)

    def send(self) -> None:
        async def once() -> None:
            await Notifier(self.machine.store, self.context, channels=self.sender).do()
            await self.sender.all_sent()

        asyncio.run(asyncio.wait_for(once(), DEADLINE_S))

    def waiting(self, channel: str = "chat") -> list[str]:
        return [one.kind for one in self.machine.store.view(lambda tx: outbox.waiting(Reading(tx), channel))]


def failing(machine: SimulatedMachine, share: float, hours: int) -> None:
    machine.outcome = RandomOutcomes(1, fail_share=share)
    machine.run_until(machine.now + hours * HOUR)


def headlines(server: WebServer) -> list[str]:
    return [json.loads(request.body)["headline"] for request in server.requests]


def test_a_failure_and_the_recovery_arrive_in_order_with_all_that_a_person_needs(tmp_path: Path) -> None:
    with web_server() as server:
        machine = machine_with(hook(server.url))
        failing(machine, 1.0, 2)
        failing(machine, 0.0, 2)
        sending = Sending(machine, tmp_path)
        sending.send()
    assert headlines(server) == ["j failed", "j is well again"]
    told = json.loads(server.requests[0].body)
    assert told["instant"] == "Fri 2027-01-01 02:00:00 +0100 (Europe/Berlin)"
    assert (told["host"], told["reason"], told["failures_in_a_row"]) == ("db1", "main: exit code 1", 1)
    assert told["why"] == f"chronex why j {told['occurrence']} --store /srv/store"
    assert shlex.split(told["replay"])[:3] == ["chronex", "replay", told["occurrence"]]
    assert sending.waiting() == []


@pytest.mark.parametrize(
    "bad",
    [
        Behaviour(http_answer(500)),
        Behaviour(http_answer(404)),
        Behaviour(breaks_off=True),
        Behaviour(b"garbage\r\n"),
    ],
)
def test_a_server_that_comes_back_gets_everything_in_order(tmp_path: Path, bad: Behaviour) -> None:
    with web_server(bad, bad, bad, Behaviour()) as server:
        machine = machine_with(hook(server.url))
        failing(machine, 1.0, 2)
        failing(machine, 0.0, 1)
        sending = Sending(machine, tmp_path)
        for _ in range(4):
            sending.send()
            sending.send()  # not before its time
            machine.pass_time(5 * MINUTE)
        sending.send()
        assert sending.waiting() == []
    taken = [request for number, request in enumerate(server.requests) if number >= 3]
    assert [json.loads(one.body)["headline"] for one in taken] == ["j failed", "j is well again"]
    first = {request.headers["x-chronex-delivery"] for request in server.requests[:4]}
    assert len(first) == 1, "every try of one notice has the same delivery"


OPS = Channel(name="ops", kind=ChannelKind.MAIL, to=("ops@example.com",))


@pytest.mark.parametrize(
    ("replies", "copies"),
    [
        ({"greeting": b"421 not now"}, 1),
        ({"mail": b"451 later"}, 1),
        ({"rcpt": b"450 later"}, 1),
        ({"data": b"451 later"}, 1),
        ({"taken": b"451 later"}, 1),
        ({"taken": b""}, 2),
    ],
    ids=["greeting", "sender", "address", "content", "end", "dies with the mail"],
)
def test_a_mail_server_that_comes_back_gets_every_mail_in_order(
    tmp_path: Path, replies: dict[str, bytes], copies: int
) -> None:
    """One that dies when it has the mail and before it has said so gets it twice, under one id, so that it can tell."""
    with mail_server(replies=dict(replies)) as server:
        machine = machine_with(OPS)
        failing(machine, 1.0, 2)
        failing(machine, 0.0, 1)
        sending = Sending(machine, tmp_path, smtp=SmtpSettings("127.0.0.1", server.port))
        sending.send()
        assert sending.waiting("ops") == ["failing", "recovered"]
        server.replies.clear()
        machine.pass_time(5 * MINUTE)
        sending.send()
        assert sending.waiting("ops") == []
    mails = [message_from_bytes(content) for _, _, content in server.mails]
    subjects = [str(mail["Subject"]).partition("] ")[2] for mail in mails]
    assert subjects == ["j failed"] * copies + ["j is well again"]
    assert len({mail["Message-ID"] for mail in mails}) == 2


def test_a_hanging_server_holds_up_neither_the_schedule_nor_another_channel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the order of events: runs are decided, and the other channel served, before the hanging one is given up."""
    monkeypatch.setattr(channel_sender, "LONGEST_S", 1.0)
    with web_server(Behaviour(hangs=True)) as bad, web_server() as good:
        machine = machine_with(hook(bad.url, "bad"), hook(good.url, "good"))
        failing(machine, 1.0, 2)
        sending = Sending(machine, tmp_path)
        order: list[str] = []

        async def scenario() -> None:
            await sending.sender.start_due()
            busy = dict(sending.sender._busy)
            await asyncio.wait([busy["good"]])
            order.append("good delivered")
            machine.run_until(machine.now + 3 * HOUR)
            order.append("three more hours decided")
            assert not busy["bad"].done()
            await sending.sender.start_due()
            assert sending.sender._busy.keys() == {"bad"}, "one delivery at a time for a channel"
            await sending.sender.all_sent()
            order.append("bad given up for now")

        asyncio.run(asyncio.wait_for(scenario(), DEADLINE_S))
        assert order == ["good delivered", "three more hours decided", "bad given up for now"]
        assert sending.waiting("bad") == ["failing"]
        assert sending.waiting("good") == []


def test_a_channel_has_its_turn_though_those_before_it_always_have_something_new(tmp_path: Path) -> None:
    """They were served by their names: of twenty, fifteen were not tried once while the first ones had a message a second."""
    with web_server() as server:
        names = "abcdefghij"
        machine = machine_with(*(replace(hook(server.url, name), on=("success",)) for name in names))
        sending = Sending(machine, tmp_path)
        for _hour in range(5):
            failing(machine, 0.0, 1)
            sending.send()
    assert {json.loads(request.body)["channel"] for request in server.requests} == set(names)


def test_at_most_four_channels_are_served_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_sender, "LONGEST_S", 0.3)
    with web_server(Behaviour(hangs=True)) as bad:
        machine = machine_with(*(hook(bad.url, f"c{number}") for number in range(9)))
        failing(machine, 1.0, 2)
        sending = Sending(machine, tmp_path)

        async def scenario() -> None:
            await sending.sender.start_due()
            await sending.sender.start_due()
            assert len(sending.sender._busy) == 4
            await sending.sender.all_sent()
            await sending.sender.start_due()
            assert len(sending.sender._busy) == 4, "the others have their turn"
            await sending.sender.stop()

        asyncio.run(asyncio.wait_for(scenario(), DEADLINE_S))


def test_a_daemon_that_dies_between_delivery_and_record_delivers_again_under_the_same_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class DiedError(BaseException):
        pass

    def die(point: str) -> None:
        assert point in POINTS
        raise DiedError

    with web_server() as server:
        machine = machine_with(hook(server.url))
        failing(machine, 1.0, 2)
        with monkeypatch.context() as patched:
            patched.setattr(channel_sender, "fail_point", die)
            before = Sending(machine, tmp_path, "n1")
            before.send()
            assert before.waiting() == ["failing"], "nothing was recorded"
        after = Sending(machine, tmp_path, "n2")
        after.send()
        assert len(server.requests) in (1, 2), "the claim of a node that is not on record holds nothing up"
        machine.pass_time(2 * MINUTE)
        after.send()
        assert after.waiting() == []
    deliveries = [request.headers["x-chronex-delivery"] for request in server.requests]
    assert len(deliveries) == 2
    assert len(set(deliveries)) == 1


def test_a_wrong_address_that_is_put_right_reaches_what_waits(tmp_path: Path) -> None:
    with web_server() as server:
        machine = machine_with(hook(f"http://127.0.0.1:{refusing_port()}/"))
        failing(machine, 1.0, 2)
        sending = Sending(machine, tmp_path)
        sending.send()
        assert sending.waiting() == ["failing"]
        job = machine.store.view(lambda tx: Reading(tx).job("j"))
        assert job is not None
        apply_jobs(machine.store, [replace(job, notify=NotifyPolicy(channels=(hook(server.url),)))], machine.now)
        machine.pass_time(MINUTE)
        sending.send()
    assert headlines(server) == ["j failed"]


def test_a_notice_of_a_job_that_is_gone_is_still_delivered(tmp_path: Path) -> None:
    with web_server() as server:
        machine = machine_with(hook(server.url))
        failing(machine, 1.0, 2)
        apply_jobs(machine.store, [], machine.now)
        Sending(machine, tmp_path).send()
    assert headlines(server) == ["j failed"]


def test_a_check_that_is_told_of_a_start_hears_of_no_end(tmp_path: Path) -> None:
    """The run may have ended by the time that it is told: its exit code stood beside the words that it has started."""
    with web_server() as server:
        machine = machine_with(Channel(name="watch", kind=ChannelKind.HEALTHCHECKS, url=f"{server.url}/ping"))
        failing(machine, 1.0, 2)
        Sending(machine, tmp_path).send()
    pages = [request.body.decode() for request in server.requests]
    assert [page.splitlines()[0] for page in pages] == ["j has started on db1", "j failed on db1"]
    assert ["exit code" in page for page in pages] == [False, True]


def test_a_mail_has_the_last_lines_of_the_output(tmp_path: Path) -> None:
    channel = Channel(name="ops", kind=ChannelKind.MAIL, to=("ops@example.com",))
    with mail_server() as server:
        machine = machine_with(channel)
        failing(machine, 1.0, 2)
        sending = Sending(machine, tmp_path, smtp=SmtpSettings("127.0.0.1", server.port))
        (notice,) = machine.store.view(lambda tx: outbox.waiting(Reading(tx), "ops"))
        (attempt,) = machine.store.view(lambda tx: Reading(tx).attempts("j", notice.nominal_ms or 0))
        name, descriptor = sending.context.logs.create(attempt.id)
        with open(descriptor, "wb") as file:
            file.write(b"first line\nlast words\n")
        machine.store.update(lambda tx: Records(tx, machine.now).put(replace(attempt, log_path=name)))
        sending.send()
    ((_, _, mail),) = server.mails
    assert b"The last 2 lines of output:" in mail
    assert b"last words" in mail


def test_a_thread_that_never_ends_is_left_behind() -> None:
    """A daemon that stops does not wait for it: the thread is none that Python waits for."""
    started = threading.Event()

    def hang() -> None:
        started.set()
        threading.Event().wait()

    async def scenario() -> None:
        task = asyncio.ensure_future(on_thread(hang))
        await asyncio.to_thread(started.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    assert all(thread.daemon for thread in threading.enumerate() if thread.name == "delivery")
