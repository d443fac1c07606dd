"""logs on a store with a past: what attempts have written, and what they go on writing."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from chronex.cli.commands.history import history
from chronex.cli.commands.logs import LogsOptions, run_logs
from chronex.cli.options import UsageError
from chronex.engine.membership import LEASE_MS
from chronex.engine.shared_logs import put_excerpt
from chronex.errors import AmbiguousIdError, UnknownIdError, UnknownJobError
from chronex.model.records import Excerpt
from chronex.run.attempt_log import BoundedLog
from chronex.storage.ports import Transaction
from chronex.storage.records import Reading, Records
from chronex_store import LmdbStore
from tests.cli.past import HOSTILE, Past
from tests.storage.samples import NODE


def logs(past: Past, what: str, form: str = "text", **more: Any) -> tuple[Any, ...]:
    fields = {"task": None, "number": None, "lines": None, "raw": False, **more}
    return LogsOptions(what, **fields), str(past.place), form


def ids(past: Past, printed: Callable[..., str]) -> dict[str, Any]:
    row: dict[str, Any] = json.loads(printed(history, "hello", store=str(past.place), form="json"))[1]
    return row


def test_escape_sequences_are_shown_and_not_sent(past: Past, printed: Callable[..., str]) -> None:
    found = ids(past, printed)
    text = printed(run_logs, *logs(past, found["id"]), follow=False)
    assert text == "hello \ufffd]0;owned\ufffd\nsecond line of 1\n"


def test_an_id_may_be_of_the_occurrence_or_attempt_and_be_cut_short(past: Past, printed: Callable[..., str]) -> None:
    found = ids(past, printed)
    attempt = found["attempts"][0]["id"]
    texts = {
        printed(run_logs, *logs(past, name, lines=1), follow=False)
        for name in (found["id"], found["id"][:16], attempt, attempt[:20], f"hello@{found['nominal']}")
    }
    assert texts == {"second line of 1\n"}


def test_logs_in_json_are_attempts_with_their_output(past: Past, printed: Callable[..., str]) -> None:
    (found,) = json.loads(printed(run_logs, *logs(past, ids(past, printed)["id"], "json"), follow=False))
    assert (found["job"], found["task"], found["number"], found["exit_code"]) == ("hello", "main", 1, 3)
    assert found["output"] == f"hello {HOSTILE}\nsecond line of 1\n"


def test_raw_gives_the_bytes(past: Past, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    with LmdbStore.open(past.place) as store:
        done = store.view(lambda tx: Reading(tx).occurrences("hello"))[1]
    run_logs(*logs(past, done.id, raw=True), follow=False)
    assert capsysbinary.readouterr().out == f"hello {HOSTILE}\nsecond line of 1\n".encode()


@pytest.mark.parametrize(
    ("what", "more", "sentence"),
    [
        ("helo", {}, "no job 'helo'; did you mean hello?"),
        ("yearly", {}, "yearly has not run yet; chronex show yearly says when it will"),
        ("occ_ffff", {}, "no occurrence, run or attempt 'occ_ffff'"),
        ("hello", {"task": "other"}, "--task: hello has no attempt of a task 'other'; there are attempts of main"),
        ("hello", {"task": "man"}, "--task: hello has no attempt of a task 'man'; did you mean main?"),
        ("hello", {"number": 9}, "--attempt: hello has no attempt 9; the last one is 1"),
    ],
)
def test_what_has_no_log_is_told(past: Past, what: str, more: dict[str, Any], sentence: str) -> None:
    with pytest.raises((UsageError, UnknownJobError, UnknownIdError, AmbiguousIdError)) as told:
        run_logs(*logs(past, what, **more), follow=False)
    assert sentence in str(told.value)


def test_a_log_that_is_not_there_any_more_is_told(
    past: Past, printed: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    found = ids(past, printed)
    for file in (past.place / "logs").iterdir():
        file.unlink()
    assert run_logs(*logs(past, found["id"]), follow=False) == 1
    assert "is not here: it was removed, or stayed with another store" in capsys.readouterr().err


@pytest.mark.parametrize("kept", [b"", b"the beginning\n"], ids=["none of it", "its beginning"])
def test_output_that_could_not_be_kept_is_told(past: Past, capsys: pytest.CaptureFixture[str], kept: bytes) -> None:
    """The disk was full: it was told as a command without output, and its beginning as all of it."""
    with LmdbStore.open(past.place) as store:
        done = store.view(lambda tx: Reading(tx).occurrences("hello"))[1]
        (attempt,) = store.view(lambda tx: Reading(tx).attempts("hello", done.nominal_ms))
        cut = replace(attempt, log_bytes=len(kept), log_dropped=2_000)
        store.update(lambda tx: Records(tx, 0).put(cut))
    (past.place / "logs" / attempt.log_path).write_bytes(kept)
    assert run_logs(*logs(past, done.id), follow=False) == 1
    told = capsys.readouterr()
    assert told.out.encode() == kept
    assert "; 2.0KiB of its output could not be kept: the scheduler's log says why" in told.err
    assert "no output" not in told.err


def test_a_copy_of_a_shared_store_shows_what_that_had_of_a_log(
    past: Past, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was silently empty there."""
    with LmdbStore.open(past.place) as store:
        done = store.view(lambda tx: Reading(tx).occurrences("hello"))[1]
        (attempt,) = store.view(lambda tx: Reading(tx).attempts("hello", done.nominal_ms))

        def as_copied(tx: Transaction) -> None:
            records = Records(tx, past.now)
            records.put(replace(NODE, id=attempt.owner, name="db-1", host_id="far", lease_ms=LEASE_MS))
            put_excerpt(records, attempt, Excerpt(b"what was shared\n", b"", 0))

        store.update(as_copied)
    for file in (past.place / "logs").iterdir():
        file.unlink()
    assert run_logs(*logs(past, done.id), follow=False) == 0
    assert capsys.readouterr().out == "what was shared\n"


def test_following_shows_lines_as_they_come_and_ends_with_the_attempt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another thread writes more than is kept, as a daemon would, and then ends the attempt."""
    past = Past(tmp_path / "store")
    launch = next(order for order in past.left if order.job.id == "hello")
    log = BoundedLog(past.logs, launch.attempt.id, 400)
    log.write(b"first\n")
    with LmdbStore.open(past.place) as store:
        store.update(past.engine.started(launch.attempt, None, f"{launch.attempt.id}.log", past.now, 400))
    reader = threading.Thread(target=run_logs, args=logs(past, launch.attempt.id), kwargs={"follow": True})
    reader.start()
    for number in range(100):
        log.write(b"line %d\n" % number)
    kept = log.finish()

    script = f"""
from pathlib import Path
from chronex.storage.records import Records
from chronex.model.states import AttemptState
from chronex_store import LmdbStore
with LmdbStore.open(Path({str(past.place)!r})) as store:
    def end(tx):
        records = Records(tx, 0)
        a = records.attempt("hello", {launch.attempt.nominal_ms}, "main", 1)
        records.advance(a, AttemptState.SUCCESS, log_dropped={kept.dropped})
    store.update(end)
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
    reader.join(30)
    assert not reader.is_alive()
    text = capsys.readouterr().out
    assert text.startswith("first\n")
    assert "bytes of output dropped here" in text
    assert text.endswith("line 99\n")
