"""Fixes: every other byte stays, what was fixed is not found again, and a second round changes nothing."""

from __future__ import annotations

import pytest

from chronex.lint.linter import apply_edits, fixed, lint_document
from chronex.lint.source_files import open_document
from tests.lint.golden import CASES, Case
from tests.lint.linting import assume, codes

WITH_FIXES = [
    case for case in CASES
    if any(f.fix and f.fix.is_safe for f in lint_document(open_document(case.path, case.text), assume()).findings)
]  # fmt: skip


def test_many_of_the_golden_files_can_be_fixed() -> None:
    assert len(WITH_FIXES) >= 6


@pytest.mark.parametrize("case", WITH_FIXES, ids=lambda case: case.path)
def test_a_fixed_file_has_no_safe_fix_left_and_stays_as_it_is(case: Case) -> None:
    better = fixed(open_document(case.path, case.text), assume())
    assert not any(f.fix and f.fix.is_safe for f in lint_document(better, assume()).findings)
    assert fixed(better, assume()).text == better.text


@pytest.mark.parametrize("case", WITH_FIXES, ids=lambda case: case.path)
def test_each_fix_alone_removes_its_finding_and_brings_no_error(case: Case) -> None:
    document = open_document(case.path, case.text)
    before = lint_document(document, assume()).findings
    for finding in before:
        if finding.fix is None:
            continue
        better = document.with_text(apply_edits(document.text, finding.fix.edits))
        after = lint_document(better, assume()).findings
        assert sum(f.code == finding.code for f in after) < sum(f.code == finding.code for f in before)
        assert sum(f.severity == "error" for f in after) <= sum(f.severity == "error" for f in before)


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("a.crontab", "17 4 * * *\t/usr/bin/a  # x\n@Weekly /b\n", "17 4 * * *\t/usr/bin/a  # x\n@weekly /b\n"),
        ("a.crontab", "17 4 * * * /usr/bin/a", "17 4 * * * /usr/bin/a\n"),
        (
            "chronex.toml",
            '# 😀\n[jobs.a]\nschedule   =  "0 9 * * Monday"   # keep\nrun = "x"\noverlap="Skip"\n',
            '# 😀\n[jobs.a]\nschedule   =  "0 9 * * MON"   # keep\nrun = "x"\noverlap="skip"\n',
        ),
        (
            ".github/workflows/a.yml",
            "on:\n  schedule:\n  - cron: */15 * * * * # often\n",
            'on:\n  schedule:\n  - cron: "*/15 * * * *" # often\n',
        ),
        (
            "k8s.yaml",
            "kind: CronJob\nspec:\n  schedule: daily # no quotes\n",
            'kind: CronJob\nspec:\n  schedule: "@daily" # no quotes\n',
        ),
        (
            "k8s.yaml",
            "kind: CronJob\r\nspec:\r\n    schedule: 'TZ=Asia/Tokyo 17 4 * * *'  # x\r\n    suspend: false\r\n",
            "kind: CronJob\r\nspec:\r\n    schedule: '17 4 * * *'  # x\r\n    timeZone: Asia/Tokyo\r\n    suspend: false\r\n",
        ),
        ("chronex.toml", '# chronex: ignore-file[W111]\n[jobs.a]\nschedule = "17 4 * * *"\nrun = "x"\n',
         '[jobs.a]\nschedule = "17 4 * * *"\nrun = "x"\n'),
        ("chronex.toml", '[jobs.a]\nschedule = "17 4 * * *"  # chronex: ignore[W111]\nrun = "x"\n',
         '[jobs.a]\nschedule = "17 4 * * *"\nrun = "x"\n'),
    ],
)  # fmt: skip
def test_a_fix_changes_nothing_else(path: str, before: str, after: str) -> None:
    assert fixed(open_document(path, before), assume()).text == after
    assert [code for code in codes(path, after) if code not in ("W114", "W153")] == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[jobs.a]\n", '[defaults]\ntask_timeout = "1h"\n\n[jobs.a]\n'),
        ("# mine\n[scheduler]\n\n[jobs.a]\n", '# mine\n[scheduler]\n\n[defaults]\ntask_timeout = "1h"\n\n[jobs.a]\n'),
        ("[defaults]  # all\nretry = 3\n[jobs.a]\n", '[defaults]  # all\ntask_timeout = "1h"\nretry = 3\n[jobs.a]\n'),
        ("[defaults]\r\nretry = 3\r\n[jobs.a]\r\n", '[defaults]\r\ntask_timeout = "1h"\r\nretry = 3\r\n[jobs.a]\r\n'),
        ("defaults.retry = 3\n[jobs.a]\n", None),
        ("[defaults.retry]\nmax = 3\n[jobs.a]\n", None),
    ],
)
def test_a_timeout_is_offered_for_all_jobs_and_never_added_by_itself(before: str, after: str | None) -> None:
    rest = 'schedule = "17 4 * * *"\nrun = "x"\n'
    document = open_document("chronex.toml", before + rest)
    (finding,) = lint_document(document, assume()).findings
    assert finding.code == "W153"
    assert fixed(document, assume()).text == before + rest
    if after is None:
        assert finding.fix is None
        return
    assert finding.fix is not None
    assert not finding.fix.is_safe
    (edit,) = finding.fix.edits
    put_right = document.text[: edit.start] + edit.text + document.text[edit.end :]
    assert put_right == after + rest
    assert codes("chronex.toml", put_right) == []


