"""docs/architecture.md names files and functions that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.kit.source_trees import syntax_of

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text()
FILE = re.compile(r"`((?:chronex|chronex_tui|store|tests)/[\w/.]+\.py)`((?:,? (?:and )?`\w+`)*)")


def names_in(path: Path) -> set[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for node in ast.walk(syntax_of(path)) if isinstance(node, kinds)}


def test_every_file_and_function_of_the_walks_exists() -> None:
    missing: list[str] = []
    steps = FILE.findall(PAGE)
    assert len(steps) > 30
    for file, functions in steps:
        path = ROOT / file
        if not path.is_file():
            missing.append(file)
            continue
        found = names_in(path)
        missing += [f"{file} {name}" for name in re.findall(r"`(\w+)`", functions) if name not in found]
    assert missing == []


def test_every_package_of_the_page_exists() -> None:
    packages = re.findall(r"`((?:chronex|chronex_tui|store)/[\w/]*)/`|^\| `(chronex_tui)/`", PAGE, re.M)
    assert packages
    assert [name for pair in packages for name in pair if name and not (ROOT / name).is_dir()] == []
