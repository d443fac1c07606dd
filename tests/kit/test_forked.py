"""The tests' own short cut: what it starts must be the program that a whole start would be."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

from chronex.version import __version__
from tests.kit.forked import ROOT, ChronexProcess, run_chronex


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
