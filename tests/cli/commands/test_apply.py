"""apply as it is typed: what is said, in which shape, and the exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chronex.cli.commands.apply import ApplyOptions, run_apply, run_rollback
from chronex.cli.options import UsageError
from chronex.errors import NotPossibleError, StaleUpdateError, UnknownJobError
from chronex.storage.records import Reading
from chronex.timing import zones
from chronex.timing.zones import load_zone
from chronex_store import LmdbStore

Capture = pytest.CaptureFixture[str]
ONE_JOB = '[jobs.a]\nschedule = "0 3 * * *"\nrun = ["true"]\n'


class Directory:
    def __init__(self, path: Path) -> None:
        self.path = path

    def options(self, text: str | None = None, name: str = "chronex.toml", **more: Any) -> ApplyOptions:
        if text is not None:
            (self.path / name).write_text(text)
        return ApplyOptions(str(self.path / name), store=str(self.path / "store"), **more)

    def jobs(self) -> list[str]:
        with LmdbStore.open(self.path / "store", create=False) as store:
            return store.view(lambda tx: [f"{job.id} {job.version}" for job in Reading(tx).jobs()])


@pytest.fixture
def place(tmp_path: Path) -> Directory:
    return Directory(tmp_path)


def said(capsys: Capture) -> Any:
    return json.loads(capsys.readouterr().out)


def test_apply_and_apply_again(place: Directory, capsys: Capture) -> None:
    for word in ("new", "unchanged"):
        assert run_apply(place.options(ONE_JOB)) == 0
        assert capsys.readouterr().out == f"{word:10} a\n"


@pytest.mark.parametrize("dry", [False, True], ids=["applied", "dry run"])
def test_what_only_the_zone_of_the_shell_moves_is_told(
    place: Directory, capsys: Capture, monkeypatch: pytest.MonkeyPatch, dry: bool
) -> None:
    """Another shell's TZ, as ssh may bring it along, moves every schedule that names no zone."""
    monkeypatch.setattr(zones, "machine_zone", lambda: load_zone("Europe/Paris"))
    named = '[jobs.b]\nschedule = "TZ=Asia/Tokyo 0 3 * * *"\nrun = ["true"]\n'
    monkeypatch.setenv("TZ", "Europe/Paris")
    run_apply(place.options(ONE_JOB + named))
    assert "read in" not in capsys.readouterr().err
    monkeypatch.setenv("TZ", "Asia/Seoul")
    run_apply(place.options(ONE_JOB + named, dry_run=dry))
    said = capsys.readouterr().err
    assert "a: read in Asia/Seoul, the TZ of this shell, and not in Europe/Paris as before" in said
    assert 'timezone = "Europe/Paris" under [scheduler]' in said


def test_apply_brings_the_groups_of_the_file_too(place: Directory) -> None:
    """Where machines share a store nothing else does, and a limit that nobody stored is kept by nobody."""
    assert run_apply(place.options(f'[groups.db]\nlimit = 1\n{ONE_JOB}groups = ["db"]\n')) == 0
    with LmdbStore.open(place.path / "store", create=False) as store:
        found = store.view(lambda tx: [(group.name, group.limit) for group in Reading(tx).groups()])
    assert found == [("db", 1)]


def test_a_dry_run_writes_nothing_not_even_a_store(place: Directory, capsys: Capture) -> None:
    assert run_apply(place.options(ONE_JOB, dry_run=True, form="json")) == 0
    answer = said(capsys)
    assert (answer["dry_run"], answer["fires_now"], answer["basis"]) == (True, False, 0)
    assert answer["changes"] == [{"job": "a", "change": "new", "version": 1}]
    assert len(answer["effects"][0]["added"]) == 7
    assert not (place.path / "store").exists()


def test_a_dry_run_names_what_moves_and_how_to_apply_exactly_this(place: Directory, capsys: Capture) -> None:
    run_apply(place.options(ONE_JOB))
    capsys.readouterr()
    assert run_apply(place.options(ONE_JOB.replace("0 3", "0 5"), dry_run=True)) == 0
    text = capsys.readouterr().out
    assert text.startswith("changed    a\n  moved     ")
    assert text.count(" -> ") >= 6
    last = text.splitlines()[-1]
    assert last.startswith("dry run: nothing was changed; to apply exactly this: chronex apply ")
    assert last.endswith(" --basis 1")
    assert place.jobs() == ["a 1"]


def test_a_stale_basis_is_refused_with_what_changed(place: Directory, capsys: Capture) -> None:
    run_apply(place.options(ONE_JOB))
    run_apply(place.options(ONE_JOB.replace("0 3", "0 5")))
    with pytest.raises(StaleUpdateError, match=r"a overridden by .* at ") as refused:
        run_apply(place.options(ONE_JOB.replace("0 3", "0 7"), basis=1))
    assert refused.value.exit_code == 1
    assert place.jobs() == ["a 2"]
    assert run_apply(place.options(ONE_JOB.replace("0 3", "0 7"), basis=2)) == 0


def test_a_basis_that_has_not_come_is_bad_input(place: Directory) -> None:
    assert run_apply(place.options(ONE_JOB)) == 0
    with pytest.raises(UsageError, match="the journal has come to 1 only"):
        run_apply(place.options(ONE_JOB, basis=99))


