"""Nothing decides by text: reasons are compared by their codes, and only two modules look into sentences."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.source_trees import syntax_of
from tests.kit.tables import table

ROOT = Path(__file__).parent.parent
WORDING = ROOT / "chronex" / "model" / "reasons.py"
MIGRATION = ROOT / "chronex" / "storage" / "migrate_reasons.py"
SOURCES = [
    path
    for path in sorted([*ROOT.glob("chronex/**/*.py"), *ROOT.glob("chronex_tui/**/*.py")])
    if path not in (WORDING, MIGRATION)
]
TEXTS = {"reason", "cancel_reason", "stop_reason", "error"}
WORDED_BY = {"text_of", "short_text", "words_of", "str"}
LOOKING_INTO = {
    "startswith", "endswith", "removeprefix", "removesuffix", "split", "rsplit", "splitlines", "partition",
    "rpartition", "find", "rfind", "index", "count",
}  # fmt: skip


def is_reason_text(node: ast.expr) -> bool:
    """`x.reason`, `x.error`, or what the wording functions make of one."""
    if isinstance(node, ast.Attribute):
        return node.attr in TEXTS
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id not in WORDED_BY:
        return False
    return any(is_reason_text(argument) for argument in node.args)


def is_code(node: ast.expr) -> bool:
    """A member of an enumeration: the end of an attempt is called `reason` too, and is one."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "EndReason"


def decisions_by_text(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            is_about_none = any(isinstance(side, ast.Constant) and side.value is None for side in sides)
            if not is_about_none and not any(map(is_code, sides)) and any(is_reason_text(side) for side in sides):
                yield node.lineno
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            is_looked_into = node.func.attr in LOOKING_INTO and is_reason_text(node.func.value)
            is_searched = ast.unparse(node.func).startswith("re.") and any(is_reason_text(arg) for arg in node.args)
            if is_looked_into or is_searched:
                yield node.lineno
        elif isinstance(node, ast.Match) and is_reason_text(node.subject):
            yield node.lineno


@table([(str(path.relative_to(ROOT)), path) for path in SOURCES])
def test_nothing_decides_by_the_words_of_a_reason(path: Path) -> None:
    assert list(decisions_by_text(syntax_of(path))) == []


@pytest.mark.parametrize(
    "line",
    [
        "run.reason == 'paused'",
        "'paused' in occurrence.reason",
        "occurrence.reason in ('a', 'b')",
        "run.reason.startswith('exit')",
        "text_of(run.reason).partition(': ')",
        "str(run.reason) == 'paused'",
        "attempt.error != attempt.reason",
        "re.match('exit', attempt.error)",
        "match run.reason:\n    case 'paused': pass",
    ],
)
def test_the_rule_sees_every_way_to_decide_by_words(line: str) -> None:
    assert list(decisions_by_text(ast.parse(line))) == [1]


@pytest.mark.parametrize(
    "line", ["run.reason.code is ReasonCode.PAUSED", "if run.reason: pass", "update.error is None", "str(run.error)"]
)
def test_the_rule_lets_codes_through(line: str) -> None:
    assert list(decisions_by_text(ast.parse(line))) == []
