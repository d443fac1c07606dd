"""The golden table through the command line; tests/lsp runs it through the server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Chronex, chronex
from tests.lint.golden import CASES, NOW, ZONE, Case
from tests.lint.linting import found

__all__ = ["chronex"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.path)
def test_each_file_has_exactly_these_findings(case: Case) -> None:
    assert found(case.path, case.text) == list(case.findings)


def test_the_command_line_finds_the_same_in_a_directory(chronex: Chronex, tmp_path: Path) -> None:
    for case in CASES:
        path = tmp_path / case.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(case.text.encode())
    arguments = ("--tz", ZONE, "--now", NOW, "--min-severity", "info", "--format", "json")
    done = chronex("lint", str(tmp_path), *arguments, CHRONEX_CRON="debian")
    assert done.code == 2, done.err  # one of the files is not YAML
    by_file: dict[str, list[str]] = {}
    for row in json.loads(done.out):
        name = Path(row["file"]).relative_to(tmp_path).as_posix()
        place = f"{row['line']}:{row['column']}-{row['end_line']}:{row['end_column']}"
        by_file.setdefault(name, []).append(f"{place} {row['code']}")
    assert by_file == {case.path: list(case.findings) for case in CASES if case.findings}