def test_a_fix_that_changes_a_working_schedule_is_left_to_people() -> None:
    text = "* 4 * * * /usr/bin/a\n"
    document = open_document("a.crontab", text)
    finding = lint_document(document, assume()).findings[0]
    assert (finding.code, finding.fix is not None and finding.fix.is_safe) == ("W104", False)
    assert fixed(document, assume()).text == text


def test_an_alias_is_not_put_in_quotes_where_something_else_is_wrong() -> None:
    text = "x: &n '17 4 * * *'\non:\n  schedule:\n    - cron: *n\n    - cron: * * * * *\nbroken: [\n"
    better = fixed(open_document(".github/workflows/a.yml", text), assume()).text
    assert better == text.replace("* * * * *\nb", '"* * * * *"\nb')


def test_a_byte_order_mark_is_kept_apart() -> None:
    document = open_document("a.crontab", "\ufeff@Weekly /b\n")
    assert document.has_mark
    assert fixed(document, assume()).text == "@weekly /b\n"


_LIST = "kind: List\nitems:\n- kind: CronJob\n  spec:"
_SCRIPT = "jobs:\n  a:\n    steps:\n    - run: |\n        - cron: */5 * * * *\n        # chronex: ignore[W111]\n"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        # Other places of the file have it by an alias: the zone would come to one of them only.
        ("a.yaml", f'{_LIST}\n    schedule: &s "TZ=Asia/Tokyo 17 4 * * *"\n- kind: CronJob\n  spec:\n    schedule: *s\n'),
        ("a.yaml", f'{_LIST} &s\n    schedule: "TZ=Asia/Tokyo 17 4 * * *"\n- kind: CronJob\n  spec: *s\n'),
        ("a.yaml", 'kind: CronJob\nspec: !!map\n  schedule: "TZ=Asia/Tokyo 17 4 * * *"\n'),
        ("a.yaml", 'kind: CronJob\nspec:\n  schedule: &s "17 4 * * 7"\n  jobTemplate: *s\n'),
        # What is included may have a timeZone.
        ("a.yaml", 'kind: CronJob\nspec:\n  schedule: "TZ=Asia/Tokyo 17 4 * * *"\n  {{- include "zone" . | nindent 2 }}\n'),
        # Where the YAML is broken, nobody knows a comment from a text.
        (".github/workflows/a.yml", "on:\n  schedule:\n    - cron: '17 4 * * *'\n  x: echo \"a: # chronex: ignore[W111]\"\n"),
        (".github/workflows/a.yml", "on:\n  schedule:\n    - cron: '17 4 * * *'\n" + _SCRIPT + "  - x: [\n"),
    ],
)  # fmt: skip
def test_what_could_stand_for_something_else_is_not_changed(path: str, text: str) -> None:
    assert fixed(open_document(path, text), assume()).text == text


def test_a_script_that_writes_a_schedule_is_left_as_it_is() -> None:
    text = "on:\n  schedule:\n    - cron: */15 * * * *\n" + _SCRIPT
    better = fixed(open_document(".github/workflows/a.yml", text), assume()).text
    assert better == text.replace("*/15 * * * *", '"*/15 * * * *"')


def test_a_fix_that_would_break_the_file_is_left_out_and_the_others_are_applied() -> None:
    text = "[jobs.a]\nschedule = '17 4 * * Monday'\nrun = 'x'\nOverlap = 'skip'\noverlap = 'allow'\n"
    better = fixed(open_document("chronex.toml", text), assume()).text
    assert better == text.replace("Monday", "MON")  # not the key twice


@pytest.mark.parametrize(
    "text",
    [
        "kind: CronJob\nspec: &a\n  <<: *a\n  suspend: true\n",
        "kind: List\nitems: &a\n- *a\n- kind: CronJob\n  spec: &s {<<: [*s, *s]}\n",
        "kind: CronJobList\nitems:\n" + "".join(f"- &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 300)),
    ],
    ids=["itself", "its list", "each twice"],
)
def test_aliases_that_lead_in_a_circle_or_double_come_to_an_end(text: str) -> None:
    assert codes("a.yaml", text) == []


def test_what_an_alias_stands_for_is_not_changed() -> None:
    text = "x: &n\n  schedule: '*/1 4 * * *'\nkind: CronJob\nspec: *n\n"
    assert codes("a.yaml", text) == ["W114", "W107"]
    assert fixed(open_document("a.yaml", text), assume()).text == text
