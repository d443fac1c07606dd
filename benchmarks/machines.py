"""Several machines on one PostgreSQL: what is due at once, how fairly it is shared, and what idle nodes ask for.

Nodes are processes of their own on this machine, so four of them and the server share its cores.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.measure import FULL, Row, Size
from chronex.engine.commands import Actor, trigger
from chronex.engine.engine import Engine
from chronex.engine.update import apply_jobs
from chronex.model.job import Job, Task
from chronex.model.occurrence import Occurrence, ProcessIdentity
from chronex.model.records import Node
from chronex.model.states import is_final
from chronex.storage.ports import ReadTransaction, Store
from chronex.storage.records import Reading, Records
from chronex.storage.scopes import of_jobs
from chronex_store import LmdbStore
from chronex_store.postgres.pg_address import read_address
from chronex_store.postgres.pg_store import PostgresStore
from tests.kit.postgres import WHY_MISSING, PostgresServer, begin_server, end_server, find_programs
from tests.kit.relay import Relay

TOPIC = "machines"
AT = 1_798_761_600_000
NETWORK_S = 0.000_35  # one way of a network of a data centre
_IDLE_S = 20
_ASKED = "asked"
_BETWEEN_S = (
    0.3  # each is a command of its own, which tells the others at once; one process tells it five times a second
)


def notes() -> list[str]:
    if find_programs() is None:
        return [f"Skipped: {WHY_MISSING}."]
    return [
        "Due at once: planned, claimed and handed out, each durably, by nodes in processes of their own.",
        "The server does not sync to its disk here; nodes, server and this program share the cores of this machine.",
        "0.7 ms: a relay between the node and the server takes so long for both ways together.",
    ]


def run(size: Size = FULL) -> Iterator[Row]:
    if find_programs() is None:
        return
    count, seconds = (10_000, _IDLE_S) if size is FULL else (60, 1)
    server = begin_server()
    try:
        yield from _beside_lmdb(server, count // 5)
        yield from _due_at_once(server, count)
        yield from _idle(server, seconds, nodes=4 if size is FULL else 1)
    finally:
        end_server(server)


def _jobs(count: int) -> list[Job]:
    return [
        Job(id=f"job-{number}", schedule="0 * * * *", tasks=(Task(name="main", run="true"),))
        for number in range(count)
    ]


def _handed_out(engine: Engine) -> tuple[int, float, float]:
    """How many; how many seconds from the first to the last one; how long the slowest tick took."""
    count, slowest, empty = 0, 0.0, 0
    began = ended = time.perf_counter()
    while empty < 3:
        before = time.perf_counter()
        tick = engine.tick(AT, AT - 5000)
        if tick.orders:
            count, ended, empty = count + len(tick.orders), time.perf_counter(), 0
            slowest = max(slowest, ended - before)
        elif not tick.has_more:
            empty += 1  # what is due may be held by others, who will have decided it
            time.sleep(0.01)
    return count, ended - began, slowest


def _engine(store: Store, name: str, slots: int) -> Engine:
    node = Node(id=name, process=ProcessIdentity(1, name, 1), host=name, host_id=name, lease_ms=15_000, seen_ms=AT)
    store.update(lambda tx: Records(tx, AT).put(node))
    engine = Engine(store, name, slots)
    engine.epoch = 0
    return engine


# -- one node ------------------------------------------------------------------------------------------------------


def _beside_lmdb(server: PostgresServer, count: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(dir=_without_disk()) as place, LmdbStore.open(Path(place) / "store") as store:
        apply_jobs(store, _jobs(count), AT - 1000)
        done, took, _ = _handed_out(_engine(store, "node", count))
        assert done == count
        lmdb = done / took
    with Relay(server, NETWORK_S) as relay:
        for where, url, least in (("socket", server.url("near"), 0.35), ("0.7 ms", relay.url("far"), 0.3)):
            with PostgresStore.open(url) as shared:
                apply_jobs(shared, _jobs(count), AT - 1000)
                engine = _engine(shared, "node", count)
                before = shared.round_trips
                done, took, _ = _handed_out(engine)
                assert done == count
                rate, ticks = done / took, -(-count // 100) + 3
                what = f"{count:,} due, one node, {where}: over LMDB"
                yield Row(TOPIC, what, rate / lmdb, "×", at_least=least, remark=f"{rate:.0f}/s and {lmdb:.0f}/s")
                if where == "socket":
                    trips = (shared.round_trips - before) / ticks
                    yield Row(TOPIC, "a tick of 100: round trips", trips, "", at_most=5)


def _without_disk() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


# -- several -------------------------------------------------------------------------------------------------------


def _due_at_once(server: PostgresServer, count: int) -> Iterator[Row]:
    alone = _race(server, "alone", count, nodes=1)
    together = _race(server, "together", count, nodes=4)
    one, four = _rate(alone), _rate(together)
    what = f"{count:,} due, 4 nodes"
    yield Row(TOPIC, f"{what}: over one node", four / one, "×", at_least=1.5, remark=f"{four:.0f}/s and {one:.0f}/s")
    slowest = max(found["slowest_s"] for found in together)
    yield Row(TOPIC, f"{what}: slowest transaction", slowest, " s", at_most=0.5)
    shares = [found["count"] * len(together) / count for found in together]
    told = ", ".join(f"{share:.2f}" for share in shares)
    yield Row(TOPIC, f"{what}: least share", min(shares), "", at_least=0.7, remark=told)
    yield Row(TOPIC, f"{what}: greatest share", max(shares), "", at_most=1.4)


def _rate(found: list[dict[str, Any]]) -> float:
    return float(sum(one["count"] for one in found) / max(one["took_s"] for one in found))


def _race(server: PostgresServer, schema: str, count: int, nodes: int) -> list[dict[str, Any]]:
    url = server.url(schema)
    with PostgresStore.open(url) as store:
        apply_jobs(store, _jobs(count), AT - 1000)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    racers = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.machines", url, f"node-{number}", str(count)],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for number in range(nodes)
    ]  # fmt: skip
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    answers = []
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    for racer in racers:
        with racer:
            assert racer.stdout is not None
            answers.append(json.loads(racer.stdout.read()))
    assert sum(one["count"] for one in answers) == count, "each was handed out once"
    return answers


def main(url: str, name: str, slots: str) -> None:
    with PostgresStore.open(url, create=False) as store:
        engine = _engine(store, name, int(slots))
        print("ready", flush=True)
        sys.stdin.readline()
        count, took, slowest = _handed_out(engine)
        print(json.dumps({"count": count, "took_s": took, "slowest_s": slowest}), flush=True)


# -- at rest -------------------------------------------------------------------------------------------------------


def _idle(server: PostgresServer, seconds: int, nodes: int) -> Iterator[Row]:
    # A database of its own: the server cleans up after the ten thousand in the other one, and would be counted.
    with psycopg.connect(autocommit=True, **_parameters(server.url())) as connection:
        connection.execute("CREATE DATABASE idle")
    url = server.url(database="idle")
    with PostgresStore.open(url) as store, tempfile.TemporaryDirectory() as place:
        asked = Job(id=_ASKED, schedule="0 0 1 1 *", tasks=(Task(name="main", run="true"),))
        apply_jobs(store, [*_jobs(20), asked], store.now())
        daemons = [
            subprocess.Popen(
                [sys.executable, "-m", "chronex", "run", "--headless", "--store", url],
                env={**os.environ, "CHRONEX_STATE_DIR": f"{place}/{number}", "CHRONEX_NODE": f"node-{number}"},
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=place,
            )
            for number in range(nodes)
        ]  # fmt: skip
        try:
            time.sleep(3 + 2 * nodes)
            before = _transactions(url)
            time.sleep(seconds)
            rate = (_transactions(url) - before - 1) / seconds
            lags = sorted(_asked_to_started(store) for _ in range(30 if nodes > 1 else 2))
        finally:
            for daemon in daemons:
                daemon.terminate()
            for daemon in daemons:
                daemon.wait(timeout=60)
    yield Row(TOPIC, f"{nodes} idle nodes: transactions a second", rate / nodes, " each", at_most=1.5)
    what = f"asked for here, started by one of {nodes} nodes"
    yield Row(TOPIC, f"{what}: median", lags[len(lags) // 2], " ms", at_most=25)
    yield Row(TOPIC, f"{what}: 95 of 100 within", lags[len(lags) * 95 // 100], " ms", at_most=100)


def _asked_to_started(store: Store) -> int:
    """Milliseconds by the clock of the database, from before it is asked for until its start is on record."""
    time.sleep(_BETWEEN_S)
    now_ms = store.now()
    found = store.update(
        lambda tx: trigger(Records(tx, now_ms), _ASKED, Actor("bench", "cli", "bench")), scope=of_jobs(_ASKED)
    ).occurrence
    while True:
        seen = store.view(lambda tx: Reading(tx).attempts(_ASKED, found.nominal_ms))
        is_over = store.view(lambda tx: is_final(_known(tx, found).state))
        if is_over and seen and seen[0].started_ms is not None:
            return seen[0].started_ms - now_ms
        time.sleep(0.02)


def _known(tx: ReadTransaction, found: Occurrence) -> Occurrence:
    return Reading(tx).occurrence(found.job, found.nominal_ms) or found


def _parameters(url: str) -> dict[str, Any]:
    return dict(read_address(url).parameters)


def _transactions(url: str) -> int:
    with psycopg.connect(autocommit=True, **_parameters(url)) as connection:
        connection.execute("SELECT pg_stat_clear_snapshot()")
        found = connection.execute(
            "SELECT sum(xact_commit + xact_rollback) FROM pg_stat_database WHERE datname = current_database()"
        ).fetchone()
        assert found is not None
        return int(found[0])


if __name__ == "__main__":
    main(*sys.argv[1:])