def test_an_edit_that_fires_now_is_refused_on_request(place: Directory, capsys: Capture) -> None:
    often = '[jobs.a]\nschedule = "* * * * * *"\nrun = ["true"]\nrecovery = "{}"\n'
    run_apply(place.options(often.format("mark_missed")))
    wanted = often.format("execute_last")
    until_owed(place)
    for dry_run in (True, False):
        assert run_apply(place.options(wanted, dry_run=dry_run, fail_if_fires_now=True)) == 1
        assert "FIRES NOW" in capsys.readouterr().out
    assert place.jobs() == ["a 1"]
    assert run_apply(place.options(wanted)) == 0


def until_owed(place: Directory) -> None:
    """A second passes that nobody decides: the store's own clock says when."""
    with LmdbStore.open(place.path / "store") as store:
        start = store.now()
        while store.now() // 1000 <= start // 1000:
            store.wait(store.wait(-1, 0), 0.05)


def test_a_mistake_in_the_file_is_told_with_its_place_and_changes_nothing(place: Directory, capsys: Capture) -> None:
    assert run_apply(place.options('[jobs.a]\nschedule = "0 25 * * *"\nrun = ["true"]\n')) == 2
    assert "chronex.toml:2:" in capsys.readouterr().err
    assert not (place.path / "store").exists()


def test_trigger_definitions_are_applied_beside_the_job_file(place: Directory, capsys: Capture) -> None:
    trigger = json.dumps({"$schema": "x", "id": "t", "expression": "0 4 * * *", "run": ["true"]})
    run_apply(place.options(ONE_JOB))
    assert run_apply(place.options(trigger, name="t.json")) == 0
    assert run_apply(place.options()) == 0
    assert place.jobs() == ["a 1", "t 1"]
    assert run_apply(place.options("[]", name="t.json")._replace(prune=True)) == 0
    assert place.jobs() == ["a 1"]


@pytest.mark.parametrize(("given", "effective"), [(None, "graceful"), ("immediate", "immediate")])
def test_the_update_policy_of_the_file_holds_unless_another_is_given(
    place: Directory, capsys: Capture, given: str | None, effective: str
) -> None:
    text = '[scheduler]\nupdate_policy = "graceful"\n' + ONE_JOB
    assert run_apply(place.options(text)._replace(form="json", policy=given)) == 0
    assert json.loads(capsys.readouterr().out)["policy"] == effective


def test_a_trigger_definition_that_nothing_carries_out_is_refused(place: Directory, capsys: Capture) -> None:
    trigger = json.dumps({"id": "t", "expression": "0 4 * * *"})
    assert run_apply(place.options(trigger, name="t.json")) == 2
    assert "t.json:1:1: trigger 't' has nothing to run; write \"run\"" in capsys.readouterr().err
    assert not (place.path / "store").exists()


def test_a_relative_time_counts_from_its_first_apply(place: Directory, capsys: Capture) -> None:
    once = '[jobs.a]\nschedule = "@once +20m"\nrun = ["true"]\n'
    run_apply(place.options(once))
    capsys.readouterr()
    assert run_apply(place.options(once)) == 0
    assert capsys.readouterr().out == "unchanged  a\n"


def test_rollback(place: Directory, capsys: Capture) -> None:
    store = str(place.path / "store")
    run_apply(place.options(ONE_JOB))
    run_apply(place.options(ONE_JOB.replace("0 3", "0 5")))
    capsys.readouterr()
    assert run_rollback("a", 1, store, "text") == 0
    spoken = capsys.readouterr()
    assert spoken.out == "changed    a: version 3 has the definition of version 1\n"
    assert "the job file still says otherwise" in spoken.err
    assert run_rollback("a", 3, store, "json") == 0
    with pytest.raises(NotPossibleError, match="there are 1, 2, 3"):
        run_rollback("a", 9, store, "text")
    with pytest.raises(UnknownJobError):
        run_rollback("ghost", 1, store, "text")


def test_the_words_for_people_are_plain_and_those_for_programs_stay(place: Directory, capsys: Capture) -> None:
    run_apply(place.options(ONE_JOB))
    capsys.readouterr()
    assert run_apply(place.options("", dry_run=True)) == 0
    assert capsys.readouterr().out.startswith("removed    a\n")
    assert run_apply(place.options("", dry_run=True, form="json")) == 0
    assert [change["change"] for change in said(capsys)["changes"]] == ["orphaned"]


def test_people_see_ten_lines_of_each_effect_and_no_json_is_built_for_them(
    place: Directory, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chronex.cli.commands.apply.effect_json", None)
    assert run_apply(place.options(ONE_JOB.replace("0 3", "* *"), dry_run=True)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if line.startswith("  added ")]) == 11
    assert " more until " in lines[11]


def test_apply_says_how_to_start_a_daemon_where_none_runs(place: Directory, capsys: Capture) -> None:
    options = place.options(ONE_JOB)
    assert run_apply(options) == 0
    told = capsys.readouterr().err
    assert f"nothing starts yet; start one with: chronex run --config {options.file} --store {options.store}" in told
    assert run_apply(options._replace(form="json")) == 0
    assert capsys.readouterr().err == ""
