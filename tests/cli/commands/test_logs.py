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

from chronex.cli.commands.history import history
from chronex.cli.commands.logs import LogsOptions, run_logs
from chronex.cli.options import UsageError
from chronex.errors import AmbiguousIdError, UnknownIdError, UnknownJobError
from chronex.run.attempt_log import BoundedLog
from chronex.storage.records import Reading
from chronex_store import LmdbStore
from tests.cli.past import HOSTILE, Past


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
        ("hello", {"task": "other"}, "no attempt of 'hello' fits"),
        ("hello", {"number": 9}, "no attempt of 'hello' fits"),
    ],
)
def test_what_has_no_log_is_told(past: Past, what: str, more: dict[str, Any], sentence: str) -> None:
    with pytest.raises((UsageError, UnknownJobError, UnknownIdError, AmbiguousIdError)) as told:
        run_logs(*logs(past, what, **more), follow=False)
    assert sentence in str(told.value)


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
