"""chronex apply of directories and of several files: each source has its jobs, and none loses them by an accident."""

from __future__ import annotations

import json
import os
import pty
from pathlib import Path

import pytest

from tests.cli.conftest import Chronex
from tests.kit.forked import run_chronex

JOB = '[jobs.{}]\nschedule = "0 3 * * *"\nrun = ["true"]\n'
ZONE = '[scheduler]\ntimezone = "UTC"\n'


def text_of(*names: str) -> str:
    return "".join(JOB.format(name) for name in names)


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "store")


def listed(chronex: Chronex, store: str) -> list[str]:
    return sorted(job["id"] for job in json.loads(chronex("list", "--store", store, "--format", "json").out))


def test_a_directory_is_one_source(chronex: Chronex, tmp_path: Path, store: str) -> None:
    conf = tmp_path / "conf.d"
    conf.mkdir()
    (conf / "chronex.toml").write_text('[scheduler]\ntimezone = "Europe/Berlin"\n')
    (conf / "a.toml").write_text(text_of("a1", "a2", "a3"))
    (conf / "b.toml").write_text(text_of("b"))
    (conf / "notes.txt").write_text("not a job file")
    (conf / ".a.toml.swp").write_text("broken =")
    (conf / ".hidden.toml").write_text("broken =")
    assert chronex("apply", str(conf), "--store", store).code == 0
    assert listed(chronex, store) == ["a1", "a2", "a3", "b"]
    (conf / "b.toml").unlink()
    done = chronex("apply", str(conf), "--store", store)
    assert "removed    b" in done.out
    shown = json.loads(chronex("show", "a1", "--store", store, "--format", "json").out)
    assert shown["source"] == str(conf)


def test_a_second_file_leaves_the_first_ones_jobs_alone(chronex: Chronex, tmp_path: Path, store: str) -> None:
    one, two = tmp_path / "one.toml", tmp_path / "two.toml"
    one.write_text(text_of("a", "b"))
    two.write_text(text_of("c"))
    assert chronex("apply", str(one), "--store", store).code == 0
    assert chronex("apply", str(two), "--store", store).code == 0
    assert listed(chronex, store) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (("a",), (), "this would remove its only job of"),
        (("a", "b", "c"), (), "this would remove all 3 jobs of"),
        (("a", "b", "c"), ("a",), "this would remove 2 of the 3 jobs of"),
        (("a", "b"), ("a",), None),
        (("a", "b", "c", "d"), ("a", "b", "e"), None),
    ],
)
def test_a_source_that_loses_most_of_its_jobs_wants_a_word(
    chronex: Chronex, tmp_path: Path, store: str, before: tuple[str, ...], after: tuple[str, ...], said: str | None
) -> None:
    file = tmp_path / "jobs.toml"
    file.write_text(text_of(*before))
    assert chronex("apply", str(file), "--store", store).code == 0
    file.write_text("[scheduler]\n" + text_of(*after))
    preview = chronex("apply", str(file), "--store", store, "--dry-run")
    done = chronex("apply", str(file), "--store", store)
    assert ("--prune" in preview.out) == (said is not None)
    if said is None:
        assert (done.code, listed(chronex, store)) == (0, sorted(after))
        return
    assert done.code == 2
    assert said in done.err
    assert "--prune" in done.err
    assert listed(chronex, store) == sorted(before)
    assert chronex("apply", str(file), "--store", store, "--prune").code == 0
    assert listed(chronex, store) == sorted(after)


@pytest.mark.parametrize(("answer", "left"), [("n", ["a", "b", "c"]), ("", ["a", "b", "c"]), ("y", ["a"])])
def test_on_a_terminal_it_asks(chronex: Chronex, tmp_path: Path, store: str, answer: str, left: list[str]) -> None:
    file = tmp_path / "jobs.toml"
    file.write_text(text_of("a", "b", "c"))
    assert chronex("apply", str(file), "--store", store).code == 0
    file.write_text(text_of("a"))
    ours, theirs = pty.openpty()
    os.write(ours, f"{answer}\n".encode())
    done = run_chronex(["apply", str(file), "--store", store], stdin=theirs)
    os.close(ours)
    os.close(theirs)
    assert b"this removes 2 of 3 jobs" in done.stderr
    assert done.returncode == (0 if answer == "y" else 1)
    assert listed(chronex, store) == left


@pytest.mark.parametrize("writable", ["directory", "file"])
def test_what_another_user_can_write_is_not_read(chronex: Chronex, tmp_path: Path, store: str, writable: str) -> None:
    conf = tmp_path / "conf.d"
    conf.mkdir()
    (conf / "a.toml").write_text(text_of("a"))
    (conf if writable == "directory" else conf / "a.toml").chmod(0o777 if writable == "directory" else 0o666)
    done = chronex("apply", str(conf), "--store", store)
    assert done.code == 2
    assert "could run commands as" in done.err or "not read by root" in done.err


def test_a_planted_pipe_or_link_is_named_and_not_followed(chronex: Chronex, tmp_path: Path, store: str) -> None:
    conf = tmp_path / "conf.d"
    conf.mkdir()
    os.mkfifo(conf / "a.toml")
    assert "is not a regular file" in chronex("apply", str(conf), "--store", store).err
    (conf / "a.toml").unlink()
    (conf / "a.toml").symlink_to("/nowhere/at/all.toml")
    done = chronex("apply", str(conf), "--store", store)
    assert (done.code, "cannot read" in done.err or "is not read" in done.err) == (2, True)
