"""The doctor of the machine: programs that jobs will not find, a PATH that differs, zones that are unknown."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from chronex.cli.machine_checks import (
    Check,
    CheckVerdict,
    NotExecutable,
    NotFound,
    OtherFile,
    StoreFacts,
    examine,
    how_to_execute,
    programs_of,
    words_of,
)
from chronex.model.job import Job, Task
from chronex.model.records import Node
from chronex.run import identity_of
from tests.cli.conftest import Chronex


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("pg_dump -Fc app | gzip > app.gz", ["pg_dump", "gzip"]),
        ("cd /srv && make all", ["make"]),
        ("FOO=1 BAR=2 tool --x", ["tool"]),
        ("if test -f x; then rm x; fi", ["rm"]),
        ("for f in *; do gzip $f; done", ["gzip"]),
        ("$HOME/bin/tool", []),
        ("`which tool` x", []),
        ("echo 'rm -rf; tool'", []),
        ("a\nb", ["a", "b"]),
        ("unbalanced 'quote", []),
        ("if [ -x /opt/check ] && [ $(date +%d) -le 7 ]; then /opt/check --all; fi", ["date", "/opt/check"]),
        ("dump > db-$(date +%F).sql.gz && tidy", ["dump", "date", "tidy"]),
        ("$(pick) -n one | (cd /x; a -b); c $(d $(e) f) g", ["pick", "a", "c", "d", "e"]),
        ("case $x in a) one -x;; b) two;; esac", ["one", "two"]),
        ("a $((1 + 2)) b; diff <(x y) <(z)", ["a", "diff", "x", "z"]),
        ("", []),
    ],
)
def test_the_programs_that_a_shell_command_plainly_names(command: str, names: list[str]) -> None:
    assert words_of(command) == names


def program(place: Path, name: str) -> Path:
    place.mkdir(exist_ok=True)
    file = place / name
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    return file


def job(*run: str, **more: str) -> Job:
    return Job(id="j", schedule="@daily", tasks=(Task(name="t", run=run, env=more),))


def test_a_program_is_looked_for_where_the_job_will_look(tmp_path: Path) -> None:
    mine, theirs = program(tmp_path / "mine", "tool"), program(tmp_path / "theirs", "tool")
    program(tmp_path / "mine", "only")

    def finding(job: Job) -> object:
        return next(iter(programs_of([job], str(mine.parent), str(theirs.parent))))[1].finding

    assert finding(job("tool")) == OtherFile(str(mine), str(theirs))
    assert finding(job("only")) == NotFound()
    assert finding(job("only", PATH=str(mine.parent))) is None
    assert finding(job(str(mine))) is None
    assert finding(job(str(tmp_path / "gone"))) == NotFound()
    for closed in (mine.parent / "closed", theirs.parent / "shut"):
        closed.write_text("#!/bin/sh\n")
        closed.chmod(0o644)
    assert finding(job(str(mine.parent / "closed"))) == NotExecutable(str(mine.parent / "closed"))
    assert finding(job("shut")) == NotExecutable(str(theirs.parent / "shut"))
    assert finding(job(str(mine.parent))) == NotExecutable(str(mine.parent))


def checks(found: StoreFacts, path: str = "/usr/bin:/bin") -> dict[str, list[Check]]:
    by_topic: dict[str, list[Check]] = {}
    for check in examine(found, {"PATH": path}, "not installed"):
        by_topic.setdefault(check.topic, []).append(check)
    return by_topic


def test_a_zone_that_is_unknown_here_names_its_jobs() -> None:
    found = StoreFacts((Job(id="a", schedule="@daily", timezone="Mars/Olympus"),), None)
    wrong = [check for check in checks(found)["zone data"] if check.verdict is CheckVerdict.WRONG]
    assert len(wrong) == 1
    assert "used by a" in wrong[0].message


@pytest.mark.skipif(not os.path.exists("/proc/self/environ"), reason="another's environment cannot be read here")
def test_the_path_of_a_running_daemon_is_compared_with_the_shells() -> None:
    me = identity_of(os.getpid())
    assert me is not None
    found = StoreFacts((), Node(id="n", process=me))
    topics = checks(found, path=f"{os.environ['PATH']}:/only/in/the/shell")
    assert "/only/in/the/shell" in topics["environment"][0].message
    assert topics["daemon"][0].verdict is CheckVerdict.FINE


def test_doctor_exits_1_for_a_program_that_no_job_will_find(chronex: Chronex, tmp_path: Path) -> None:
    file, store = tmp_path / "chronex.toml", str(tmp_path / "store")
    file.write_text('[jobs.a]\nschedule = "@daily"\nrun = ["no-such-program-anywhere"]\n')
    assert chronex("apply", str(file), "--store", store).code == 0
    done = chronex("doctor", "--store", store)
    assert done.code == 1
    assert "wrong programs: job a: no-such-program-anywhere is not found" in done.out
    shown = json.loads(chronex("doctor", "--store", store, "--format", "json").out)
    assert shown["sound"] is True
    assert {"topic", "verdict", "message", "advice"} == set(shown["machine"][0])


def test_a_program_that_all_may_execute_lies_behind_a_directory_that_is_shut(tmp_path: Path) -> None:
    """`chmod +x` was advised, and changes nothing there."""
    tool = tmp_path / "tool"
    tool.touch()
    tool.chmod(0o755)
    assert how_to_execute(str(tool)) == "let that user into the directories that lead there"
    tool.chmod(0o744)
    assert how_to_execute(str(tool)) == f"run: chmod +x {tool}"
