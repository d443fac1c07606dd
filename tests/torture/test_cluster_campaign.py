"""Real nodes on a real database, hurt in every way there is: the driver of `chronex torture`, with a database to stop.

A sample runs with the suite. CHRONEX_TORTURE_ROUNDS sets how many rounds of each fault a long campaign has.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import chronex
from chronex.torture.campaign import FAULTS, Campaign, CampaignSettings, Fault
from chronex.torture.judgement import CampaignVerdict
from chronex.torture.tormented_node import TormentedNode
from chronex_store.postgres.pg_address import read_address
from tests.kit.postgres import WHY_MISSING, PostgresServer, begin_server, end_server, find_programs
from tests.kit.waits import until

ROUNDS = int(os.environ.get("CHRONEX_TORTURE_ROUNDS", "200"))
ROOT = Path(chronex.__file__).parent.parent


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """One that the campaign may stop."""
    if find_programs() is None:
        pytest.skip(WHY_MISSING)
    found = begin_server()
    yield found
    end_server(found)


def lived_through(server: PostgresServer, directory: Path, settings: CampaignSettings) -> CampaignVerdict:
    with Campaign(read_address(server.url()), directory, settings, print) as campaign:
        return campaign.run()


def test_a_sample_of_a_campaign_holds(postgres_server: PostgresServer, tmp_path: Path) -> None:
    """A node is killed, and one is cut off from its database."""
    settings = CampaignSettings(nodes=2, rounds=2, faults=("kill", "cut"), pace=10)
    verdict = lived_through(postgres_server, tmp_path, settings)
    assert verdict.findings == ()
    assert verdict.figures["rounds"] == {"kill": 1, "cut": 1}


@pytest.mark.torture
@pytest.mark.parametrize("fault", FAULTS)
def test_no_fault_of_nodes_loses_or_doubles_a_run(
    postgres_server: PostgresServer, tmp_path: Path, fault: str
) -> None:
    verdict = lived_through(postgres_server, tmp_path, CampaignSettings(rounds=ROUNDS, faults=(fault,)))
    print(verdict.figures)
    assert verdict.findings == ()


# -- the database -----------------------------------------------------------------------------------------------------


def stopped(server: PostgresServer) -> Fault:
    def act(campaign: Campaign, _victim: TormentedNode) -> None:
        server.stop("fast")
        campaign.pause(campaign.random.randrange(0, 4_000))
        server.start()

    return act


def killed(server: PostgresServer) -> Fault:
    """kill -9 of the server; what it had acknowledged is in its log of writes."""

    def act(campaign: Campaign, _victim: TormentedNode) -> None:
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
        kill_server(self.primary)
        self._ask(self.standby, "ALTER SYSTEM SET synchronous_standby_names = ''")
        self.standby._control("-w", "promote")
        old, self.primary = self.primary, self.standby
        campaign.turn_to(f"{self.primary.directory}/.s.PGSQL.{self.primary.port}")
        if old.directory != self.primary.directory:
            shutil.rmtree(old.directory / "data", ignore_errors=True)
        self.standby = self._copied(self.primary)

    def close(self) -> None:
        for server in (self.standby, self.primary):
            server.stop("immediate")
            shutil.rmtree(server.directory, ignore_errors=True)


def owner_of(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_uid, found.st_gid


@pytest.mark.torture
def test_a_database_that_is_stopped_and_killed_loses_and_doubles_nothing(
    server: PostgresServer, tmp_path: Path
) -> None:
    faults = {"database stopped": stopped(server), "database killed": killed(server)}
    settings = CampaignSettings(rounds=2 * ROUNDS, faults=tuple(faults), extra_faults=faults)
    verdict = lived_through(server, tmp_path, settings)
    print(verdict.figures)
    assert verdict.findings == ()


@pytest.mark.torture
def test_a_failover_to_a_synchronous_standby_loses_and_doubles_nothing(tmp_path: Path) -> None:
    if find_programs() is None:
        pytest.skip(WHY_MISSING)
    pair = Pair(begin_server())
    faults: dict[str, Fault] = {"failover": lambda campaign, _victim: pair.fail_over(campaign)}
    settings = CampaignSettings(rounds=ROUNDS, faults=tuple(faults), extra_faults=faults)
    try:
        verdict = lived_through(pair.primary, tmp_path, settings)
    finally:
        pair.close()
    print(verdict.figures)
    assert verdict.findings == ()


# -- two versions -----------------------------------------------------------------------------------------------------


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


@pytest.mark.torture
def test_two_versions_at_once_lose_and_double_nothing(postgres_server: PostgresServer, tmp_path: Path) -> None:
    faults = {
        "upgrade": upgraded(newer_tree(tmp_path / "newer")),
        **{name: FAULTS[name] for name in ("kill", "stop")},
    }
    settings = CampaignSettings(rounds=ROUNDS, faults=tuple(faults), extra_faults=faults)
    verdict = lived_through(postgres_server, tmp_path, settings)
    print(verdict.figures)
    assert verdict.findings == ()
