"""The tests' own short cut: what it starts must be the program that a whole start would be."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from chronex.keeper.keepers import is_alive, start_keeper
from chronex.version import __version__
from tests.kit import forked
from tests.kit.forked import ROOT, ChronexProcess, run_chronex, run_python, stand_in
from tests.kit.processes import end_all, processes_of
from tests.kit.waits import until


def test_what_is_forked_prints_and_exits_as_a_whole_start() -> None:
    good, bad = run_chronex(["version"], text=True), run_chronex(["no-such-command"], text=True)
    assert (good.returncode, __version__ in good.stdout, good.stderr) == (0, True, "")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert "no-such-command" in bad.stderr


def test_it_is_a_child_of_the_test_and_ends_by_a_signal(tmp_path: Path) -> None:
    with ChronexProcess(["lsp"], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        status = Path(f"/proc/{process.pid}/status")
        if status.exists():
            assert f"PPid:\t{os.getpid()}\n" in status.read_text()
        process.kill()
        assert process.wait() == -signal.SIGKILL


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("chronex version", (0, f"chronex {__version__}", "")),
        ("chronex fmt 'bad' 2> /dev/null", (2, "", "")),
        ("cd / && CHRONEX_STORE=$X chronex list", (2, "", "no store at")),
        ("echo '0  9 * * *' | xargs -d '\\n' chronex fmt && chronex fmt '' ; echo $?", (0, "0 9 * * *\n2", "")),
    ],
)
def test_a_shell_has_a_stand_in_that_takes_arguments_streams_directory_and_variables(
    line: str, expected: tuple[int, str, str]
) -> None:
    environment = {"PATH": f"{Path(stand_in()).parent}:{os.environ['PATH']}", "X": "/nowhere/x", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(["sh", "-c", line], env=environment, capture_output=True, text=True, check=False)
    code, out, err = expected
    assert (done.returncode, out in done.stdout, err in done.stderr) == (code, True, True), done


PROGRAM = """
import atexit, sys, threading
from chronex.model import Job
assert Job.__name__ == "Job" and __name__ == "__main__" and sys.modules["__main__"].PROGRAM
atexit.register(print, "bye", flush=True)
threading.Timer(0.01, lambda: print(*sys.argv[1:], flush=True)).start()
"""


@pytest.mark.parametrize("form", ["code", "file"])
def test_a_program_of_a_test_begins_and_ends_as_python_would_let_it(form: str, tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    text = "PROGRAM = True" + PROGRAM
    file.write_text(text)
    arguments = ["-c", text] if form == "code" else [str(file)]
    done = run_python([*arguments, "a", "b"], text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "a b\nbye\n", "")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import sys; sys.exit(7)", (7, "")),
        ("1 / 0", (1, "ZeroDivisionError")),
        ("raise SystemExit('no')", (1, "no\n")),
    ],
)
def test_a_program_that_fails_says_so_and_has_its_exit_code(code: str, expected: tuple[int, str]) -> None:
    done = run_python(["-c", code], text=True)
    assert done.returncode == expected[0]
    assert expected[1] in done.stderr


def test_another_tree_is_another_program(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "chronex", tmp_path / "chronex", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "chronex" / "version.py").write_text('__version__ = "99.0"\n')
    path = os.pathsep.join([str(tmp_path), str(ROOT), str(ROOT / "store")])
    done = run_chronex(["version"], cwd=tmp_path, env={"PATH": os.environ["PATH"], "PYTHONPATH": path}, text=True)
    assert "99.0" in done.stdout, done.stderr


def test_an_armed_fail_point_kills(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "CHRONEX_FAIL_POINT": "update written"}
    (tmp_path / "chronex.toml").write_text('[jobs.a]\nschedule = "@daily"\nrun = "true"\n')
    done = run_chronex(["apply", "--store", "store"], cwd=tmp_path, env=environment, text=True)
    assert done.returncode == -signal.SIGKILL


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="the environment of another cannot be read here")
def test_a_forked_keeper_has_a_session_and_an_environment_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHRONEX_STORE", str(tmp_path))
    directory = tmp_path / "keepers" / "node.1"
    directory.mkdir(parents=True)
    start_keeper(directory, tmp_path / "logs")
    (keeper,) = processes_of(tmp_path)
    process = Path(f"/proc/{keeper}")
    assert (process / "comm").read_text() == "chronex-keeper\n"
    assert b"tests.kit.forked" in (process / "cmdline").read_bytes()
    assert os.getsid(keeper) not in (os.getsid(0), keeper), "the process that began the session has ended"
    assert is_alive(directory)
    end_all(tmp_path)
    until(lambda: not is_alive(directory), "the end of the keeper")


def test_a_process_that_forks_is_replaced_where_it_was_killed() -> None:
    assert run_chronex(["version"]).returncode == 0
    killed = forked._forks()
    os.kill(killed._process.pid, signal.SIGKILL)
    until(lambda: killed.has_ended, "its end")
    assert run_chronex(["version"]).returncode == 0
