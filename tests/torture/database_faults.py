"""Faults that only somebody can make who owns the database, or has two versions of Chronex."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import chronex
from chronex.torture.campaign import Campaign
from chronex.torture.node_faults import Fault
from chronex.torture.tormented_node import TormentedNode
from tests.kit.postgres import PostgresServer, begin_server, end_server
from tests.kit.waits import until

ROOT = Path(chronex.__file__).parent.parent
# Room for a server and little more.
_SMALL = "160m"


def stopped(server: PostgresServer) -> Fault:
    def act(campaign: Campaign, _victim: TormentedNode) -> None:
        with campaign.outage():
            server.stop("fast")
            campaign.pause(campaign.random.randrange(0, 4_000))
            server.start()

    return act


def killed(server: PostgresServer) -> Fault:
    """kill -9 of the server; what it had acknowledged is in its log of writes."""

    def act(campaign: Campaign, _victim: TormentedNode) -> None:
        with campaign.outage():
            kill_server(server)
            campaign.pause(campaign.random.randrange(0, 2_000))
            start_again(server)

    return act


def kill_server(server: PostgresServer) -> None:
    pid = int((server.directory / "data" / "postmaster.pid").read_text().split()[0])
    children = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False).stdout.split()
    os.kill(pid, signal.SIGKILL)
    for child in children:
        until(lambda child=child: not Path(f"/proc/{child}").exists(), "the end of its processes")  # type: ignore[misc]


def start_again(server: PostgresServer) -> None:
    def begins() -> bool:
        try:
            server.start()
        except subprocess.CalledProcessError:
            return False
        return True

    until(begins, "the server")


class Pair:
    """A primary and a synchronous standby; after a failover the old primary becomes the standby of the new one."""

    def __init__(self, primary: PostgresServer) -> None:
        self.primary, self.number = primary, 0
        self.standby = self._copied(primary)

    def _copied(self, primary: PostgresServer) -> PostgresServer:
        self.number += 1
        directory = primary.directory.parent / f"{primary.directory.name.split('+')[0]}+{self.number}"
        directory.mkdir()
        shutil.chown(directory, *owner_of(primary.directory))
        made = PostgresServer(primary.programs, directory, primary.port)
        name = f"standby{self.number}"
        made._run(
            "pg_basebackup", "-h", str(primary.directory), "-p", str(primary.port), "-U", "chronex",
            "-D", str(directory / "data"), "-R", "-X", "stream", "-c", "fast", "--no-sync",
            "-d", f"dbname=postgres application_name={name}",
        )  # fmt: skip
        made.start()
        self._ask(primary, f"ALTER SYSTEM SET synchronous_standby_names = '{name}'", "SELECT pg_reload_conf()")
        self._until_synchronous(primary)
        return made

    def _until_synchronous(self, primary: PostgresServer) -> None:
        query = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
        until(lambda: self._ask(primary, query) == "1", "a synchronous standby")

    def _ask(self, server: PostgresServer, *statements: str) -> str:
        import psycopg

        with psycopg.connect(
            host=str(server.directory), port=server.port, user="chronex", dbname="postgres", autocommit=True
        ) as connection:
            found = ""
            for statement in statements:
                cursor = connection.execute(statement)
                found = str(cursor.fetchone()[0]) if cursor.description else ""  # type: ignore[index]
            return found

    def fail_over(self, campaign: Campaign) -> None:
        with campaign.outage():
            kill_server(self.primary)
            self._ask(self.standby, "ALTER SYSTEM SET synchronous_standby_names = ''")
            self.standby._control("-w", "promote")
            old, self.primary = self.primary, self.standby
            campaign.turn_to(f"{self.primary.directory}/.s.PGSQL.{self.primary.port}")
        if old.directory != self.primary.directory:
            shutil.rmtree(old.directory, ignore_errors=True)
        self.standby = self._copied(self.primary)

    def close(self) -> None:
        for server in (self.standby, self.primary):
            server.stop("immediate")
            shutil.rmtree(server.directory, ignore_errors=True)


def owner_of(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_uid, found.st_gid


class SmallServer:
    """A server on a disk of its own that can be filled up. For root on Linux."""

    def __init__(self) -> None:
        self.disk = Path(tempfile.mkdtemp(prefix="chronex-disk-"))
        self.disk.chmod(0o755)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_SMALL}", "tmpfs", str(self.disk)], check=True)
        # Small pieces of the log, so that the next one is soon needed and not had.
        self.server = begin_server(self.disk / "pg", "--wal-segsize=1")

    def fill(self) -> None:
        filler = self.disk / "filler"
        with filler.open("wb", buffering=0) as file:
            for size in (1 << 20, 1 << 12):
                try:
                    while True:
                        file.write(bytes(size))
                except OSError:
                    pass

    def empty(self) -> None:
        """The file is gone, and a server that gave up is started again."""
        (self.disk / "filler").unlink()
        if not self.server.is_running():
            start_again(self.server)

    def close(self) -> None:
        end_server(self.server)
        subprocess.run(["umount", "-l", str(self.disk)], check=False)
        self.disk.rmdir()


def filled(small: SmallServer) -> Fault:
    """Its disk is full for some seconds, whatever the server makes of that."""

    def act(campaign: Campaign, _victim: TormentedNode) -> None:
        with campaign.outage():
            small.fill()
            campaign.pause(campaign.random.randrange(1_000, 6_000))
            small.empty()

    return act


def newer_tree(directory: Path) -> Path:
    """A copy of the program that says to be of a newer version."""
    for name in ("chronex", "chronex_tui"):
        shutil.copytree(ROOT / name, directory / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "store" / "chronex_store", directory / "chronex_store")
    version = directory / "chronex" / "version.py"
    version.write_text(version.read_text().replace(chronex.__version__, "99.0.0"))
    return directory


def upgraded(tree: Path) -> Fault:
    """One node after the other leaves, and comes back with the other version."""

    def act(_campaign: Campaign, victim: TormentedNode) -> None:
        victim.leave()
        victim.variables = {} if victim.variables else {"PYTHONPATH": str(tree)}
        victim.start()

    return act
