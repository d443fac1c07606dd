"""The models know no widget: neither textual nor rich is imported by them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent.parent / "chronex_tui"
PURE = sorted([*PACKAGE.glob("model/*.py"), PACKAGE / "state.py"])


@pytest.mark.parametrize("path", PURE, ids=lambda path: path.name)
def test_models_import_no_widgets(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        for name in names:
            assert name.split(".")[0] not in ("textual", "rich"), f"{path.name}:{node.lineno}"
            is_ours = name.startswith("chronex_tui.")
            assert not is_ours or name.startswith(("chronex_tui.model", "chronex_tui.state")), f"{path.name}: {name}"
