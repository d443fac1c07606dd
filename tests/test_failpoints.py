"""Fail-points: one table, the same as the code."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from chronex import failpoints
from tests.kit.source_trees import syntax_of

ROOT = Path(failpoints.__file__).parent.parent


def call_sites() -> list[str]:
    found = []
    for path in (*ROOT.glob("chronex/**/*.py"), *ROOT.glob("store/**/*.py")):
        for node in ast.walk(syntax_of(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "fail_point":
                (argument,) = node.args
                assert isinstance(argument, ast.Constant), f"{path}:{node.lineno}"
                found.append(str(argument.value))
    return found


def test_the_table_is_what_the_code_has() -> None:
    assert sorted(call_sites()) == sorted(failpoints.POINTS), "each point is in one place"


def test_they_are_off_where_nobody_asks() -> None:
    assert failpoints.fail_point is failpoints._pass


@pytest.mark.parametrize(("wanted", "passed"), [("spawned", 0), ("spawned:1", 0), ("spawned:3", 2)])
def test_the_process_is_killed_at_the_nth_passing(wanted: str, passed: int) -> None:
    code = "from chronex.failpoints import fail_point\nfor n in range(9):\n fail_point('adopted'); fail_point('spawned'); print(n, flush=True)"
    environment = {failpoints.VARIABLE: wanted, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()) == (-9, [str(n) for n in range(passed)])


def test_an_unknown_point_is_refused() -> None:
    with pytest.raises(SystemExit, match="no fail-point 'elsewhere'"):
        failpoints.armed("elsewhere:2")
