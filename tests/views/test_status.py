"""One screen: what runs, what failed, what is late, and the card of the last outage."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from chronex.model.job import Job, Task
from chronex.model.policies import RecoveryPolicy, RecoveryStrategy
from chronex.storage.ports import Transaction
from chronex.storage.records import Reading, Records
from chronex.testing import HOUR, MINUTE, RandomOutcomes, SimulatedMachine
from chronex.views.status import StoreStatus, store_status
from chronex.views.troubles import store_troubles
from tests.kit.machine import START

TASK = (Task(name="main", run=("true",)),)
JOBS = [
    Job(id="last", schedule="0 * * * *", tasks=TASK),
    Job(id="none", schedule="30 * * * *", tasks=TASK, recovery=RecoveryPolicy(RecoveryStrategy.MARK_MISSED)),
]


def status(machine: SimulatedMachine, *, alive: bool = True) -> StoreStatus:
    return machine.store.view(lambda tx: store_status(Reading(tx), machine.now, lambda _process: alive))


def sleep(machine: SimulatedMachine, hours: int) -> None:
    machine.sleep(hours * HOUR)


def test_the_card_of_a_night_asleep() -> None:
    machine = SimulatedMachine(JOBS, outcome=RandomOutcomes(1, fail_share=0))
    machine.run_until(START + 2 * HOUR + 10 * MINUTE)
    sleep(machine, 8)
    machine.run_until(machine.now + HOUR // 4)
    card = status(machine).card
    assert card is not None
    assert (card.outage.kind, card.outage.from_ms, card.outage.until_ms) == (
        "asleep",
        START + 2 * HOUR + 10 * MINUTE,
        START + 10 * HOUR + 10 * MINUTE,
    )
    assert (card.occurrences, card.run, card.skipped) == (16, 1, 15)


def test_the_card_of_a_downtime() -> None:
    machine = SimulatedMachine(JOBS, outcome=RandomOutcomes(1, fail_share=0))
    machine.run_until(START + 2 * HOUR + 10 * MINUTE)
    machine.crash()
    machine.pass_time(3 * HOUR)
    machine.boot()
    machine.run_until(machine.now + HOUR // 4)
    card = status(machine).card
    assert card is not None
    assert (card.outage.kind, card.outage.until_ms) == ("down", START + 5 * HOUR + 10 * MINUTE)
    assert (card.occurrences, card.run, card.skipped) == (6, 1, 5)


def test_when_all_is_well_nothing_needs_attention() -> None:
    machine = SimulatedMachine(JOBS, outcome=RandomOutcomes(1, fail_share=0))
    machine.run_until(START + 3 * HOUR)
    found = status(machine)
    assert found.attention() == []
    assert [row.job.id for row in found.upcoming] == ["last", "none"] or found.running
    assert found.card is None


def test_what_needs_a_person_is_told_in_sentences() -> None:
    machine = SimulatedMachine(JOBS, outcome=RandomOutcomes(1, fail_share=1))
    machine.run_until(START + 3 * HOUR)

    def late(tx: Transaction) -> None:
        records = Records(tx, machine.now)
        job = records.job("none")
        assert job is not None
        records.put(job.progressed(late_ms=START))

    machine.store.update(late)
    sentences = status(machine, alive=False).attention()
    assert sentences[0].startswith("no scheduler runs")
    assert "none is late" in sentences
    assert any(sentence.startswith("last failed") for sentence in sentences)
    assert any("dead-letter queue" in sentence for sentence in sentences)


@pytest.mark.parametrize(
    ("sources", "command"),
    [
        (("/srv/a b/jobs.toml", "/srv/a b/jobs.toml"), "chronex run --config '/srv/a b/jobs.toml'"),
        (("/srv/jobs.toml", "chronex at"), "chronex run --config /srv/jobs.toml"),
        (("/srv/jobs.toml", "/srv/others.toml"), "chronex run"),
        (("", "program mine"), "chronex run"),
    ],
)
def test_the_command_that_starts_a_daemon_names_the_one_job_file(sources: tuple[str, str], command: str) -> None:
    """Typed elsewhere, it would apply the file that lies there, and forget the settings of this one."""
    machine = SimulatedMachine(JOBS)

    def of_sources(tx: Transaction) -> None:
        records = Records(tx, machine.now)
        for job, source in zip(records.jobs(), sources, strict=True):
            records.put(replace(job, source=source))

    machine.store.update(of_sources)
    assert status(machine, alive=False).attention()[0] == f"no scheduler runs: start one with {command}"
    found = machine.store.view(lambda tx: store_troubles(Reading(tx), machine.now, lambda _: False))
    assert found[0].hint == f"start one with {command}"


def test_an_empty_store_needs_nothing() -> None:
    assert status(SimulatedMachine(), alive=False).attention() == []
