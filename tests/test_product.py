"""What the product was asked to be made of, and what its pages must say that it does not promise."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_the_layout_of_the_product_is_there() -> None:
    folders = ("chronex_tui", "store", "specs", "tests", "packaging", "screenshots")
    files = ("pyproject.toml", "README.md", "LICENSE", "Makefile")
    assert [name for name in folders if not (ROOT / name).is_dir()] == []
    assert [name for name in files if not (ROOT / name).is_file()] == []


def test_the_packages_of_the_product_are_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {re.split(r"[\[<>=~!; ]", line)[0] for line in project["dependencies"]}
    assert {"textual", "typer", "platformdirs", "lmdb", "rich", "tomli-w"} <= declared
    locked = {line.split("==")[0] for line in (ROOT / "packaging" / "requirements-dev.txt").read_text().splitlines()}
    assert {"pyinstaller", "pytest", "pytest-textual-snapshot", "croniter"} <= locked
    assert "croniter" not in declared


def test_the_files_that_packaging_names_are_there() -> None:
    for path in (ROOT / "packaging").glob("*.*"):
        named = set(re.findall(r"\bpackaging/[\w./-]*\w", path.read_text()))
        assert [name for name in named if not (ROOT / name).exists()] == [], path.name


@pytest.mark.parametrize(
    "words", ["Exactly once", "The exact moment", "Order between jobs", "An end", "A right clock"]
)
def test_what_is_not_guaranteed_is_stated(words: str) -> None:
    section = (ROOT / "specs" / "engine.md").read_text().partition("\n## What is not guaranteed\n")[2]
    assert f"**{words}" in section.partition("\n## ")[0]
