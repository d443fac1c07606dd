"""A task of a declarative scheduler is shown and found by the name that its program gave it."""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random

import pytest

from chronex.cli import main
from chronex.declarative.persistence import resolve_tasks
from chronex.declarative.registrations import TaskDefinition
from chronex.engine.engine import Engine
from chronex.engine.orders import AttemptEnd, Launch
from chronex.model.job import Job, Task, task_job_id
from chronex.model.occurrence import ProcessIdentity
from chronex.model.records import Node
from chronex.storage.records import Records
from chronex_store import LmdbStore

NOW = 1_798_761_600_000  # 2027-01-01T00:00:00Z
NAME = "daily report"
ID = task_job_id(NAME)
LOOKS = [
    ["list"],
    ["list", "--filter", "daily"],
    ["show", NAME],
    ["history"],
    ["history", NAME],
    ["why", NAME],
    ["why", NAME, "2027-01-01T00:00"],
    ["status"],
    ["tui", "--print", "--job", ID],
    ["pause", NAME],
    ["resume", NAME],
]


async def nothing() -> None:
    return


@pytest.fixture
def store(tmp_path: Path) -> str:
    """The task has failed once and waits for its retry."""
    with LmdbStore.open(tmp_path / "store") as opened:
        task = TaskDefinition(NAME, "* * * * *", nothing, 600_000)
        opened.update(lambda tx: resolve_tasks(Records(tx, NOW), [task], "scheduler-1", "UTC"))
        opened.update(lambda tx: Records(tx, NOW).put(Node(id="node-1", process=ProcessIdentity(1, "boot", 1))))
        engine = Engine(opened, "node-1", 10, Random(1))
        (launch,) = engine.tick(NOW, NOW).orders
        assert isinstance(launch, Launch)
        opened.update(engine.ended(launch.attempt, AttemptEnd("failed"), NOW + 1))
    return str(tmp_path / "store")


def said(argv: list[str], store: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.setattr(sys, "argv", ["chronex", *argv, "--store", store])
    monkeypatch.setenv("COLUMNS", "150")
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    assert ended.value.code == (1 if "verify" in argv else 0), printed.err  # no scheduler is on record as started
    return printed.out


@pytest.mark.parametrize("argv", LOOKS, ids=" ".join)
def test_it_is_shown_and_found_by_its_own_name(
    argv: list[str], store: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert NAME in said(argv, store, monkeypatch, capsys)


def test_programs_are_given_the_name_beside_the_id(
    store: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for argv in (["list"], ["show", NAME]):
        printed = said([*argv, "--format", "json"], store, monkeypatch, capsys)
        assert f'"id": "{ID}"' in printed
        assert f'"name": "{NAME}"' in printed


@pytest.mark.parametrize(
    "argv", [["verify", "--job", NAME], ["dlq", "list", "--job", NAME], ["show", "--versions", NAME]]
)
def test_it_is_found_where_it_is_not_shown(
    argv: list[str], store: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said(argv, store, monkeypatch, capsys)


def test_only_an_id_that_was_made_from_the_name_is_shown_as_that_name() -> None:
    task = Task(name="main", run=("true",))
    named = {"name": NAME}
    assert Job(id=ID, schedule="@daily", tasks=(task,), metadata=named).shown_name == NAME
    assert Job(id=ID, schedule="@daily", tasks=(task,), metadata={"name": "other"}).shown_name == ID
    assert Job(id="backup", schedule="@daily", tasks=(task,), metadata=named).shown_name == "backup"
