"""list, show, history and logs on a store with a past: what they print, what their JSON holds, what they refuse."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chronex.cli.arguments import UsageError
from chronex.cli.history import run_history
from chronex.cli.listing import run_list
from chronex.cli.logs import Asked, run_logs
from chronex.cli.show import run_show
from chronex.clock import wall_ms
from chronex.engine.engine import Engine
from chronex.engine.orders import AttemptEnd, Launch
from chronex.engine.update import apply_jobs
from chronex.errors import AmbiguousIdError, UnknownIdError, UnknownJobError
from chronex.model.policies import RetryPolicy
from chronex.model.reasons import free_text
from chronex.model.records import Job, Task
from chronex.model.states import AttemptState
from chronex.run.output import BoundedLog, LogDirectory
from chronex.storage.records import Reading
from chronex.views.jobs import Situation
from chronex_store import LmdbStore

MINUTE = 60_000
HOSTILE = "\x1b]0;owned\x07"


class Past:
    """Jobs that have run a few times by now, with logs, as a daemon would have left them."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.now = wall_ms() // MINUTE * MINUTE - 10 * MINUTE
        with LmdbStore.open(place) as store:
            apply_jobs(store, JOBS, self.now)
            self.engine = Engine(store, "node-1", 50)
            self.logs = LogDirectory(place / "logs")
            self.minute(store, good=AttemptState.SUCCESS)
            self.minute(store, good=AttemptState.FAILED)
            self.left = self.start(store)

    def start(self, store: LmdbStore) -> list[Launch]:
        self.now += MINUTE
        return [order for order in self.engine.tick(self.now, self.now).orders if isinstance(order, Launch)]

    def minute(self, store: LmdbStore, good: AttemptState) -> None:
        for launch in self.start(store):
            state = good if launch.job.id == "hello" else AttemptState.FAILED
            self.end(store, launch, state)

    def end(self, store: LmdbStore, launch: Launch, state: AttemptState) -> None:
        log = BoundedLog(self.logs, launch.attempt.id, 1000)
        log.write(f"{launch.job.id} {HOSTILE}\nsecond line of {launch.attempt.number}\n".encode())
        kept = log.finish()
        store.update(self.engine.started(launch.attempt, None, kept.name, self.now, 1000))
        good = state is AttemptState.SUCCESS
        end = AttemptEnd(
            state, free_text("" if good else "exit code 3"), exit_code=0 if good else 3, log_bytes=kept.size
        )
        store.update(self.engine.ended(launch.attempt, end, self.now + 1_500))


JOBS = [
    Job(id="hello", schedule="* * * * *", tasks=(Task(name="main", run=("echo", "hello")),), tags=("demo",)),
    Job(
        id="flaky",
        schedule="* * * * *",
        tasks=(Task(name="only", run="exit 3", retry=RetryPolicy(max=2, interval_ms=3_600_000)),),
        timezone="Europe/Berlin",
    ),
    Job(id="yearly", schedule="0 3 1 1 * {jitter:5m}", description=f"New Year {HOSTILE}", tasks=(Task(name="a", run=("true",)),)),
]  # fmt: skip


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Past:
    return Past(tmp_path_factory.mktemp("past") / "store")


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def run(fn: Callable[..., int], *arguments: Any, **options: Any) -> str:
        assert fn(*arguments, **options) == 0
        text = capsys.readouterr().out
        assert "\x1b" not in text
        assert "\x07" not in text
        return text

    return run


def logs(past: Past, what: str, form: str = "text", **more: Any) -> tuple[Any, ...]:
    fields = {"task": None, "number": None, "lines": None, "raw": False, **more}
    return Asked(what, **fields), str(past.place), form


# -- list ----------------------------------------------------------------------------------------------------------


def test_a_list_is_a_table_of_eighty_columns(past: Past, printed: Callable[..., str]) -> None:
    lines = printed(run_list, str(past.place), "text", "").splitlines()
    assert lines[0].split() == ["STATE", "JOB", "NEXT", "LAST", "SCHEDULE"]
    assert all(len(line) <= 80 for line in lines)
    starts = [line.index(text) for line, text in zip(lines, ("SCHEDULE", "* * *", "* * *", "0 3 1"), strict=False)]
    assert len(set(starts)) == 1, "the columns stand under each other"
    assert lines[-1].startswith("3 jobs; times in ")


@pytest.mark.parametrize(("room", "heads"), [(79, 5), (60, 4), (50, 3), (40, 3)])
def test_a_narrow_terminal_has_fewer_columns_and_no_wrapped_line(
    past: Past, printed: Callable[..., str], monkeypatch: pytest.MonkeyPatch, room: int, heads: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(room))
    lines = printed(run_list, str(past.place), "text", "").splitlines()
    assert all(len(line) <= room for line in lines)
    assert len(lines[0].split()) <= heads
    assert lines[0].split()[:2] == ["STATE", "JOB"]


