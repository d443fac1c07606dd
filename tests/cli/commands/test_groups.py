"""`chronex groups`, and what status, show, why, list, metrics and the dry run say of groups."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from chronex.cli.commands.groups import groups
from chronex.cli.commands.list_jobs import list_jobs
from chronex.cli.commands.show import run_show
from chronex.cli.commands.status import run_status
from chronex.cli.commands.why import run_why
from chronex.clock import wall_ms
from chronex.daemon.metrics import MetricsCollector, MetricsTally
from chronex.engine.update import apply_jobs
from chronex.engine.update.sources import JobSource
from chronex.model.groups import GroupSettings, StartRate
from chronex.model.job import Job, Task, TaskCheck
from chronex.model.occurrence import Occurrence
from chronex.model.states import OccurrenceState
from chronex.storage.ports import Transaction
from chronex.storage.records import Records
from chronex.testing import FakeClock
from chronex_store import LmdbStore

MINUTE = 60_000


def job(name: str, **more: object) -> Job:
    task = Task(name="main", run=("true",), check=TaskCheck(file="/backup/dump", min_size=1_000_000, newer=True))
    return Job(id=name, schedule="0 3 1 1 *", tasks=(task,), **more)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, int]:
    """`reindex` holds both places of the database for five minutes; `backup` waits for one, and twelve behind it."""
    path, now = tmp_path_factory.mktemp("groups") / "store", wall_ms()
    settings = (GroupSettings("api", rate=StartRate(30, MINUTE)), GroupSettings("database", limit=2))
    jobs = [
        job("reindex", groups={"database": 2}),
        job("backup", groups={"database": 1}, priority=10, wait_for=("mains",)),
    ]
    jobs += [job(f"more-{number:02}", groups={"database": 1, "api": 1}) for number in range(12)]

    def begin(tx: Transaction) -> None:
        records = Records(tx, now)
        held = {"groups": {"database": 2}, "owner": "node-1", "started_ms": now - 5 * MINUTE}
        records.put(_of("reindex", now - 5 * MINUTE, OccurrenceState.RUNNING, **held))
        for place, one in enumerate(jobs[1:]):
            records.put(_of(one.id, now - MINUTE, OccurrenceState.QUEUED, lines=("database",), order_ms=now + place))

    with LmdbStore.open(path) as store:
        apply_jobs(store, jobs, now - MINUTE, owns=JobSource("/jobs.toml", groups=settings))
        store.update(begin)
    return str(path), now


def _of(name: str, at_ms: int, state: OccurrenceState, **more: object) -> Occurrence:
    return Occurrence(job=name, nominal_ms=at_ms, due_ms=at_ms, state=state, created_ms=at_ms, **more)  # type: ignore[arg-type]


def test_a_group_is_listed_with_who_holds_it_and_who_waits(
    waiting: tuple[str, int], printed: Callable[..., str]
) -> None:
    lines = printed(groups, store=waiting[0]).splitlines()
    assert lines[:3] == ["api  30 starts in 1m", "  free", "database  2 at once"]
    assert lines[3].startswith("  running  reindex since ")
    assert lines[3].endswith(", 2 places on node-1")
    assert lines[4].startswith("  waiting  backup since ")
    assert ": group database is full: reindex since " in lines[4]
    assert lines[14] == "           … and 3 more wait behind them"


def test_programs_get_the_same(waiting: tuple[str, int], printed: Callable[..., str]) -> None:
    api, database = json.loads(printed(groups, store=waiting[0], form="json"))
    assert (api["group"], api["limit"], api["rate"], api["held"]) == ("api", None, {"count": 30, "per_ms": MINUTE}, 0)
    assert (database["limit"], database["held"], database["waiting"], database["version"]) == (2, 2, 13, 1)
    assert database["source"] == "/jobs.toml"
    assert [(one["job"], one["places"]) for one in database["holders"]] == [("reindex", 2)]
    assert [one["job"] for one in database["first"]][:2] == ["backup", "more-00"]
    assert len(database["first"]) == 10


def test_a_store_without_groups_says_how_to_make_one(tmp_path: Path, printed: Callable[..., str]) -> None:
    with LmdbStore.open(tmp_path / "store"):
        pass
    assert "[groups.NAME]" in printed(groups, store=str(tmp_path / "store"))


def test_status_names_the_first_who_waits(waiting: tuple[str, int], capsys: pytest.CaptureFixture[str]) -> None:
    run_status(waiting[0], "text", watch=False, check=False)
    told = capsys.readouterr().out
    assert "  waiting  backup: group database is full: reindex since " in told
    assert ", and 12 more wait" in told
    run_status(waiting[0], "json", watch=False, check=False)
    assert [row["waiting"] for row in json.loads(capsys.readouterr().out)["groups"]] == [0, 13]


def test_show_has_the_keys_and_what_is_awaited(waiting: tuple[str, int], capsys: pytest.CaptureFixture[str]) -> None:
    run_show("backup", waiting[0], "text")
    told = capsys.readouterr().out
    for line in (
        "each may wait for group database, mains",
        "queued     1: group database is full: reindex since ",
        "done only if /backup/dump is there and has at least 1MB and was written by the run",
        "groups     database",
        "priority   10, as if it came 10 minutes earlier",
        "waits for  mains; at most 1h",
    ):
        assert line in told
    run_show("backup", waiting[0], "json")
    found = json.loads(capsys.readouterr().out)
    assert found["may_wait_for"] == ["group database", "mains"]
    assert found["waits_for"].startswith("group database is full: reindex since ")
    assert (found["policies"]["groups"], found["policies"]["priority"]) == ({"database": 1}, 10)
    assert found["tasks"][0]["check"] == {
        "run": [], "file": "/backup/dump", "min_size": 1_000_000, "newer": True,
    }  # fmt: skip


def test_why_says_what_is_in_its_way_now(waiting: tuple[str, int], capsys: pytest.CaptureFixture[str]) -> None:
    run_why("backup", None, waiting[0], "text")
    told = capsys.readouterr().out
    assert "it waits for its turn: group database is full: reindex since " in told
    assert "unless group database is full or used up: then it waits for its turn" in told
    assert "unless one of these does not hold: mains: then it waits, at most 1h" in told


def test_list_says_what_a_job_may_wait_for(waiting: tuple[str, int], printed: Callable[..., str]) -> None:
    rows = {row["id"]: row for row in json.loads(printed(list_jobs, store=waiting[0], form="json"))}
    assert (rows["backup"]["state"], rows["backup"]["may_wait_for"]) == ("queued", ["group database", "mains"])


def test_metrics_count_holders_and_waiters_of_each_group(waiting: tuple[str, int]) -> None:
    with LmdbStore.open(Path(waiting[0])) as store:
        values = {one.name: one for one in MetricsCollector(store, FakeClock(waiting[1]), MetricsTally()).values()}
    assert values["scheduler_group_held"].series == [(("api",), [0]), (("database",), [2])]
    assert values["scheduler_group_waiting"].series == [(("api",), [0]), (("database",), [13])]
    assert values["scheduler_group_limit"].series == [(("database",), [2])]
    assert values["scheduler_jobs_in_queue"].series == [((), [13])]
