"""Plan (with due times), admit and lifecycle decide from their arguments alone: read from the source itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ENGINE = Path(__file__).parents[2] / "chronex" / "engine"
PURE = ("plan", "admit", "lifecycle")
# Of other libraries and of Chronex. `lifecycle` writes its decisions to the records it is given, and to nothing else.
LIBRARIES = {
    "__future__",
    "collections.abc",
    "datetime",
    "enum",
    "functools",
    "itertools",
    "msgspec",
    "msgspec.structs",
    "typing",
}
PACKAGES = {"decision", "engine", "errors", "expr", "model", "text", "timing"}
OF_LIFECYCLE = {"chronex.storage.records"}
IMPURE_CALLS = {"open", "input", "print", "eval", "exec", "globals", "hash", "id"}
IMPURE_NAMES = {"now", "utcnow", "today"}


def tree_of(name: str) -> ast.Module:
    return ast.parse((ENGINE / f"{name}.py").read_text())


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def is_pure(module: str) -> bool:
    head, _, rest = module.partition(".")
    return rest.partition(".")[0] in PACKAGES if head == "chronex" else module in LIBRARIES


@pytest.mark.parametrize("name", PURE)
def test_no_clock_system_random_generator_or_store_is_imported(name: str) -> None:
    allowed = OF_LIFECYCLE if name == "lifecycle" else set()
    assert [module for module in imports(tree_of(name)) if not is_pure(module) and module not in allowed] == []


@pytest.mark.parametrize("name", PURE)
def test_no_clock_is_read_and_nothing_outside_is_called(name: str) -> None:
    calls = [ast.unparse(node.func) for node in ast.walk(tree_of(name)) if isinstance(node, ast.Call)]
    assert [call for call in calls if call in IMPURE_CALLS or call.rpartition(".")[2] in IMPURE_NAMES] == []


@pytest.mark.parametrize("name", PURE)
def test_no_module_variable_is_ever_changed(name: str) -> None:
    tree = tree_of(name)
    assert not any(isinstance(node, ast.Global) for node in ast.walk(tree))
    for node in tree.body:
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        assert not isinstance(value, ast.List | ast.Dict | ast.Set), (
            f"line {node.lineno}: a value that could be changed"
        )