def test_a_list_in_json_has_one_object_for_each_job(past: Past, printed: Callable[..., str]) -> None:
    rows = {row["id"]: row for row in json.loads(printed(run_list, str(past.place), "json", ""))}
    assert {name: row["state"] for name, row in rows.items()} == {
        "flaky": "running", "hello": "running", "yearly": "waiting",
    }  # fmt: skip
    hello = rows["hello"]
    assert (hello["is_active"], hello["is_enabled"], hello["is_paused"], hello["is_running"]) == (
        True,
        True,
        False,
        True,
    )
    assert (hello["completed"], hello["failed"], hello["tags"]) == (1, 1, ["demo"])
    assert (hello["last"]["state"], hello["last"]["reason"], hello["last"]["duration_ms"]) == (
        "failed", "main: exit code 3", 1_500,
    )  # fmt: skip
    assert rows["yearly"]["last"] is None
    assert rows["yearly"]["next"].endswith("-01-01T03:00:00Z")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ["flaky", "hello", "yearly"]),
        ("hlo", ["hello"]),
        ("demo", ["hello"]),
        ("tag:de*", ["hello"]),
        ("state:running -tag:demo", ["flaky"]),
        ("tz:europe/*", ["flaky"]),
        ("cmd:exit", ["flaky"]),
        ("last>1d", ["yearly"]),
        ("next<1h", ["flaky", "hello"]),
        ("state:active state:waiting", ["yearly"]),
        ("nothing-like-it", []),
    ],
)
def test_a_filter_takes(past: Past, printed: Callable[..., str], text: str, names: list[str]) -> None:
    assert printed(run_list, str(past.place), "names", text).split() == names


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("state:faild", "no state 'faild'; did you mean failed?"),
        ("stat:failed", "no filter stat:; did you mean state:?"),
        ("next<soon", "next< is followed by a duration such as 90s, 10m or 1d"),
        ("tag:", "tag: is followed by what to look for"),
    ],
)
def test_a_filter_that_is_not_understood_says_what_is(past: Past, text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as told:
        run_list(str(past.place), "text", text)
    assert sentence in str(told.value)


def test_an_empty_store_says_how_to_begin(tmp_path: Path, printed: Callable[..., str]) -> None:
    LmdbStore.open(tmp_path / "store").close()
    assert "chronex apply" in printed(run_list, str(tmp_path / "store"), "text", "")


# -- show ----------------------------------------------------------------------------------------------------------


def test_show_says_how_a_job_is_and_what_holds_for_it(past: Past, printed: Callable[..., str]) -> None:
    text = printed(run_show, "flaky", str(past.place), "text")
    for expected in (
        "Every minute",
        "zone       Europe/Berlin",
        "task       only  exit 3",
        "retry 2 times every 1h",
        "overlap    skip",
        "running    only, attempt 1",
        "2 failed",
    ):
        assert expected in text, text


def test_show_in_json_answers_every_question_of_the_api(past: Past, printed: Callable[..., str]) -> None:
    found = json.loads(printed(run_show, "yearly", str(past.place), "json"))
    assert (found["is_active"], found["is_enabled"], found["is_paused"], found["is_running"]) == (
        True,
        True,
        False,
        False,
    )
    assert found["next_run"] == {**found["next_runs"][0], "is_drawn": False}
    assert [run["nominal"][5:] for run in found["next_runs"]] == ["01-01T03:00:00Z"] * 5
    assert found["policies"]["recovery"] == {"strategy": "execute_last", "max_count": None, "max_age_ms": None}
    assert found["tasks"][0]["retry"]["max"] == 0
    assert (found["last"], found["retries"], found["running"]) == ([], [], [])


def test_a_job_that_is_not_there_is_one_sentence_with_the_nearest_name(past: Past) -> None:
    with pytest.raises(UnknownJobError, match="no job 'helo'; did you mean hello"):
        run_show("helo", str(past.place), "text")


# -- history ---------------------------------------------------------------------------------------------------------


def history(past: Past, job: str | None = None, count: int = 20, form: str = "json", **more: Any) -> tuple[Any, ...]:
    return job, count, more.get("states", []), more.get("since"), str(past.place), form


def test_history_holds_ids_times_fates_and_attempts(past: Past, printed: Callable[..., str]) -> None:
    rows = json.loads(printed(run_history, *history(past, "hello")))
    assert [row["state"] for row in rows] == ["running", "failed", "completed"]
    row = rows[1]
    assert row["id"].startswith("occ_")
    assert row["reason"] == "main: exit code 3"
    assert row["nominal"] == row["due"] == row["started"]
    (attempt,) = row["attempts"]
    assert (attempt["task"], attempt["number"], attempt["state"], attempt["exit_code"]) == ("main", 1, "failed", 3)
    assert attempt["log"] == f"{attempt['id']}.log"
    assert (attempt["signal"], attempt["log_dropped"]) == (None, 0)


def test_history_is_filtered_by_state_and_age_and_bounded(past: Past, printed: Callable[..., str]) -> None:
    assert {row["state"] for row in json.loads(printed(run_history, *history(past)))} == {
        "running",
        "failed",
        "completed",
    }
    only = json.loads(printed(run_history, *history(past, states=["completed"])))
    assert [row["job"] for row in only] == ["hello"]
    assert len(json.loads(printed(run_history, *history(past, count=2)))) == 2
    assert json.loads(printed(run_history, *history(past, "hello", since="1m"))) == []
    assert len(json.loads(printed(run_history, *history(past, "hello", since="1d")))) == 3


def test_history_as_text_has_a_line_for_each_with_its_reason(past: Past, printed: Callable[..., str]) -> None:
    lines = printed(run_history, *history(past, form="text")).splitlines()
    assert sum("main: exit code 3" in line for line in lines) == 1
    assert any(" hello " in line and line[19:25] == "+00:00" for line in lines)
    assert all(line[19:25] == "+01:00" or line[19:25] == "+02:00" for line in lines if " flaky " in line)
    assert all(re.match(r"\S+ \S+ occ_[0-9a-f]{8} ", line) for line in lines), "what cancel and replay take"


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"states": ["complete"]}, "no state 'complete'; did you mean completed?"),
        ({"since": "yesterday"}, "is not an ISO 8601 time"),
        ({"job": "helo"}, "no job 'helo'; did you mean hello?"),
    ],
)
def test_what_history_does_not_understand(past: Past, more: dict[str, Any], sentence: str) -> None:
    with pytest.raises((UsageError, UnknownJobError)) as told:
        run_history(*history(past, more.pop("job", None), **more))
    assert sentence in str(told.value)


