"""Any text, in any kind of file: findings inside the text, fixes that settle, never an exception, and at little cost."""

from __future__ import annotations

import json
import random
from pathlib import Path

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chronex.lint.findings import SEVERITIES
from chronex.lint.formats import WRITERS, LintOutput
from chronex.lint.linter import fixed, lint_document
from chronex.lint.source_files import KINDS, open_document
from chronex.lsp.code_actions import actions_between
from chronex.lsp.completions import completions_at
from chronex.lsp.hovers import hints, hover_at
from chronex.timing.zones import load_zone
from tests.cli.conftest import Chronex, chronex
from tests.kit.work import assert_cheap
from tests.lint.golden import CASES, NOW_MS, Case
from tests.lint.linting import assume

__all__ = ["chronex"]

PIECES = [case.text for case in CASES] + [
    "schedule", "cron: ", "OnCalendar=", "[Timer]\n", "kind: CronJob\n", "spec:\n", "on:\n", "@every", "TZ=", "*/0",
    "# chronex: ignore[W1]", "{{", "}}", "'", '"', '"""', "\\", "\r\n", "\n", "\t", "\x00", "\u2028", "😀", "\ud800",
    "chronex.parse(", "import chronex\n", "[[jobs.a.tasks]]\n", "&a", "*a", "- ", "%", "\ufeff", "9" * 50,
]  # fmt: skip


def check(kind: str, text: str) -> None:
    document = open_document(f"x.{kind}", text, kind)
    analysis = lint_document(document, assume())
    for finding in analysis.findings:
        assert 0 <= finding.start <= finding.end <= len(document.text)
        assert finding.severity in SEVERITIES
        assert finding.message
        assert all(0 <= e.start <= e.end <= len(document.text) for e in (finding.fix.edits if finding.fix else ()))
    for site in analysis.sites:
        assert site.content is None or document.text.startswith(site.text, site.content)
    better = fixed(document, assume())
    assert fixed(better, assume()).text == better.text
    middle = len(document.text) // 2
    hover_at(analysis, middle, NOW_MS, load_zone("UTC"))
    list(hints(analysis, 0, len(document.text), NOW_MS))
    list(actions_between(analysis, 0, len(document.text), NOW_MS))
    completions_at(document, middle)
    output = LintOutput([(document, finding) for finding in analysis.findings], NOW_MS)
    for write in WRITERS.values():
        list(write(output))


@settings(max_examples=125, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(KINDS), st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=30)), max_size=6))
def test_pieces_of_files_in_any_order(kind: str, pieces: list[str]) -> None:
    check(kind, "".join(pieces))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.path)
def test_golden_files_with_letters_missing_or_wrong(case: Case) -> None:
    text, kind = case.text, open_document(case.path, case.text).kind
    dice = random.Random(case.path)
    for _ in range(12 if kind else 0):
        at = dice.randrange(len(text) + 1)
        end = min(len(text), at + dice.randrange(4))
        check(str(kind), text[:at] + dice.choice(["", "'", '"', "*", "\n", "😀", "{", "\x00", "9"]) + text[end:])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "text",
    ["[" * 50_000, "{a: " * 20_000, "- " * 50_000, "a" * 200_000, "\n" * 100_000, "(" * 20_000],
    ids=["brackets", "braces", "dashes", "letters", "lines", "parentheses"],
)
def test_monstrous_texts_are_answered(kind: str, text: str) -> None:
    document = open_document(f"x.{kind}", text, kind)
    lint_document(document, assume())


def test_sarif_of_anything_is_valid() -> None:
    from tests.cli.commands.test_lint import SCHEMA

    schema = json.loads(SCHEMA.read_text())
    items = [
        (document, finding)
        for case in CASES
        for document in [open_document(case.path, case.text)]
        for finding in lint_document(document, assume()).findings
    ]
    (text,) = WRITERS["sarif"](LintOutput(items, NOW_MS))
    jsonschema.validate(json.loads(text), schema)


# -- in time ----------------------------------------------------------------------------------------------


def _jobs(count: int) -> str:
    return "".join(
        f'[jobs.job{n}]\n# number {n}\ndescription = "😀 job {n}"\nschedule = "{n % 60} {n % 24} * * *"\n'
        f'run = ["job", "{n}"]\noverlap = "skip"\n\n'
        for n in range(count)
    )


def _workflow(count: int) -> str:
    crons = "".join(f"    - cron: '{n} {n % 24} * * *'\n" for n in range(1, 40))
    steps = "".join(f"  job{n}:\n    runs-on: ubuntu-latest\n    steps:\n      - run: make\n" for n in range(count))
    return f"on:\n  schedule:\n{crons}jobs:\n{steps}"


BIG = {
    "chronex.toml": _jobs(143),
    "big.crontab": "".join(f"{n % 60} {n // 60} * * *  /usr/bin/job {n}\n" for n in range(1000)),
    ".github/workflows/big.yml": _workflow(240),
    "big.py": "import chronex\n" + "x = chronex.parse('17 4 * * *')\nprint(x)\n" * 500,
}


@pytest.mark.parametrize("path", BIG)
def test_a_file_of_a_thousand_lines_costs_little(path: str) -> None:
    """The promise is 50 ms on an idle machine (benchmarks hold it); here only that nothing grows out of hand."""
    assert 990 <= BIG[path].count("\n") <= 1010
    assert_cheap(lambda: lint_document(open_document(path, BIG[path]), assume("UTC")), 1_000, path)


# -- the program ------------------------------------------------------------------------------------------


def test_the_program_exits_with_0_1_or_2_on_a_directory_of_rubble(chronex: Chronex, tmp_path: Path) -> None:
    """The fixture sees to it that there is no traceback."""
    dice = random.Random(11)
    names = ["crontab", "a.timer", "chronex.toml", "b.yaml", "c.py", "triggers.json", "x.cron", "a.conf"]
    for number in range(120):
        folder = tmp_path / str(number) / dice.choice(["", "cron.d", ".github/workflows", "a.timer.d"])
        folder.mkdir(parents=True, exist_ok=True)
        text = "".join(dice.choice(PIECES) for _ in range(dice.randrange(6)))
        data = text.encode("utf-8", "surrogatepass") + (b"\xff" if dice.random() < 0.1 else b"")
        (folder / dice.choice(names)).write_bytes(data)
    for arguments in (("--format", "json"), ("--diff",), ("--fix",), ("--fix",)):
        assert chronex("lint", str(tmp_path), "--min-severity", "info", *arguments).code in (0, 1, 2)
    left = chronex("lint", str(tmp_path), "--diff").out
    assert left == ""
