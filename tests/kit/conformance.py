"""The table of requirements (specs/conformance.tsv), and the page that is written from it (specs/conformance.md)."""

from __future__ import annotations

import ast
from collections import Counter
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from tests.kit.source_trees import syntax_of

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "specs" / "conformance.tsv"
PAGE = ROOT / "specs" / "conformance.md"
HEAD = ("id", "section", "requirement", "status", "tests", "reason")
STATUSES = ("works", "different", "open", "untested")


class Specification(NamedTuple):
    title: str
    rows: int
    page: str


# By the letter of the ids. A requirement is never dropped, so the number of rows only grows.
SPECIFICATIONS = {
    "E": Specification("The job scheduler", 219, "engine.md"),
    "D": Specification("The declarative scheduler", 134, "declarative.md"),
    "K": Specification("The decision core", 59, "decision.md"),
    "X": Specification("The expression language", 89, "expression.md"),
    "T": Specification("The task contracts", 35, "run.md"),
    "P": Specification("The product", 19, "dashboard.md"),
}

INTRODUCTION = """\
# Conformance: every requirement, and the test that shows it

Chronex was built to five specifications and a description of the product. This page has each of their requirements in
our words, what became of it, and the tests that show it. It is written from
[conformance.tsv](conformance.tsv); edit that, and write this page with

```sh
CHRONEX_UPDATE_SPECS=1 python -m pytest tests/test_conformance_page.py
```

`tests/test_conformance_page.py` fails when the page is not the table's, and when a test that is named is gone.

| status | meaning |
|---|---|
| works | it does, and the tests assert it |
| different | another behaviour on purpose, with the reason that serves users |
| open | not, or not in every case; the reason says what is missing, a test what there is already |
| untested | it is believed to hold, and no test asserts the whole of it |

Tests in `tests/binary` run on the frozen program (`make binary`); some vectors are those of other projects and run where
CHRONEX_VECTORS names their directory.
"""


class Requirement(NamedTuple):
    id: str
    section: str
    requirement: str
    status: str
    tests: tuple[str, ...]
    reason: str

    @property
    def specification(self) -> str:
        return self.id[0]


def read_table(path: Path = TABLE) -> list[Requirement]:
    head, *lines = path.read_text(encoding="utf-8").splitlines()
    assert tuple(head.split("\t")) == HEAD, f"{path.name} begins with the line of its columns"
    found: list[Requirement] = []
    for number, line in enumerate(lines, 2):
        cells = line.split("\t")
        assert len(cells) == len(HEAD), f"{path.name}:{number}: {len(cells)} cells instead of {len(HEAD)}"
        name, section, requirement, status, tests, reason = cells
        found.append(Requirement(name, section, requirement, status, tuple(tests.split()), reason))
    return found


@lru_cache
def names_of_tests(path: Path) -> frozenset[str]:
    """The tests of a file as pytest names them, read and not imported; without those of the long campaigns."""
    found: set[str] = set()
    for node in syntax_of(path).body:
        inside = [(f"{node.name}::", one) for one in node.body] if isinstance(node, ast.ClassDef) else [("", node)]
        found.update(
            prefix + one.name
            for prefix, one in inside
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and one.name.startswith("test_") and _runs(one)
        )
    return frozenset(found)


def _runs(test: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """With `make test`: what is named as proof is tried with every change."""
    marks = {ast.unparse(mark).partition("(")[0] for mark in test.decorator_list}
    return not marks & {"pytest.mark.torture", "pytest.mark.skip", "pytest.mark.xfail"}


def is_there(test: str) -> bool:
    file, _, name = test.partition("::")
    path = ROOT / file
    return path.is_file() and name in names_of_tests(path)


def page_of(rows: list[Requirement]) -> str:
    lines = [INTRODUCTION, *_summary(rows)]
    for letter, specification in SPECIFICATIONS.items():
        lines += ["", f"## {specification.title}", "", f"More of it: [{specification.page}]({specification.page})."]
        for section, found in groupby((row for row in rows if row.specification == letter), lambda row: row.section):
            lines += [
                "",
                f"### {letter}. {section}",
                "",
                "| | requirement | status | shown by |",
                "|---|---|---|---|",
            ]
            lines += [_line(row) for row in found]
    return "\n".join([*lines, ""])


def _summary(rows: list[Requirement]) -> list[str]:
    lines = [f"| specification | {' | '.join(STATUSES)} | all |", "|---" * (len(STATUSES) + 2) + "|"]
    whole = [("", "all"), *((letter, one.title) for letter, one in SPECIFICATIONS.items())]
    for letter, title in [*whole[1:], whole[0]]:
        counts = Counter(row.status for row in rows if row.id.startswith(letter))
        cells = [str(counts[status]) for status in STATUSES]
        lines.append(f"| {title} | {' | '.join(cells)} | {counts.total()} |")
    return lines


def _line(row: Requirement) -> str:
    told = "<br>".join(part for part in (row.reason, *(f"`{test}`" for test in row.tests)) if part)
    cells = (cell.replace("|", "\\|") for cell in (row.id, row.requirement, row.status, told))
    return f"| {' | '.join(cells)} |"
