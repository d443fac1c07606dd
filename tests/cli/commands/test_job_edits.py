"""chronex edit, add, at and rm: the file and the store change together, or neither does."""

from __future__ import annotations

import json
import os
import pty
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Chronex, Done
from tests.kit.forked import run_chronex

TEXT = """\
# The jobs of ann.
[scheduler]
timezone = "UTC"

# Hello is said often.
[jobs.hello]
schedule = "@every 20s"
run = ["echo", "hello"]   # to all

[jobs.other]
schedule = "0 3 * * *"
run = ["true"]
"""


class Desk:
    """A job file and a store, the program, and an editor that puts `edited` into the file it is given."""

    def __init__(self, chronex: Chronex, directory: Path) -> None:
        self._chronex, self.directory = chronex, directory
        self.file, self.store = directory / "chronex.toml", str(directory / "store")
        self.file.write_text(TEXT)
        assert self("apply").code == 0

    def __call__(self, *arguments: str, **environment: str) -> Done:
        at = arguments.index("--") if "--" in arguments else len(arguments)
        named = () if arguments[0] in ("list", "show", "at") else ("--config", str(self.file))
        options = ("--store", self.store, *named)
        return self._chronex(*arguments[:at], *options, *arguments[at:], **environment)

    def jobs(self) -> dict[str, str]:
        listed = json.loads(self("list", "--format", "json").out)
        return {job["id"]: job["schedule"] for job in listed}

    def edit(self, edited: str, answer: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """On a terminal whose user gives this answer."""
        (self.directory / "new").write_text(edited)
        script = self.directory / "editor.py"
        script.write_text(f"import shutil, sys\nshutil.copyfile({str(self.directory / 'new')!r}, sys.argv[-1])\n")
        ours, theirs = pty.openpty()
        os.write(ours, answer.encode())
        environment = {
            "PATH": os.environ["PATH"],
            "EDITOR": f"{sys.executable} {script}",
            "TMPDIR": str(self.directory),
        }
        command = ["edit", *arguments, "--config", str(self.file), "--store", self.store]
        done = run_chronex(command, stdin=theirs, text=True, env=environment)
        os.close(ours)
        os.close(theirs)
        assert "Traceback" not in done.stderr
        return done


@pytest.fixture
def desk(chronex: Chronex, tmp_path: Path) -> Desk:
    return Desk(chronex, tmp_path)


# -- add and rm --------------------------------------------------------------------------------------------------


def test_a_job_is_added_to_the_file_and_to_the_store_and_the_rest_stays(desk: Desk) -> None:
    desk.file.chmod(0o640)
    done = desk("add", "tidy", "0 4 * * *", "--directory", "/tmp", "--", "find", "/tmp", "-name", "*.tmp", "-delete")
    assert done.code == 0, done.err
    assert "new        tidy in" in done.out
    assert desk.file.read_text() == TEXT + (
        '\n[jobs.tidy]\nschedule = "0 4 * * *"\nrun = [\n    "find",\n    "/tmp",\n    "-name",\n    "*.tmp",\n'
        '    "-delete",\n]\ndirectory = "/tmp"\n'
    )
    assert stat.S_IMODE(desk.file.stat().st_mode) == 0o640
    assert desk.jobs()["tidy"] == "0 4 * * *"
    assert "unchanged  tidy" in desk("apply").out


def test_other_edits_of_the_file_wait_for_apply(desk: Desk) -> None:
    desk.file.write_text(TEXT.replace("0 3 * * *", "0 5 * * *"))
    assert desk("add", "tidy", "0 4 * * *", "--", "true").code == 0
    assert desk.jobs() == {"hello": "@every 20s", "other": "0 3 * * *", "tidy": "0 4 * * *"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("add", "tidy", "99 * * * *", "--", "x"), "value 99 out of range"),
        (("add", "hello", "0 4 * * *", "--", "x"), "has a job 'hello' already; change it with: chronex edit"),
        (("add", "HELLO", "0 4 * * *", "--", "x"), "has a job 'hello' already"),
        (("add", "bad name", "0 4 * * *", "--", "x"), "bad name"),
        (("rm", "nobody"), "no job 'nobody'"),
    ],
)
def test_a_mistake_changes_nothing(desk: Desk, arguments: tuple[str, ...], words: str) -> None:
    done = desk(*arguments)
    assert done.code in (1, 2)
    assert words in done.err
    assert desk.file.read_text() == TEXT
    assert set(desk.jobs()) == {"hello", "other"}


@pytest.mark.parametrize(
    "arguments", [("add", "tidy", "0 4 * * *", "--dry-run", "--", "x"), ("rm", "hello", "--dry-run")]
)
def test_a_dry_run_shows_and_changes_nothing(desk: Desk, arguments: tuple[str, ...]) -> None:
    done = desk(*arguments)
    assert (done.code, "dry run: nothing was changed" in done.out) == (0, True)
    assert "[jobs." in done.out
    assert (desk.file.read_text(), set(desk.jobs())) == (TEXT, {"hello", "other"})


def test_a_job_goes_with_its_comment_and_its_text_is_shown(desk: Desk) -> None:
    done = desk("rm", "hello")
    assert done.code == 0, done.err
    assert 'run = ["echo", "hello"]   # to all' in done.out
    assert desk.file.read_text() == TEXT[: TEXT.index("# Hello")] + TEXT[TEXT.index("[jobs.other]") :]
    assert set(desk.jobs()) == {"other"}


