"""chronex lint on expressions: formats, fixes, exit codes."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Chronex

NOW = ("--now", "2027-01-01", "--tz", "UTC")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("0 9 * * *",), 0),
        (("0 25 * * *",), 1),
        (("0 0 13 * FRI",), 1),
        (("0 0 13 * FRI", "--fail-on", "error"), 0),
        (("0 9 * * *", "--format", "xml"), 2),
        (("0 9 * * *", "--fail-on", "never"), 2),
        (("0 9 * * *", "--now", "soon"), 2),
    ],
)
def test_exit_codes(chronex: Chronex, arguments: tuple[str, ...], code: int) -> None:
    assert chronex("lint", "--tz", "UTC", *arguments).code == code


def test_a_caret_stands_under_the_exact_token(chronex: Chronex) -> None:
    done = chronex("lint", "0 9 * * * {jiter:30s, max:0}", *NOW)
    assert done.out.splitlines() == [
        "<expression>:1",
        "  0 9 * * * {jiter:30s, max:0}",
        "             ^^^^^ E015 options: unknown option 'jiter'; did you mean jitter?",
        "                            ^ E021 options.max: must be positive, got 0",
    ]


def test_carets_stay_in_place_beside_wide_and_control_characters(chronex: Chronex) -> None:
    done = chronex("lint", "火 9 * * *", "0 9 * * * \x1b[31m", *NOW)
    lines = done.out.splitlines()
    assert lines[1:3] == ["  火 9 * * *", lines[2]]
    assert lines[2].startswith("  ^^ E002")
    assert "\x1b" not in done.out


def test_standard_input_is_read_one_expression_a_line(chronex: Chronex) -> None:
    done = chronex("lint", *NOW, "--format", "gcc", stdin="# nightly\n\n0 9 * * *\n0 25 * * *\r\n")
    assert done.out == "<stdin>:4:3: error: hour: value 25 out of range [0, 23] [E003]\n"


def test_bytes_that_are_not_text_are_a_finding_not_a_crash(chronex: Chronex) -> None:
    done = chronex("lint", "-", *NOW, stdin=b"\xff\xfe 9 * * *\n\x00\n")
    assert done.code == 1


def test_json_has_every_documented_key(chronex: Chronex) -> None:
    rows = json.loads(chronex("lint", "0 25 * * MNO", "--format", "json", *NOW).out)
    assert [d["code"] for d in rows[0]["diagnostics"]] == ["E003", "E006"]
    assert set(rows[0]["diagnostics"][1]) == {"code", "severity", "field", "message", "value", "start", "end", "fix"}
    assert rows[0]["diagnostics"][1]["fix"] == "MON"


def test_github_annotations_are_escaped(chronex: Chronex) -> None:
    done = chronex("lint", "0 9 * * * {tag:50%}", "--format", "github", *NOW)
    assert done.out.startswith("::error file=<expression>,line=1,col=16,endColumn=19,title=E016::options.tag: ")
    assert "'50%25'" in done.out


def test_sarif_has_rules_columns_and_fixes(chronex: Chronex) -> None:
    log = json.loads(chronex("lint", "@wekly", "--format", "sarif", *NOW).out)
    run = log["runs"][0]
    assert (log["version"], run["columnKind"]) == ("2.1.0", "unicodeCodePoints")
    result = run["results"][0]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "E010"
    region = result["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 1, "startColumn": 1, "endColumn": 7}
    assert result["fixes"][0]["artifactChanges"][0]["replacements"][0]["insertedContent"]["text"] == "@weekly"


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("@wekly", "@weekly"),
        ("0 9 * * MNO", "0 9 * * MON"),
        ("0 9 * * * {jiter:30min}", "0 9 * * * {jitter:30m}"),
        ("TZ=Asia/Seul 0 9 * * *", "TZ=Asia/Seoul 0 9 * * *"),
        ("0 0 ? * FRI#L", "0 0 * * FRIL"),
        ("CRON_TZ=UTC */1 * * * *", "TZ=UTC * * * * *"),
        ("0 9 * * * {tag:a>", "0 9 * * * {tag:a}"),
        ("0\u00a09 * * *", "0 9 * * *"),
    ],
)
def test_fixes_lint_clean_afterwards(chronex: Chronex, wrong: str, right: str) -> None:
    done = chronex("lint", wrong, "--fix", *NOW)
    assert (done.out, done.err, done.code) == (right + "\n", "", 0)


def test_a_fix_that_is_not_known_leaves_the_finding(chronex: Chronex) -> None:
    done = chronex("lint", "0 25 * * MNO", "--fix", *NOW)
    assert done.out == "0 25 * * MON\n"
    assert "E003" in done.err
    assert done.code == 1
