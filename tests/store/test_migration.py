"""A store that the last program of format 1 wrote, and what that program showed of it.

`format_1/data.mdb.xz` holds runs that completed, failed in every way, were skipped, missed, canceled, dropped or
replayed, and some that run or wait; `format_1/shown.json.xz` is what `list`, `history`, `dlq list` and `why` printed.
"""

from __future__ import annotations

import contextlib
import json
import lzma
import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from chronex.cli import main
from chronex.daemon.headless import run_headless
from chronex.engine.update.apply import apply_jobs
from chronex.engine.update.diff import Change
from chronex.errors import StoreFormatError
from chronex.jobfile import SchedulerSettings
from chronex.model.policies import RetryPolicy, retry_pause
from chronex.model.reasons import Reason, ReasonCode
from chronex.storage import keys
from chronex.storage.codec import decode, payload_of
from chronex.storage.journal import tail
from chronex.storage.records import Reading, pages
from chronex.text.instants import rfc3339
from chronex_store import LmdbStore, lmdb_environment, migration
from chronex_store.backup import backup, restore
from chronex_store.doctor import examine

OLD = Path(__file__).parent / "format_1"
# Jobs with retry policies of every kind, in two versions, as the last program of format 2 stored and read them.
RETRIES = Path(__file__).parent / "format_2"
SHOWN: dict[str, Any] = json.loads(lzma.decompress((OLD / "shown.json.xz").read_bytes()))


@pytest.fixture
def old_store(tmp_path: Path) -> Path:
    return unpacked(OLD, tmp_path / "old")


def unpacked(fixture: Path, place: Path) -> Path:
    place.mkdir(mode=0o700)
    data = place / "data.mdb"
    data.write_bytes(lzma.decompress((fixture / "data.mdb.xz").read_bytes()))
    data.chmod(0o600)
    return place


def test_it_is_migrated_once_after_a_backup(old_store: Path) -> None:
    before = (old_store / "data.mdb").read_bytes()
    for _ in range(2):
        with LmdbStore.open(old_store) as store:
            meta = store.environment().meta
            assert (meta.format, meta.migrated_from) == (lmdb_environment.FORMAT, (1, 2))
    (saved,) = old_store.glob("before-format-2-*.backup")
    assert len(saved.read_bytes()) == len(before)
    assert examine(old_store).findings == ()


def test_a_daemon_migrates_under_the_lock_that_it_holds(tmp_path: Path) -> None:
    place = unpacked(RETRIES, tmp_path / "old")  # its commands are all `false`
    assert run_headless(place, None, SchedulerSettings(), once=False, seconds=0) == 0
    with LmdbStore.open(place, create=False) as store:
        assert store.environment().meta.migrated_from == (2,)