def test_on_a_narrow_terminal_a_reason_has_a_line_of_its_own(
    past: Past, printed: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("chronex.cli.history.sys.stdout.isatty", lambda: True)
    lines = printed(run_history, *history(past, form="text")).splitlines()
    assert "    main: exit code 3" in lines
    assert all(len(line) <= 70 for line in lines)


# -- logs ------------------------------------------------------------------------------------------------------------


def ids(past: Past, printed: Callable[..., str]) -> dict[str, Any]:
    row: dict[str, Any] = json.loads(printed(run_history, *history(past, "hello")))[1]
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
from chronex.storage.records import Ledger
from chronex.model.states import AttemptState
from chronex_store import LmdbStore
with LmdbStore.open(Path({str(past.place)!r})) as store:
    def end(tx):
        ledger = Ledger(tx, 0)
        a = ledger.attempt("hello", {launch.attempt.nominal_ms}, "main", 1)
        ledger.advance(a, AttemptState.SUCCESS, log_dropped={kept.dropped})
    store.update(end)
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
    reader.join(30)
    assert not reader.is_alive()
    text = capsys.readouterr().out
    assert text.startswith("first\n")
    assert "bytes of output dropped here" in text
    assert text.endswith("line 99\n")


# -- the page --------------------------------------------------------------------------------------------------------

PAGE = (Path(__file__).parents[2] / "docs" / "looking.md").read_text()


def documented(section: str) -> set[str]:
    """The keys in the first column of the section's table."""
    body = PAGE.partition(f"## {section}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]*) \|", body, flags=re.MULTILINE)
    return {key for row in rows for key in re.findall(r"`([^`]+)`", row)}


def untwinned(row: dict[str, Any]) -> set[str]:
    """Every time has a twin in milliseconds, which the page says once for all."""
    return {key for key in row if not (key.endswith("_ms") and key[:-3] in row)}


def test_the_page_names_exactly_the_keys_of_the_json(past: Past, printed: Callable[..., str]) -> None:
    place = str(past.place)
    row = json.loads(printed(run_list, place, "json", ""))[0]
    shown = json.loads(printed(run_show, "flaky", place, "json"))
    told = json.loads(printed(run_history, *history(past, "hello")))[1]
    assert documented("list --format json") == untwinned(row)
    assert documented("show --format json") == untwinned(shown)
    assert documented("history --format json") == untwinned(told)
    for nested in (row["last"], shown["policies"], shown["tasks"][0], shown["next_run"], told["attempts"][0]):
        assert all(f"`{key}`" in PAGE for key in untwinned(nested)), nested


def test_the_page_explains_every_state() -> None:
    assert documented("How a job is") == {situation.value for situation in Situation}
