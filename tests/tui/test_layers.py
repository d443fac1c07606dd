"""Imports inside the dashboard run one way, and the models know no widget."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.source_trees import syntax_of

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "chronex_tui"
SOURCES = sorted(PACKAGE.rglob("*.py"))
# From the bottom to the top: a module imports its own layer and the layers below it.
LAYERS = (
    ("model",),
    ("state", "theme"),
    ("widgets", "data", "key_order"),
    ("views", "time_views", "system_views"),
    ("screens", "editing"),
    ("view_actions", "commands", "data_requests"),
    ("app",),
    ("launch", "browser"),
)
RANKS = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
PURE = ("model", "state")


def layer_of(module: str) -> str:
    """`chronex_tui.model.density` is in `model`, `chronex_tui.state` in `state`."""
    return module.split(".")[1]


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def imports_of(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every import that is executed, those inside functions too; not what only the type checker reads."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, node.module or ""
        yield from imports_of(node)


def test_every_module_has_a_layer() -> None:
    names = {layer_of(module_of(path)) for path in SOURCES}
    assert names - {"__init__"} == set(RANKS)


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_imports_run_one_way(path: Path) -> None:
    layer = layer_of(module_of(path))
    for line, name in imports_of(syntax_of(path)):
        if name.startswith("chronex_tui."):
            below = layer_of(name)
            assert RANKS[below] <= RANKS[layer], f"{path.name}:{line}: {layer} may not import {below}"


@pytest.mark.parametrize("path", [path for path in SOURCES if layer_of(module_of(path)) in PURE], ids=module_of)
def test_models_import_no_widgets(path: Path) -> None:
    for line, name in imports_of(syntax_of(path)):
        assert name.split(".")[0] not in ("textual", "rich"), f"{path.name}:{line}: {name}"