def test_when_the_store_refuses_the_old_text_comes_back(desk: Desk, tmp_path: Path) -> None:
    second = tmp_path / "second.toml"
    second.write_text('[jobs.taken]\nschedule = "0 3 * * *"\nrun = ["true"]\n')
    assert desk._chronex("apply", str(second), "--store", desk.store).code == 0
    done = desk("add", "taken", "0 4 * * *", "--", "x")
    assert (done.code, "belongs to" in done.err) == (1, True)
    assert desk.file.read_text() == TEXT


def test_in_a_directory_a_job_has_a_file_of_its_own(chronex: Chronex, tmp_path: Path) -> None:
    conf, store = tmp_path / "conf.d", str(tmp_path / "store")
    conf.mkdir()
    options = ("--config", str(conf), "--store", store)
    assert chronex("add", "one", "0 4 * * *", *options, "--", "true").code == 0
    assert chronex("add", "two", "0 5 * * *", *options, "--", "true").code == 0
    assert sorted(path.name for path in conf.iterdir()) == ["one.toml", "two.toml"]
    assert chronex("rm", "one", *options).code == 0
    assert [path.name for path in conf.iterdir()] == ["two.toml"]


# -- at ----------------------------------------------------------------------------------------------------------


def test_at_puts_a_job_into_the_store_that_no_file_has_and_rm_takes_it_back(desk: Desk) -> None:
    done = desk("at", "now", "+", "2h", "--tz", "Europe/Berlin", "--format", "json", "--", "echo", "later")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert (found["job"], found["timezone"]) == ("at-echo", "Europe/Berlin")
    assert desk.jobs()["at-echo"].startswith("@once ")
    assert desk("apply").code == 0
    assert "at-echo" in desk.jobs(), "an apply of the file leaves it alone"
    assert json.loads(desk("at", "tomorrow 09:00", "--format", "json", "--", "echo x").out)["job"] == "at-echo-2"
    assert desk("rm", "at-echo").code == 0
    assert set(desk.jobs()) == {"hello", "other", "at-echo-2"}


@pytest.mark.parametrize(("words", "said"), [("yesterday", "not understood"), ("2020-01-01T00:00:00Z", "has passed")])
def test_at_says_what_is_no_time(desk: Desk, words: str, said: str) -> None:
    done = desk("at", words, "--", "true")
    assert (done.code, said in done.err) == (2, True)


def test_a_time_with_no_command_behind_it_is_not_taken_apart(desk: Desk) -> None:
    """`09:00` was the program, a day from now at the time of asking."""
    done = desk("at", "tomorrow", "09:00")
    assert (done.code, done.err) == (
        2,
        "chronex: 'tomorrow 09:00' is a time as a whole, and then nothing to run is left; put -- between the two\n",
    )


def test_at_says_the_zone_and_a_dry_run_changes_nothing(desk: Desk) -> None:
    done = desk("at", "--dry-run", "tomorrow", "09:00", "--tz", "Asia/Seoul", "--", "true")
    assert (done.code, "(Asia/Seoul, from --tz)" in done.out) == (0, True)
    assert set(desk.jobs()) == {"hello", "other"}


# -- edit --------------------------------------------------------------------------------------------------------

EDITED = TEXT.replace("0 3 * * *", "0 5 * * *")


def test_yes_writes_the_file_and_applies_it(desk: Desk) -> None:
    done = desk.edit(EDITED, "y\n", "other")
    assert done.returncode == 0, done.stderr
    assert "changed    other" in done.stdout
    assert (desk.file.read_text(), desk.jobs()["other"]) == (EDITED, "0 5 * * *")


def test_no_changes_nothing_and_keeps_the_text(desk: Desk) -> None:
    done = desk.edit(EDITED, "\n")
    assert done.returncode == 1
    assert (desk.file.read_text(), desk.jobs()["other"]) == (TEXT, "0 3 * * *")
    kept = done.stderr.split("your text is kept in ")[1].strip()
    assert Path(kept).read_text() == EDITED


def test_a_mistake_is_told_and_can_be_edited_again(desk: Desk) -> None:
    done = desk.edit(EDITED.replace("0 5 * * *", "99 5 * * *"), "n\n")
    assert done.returncode == 2
    assert "chronex.toml:11:13: minute: value 99 out of range" in done.stderr
    assert "edit again?" in done.stderr
    assert "your text is kept in" in done.stderr
    assert (desk.file.read_text(), desk.jobs()["other"]) == (TEXT, "0 3 * * *")


def test_an_edit_that_removes_most_jobs_says_so(desk: Desk) -> None:
    done = desk.edit('[scheduler]\ntimezone = "UTC"\n', "n\n")
    assert "this removes 2 jobs" in done.stderr
    assert set(desk.jobs()) == {"hello", "other"}


def test_without_an_edit_nothing_is_asked(desk: Desk) -> None:
    done = desk.edit(TEXT, "")
    assert (done.returncode, done.stdout) == (0, "nothing was edited\n")


def test_without_a_terminal_it_wants_a_word(desk: Desk) -> None:
    done = desk("edit", EDITOR="true")
    assert (done.code, "--yes" in done.err) == (2, True)
    assert "ended with 1" in desk("edit", "--yes", EDITOR="false").err
    assert "left no file behind; nothing was changed" in desk("edit", "--yes", EDITOR="rm").err
    assert "a quote is not closed in the name of the editor, vim '" in desk("edit", "--yes", EDITOR="vim '").err
