"""docs/comparison.md names for every peer the version it speaks of and where that is from; ours are those we measure."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "comparison.md").read_text()
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("|")]
HEAD, BY_NAME = ROWS[0], {row[0]: row[1:] for row in ROWS[2:]}


def test_every_row_has_a_cell_for_every_tool() -> None:
    assert [row for row in ROWS if len(row) != len(HEAD) or not all(row[1:])] == []


def test_every_peer_has_a_version_and_a_source() -> None:
    peers = dict(zip(HEAD[1:], zip(BY_NAME["version"], BY_NAME["source"], strict=True), strict=True))
    assert peers.pop("Chronex") == ("this one", "its tests")
    assert [name for name, (version, source) in peers.items() if not re.search(r"\d", version) or not source] == []


def test_peers_that_are_measured_are_those_that_are_installed() -> None:
    """A newer one in the requirements is a reason to look at its cells again."""
    pinned = dict(
        line.strip().split("==")
        for line in (ROOT / "packaging" / "requirements-dev.txt").read_text().splitlines()
        if "==" in line
    )
    versions = dict(zip(HEAD[1:], BY_NAME["version"], strict=True))
    assert versions["APScheduler"] == pinned["APScheduler"]
    assert versions["cronstable"] == pinned["cronstable"]
