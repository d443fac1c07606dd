"""Channels where machines share a store: each notice reaches a real server once and in order, whoever sends it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from threading import Event

import pytest

from chronex.channels.notice_message import Sender
from chronex.daemon.channel_sender import ChannelSender
from chronex.engine import outbox
from chronex.engine.commands import Actor, trigger
from chronex.engine.orders import AttemptEnd, Launch
from chronex.engine.shared_logs import cut_excerpt
from chronex.engine.update import apply_jobs
from chronex.model.channels import Channel, ChannelKind
from chronex.model.job import Job, Task
from chronex.model.policies import NotifyPolicy
from chronex.model.reasons import Reason, ReasonCode
from chronex.model.states import AttemptState
from chronex.run import LogDirectory, RunContext
from chronex.storage import scopes
from chronex.storage.ports import Transaction
from chronex.storage.records import Reading, Records
from chronex.torture.tormented_node import TormentedNode
from chronex.torture_settings import SCHEMA_PREFIX
from chronex_store.postgres.pg_address import read_address
from chronex_store.postgres.pg_store import PostgresStore
from tests.kit.postgres import PostgresServer
from tests.kit.racing import RacingNode
from tests.kit.servers import Behaviour, WebServer, web_server
from tests.kit.waits import DEADLINE_S, until

FAILED = AttemptEnd(AttemptState.FAILED, Reason(ReasonCode.EXIT_CODE, "1"), exit_code=1)


def job(name: str, server: WebServer, *channels: str) -> Job:
    made = tuple(Channel(name=one, kind=ChannelKind.WEBHOOK, url=server.url, template="json") for one in channels)
    task = Task(name="main", run=("false",))
    return Job(id=name, schedule="0 0 1 1 *", tasks=(task,), notify=NotifyPolicy(channels=made))


def told(server: WebServer) -> list[str]:
    return [json.loads(request.body)["headline"] for request in server.requests]


def waiting(store: PostgresStore, channel: str) -> int:
    return store.view(lambda tx: len(outbox.waiting(Reading(tx), channel)))


@pytest.fixture
def nodes(postgres_url: str) -> Iterator[list[RacingNode]]:
    with ExitStack() as stack:
        stores = [stack.enter_context(PostgresStore.open(postgres_url)) for _ in range(4)]
        found = [RacingNode(store, f"node-{number}", 20) for number, store in enumerate(stores)]
        for node in found:
            node.register(node.store.now())
        yield found


def fail(node: RacingNode, name: str, end: AttemptEnd = FAILED) -> None:
    """A run of the job fails on this node, in the scopes that its daemon would use."""
    store = node.store
    actor, now_ms = Actor("test", "cli", "test"), store.now()
    store.update(lambda tx: trigger(Records(tx, now_ms), name, actor), scope=scopes.of_jobs(name))
    now_ms = store.now()
    for order in node.engine.tick(now_ms, now_ms).orders:
        assert isinstance(order, Launch)
        ended = node.engine.ended(order.attempt, end, store.now())
        store.update(ended, use_reserve=True, scope=scopes.of_jobs(name))


def senders(nodes: list[RacingNode], directory: Path, host_id: str = "") -> list[ChannelSender]:
    context = RunContext.of_this_process(LogDirectory(directory / "logs"))
    fields = {name: getattr(context, name) for name in context.__dataclass_fields__}
    return [
        ChannelSender(
            node.store,
            RunContext(**{**fields, "clock": node.store.clock()}),
            Sender("host", node.name, host_id, store="shared"),
        )
        for node in nodes
    ]


def test_four_nodes_that_send_at_once_send_each_notice_once_and_in_order(
    nodes: list[RacingNode], tmp_path: Path
) -> None:
    async def send(some: list[ChannelSender]) -> None:
        await asyncio.gather(*(one.start_due() for one in some))
        await asyncio.gather(*(one.all_sent() for one in some))

    with web_server() as server:
        names = [f"job-{number}" for number in range(6)]
        apply_jobs(nodes[0].store, [job(name, server, "chat") for name in names], nodes[0].store.now())
        for number, name in enumerate(names):
            fail(nodes[number % len(nodes)], name)
        assert waiting(nodes[0].store, "chat") == 6
        some = senders(nodes, tmp_path)
        while waiting(nodes[0].store, "chat"):
            asyncio.run(asyncio.wait_for(send(some), 60))
    assert told(server) == [f"{name} failed" for name in names]


MANY = b"".join(b"line %d\n" % number for number in range(100))


def test_a_notice_has_the_last_lines_of_output_that_another_machine_shares(
    nodes: list[RacingNode], tmp_path: Path
) -> None:
    """The whole log is not here; what its node wrote into the store with the end of the attempt is."""
    shared = {
        "short": cut_excerpt(b"first line\nlast words\n", 64),
        "long": cut_excerpt(MANY, 66),  # its tail begins in the middle of a line
        "one-line": cut_excerpt(b"x" * 100, 64),
        "silent": None,
    }
    with web_server() as server:
        apply_jobs(nodes[0].store, [job(name, server, "chat") for name in shared], nodes[0].store.now())
        for name, excerpt in shared.items():
            fail(nodes[0], name, FAILED._replace(excerpt=excerpt))
        (sender,) = senders(nodes[1:2], tmp_path, host_id=nodes[1].name)

        async def send() -> None:
            await sender.start_due()
            await sender.all_sent()

        while waiting(nodes[0].store, "chat"):
            asyncio.run(asyncio.wait_for(send(), 60))
    messages = [json.loads(request.body) for request in server.requests]
    assert {one["job"]: tuple(one["output"]) for one in messages} == {
        "short": ("first line", "last words"),
        "long": tuple(f"line {number}" for number in range(94, 100)),
        "one-line": ("x" * 48,),
        "silent": (),
    }
    assert {one["output_on"] for one in messages} == {nodes[0].name}


def test_a_run_that_is_asked_for_fails_and_is_told_while_another_node_decides(nodes: list[RacingNode]) -> None:
    """Nothing of it needs the store to itself, for which it would have to wait until the other one has decided."""
    one, other = nodes[:2]
    begun, may_go = Event(), Event()

    def decide(tx: Transaction) -> None:
        begun.set()
        assert may_go.wait(DEADLINE_S)

    with web_server() as server, ThreadPoolExecutor(1) as pool:
        apply_jobs(one.store, [job("bad", server, "chat"), job("other", server)], one.store.now())
        deciding = pool.submit(other.store.update, decide, scope=scopes.of_jobs("other"))
        try:
            assert begun.wait(DEADLINE_S)
            fail(one, "bad")
        finally:
            may_go.set()
            deciding.result()
    assert waiting(one.store, "chat") == 1


# -- real daemons -----------------------------------------------------------------------------------------------------


@pytest.mark.torture
def test_what_a_killed_node_was_sending_is_sent_by_another_and_everything_arrives_once(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    """The server takes the first notice and does not answer; the node that sends is killed; the rest is in order."""
    schema = f"{SCHEMA_PREFIX}channels"
    address = read_address(postgres_server.url(schema))
    made = [TormentedNode(number, tmp_path, address, schema, pace=10) for number in range(4)]
    with (
        web_server(Behaviour(hangs=True), Behaviour()) as server,
        PostgresStore.open(postgres_server.url(schema)) as store,
    ):
        names = ["one", "two", "three"]
        apply_jobs(store, [job(name, server, "chat") for name in names], store.now())
        try:
            for node in made:
                node.start()
                until(partial(_is_there, store, node.name), "the node")
            _ask(store, "one")
            until(lambda: server.connections == 1, "a delivery that hangs")
            _sender(store, made).kill()
            for number, name in enumerate(names[1:], start=2):
                _ask(store, name)
                until(partial(_wait_at_least, store, number), "the notice")
            until(lambda: waiting(store, "chat") == 0, "that all are delivered")
        finally:
            for node in made:
                node.close()
    # The first one came and was never acknowledged: it is told again under the same id, by which a receiver drops it.
    assert told(server) == [f"{name} failed" for name in ["one", *names]]
    first, again, *others = [json.loads(request.body)["delivery"] for request in server.requests]
    assert first == again
    assert len({first, *others}) == 3


def _ask(store: PostgresStore, name: str) -> None:
    actor, now_ms = Actor("test", "cli", "test"), store.now()
    store.update(lambda tx: trigger(Records(tx, now_ms), name, actor), scope=scopes.of_jobs(name))


def _is_there(store: PostgresStore, name: str) -> bool:
    return name in [node.name for node in store.view(lambda tx: Reading(tx).nodes())]


def _wait_at_least(store: PostgresStore, number: int) -> bool:
    return waiting(store, "chat") >= number


def _sender(store: PostgresStore, nodes: list[TormentedNode]) -> TormentedNode:
    state = store.view(lambda tx: outbox.state_of(Reading(tx), "chat"))
    assert state is not None
    owner = store.view(lambda tx: Reading(tx).node(state.owner))
    assert owner is not None
    return next(node for node in nodes if node.name == owner.name)
