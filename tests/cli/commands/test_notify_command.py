"""notify list, test, queue, retry and drop as they are typed; and a whole daemon that tells a webhook."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from chronex.cli.commands import list_jobs, notify, show, status, why
from chronex.cli.job_file import load_job_file
from chronex.cli.options import UsageError
from chronex.clock import wall_ms
from chronex.engine import outbox
from chronex.engine.update import apply_jobs
from chronex.errors import ChronexError
from chronex.model.records import Notice
from chronex.storage.records import Reading, Records
from chronex_store.lmdb_store import LmdbStore
from tests.kit.forked import ChronexProcess, run_chronex
from tests.kit.servers import Behaviour, http_answer, web_server
from tests.kit.waits import until

Capture = pytest.CaptureFixture[str]
FILE = """
[notify.chat]
webhook = "{url}/hooks/T000/SECRETSECRETSECRETSECRET"
template = "json"
[notify.ops]
mail = "ops@example.com"
[defaults]
notify = ["chat", "ops"]
[jobs.j]
schedule = "0 3 * * *"
run = "echo some output; exit 3"
"""


class Place:
    def __init__(self, directory: Path, url: str) -> None:
        self.file = directory / "chronex.toml"
        self.file.write_text(FILE.format(url=url))
        self.config, self.store = str(self.file), str(directory / "store")

    def apply(self) -> None:
        with LmdbStore.open(Path(self.store)) as store:
            apply_jobs(store, load_job_file(self.file).jobs, wall_ms())

    def write(self, count: int, *, is_over: bool = False) -> None:
        with LmdbStore.open(Path(self.store)) as store:
            for number in range(count):
                notice = Notice(job="j", kind="failing", at_ms=1_000 + number, nominal_ms=5, channel="chat")
                store.update(lambda tx, one=notice: outbox.enqueue(Records(tx, 1_000), one))  # type: ignore[misc]
            if is_over:
                store.update(outbox.refused(notice, "answered 500", 2_000, is_final=True, keep_ms=0))


def said(capsys: Capture) -> object:
    return json.loads(capsys.readouterr().out)


def test_a_test_says_what_the_server_answered_and_needs_no_store(tmp_path: Path, capsys: Capture) -> None:
    with web_server(Behaviour(), Behaviour(http_answer(403, b"go away"))) as server:
        place = Place(tmp_path, server.url)
        assert notify.run_test("chat", place.config, place.store, "text") == 0
        text = capsys.readouterr().out
        assert "chat has taken it" in text
        assert "it answered: 200 ok" in text
        assert notify.run_test("chat", place.config, place.store, "json") == 1
        found = said(capsys)
    assert isinstance(found, dict)
    assert (found["taken"], found["answer"]) == (False, "403 go away")
    assert "SECRET" not in text + json.dumps(found)
    assert json.loads(server.requests[0].body)["kind"] == "test"
    with pytest.raises(UsageError, match="did you mean chat"):
        notify.run_test("chatt", place.config, place.store, "text")


def test_channels_are_listed_with_their_jobs_and_without_their_secrets(tmp_path: Path, capsys: Capture) -> None:
    place = Place(tmp_path, "https://hooks.example.com")
    place.apply()
    place.write(3, is_over=True)
    assert notify.run_list(place.config, place.store, "text") == 0
    text = capsys.readouterr().out
    assert "webhook, json: https://hooks.example.com/…  (1 job)" in text
    assert "0 delivered, 2 waiting, 1 undeliverable" in text
    assert notify.run_list(place.config, place.store, "json") == 0
    rows = said(capsys)
    assert isinstance(rows, list)
    assert [(row["channel"], row["jobs"], row["waiting"]) for row in rows] == [("chat", ["j"], 2), ("ops", ["j"], 0)]
    assert show.run_show("j", place.store, "json") == 0
    assert "SECRET" not in text + json.dumps(rows) + capsys.readouterr().out


def test_a_change_of_an_address_is_shown_without_it(tmp_path: Path, capsys: Capture) -> None:
    place = Place(tmp_path, "https://hooks.example.com")
    place.apply()
    place.file.write_text(place.file.read_text().replace("hooks.example.com", "chat.example.com"))
    place.apply()
    assert show.run_versions("j", place.store, "json") == 0
    shown = capsys.readouterr().out
    assert "chat.example.com" in shown
    assert "SECRET" not in shown


def test_what_waits_is_listed_tried_again_and_dropped(tmp_path: Path, capsys: Capture) -> None:
    place = Place(tmp_path, "https://hooks.example.com")
    place.apply()
    place.write(3, is_over=True)
    assert notify.run_queue(None, place.store, "json") == 0
    rows = said(capsys)
    assert isinstance(rows, list)
    assert [row["state"] for row in rows] == ["waiting", "waiting", "undeliverable"]
    assert rows[2]["problem"] == "answered 500"
    assert notify.run_queue("chat", place.store, "text") == 0
    assert "undeliverable chat         j failing: answered 500" in capsys.readouterr().out
    assert notify.run_change("drop", "chat", place.store, "json", every=False) == 0
    assert said(capsys) == {"channel": "chat", "action": "drop", "count": 1}
    assert notify.run_change("retry", "chat", place.store, "json", every=True) == 0
    assert said(capsys) == {"channel": "chat", "action": "retry", "count": 2}
    assert notify.run_change("drop", "chat", place.store, "text", every=True) == 0
    assert capsys.readouterr().out == "2 for chat dropped\n"
    with pytest.raises(ChronexError, match="nothing was ever told to a channel"):
        notify.run_change("retry", "nope", place.store, "text", every=True)


LOOKING: dict[str, Callable[[str], int]] = {
    "list": lambda store: list_jobs.run_list(store, "text", ""),
    "show": lambda store: show.run_show("j", store, "text"),
    "why": lambda store: why.run_why("j", None, store, "text"),
    "status": lambda store: status.run_status(store, "text", watch=False, check=False),
}


@pytest.mark.parametrize("command", LOOKING)
def test_commands_that_look_say_that_no_scheduler_runs_and_that_nobody_is_told(
    tmp_path: Path, capsys: Capture, command: str
) -> None:
    place = Place(tmp_path, "https://hooks.example.com")
    place.apply()
    place.write(2, is_over=True)
    assert LOOKING[command](place.store) == 0
    found = capsys.readouterr()
    told = found.out + found.err
    assert "no scheduler runs: start one with chronex run" in told
    assert "1 for chat could not be delivered: chronex notify queue" in told


def test_status_tells_the_troubles_as_values_and_fails_the_check(tmp_path: Path, capsys: Capture) -> None:
    place = Place(tmp_path, "https://hooks.example.com")
    place.apply()
    place.write(2, is_over=True)
    assert status.run_status(place.store, "json", watch=False, check=True) == 1
    found = json.loads(capsys.readouterr().out)
    assert {one["code"] for one in found["troubles"]} == {"no_scheduler", "notices_undeliverable"}
    assert found["channels"] == [
        {"channel": "chat", "waiting": 1, "undeliverable": 1, "dropped": 0, "problem": "answered 500"}
    ]


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ('schedule = "0 0 30 2 *"', "no time matches its schedule"),
        ('schedule = "0 3 * * *"\nonly = ["gone"]', "its calendars leave no time of its schedule"),
    ],
    ids=["no such day", "excluded"],
)
def test_a_job_that_can_never_run_is_told(tmp_path: Path, capsys: Capture, written: str, why: str) -> None:
    place = Place(tmp_path, "https://hooks.example.com")
    of_place = place.file.read_text().replace('schedule = "0 3 * * *"', written)
    place.file.write_text(f'[calendars.gone]\ndates = ["2020-01-01"]\n{of_place}')
    place.apply()
    assert status.run_status(place.store, "json", watch=False, check=True) == 1
    troubles = json.loads(capsys.readouterr().out)["troubles"]
    assert [one["words"] for one in troubles if one["job"] == "j"] == [f"j never runs: {why}"]


@pytest.mark.parametrize(("schedule", "is_told"), [("0 0 30 2 *", True), ("@once 2020-01-01T00:00:00Z", False)])
def test_a_job_that_has_run_and_can_never_run_again_is_told(
    tmp_path: Path, capsys: Capture, schedule: str, is_told: bool
) -> None:
    """An edit to 30 February was shown as done, like a job that was to run once."""
    place = Place(tmp_path, "https://hooks.example.com")
    place.apply()
    with LmdbStore.open(place.store) as store:
        ran = store.view(lambda tx: Reading(tx).job("j"))
        assert ran is not None
        counters = replace(ran.progress.counters, fired=3)
        store.update(lambda tx: Records(tx, 1_000).put(ran.progressed(counters=counters)))
    place.file.write_text(place.file.read_text().replace("0 3 * * *", schedule))
    place.apply()
    status.run_status(place.store, "json", watch=False, check=True)
    troubles = json.loads(capsys.readouterr().out)["troubles"]
    assert ["job_never_runs"] * is_told == [one["code"] for one in troubles if one["job"] == "j"]


def test_a_daemon_tells_a_failure_with_its_output_and_commands_that_work(tmp_path: Path) -> None:
    with web_server() as server:
        place = Place(tmp_path, server.url)
        daemon = ChronexProcess(
            ["run", "--headless", "--config", place.config, "--store", place.store],
            stderr=subprocess.DEVNULL,
        )
        try:
            until((Path(place.store) / "data.mdb").exists, "the daemon makes its store")
            trigger = ["trigger", "j", "--store", place.store]
            until(lambda: run_chronex(trigger).returncode == 0, "the job is there")
            until(lambda: server.requests, "the webhook is told")
            told = json.loads(server.requests[0].body)
            assert told["headline"] == "j failed"
            assert (told["exit_code"], told["output"]) == (3, ["some output"])
            for command in (told["why"], told["replay"]):
                words = shlex.split(command)
                assert words[0] == "chronex"
                assert run_chronex(words[1:]).returncode == 0, command
        finally:
            daemon.terminate()
            daemon.wait(60)