@pytest.mark.parametrize("argv", [["list"], ["status"], ["dlq", "list"], ["why", "paused-task"], ["doctor"]])
def test_a_command_that_reads_changes_nothing_and_says_what_to_do(
    old_store: Path, argv: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (old_store / "data.mdb").read_bytes()
    monkeypatch.setattr(sys, "argv", ["chronex", *argv, "--store", str(old_store)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (1, 2)
    said = "".join(capsys.readouterr())
    assert "has format 1" in said
    assert f"`chronex run --store {old_store}` or `chronex apply --store {old_store}`" in said
    assert (old_store / "data.mdb").read_bytes() == before
    assert not list(old_store.glob("*.backup"))


def test_a_store_that_is_opened_to_be_read_is_not_migrated(old_store: Path) -> None:
    with pytest.raises(StoreFormatError, match="has format 1"):
        LmdbStore.open(old_store, create=False)
    with LmdbStore.open(old_store, create=False, migrate=True) as store:
        assert store.environment().meta.format == lmdb_environment.FORMAT
    LmdbStore.open(old_store, create=False).close()


def test_a_backup_copies_the_older_format_as_it_is(old_store: Path, tmp_path: Path) -> None:
    backup(old_store, tmp_path / "copy")
    with pytest.raises(StoreFormatError):
        LmdbStore.open(old_store, create=False)
    restore(tmp_path / "copy", tmp_path / "new")
    with LmdbStore.open(tmp_path / "new", create=False) as store:
        assert store.environment().meta.migrated_from == (1, 2)


def test_a_backup_of_format_1_can_be_restored(old_store: Path, tmp_path: Path) -> None:
    restore(old_store / "data.mdb", tmp_path / "new")
    with LmdbStore.open(tmp_path / "new") as store:
        assert store.environment().meta.format == lmdb_environment.FORMAT


def test_the_program_shows_what_the_old_one_showed(
    old_store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    LmdbStore.open(old_store).close()
    monkeypatch.setattr(time, "time_ns", lambda: SHOWN["now_ms"] * 1_000_000)
    for one in SHOWN["shown"]:
        monkeypatch.setattr(sys, "argv", ["chronex", *one["argv"], "--store", str(old_store)])
        with contextlib.suppress(SystemExit):
            main()
        wanted = put_right(one)
        assert without_additions(json.loads(capsys.readouterr().out), wanted) == wanted, one["argv"]


def without_additions(shown: Any, wanted: Any) -> Any:
    """What is shown, without the keys that came after the old program."""
    if isinstance(shown, dict) and isinstance(wanted, dict):
        return {key: without_additions(value, wanted[key]) for key, value in shown.items() if key in wanted}
    if isinstance(shown, list) and isinstance(wanted, list) and len(shown) == len(wanted):
        return [without_additions(*pair) for pair in zip(shown, wanted, strict=True)]
    return shown


LATER_THAN_IT_SAID = [
    ("unplaceable", 1_793_589_946_000, 1_793_588_400_000),
    ("preempted", 1_793_545_200_000, 1_793_545_200_000),
    ("running-now", 1_793_541_600_000, 1_793_541_600_000),
]


def put_right(one: dict[str, Any]) -> Any:
    """The old program took the failed task `paused` for a pause, called a timeout a failure, and listed a run that its
    spread has no place for, that is skipped for a retry, or that runs already. Its `why` told reasons with
    the ids of others, and called running what no scheduler watches. Two of its phrases are said otherwise today. All else stays."""
    words = json.dumps(one["output"]).replace("names this instant", "matches this time")
    if one["argv"][:1] == ["why"]:  # but for the data in `names`
        words = re.sub(
            r'(?<!"reason": ")(an earlier.*?still runs|a new occ.*? retry): occ_[0-9a-f-]{36}', r"\1", words
        )
    wanted = json.loads(words.replace("another run has done it under the same idempotency key", "a run was left out"))
    if one["argv"][:1] == ["list"]:
        for job, ms, nominal_ms in LATER_THAN_IT_SAID:
            (row,) = (row for row in wanted if row["id"] == job)
            for key, wanted_ms in (("next", ms), ("next_nominal", nominal_ms)):
                assert row[f"{key}_ms"] < wanted_ms
                row |= {key: rfc3339(wanted_ms), f"{key}_ms": wanted_ms}
    if one["argv"][:2] == ["why", "paused-task"]:
        for answer in wanted["answers"]:
            assert (answer["cause"], answer["names"]["reason"]) == ("paused", "paused: exit code 1")
            answer["cause"] = "failed"
    if one["argv"][:2] == ["why", "overtime"]:
        for answer in wanted["answers"]:
            assert (answer["cause"], answer["names"]["reason"]) == ("failed", "main: the execution timeout passed")
            answer["cause"] = "timeout"
    for answer in wanted["answers"] if one["argv"][:1] == ["why"] else ():
        if answer["summary"].startswith("it is running since "):
            _leave_alone(answer, LEFT_WAITING if answer["job"] == "preempted" else LEFT_ENDED)
    return wanted


LEFT_ENDED = "its command has ended while no scheduler ran; how is unknown until one runs"
LEFT_WAITING = "it goes on when a scheduler runs again"


def _leave_alone(answer: dict[str, Any], words: str) -> None:
    since = answer["summary"].removeprefix("it is running since ")
    answer["summary"] = (
        f"it began at {since} and is not over: {words}" if words == LEFT_WAITING else f"it began at {since}: {words}"
    )
    for link in answer["links"]:
        link["fact"] = link["fact"].replace("it is running now", words)


def test_every_reason_has_a_code_and_only_own_words_are_free_text(old_store: Path) -> None:
    with LmdbStore.open(old_store) as store:
        events = [event for _, event in store.view(lambda tx: tail(tx, 0, 10_000)) if event.reason]
        found = store.view(lambda tx: [o for job in Reading(tx).jobs() for o in Reading(tx).occurrences(job.id)])
    reasons = {occurrence.reason.code for occurrence in found if occurrence.reason}
    assert reasons >= {ReasonCode.PREEMPTED, ReasonCode.PAUSED, ReasonCode.OVERLAP, ReasonCode.EXIT_CODE}
    free = {occurrence.job for occurrence in found if occurrence.reason.code is ReasonCode.FREE_TEXT}
    assert free == {"raises", "missing-program"}
    # The person who replayed it gave "paused" as the reason: those are words, not a pause.
    (replayed,) = [event for event in events if event.name == "OccurrenceReplayed"]
    assert replayed.reason == Reason(ReasonCode.FREE_TEXT, "paused")


def test_a_failed_migration_changes_nothing(old_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(key: bytes, raw: bytes) -> list[tuple[bytes, bytes]]:
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr(migration, "TO_FORMAT_2", (*migration.TO_FORMAT_2, fail))
        with pytest.raises(RuntimeError):
            LmdbStore.open(old_store)
    with LmdbStore.open(old_store) as store:
        assert store.environment().meta.migrated_from == (1, 2)


def test_conversions_may_drop_move_and_split_records(old_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def split(key: bytes, raw: bytes) -> list[tuple[bytes, bytes]]:
        if key[:1] == keys.EVENT:
            return []
        return [(b"Z" + key[1:], raw), (b"z" + key[1:], raw)] if key[:1] == keys.JOB else [(key, raw)]

    monkeypatch.setattr(migration, "TO_FORMAT_2", (*migration.TO_FORMAT_2, split))
    with LmdbStore.open(old_store) as store:
        rows = store.view(lambda tx: [row for page in pages(tx, b"") for row in page])
    tags = [key[:1] for key, _ in rows]
    assert keys.EVENT not in tags
    assert keys.JOB not in tags
    assert tags.count(b"Z") == tags.count(b"z") > 0
    for key, raw in rows:
        if key[:1] in keys.OCCURRENCE + keys.RUN + keys.ATTEMPT:
            assert payload_of(key, raw)
            decode(key, raw)


def test_jobs_of_format_2_keep_the_pauses_they_were_stored_with(tmp_path: Path) -> None:
    wanted: dict[str, Any] = json.loads((RETRIES / "retries.json").read_text())
    with LmdbStore.open(unpacked(RETRIES, tmp_path / "old")) as store:
        assert store.environment().meta.migrated_from == (2,)
        versions = store.view(lambda tx: [(job, Reading(tx).job_version(job.id, 1)) for job in Reading(tx).jobs()])
    found = {
        f"{job.id} {job.version}": {task.name: old_pauses(job.retry_for(task)) for task in job.tasks}
        for pair in versions
        for job in pair
        if job is not None
    }
    assert found == {
        name: {task: old_pauses_of(one) for task, one in tasks.items()} for name, tasks in wanted.items()
    }


def old_pauses(policy: RetryPolicy) -> list[tuple[int, float]]:
    """The first twenty pauses; before there was a shortest one, because that holds for all."""
    most = 20 if policy.max is None else policy.max
    return [(retry_pause(policy, attempt, shortest_ms=0), policy.jitter) for attempt in range(1, most + 1)]


def old_pauses_of(policy: dict[str, Any]) -> list[tuple[int, float]]:
    """As the program of format 2 computed them."""
    longest = 10 * 366 * 86_400_000 if policy["max_interval_ms"] is None else policy["max_interval_ms"]
    most = 20 if policy["max"] is None else policy["max"]
    pauses = [round(policy["interval_ms"] * policy["backoff"] ** number) for number in range(most)]
    return [(min(pause, longest), policy["jitter"]) for pause in pauses]


WRITTEN = {
    "none": RetryPolicy(),
    "written-out": RetryPolicy(max=3, interval_ms=30_000, backoff=2.0, max_interval_ms=600_000, jitter=0.1),
    "number": RetryPolicy(max=3),
}


def test_a_job_of_format_2_has_the_present_defaults_once_its_file_is_applied_again(tmp_path: Path) -> None:
    with LmdbStore.open(unpacked(RETRIES, tmp_path / "old")) as store:
        stored = {job.id: job for job in store.view(lambda tx: Reading(tx).jobs())}
        named = ("none", "written-out", "number")
        again = [replace(stored[name].as_written(), retry=WRITTEN[name]) for name in named]
        changes = {one.job: one.change for one in apply_jobs(store, again, SHOWN["now_ms"], owns=lambda job: False)}
        assert [changes[name] for name in named] == [Change.UNCHANGED, Change.UNCHANGED, Change.CHANGED]
