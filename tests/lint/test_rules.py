"""Every rule has a page that is true: its bad example has the finding, its good one has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from chronex.errors import JobChainError
from chronex.expr.diagnostics import Rule
from chronex.jobfile import read_job_file
from chronex.lint.findings import assumptions
from chronex.lint.formats import PAGE_REFERENCE_MS, findings_of, page
from chronex.lint.linter import lint_document
from chronex.lint.rules import rules
from chronex.lint.source_files import open_document
from chronex.testing import SimulatedMachine
from tests.kit.machine import START
from tests.lint.linting import assume, codes

PAGES = Path(__file__).parent.parent.parent / "docs" / "rules"
ASSUME = assumptions("UTC", "assumed", PAGE_REFERENCE_MS)
RULES = list(rules().values())


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.bad], ids=lambda rule: rule.code)
def test_the_bad_example_has_the_finding_and_the_good_one_has_none(rule: Rule) -> None:
    assert rule.bad is not None
    assert rule.good is not None
    severities = {f.severity for f in findings_of(rule.bad, ASSUME) if f.code == rule.code}
    assert severities == {rule.severity}
    # Examples are as short as their rule allows: those of other rules may lack a timeout.
    elsewhere = {"W153"} - {rule.code}
    assert [found for found in findings_of(rule.good, ASSUME) if found.code not in elsewhere] == []


def test_only_what_no_short_text_can_show_has_no_example() -> None:
    assert [rule.code for rule in RULES if rule.bad is None] == ["J001", "J023"]


def test_the_pages_are_those_of_the_rules() -> None:
    """After a change: for each code, chronex lint --explain CODE > docs/rules/CODE.md"""
    written = {path.stem: path.read_text("utf-8") for path in PAGES.glob("*.md") if path.stem != "README"}
    assert written == {rule.code: page(rule, ASSUME) for rule in RULES}


def test_the_list_of_pages_names_every_rule() -> None:
    listed = (PAGES / "README.md").read_text("utf-8")
    assert all(f"| [{rule.code}]({rule.code}.md) | {rule.severity} | {rule.title} |" in listed for rule in RULES)


FOLLOWING = '[jobs.a]\nschedule = "0 9 * * *"\ntask_timeout = "1h"\nrun = "true"\n[jobs.b]\nafter = ["a", "other"]\nrun = "true"\n'


def test_a_job_to_follow_may_be_in_a_file_beside(tmp_path: Path) -> None:
    """The files of a directory are applied as one."""
    path = str(tmp_path / "chronex.toml")
    assert "J104" in codes(path, FOLLOWING)
    (tmp_path / "broken.toml").write_text("[jobs")
    (tmp_path / "more.toml").write_text('[jobs.another]\nschedule = "@daily"\n')
    assert "J104" in codes(path, FOLLOWING)
    (tmp_path / "most.toml").write_text('[jobs.other]\nschedule = "@daily"\n')
    assert "J104" not in codes(path, FOLLOWING)


def test_lint_and_apply_say_the_same_of_a_job_that_is_not_there(tmp_path: Path) -> None:
    document = open_document(str(tmp_path / "chronex.toml"), FOLLOWING)
    (told,) = (one for one in lint_document(document, assume()).findings if one.code == "J104")
    with pytest.raises(JobChainError) as refused:
        SimulatedMachine(read_job_file(FOLLOWING, "chronex.toml", "UTC").jobs, start=START)
    (problem,) = refused.value.problems
    assert told.message.replace(" in this file", "") == problem.sentence
    assert document.position(told.start) == (6, 15)
