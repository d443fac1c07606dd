"""Real nodes on a real database, hurt in every way there is: the driver of `chronex torture`, with a database to stop.

A sample runs with the suite. CHRONEX_TORTURE_ROUNDS sets how many rounds of each fault a long campaign has.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from chronex.torture.campaign import CampaignSettings
from chronex.torture.clusters import run_clusters
from chronex.torture.judgement import CampaignVerdict
from chronex.torture.node_faults import FAULTS, Fault
from chronex.torture.tormented_node import why_no_networks
from chronex_store.postgres.pg_address import read_address
from tests.kit.postgres import WHY_MISSING, PostgresServer, begin_server, end_server, find_programs
from tests.torture.database_faults import Pair, SmallServer, filled, killed, newer_tree, stopped, upgraded

ROUNDS = int(os.environ.get("CHRONEX_TORTURE_ROUNDS", "200"))
# Rounds of one fault are shared by so many clusters, where they all may have one database.
CLUSTERS = int(os.environ.get("CHRONEX_TORTURE_CLUSTERS", "4"))


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """One that the campaign may stop."""
    if find_programs() is None:
        pytest.skip(WHY_MISSING)
    found = begin_server()
    yield found
    end_server(found)


def lived_through(
    server: PostgresServer, directory: Path, settings: CampaignSettings, clusters: int = 1
) -> CampaignVerdict:
    address = read_address(server.url())
    return run_clusters(lambda _number: address, directory, settings, min(clusters, settings.rounds), print)


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
    if fault == "unplug" and (why := why_no_networks()):
        pytest.skip(f"NOT TRIED: {why}")
    verdict = lived_through(postgres_server, tmp_path, CampaignSettings(rounds=ROUNDS, faults=(fault,)), CLUSTERS)
    print(verdict.figures)
    assert verdict.findings == ()


# -- the database -----------------------------------------------------------------------------------------------------


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


@pytest.mark.torture
def test_a_full_disk_of_the_server_loses_and_doubles_nothing(tmp_path: Path) -> None:
    if find_programs() is None or os.geteuid() != 0:
        pytest.skip(f"NOT TRIED: only root mounts a small disk, or {WHY_MISSING}")
    small = SmallServer()
    faults = {"full": filled(small)}
    settings = CampaignSettings(rounds=ROUNDS, faults=tuple(faults), extra_faults=faults)
    try:
        verdict = lived_through(small.server, tmp_path, settings)
    finally:
        small.close()
    print(verdict.figures)
    assert verdict.findings == ()


# -- two versions -----------------------------------------------------------------------------------------------------


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
