"""chronex lint: what its arguments stand for, its forms, its fixes, its exit codes."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.cli.conftest import Chronex

pytestmark = pytest.mark.binary

NOW = ("--now", "2027-01-01", "--tz", "UTC")
SCHEMA = Path(__file__).parents[2] / "lint" / "sarif-2.1.0.schema.json"
BAD_JOB = '[jobs.a]\nschedule = "0 9 * * MNO"\nrun = "x"\noverlab = "skip"\n'
GOOD_JOB = '[jobs.a]\nschedule = "0 9 * * MON"\nrun = "x"\noverlap = "skip"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "chronex.toml").write_text(BAD_JOB)
    (tmp_path / "a.crontab").write_text("*/7 * * * * /usr/bin/a\n")
    (tmp_path / "notes.txt").write_text("0 25 * * *\n")
    return tmp_path


# -- expressions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("0 9 * * *",), 0),
        (("0 25 * * *",), 1),
        (("0 25 * * *", "--exit-zero"), 0),
        (("0 25 * * *", "--select", "W"), 0),
        (("0 25 * * *", "--ignore", "E001,e003"), 0),
        (("0 0 13 * FRI",), 1),
        (("0 0 13 * FRI", "--fail-on", "error"), 0),
        (("0 9 * * *", "--format", "xml"), 2),
        (("0 9 * * *", "--fail-on", "never"), 2),
        (("0 9 * * *", "--now", "soon"), 2),
        (("0 9 * * *", "--select", "X9"), 2),
        (("0 9 * * *", "--as", "yaml"), 2),
        (("0 9 * * *", "--fix", "--diff"), 2),
        (("0 9 * * *", "--unsafe-fixes"), 2),
        (("0 9 * * *", "--stdin-filename", "x"), 2),
        (("0 9 * * *", "--explain", "W999"), 2),
        (("nowhere.toml",), 2),
        (("no where/chronex.toml",), 2),
        (("nowhere",), 2),
    ],
)
def test_exit_codes(chronex: Chronex, arguments: tuple[str, ...], code: int) -> None:
    assert chronex("lint", "--tz", "UTC", *arguments).code == code


def test_a_missing_file_is_named(chronex: Chronex) -> None:
    assert "there is no file 'nowhere.toml'; is the name right?" in chronex("lint", "nowhere.toml").err


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
    done = chronex("lint", "-", *NOW, "--format", "gcc", stdin="# nightly\n\n0 9 * * *\n0 25 * * *\r\n")
    assert done.out == "<stdin>:4:3: error: hour: value 25 out of range [0, 23] [E003]\n"


def test_bytes_that_are_not_text_are_a_finding_not_a_crash(chronex: Chronex) -> None:
    done = chronex("lint", "-", *NOW, stdin=b"\xff\xfe 9 * * *\n\x00\n")
    assert done.code == 1


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("0 9 * * Monday", "0 9 * * MON"),
        ("TZ=asia/seoul 0 9 * * *", "TZ=Asia/Seoul 0 9 * * *"),
        ("TZ=America/New-York 0 9 * * *", "TZ=America/New_York 0 9 * * *"),
        ("daily", "@daily"),
        ("0 0 ? * FRI#L", "0 0 * * FRIL"),
        ("CRON_TZ=UTC */1 * * * *", "TZ=UTC * * * * *"),
        ("0 9 * * * {tag:a>", "0 9 * * * {tag:a}"),
        ("0\u00a09 * * *", "0 9 * * *"),
    ],
)
def test_fixes_lint_clean_afterwards(chronex: Chronex, wrong: str, right: str) -> None:
    done = chronex("lint", "-", "--fix", *NOW, stdin=f"{wrong}\n")
    assert (done.out, done.err, done.code) == (right + "\n", "", 0)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("@wekly", "@weekly"),
        ("0 9 * * MNO", "0 9 * * MON"),
        ("0 9 * * * {jiter:30min}", "0 9 * * * {jitter:30m}"),
        ("TZ=Asia/Seul 0 9 * * *", "TZ=Asia/Seoul 0 9 * * *"),
        ("TZ=PST 0 9 * * *", "TZ=America/Los_Angeles 0 9 * * *"),
        ("H 9 * * *", "0 9 * * *"),
    ],
)
def test_a_guess_is_applied_only_when_it_is_asked_for(chronex: Chronex, wrong: str, right: str) -> None:
    assert chronex("lint", wrong, "--fix", *NOW).out == f"{wrong}\n"
    done = chronex("lint", wrong, "--fix", "--unsafe-fixes", *NOW)
    assert (done.out, done.err, done.code) == (right + "\n", "", 0)


def test_a_fix_that_is_not_known_leaves_the_finding(chronex: Chronex) -> None:
    done = chronex("lint", "0 25 * * monday", "--fix", *NOW)
    assert done.out == "0 25 * * MON\n"
    assert "E003" in done.err
    assert done.code == 1


# -- files ------------------------------------------------------------------------------------------------


def test_text_has_one_line_for_each_finding_that_vim_can_read(chronex: Chronex, folder: Path) -> None:
    done = chronex("lint", str(folder), *NOW)
    assert done.out.splitlines() == [
        f"{folder}/a.crontab:1:1: W103 minute: */7 starts again with each hour: the last distance is 4, not 7",
        f"{folder}/chronex.toml:2:21: E006 dayOfWeek: unknown name 'MNO'; did you mean MON? [perhaps: write MON]",
        f"{folder}/chronex.toml:4:1: J010 unknown key 'overlab'; did you mean overlap? [perhaps: write overlap]",
    ]
    assert done.code == 1


def test_without_arguments_the_files_below_this_directory_are_read(
    chronex: Chronex, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Path(__file__).parents[3]
    monkeypatch.chdir(folder)
    done = chronex("lint", *NOW, "--format", "gcc", PYTHONPATH=f"{root}:{root}/store")
    assert [line.split(":")[0] for line in done.out.splitlines()] == ["a.crontab", "chronex.toml", "chronex.toml"]


def test_files_and_expressions_may_be_mixed(chronex: Chronex, folder: Path) -> None:
    done = chronex("lint", "0 25 * * *", str(folder / "a.crontab"), *NOW, "--format", "gcc")
    assert [line.partition(":")[0] for line in done.out.splitlines()] == ["<expression>", str(folder / "a.crontab")]


@pytest.mark.parametrize("arguments", [("--stdin-filename", "x/crontab"), ("--as", "crontab")])
def test_standard_input_as_a_file(chronex: Chronex, arguments: tuple[str, ...]) -> None:
    done = chronex(
        "lint", "-", *arguments, *NOW, "--format", "gcc", stdin="@wekly /usr/bin/a\n", CHRONEX_CRON="debian"
    )
    assert done.out.endswith(":1:1: error: Debian's cron does not know '@wekly'; did you mean @weekly? [E130]\n")


def test_standard_input_is_fixed_byte_by_byte(chronex: Chronex) -> None:
    given = "17 4 * * *\t/usr/bin/a\x1b[2J\r\n@Weekly\t/b\r\n"
    done = chronex("lint", "-", "--as", "crontab", "--cron", "supercronic", "--fix", *NOW, stdin=given)
    assert (done.out, done.code) == (given.replace("@Weekly", "@weekly"), 0)


def test_fix_writes_the_file_and_nothing_else(chronex: Chronex, folder: Path) -> None:
    path = folder / "chronex.toml"
    path.write_text("\ufeff" + BAD_JOB)
    path.chmod(0o640)
    done = chronex("lint", str(path), "--fix", "--unsafe-fixes", *NOW)
    assert (done.out, done.code, path.read_text(), path.stat().st_mode & 0o777) == ("", 0, "\ufeff" + GOOD_JOB, 0o640)
    assert chronex("lint", str(path), "--fix", *NOW).code == 0


def test_diff_shows_what_fix_would_do_and_writes_nothing(chronex: Chronex, folder: Path) -> None:
    assert chronex("lint", str(folder / "chronex.toml"), "--diff", *NOW).out == ""
    done = chronex("lint", str(folder / "chronex.toml"), "--diff", "--unsafe-fixes", *NOW)
    assert (folder / "chronex.toml").read_text() == BAD_JOB
    assert [line for line in done.out.splitlines() if line[0] in "+-" and line[1] not in "+-"] == [
        '-schedule = "0 9 * * MNO"', '+schedule = "0 9 * * MON"', '-overlab = "skip"', '+overlap = "skip"',
    ]  # fmt: skip
    assert done.code == 1
    assert chronex("lint", str(folder / "a.crontab"), "--diff", *NOW).code == 0


def test_a_file_that_cannot_be_read_is_a_finding_and_exit_2(chronex: Chronex, folder: Path) -> None:
    (folder / "b.timer").write_bytes(b"[Timer]\n\xff\n")
    done = chronex("lint", str(folder / "b.timer"), "--exit-zero", *NOW)
    assert done.code == 2
    assert done.out.endswith("b.timer:2:1: E140 byte 0xff is not UTF-8; save the file as UTF-8\n")


@pytest.mark.parametrize("form", ["text", "json", "gcc", "github", "gitlab", "sarif"])
def test_a_crontab_need_not_be_utf_8_because_cron_reads_bytes(chronex: Chronex, folder: Path, form: str) -> None:
    path = folder / "b.crontab"
    path.write_bytes(b"# \xfcberall\n0 25 * * * /usr/bin/a \xe9\n0 4 * * Monday /b")
    done = chronex("lint", str(path), "--format", form, *NOW)
    assert done.code == 1
    assert "E003" in done.out
    assert chronex("lint", str(path), "--fix", *NOW).code == 1
    assert path.read_bytes() == b"# \xfcberall\n0 25 * * * /usr/bin/a \xe9\n0 4 * * MON /b\n"


@pytest.mark.parametrize(
    ("cron", "code"), [("debian", 1), ("cronie", 1), ("bsd", 0), ("supercronic", 0), ("busybox", 1), ("vixie", 2)]
)
def test_the_cron_that_reads_a_crontab_can_be_named(chronex: Chronex, folder: Path, cron: str, code: int) -> None:
    path = folder / "quarter.crontab"
    path.write_text("0/15 * * * * /usr/bin/a\n")
    assert chronex("lint", str(path), "--cron", cron, *NOW).code == code
    by_machine = 1 if cron == "vixie" else code
    assert chronex("lint", str(path), *NOW, CHRONEX_CRON=cron).code == by_machine


@pytest.mark.parametrize("more", [(), ("--exit-zero",), ("--diff",), ("--fix",), ("--fail-on", "error")])
def test_a_named_file_that_is_not_linted_is_exit_2(chronex: Chronex, folder: Path, more: tuple[str, ...]) -> None:
    done = chronex("lint", str(folder / "notes.txt"), str(folder / "a.crontab"), *more, *NOW)
    assert done.code == 2
    assert chronex("lint", "-", "--stdin-filename", "notes.txt", *more, *NOW, stdin="0 25 * * *\n").code == 2
    assert chronex("lint", str(folder / "notes.txt"), "--as", "crontab", *NOW).code == 1


def test_what_was_not_linted_is_named_with_the_kinds_there_are(chronex: Chronex, folder: Path) -> None:
    done = chronex("lint", str(folder / "notes.txt"), str(folder / "a.crontab"), *NOW)
    named = "its name does not say what it is; say so with --as {chronex,crontab,"
    assert f"notes.txt:1:1: E140 not linted: {named}" in done.out
    assert "a.crontab:1:1: W103" in done.out
    part = folder / "part.toml"
    part.write_text('[jobs.a]\nschedule = "0 3 * * *"\nrun = "true"\n')
    done = chronex("lint", str(part), *NOW)
    assert "part.toml:1:1: E140 not linted: it may be a job file, or a part of one; --as chronex reads it" in done.out
    assert chronex("lint", str(part), "--as", "chronex", *NOW).code in (0, 1)


def test_a_named_file_that_was_read_and_has_no_schedules_is_no_failure(chronex: Chronex, tmp_path: Path) -> None:
    for name in ("values.yaml", "setup.py", "chronex-state.json"):
        (tmp_path / name).write_text("{}\n")
        assert chronex("lint", str(tmp_path / name), *NOW).code == 0


def test_fix_writes_files_and_prints_expressions_when_both_are_given(chronex: Chronex, folder: Path) -> None:
    path = folder / "chronex.toml"
    done = chronex("lint", "@wekly", "-", str(path), "--fix", "--unsafe-fixes", *NOW, stdin="@dialy\n")
    assert (done.out, done.err, done.code) == ("@weekly\n@daily\n", "", 0)
    assert path.read_text() == GOOD_JOB


# -- forms ------------------------------------------------------------------------------------------------


def test_json_has_every_documented_key(chronex: Chronex) -> None:
    row = json.loads(chronex("lint", "0 9 * * MNO", "--format", "json", *NOW).out)[0]
    assert list(row) == [
        "file", "line", "column", "end_line", "end_column", "code", "severity", "message", "page", "expression",
        "dialect", "zone", "next", "fix",
    ]  # fmt: skip
    assert row["fix"] == {
        "title": "write MON",
        "safe": False,
        "edits": [{"line": 1, "column": 9, "end_line": 1, "end_column": 12, "text": "MON"}],
    }
    row = json.loads(chronex("lint", "*/7 4 * * *", "--format", "json", *NOW).out)[0]
    assert row["next"] == ["2027-01-01T04:00:00+00:00", "2027-01-01T04:07:00+00:00", "2027-01-01T04:14:00+00:00"]


@pytest.mark.parametrize("form", ["text", "gcc", "github"])
def test_no_control_character_of_a_file_or_its_name_is_shown(chronex: Chronex, tmp_path: Path, form: str) -> None:
    path = tmp_path / "\x1b[2J\u202e" / "crontab"
    path.parent.mkdir()
    path.write_text("# chronex: ignore[\x1b[31m]\n@\x1b]0;x\x07 /a\n99 \x9b \u202e * * /b\n")
    done = chronex("lint", str(path), "--format", form, "--min-severity", "info", *NOW)
    assert done.code == 1
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", done.out + done.err)


@pytest.mark.parametrize("form", ["text", "gcc", "github"])
def test_a_file_with_a_line_feed_in_its_name_is_linted_and_told_in_one_line(
    chronex: Chronex, tmp_path: Path, form: str
) -> None:
    (tmp_path / "a\nb.crontab").write_text("0 25 * * * /a\n")
    done = chronex("lint", str(tmp_path), "--format", form, *NOW)
    assert (done.code, len(done.out.splitlines())) == (1, 1)
    assert "value 25 out of range" in done.out


def test_github_annotations_are_escaped(chronex: Chronex) -> None:
    done = chronex("lint", "0 9 * * * {tag:50%}", "--format", "github", *NOW)
    assert done.out.startswith(
        "::error file=<expression>,line=1,endLine=1,col=16,endColumn=19,title=E016::options.tag: "
    )
    assert "'50%25'" in done.out


def test_sarif_validates_against_its_schema(chronex: Chronex, folder: Path) -> None:
    done = chronex(
        "lint", str(folder), "0 9 * * Monday", "@wekly", "--format", "sarif", "--min-severity", "info", *NOW
    )
    log = json.loads(done.out)
    jsonschema.validate(log, json.loads(SCHEMA.read_text()))
    run = log["runs"][0]
    assert (log["version"], run["columnKind"]) == ("2.1.0", "unicodeCodePoints")
    result = run["results"][0]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "E006"
    region = result["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 1, "startColumn": 9, "endLine": 1, "endColumn": 15}
    assert result["fixes"][0]["artifactChanges"][0]["replacements"][0]["insertedContent"]["text"] == "MON"
    assert "fixes" not in run["results"][1]  # a guess: who applies it must have read it


def test_the_schema_refuses_what_is_not_sarif() -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"version": "2.1.0", "runs": [{"results": 1}]}, json.loads(SCHEMA.read_text()))


@pytest.mark.parametrize(("form", "pattern"), [("text", "%f:%l:%c: %m"), ("gcc", "%f:%l:%c: %m")])
def test_vim_reads_the_lines_with_its_errorformat(chronex: Chronex, folder: Path, form: str, pattern: str) -> None:
    lines = chronex("lint", str(folder), "--format", form, *NOW).out
    listed = folder / "errors.txt"
    listed.write_text(lines)
    script = f"set errorformat={pattern.replace(' ', chr(92) + ' ')} | cgetfile {listed}"
    show = (
        "call writefile([json_encode(map(getqflist(), {k, v -> [bufname(v.bufnr), v.lnum, v.col, v.valid]}))], 'q')"
    )
    command = ["nvim", "--headless", "-u", "NONE", "-i", "NONE", "-c", script, "-c", show, "-c", "qa!"]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=60, cwd=folder)
    except FileNotFoundError:
        parsed = [re.match(r"(.+?):(\d+):(\d+): .", line) for line in lines.splitlines()]
        assert all(parsed)
        pytest.skip("nvim is not installed; the pattern was checked instead")
    found = json.loads((folder / "q").read_text())
    assert [(Path(name).name, line, column, valid) for name, line, column, valid in found] == [
        ("a.crontab", 1, 1, 1), ("chronex.toml", 2, 21, 1), ("chronex.toml", 4, 1, 1),
    ]  # fmt: skip


# -- rules ------------------------------------------------------------------------------------------------


def test_explain_prints_the_page_of_a_rule(chronex: Chronex) -> None:
    done = chronex("lint", "--explain", "w111")
    assert done.code == 0
    assert done.out == (Path(__file__).parents[3] / "docs" / "rules" / "W111.md").read_text()


def test_rules_can_be_listed(chronex: Chronex) -> None:
    assert "W111  warning  falls in a clock gap\n" in chronex("lint", "--list-rules").out
    rows = json.loads(chronex("lint", "--list-rules", "--format", "json").out)
    assert {"code": "W111", "severity": "warning", "title": "falls in a clock gap"} in rows


def test_lint_imports_no_server() -> None:
    import sys

    program = (
        "import sys, chronex.lint.linter, chronex.lint.linter, chronex.lint.formats, chronex.cli.commands.lint\n"
        "assert not {'pygls', 'lsprotocol', 'yaml', 'msgspec'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_report_for_gitlab_names_a_finding_by_its_line_and_not_by_where_that_stands(
    chronex: Chronex, folder: Path
) -> None:
    path = folder / "q.crontab"

    def report(text: str) -> list[dict[str, Any]]:
        path.write_text(text)
        rows: list[dict[str, Any]] = json.loads(chronex("lint", str(path), "--format", "gitlab", *NOW).out)
        return rows

    first = report("0 25 * * * /a\n0 25 * * * /a\n0 4 * * MNO /b\n")
    moved = report("# nightly\n0 25 * * * /a\n0 25 * * * /a\n0 4 * * MNO /b\n")
    assert [set(row) for row in first] == [{"description", "check_name", "fingerprint", "severity", "location"}] * 3
    assert [(row["check_name"], row["severity"], row["location"]["lines"]) for row in moved] == [
        ("E003", "major", {"begin": 2}), ("E003", "major", {"begin": 3}), ("E006", "major", {"begin": 4}),
    ]  # fmt: skip
    prints = [row["fingerprint"] for row in first]
    assert prints == [row["fingerprint"] for row in moved]
    assert len(set(prints)) == 3
