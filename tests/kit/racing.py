"""Engines in processes of their own that race for the work of one shared store, instant by instant.

The parent tells each instant to all of them; each works until nothing is due any more, with real updates and scripted
commands, and says what it did. Run as `python -m tests.kit.racing URL NAME SLOTS`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from random import Random
from typing import Any

from chronex.engine.engine import AttemptStart, Engine
from chronex.engine.membership import LEASE_MS, STEADY_MS
from chronex.engine.orders import AttemptEnd, Launch, Order
from chronex.model.event import Event
from chronex.model.occurrence import ProcessIdentity
from chronex.model.reasons import Reason, ReasonCode
from chronex.model.records import Node
from chronex.model.states import AttemptState
from chronex.storage import journal, scopes
from chronex.storage.ports import Transaction
from chronex.storage.records import Records
from chronex_store.postgres.pg_store import PostgresStore
from tests.kit.forked import PythonProcess
from tests.kit.waits import DEADLINE_S

_PAUSE_S = 0.005
_LOOKS = 5


@dataclass
class RacingNode:
    """One node. Every seventh attempt fails, so that there are retries."""

    store: PostgresStore
    name: str
    slots: int

    def __post_init__(self) -> None:
        self.engine = Engine(self.store, self.name, self.slots, Random(self.name))
        self.engine.epoch = 0
        self.launched: list[str] = []
        self.longest_s = 0.0

    def register(self, now_ms: int) -> None:
        process = ProcessIdentity(os.getpid(), self.name, 1)
        node = Node(
            id=self.name, process=process, host=self.name, host_id=self.name, places=self.slots, lease_ms=LEASE_MS,
            started_ms=now_ms, seen_ms=now_ms, steady_since_ms=now_ms - STEADY_MS, awake_since_ms=now_ms,
        )  # fmt: skip

        def write(tx: Transaction) -> None:
            records = Records(tx, now_ms)
            if records.node(self.name) is None:
                journal.append(tx, Event(name="SchedulerStarted", at_ms=now_ms, data={"node": self.name}))
            records.put(node)

        self.store.update(write, scope=scopes.of_node(self.name))

    def work(self, now_ms: int) -> None:
        """Until nothing is due that this node could take at this time."""
        idle = 0
        while idle < _LOOKS:
            began = time.perf_counter()
            tick = self.engine.tick(now_ms, now_ms - 60_000)
            self.longest_s = max(self.longest_s, time.perf_counter() - began)
            self.carry_out(tick.orders, now_ms)
            if tick.orders or tick.has_more:
                idle = 0
                continue
            if tick.next_ms is None or tick.next_ms > now_ms + scopes.HELD_ELSEWHERE_MS:
                return
            idle += 1  # another node holds it, or the pool is full and it comes later
            time.sleep(_PAUSE_S)

    def carry_out(self, orders: Iterable[Order], now_ms: int) -> None:
        launches = [order for order in orders if isinstance(order, Launch)]
        if not launches:
            return
        starts = [self.start_of(launch, now_ms) for launch in launches]
        jobs = scopes.of_jobs(*(launch.attempt.job for launch in launches))
        refused = self.store.update(self.engine.all_started(starts), use_reserve=True, scope=jobs)
        assert not refused, "nobody takes a claim away here"
        for launch in launches:
            self.launched.append(launch.attempt.id)
            update = self.engine.ended(launch.attempt, self._end(), now_ms)
            scope = scopes.of_jobs(launch.attempt.job)
            self.carry_out(self.store.update(update, use_reserve=True, scope=scope), now_ms)

    def start_of(self, launch: Launch, now_ms: int) -> AttemptStart:
        return AttemptStart(launch.attempt, ProcessIdentity(os.getpid(), self.name, 1), "log", now_ms)

    def _end(self) -> AttemptEnd:
        if len(self.launched) % 7 == 0:
            return AttemptEnd(AttemptState.FAILED, Reason(ReasonCode.EXIT_CODE, "1"), exit_code=1)
        return AttemptEnd(AttemptState.SUCCESS, exit_code=0)


def main(url: str, name: str, slots: str) -> None:
    with PostgresStore.open(url, create=False) as store:
        node = RacingNode(store, name, int(slots))
        for line in sys.stdin:
            now_ms = int(line)
            node.register(now_ms)
            print(json.dumps("ready"), flush=True)
            sys.stdin.readline()
            before = len(node.launched)
            node.work(now_ms)
            told = {"launched": node.launched[before:], "run_again": store.run_again, "longest_s": node.longest_s}
            print(json.dumps(told), flush=True)


class Racers:
    """The processes. `at` gives all of them one instant, and returns what each has launched."""

    def __init__(self, url: str, count: int, slots: int) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        command = ["-m", "tests.kit.racing", url]
        self._processes = [
            PythonProcess(
                [*command, f"node-{number}", str(slots)],
                env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
            )
            for number in range(count)
        ]  # fmt: skip
        self.run_again = 0

    def at(self, now_ms: int) -> list[list[str]]:
        self._tell(str(now_ms))
        assert self._heard() == ["ready"] * len(self._processes)
        self._tell("go")
        told = self._heard()
        self.run_again = sum(one["run_again"] for one in told)
        return [one["launched"] for one in told]

    def close(self) -> None:
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.close()
        for process in self._processes:
            with process:
                assert process.wait(timeout=DEADLINE_S) == 0

    def _tell(self, line: str) -> None:
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write(line + "\n")
            process.stdin.flush()

    def _heard(self) -> list[Any]:
        lines = []
        for process in self._processes:
            assert process.stdout is not None
            lines.append(json.loads(process.stdout.readline()))
        return lines


class RacingThreads:
    """The same in one process, each node with a store of its own: cheaper, and the locks are the same."""

    def __init__(self, url: str, count: int, slots: int) -> None:
        self._nodes = [RacingNode(PostgresStore.open(url), f"node-{number}", slots) for number in range(count)]
        self._pool = ThreadPoolExecutor(count)

    @property
    def run_again(self) -> int:
        return sum(node.store.run_again for node in self._nodes)

    def at(self, now_ms: int) -> list[list[str]]:
        for node in self._nodes:
            node.register(now_ms)
        return list(self._pool.map(lambda node: self._at(node, now_ms), self._nodes))

    def _at(self, node: RacingNode, now_ms: int) -> list[str]:
        before = len(node.launched)
        node.work(now_ms)
        return node.launched[before:]

    def close(self) -> None:
        self._pool.shutdown()
        for node in self._nodes:
            node.store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
