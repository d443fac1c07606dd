"""No clock, environment, file or floating point decides a second: read from the source itself."""

from __future__ import annotations

import ast
import itertools
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from chronex.decision import DecisionRequest, decide
from tests.kit.source_trees import syntax_of
from tests.kit.work import assert_cheap

PACKAGE = Path(__file__).parent.parent.parent / "chronex" / "decision"
SOURCES = sorted(PACKAGE.glob("*.py"))
PURE_MODULES = {
    "bisect", "collections.abc", "dataclasses", "datetime", "decimal", "difflib", "enum", "functools", "hashlib",
    "math", "re", "typing",
}  # fmt: skip
INTEGER_FUNCTIONS = {"isqrt"}  # all that may come from math


def imports(tree: ast.AST) -> Iterator[tuple[str, set[str]]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, set()) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "", {alias.name for alias in node.names}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_only_pure_modules_are_imported(path: Path) -> None:
    for module, names in imports(syntax_of(path)):
        if module == "__future__" or module.split(".")[0] == "chronex":
            continue
        assert module in PURE_MODULES
        if module == "math":
            assert names <= INTEGER_FUNCTIONS


# The only floating-point constant is the cutoff of get_close_matches, which words a suggestion.
@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_floating_point_is_computed(path: Path) -> None:
    tree = syntax_of(path)
    cutoffs = {
        id(argument)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "get_close_matches"
        for argument in node.args
    }
    for node in ast.walk(tree):
        is_float = isinstance(node, ast.Constant) and isinstance(node.value, float)
        assert not is_float or id(node) in cutoffs
        assert not isinstance(node, ast.BinOp | ast.AugAssign) or not isinstance(node.op, ast.Div)
        if isinstance(node, ast.Call):
            assert ast.unparse(node.func) not in {"float", "open", "hash", "id", "globals", "eval", "input"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_module_variable_is_ever_changed(path: Path) -> None:
    for node in ast.walk(syntax_of(path)):
        assert not isinstance(node, ast.Global)


DISTRIBUTIONS = {"uniform": {}, "skewEarly": {"s": "2.5"}, "skewLate": {}, "normal": {}, "exponential": {}}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_decision_is_little_work(name: str) -> None:
    """The limits of the contract, 50 and 200 µs, are held by the benchmarks."""
    request = DecisionRequest(
        identity="speed",
        nominal_time=datetime(2026, 3, 2, 8, tzinfo=UTC),
        timezone="Europe/Berlin",
        window_duration=timedelta(hours=4),
        distribution=name,
        distribution_params=DISTRIBUTIONS[name],
        seed_strategy="daily",
        only="dow=MON-FRI;between=08:00-20:00",
    )
    assert decide(request).attempts == 1
    assert_cheap(lambda: [decide(request) for _ in range(40)], 40, f"40 decisions by {name}")


@pytest.mark.parametrize("name", ["uniform", "skewLate", "normal", "exponential"])
def test_the_work_does_not_grow_with_the_window(name: str) -> None:
    def calls(duration: timedelta) -> int:
        request = DecisionRequest(
            identity="speed",
            nominal_time=datetime(2026, 1, 1, tzinfo=UTC),
            window_duration=duration,
            distribution=name,
        )
        decide(request)  # what is loaded once is loaded
        counted = itertools.count()
        sys.setprofile(lambda *_: next(counted))
        decide(request)
        sys.setprofile(None)
        return next(counted)

    assert calls(timedelta(days=365_000)) < 3 * calls(timedelta(minutes=5))
