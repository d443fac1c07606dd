"""specs/declarative.md has a row for every requirement, and every row names a test that really runs."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from pathlib import Path

import pytest

from chronex.declarative import scheduler_errors
from chronex.declarative.scheduler import LIFECYCLE_EVENTS, TASK_EVENTS
from chronex.verify import TITLES
from tests.kit.source_trees import syntax_of

HERE = Path(__file__).parent
PAGE = (HERE.parents[1] / "specs" / "declarative.md").read_text()
ROW = re.compile(r"^\| ([^|]+) \| (MUST|MUST NOT|SHOULD) \| ([^|]+) \| `([^`]+)` \|$", re.MULTILINE)
ROWS = [(section, what, test) for section, _, what, test in ROW.findall(PAGE)]
# Of the specification: 42 lines with a key word, many of them the head of a list.
FEWEST = 110


@lru_cache
def functions_of(path: Path) -> dict[str, list[str]]:
    """The test functions of a file, each with its decorators."""
    tree = syntax_of(path)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {node.name: [ast.unparse(one) for one in node.decorator_list] for node in functions}


@pytest.mark.parametrize("named", sorted({test for _, _, test in ROWS}))
def test_every_test_that_the_table_names_exists_and_runs(named: str) -> None:
    file, _, name = named.partition("::")
    path = (HERE / file).resolve()
    assert path.is_file(), path
    marks = functions_of(path).get(name)
    assert marks is not None, f"{named} does not exist"
    assert not [mark for mark in marks if re.search(r"skip|xfail|torture", mark)], f"{named} would not run"


def test_the_table_is_whole() -> None:
    assert len(ROWS) >= FEWEST
    assert len(ROWS) == len({(section, what) for section, what, _ in ROWS}), "a requirement is listed twice"
    assert len(re.findall(r"^\| [^|]+ \| (?:MUST|SHOULD)", PAGE, re.MULTILINE)) == len(ROWS), "a row cannot be read"


def test_every_error_event_rule_and_property_has_its_place() -> None:
    named = " ".join(what for _, what, _ in ROWS)
    kinds = {
        name
        for name, kind in vars(scheduler_errors).items()
        if isinstance(kind, type) and issubclass(kind, scheduler_errors.SchedulerError)
    }
    for name in kinds - {"SchedulerError", "RegistrationError"}:
        assert name in named, name
    for number in range(1, 10):
        assert f"rule {number} rejects" in named
    for name in TITLES:
        assert re.search(rf"\b{name}\b", named), name
    for event in LIFECYCLE_EVENTS | TASK_EVENTS:
        assert f"`{event}`" in PAGE, event
