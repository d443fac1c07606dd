"""Whole lines of crontabs as the cron that reads them has it: variables, commands and line ends."""

from __future__ import annotations

import json

import pytest

from chronex.lint.cron_programs import BSD, BUSYBOX, CRON_PROGRAMS, CRONIE, DEBIAN, SUPERCRONIC, CronProgram
from chronex.lint.cron_variables import CronVariable, NoVariable, read_variable
from chronex.lint.linter import fixed, lint_document
from chronex.lint.source_files import is_template, open_document
from tests.lint.linting import assume
from tests.lint.odd_lines import LINE_VERDICTS, record_lines
from tests.lint.real_crons import Verdict, checkers

ROWS: list[tuple[str, dict[str, Verdict]]] = [tuple(row) for row in json.loads(LINE_VERDICTS.read_text())]
# Taken and read otherwise than it is written: these are no refusals.
MISREAD = ("E139", "E011")


def codes(text: str, program: CronProgram) -> list[str]:
    found = lint_document(open_document("crontab", text), assume()._replace(cron=program)).findings
    return [f.code for f in found if f.severity != "info"]


def is_refused(text: str, program: CronProgram) -> bool:
    """By lint: an error, or a line without an end, of which one half of the rule is that the file is refused."""
    found = lint_document(open_document("crontab", text), assume()._replace(cron=program)).findings
    errors = [f for f in found if f.severity == "error" and f.code not in MISREAD and "runs nothing" not in f.message]
    if isinstance(read_variable(text, program), CronVariable):
        errors = [f for f in errors if f.code != "E143"]  # a byte order mark gives the variable another name
    return bool(errors) or any(f.code == "W135" for f in found)


def differs(text: str, key: str, verdict: Verdict) -> bool:
    if key == "cronie" and "~" in text:
        return False  # `crontab -T` draws a number first, and answers by chance
    if key == "cronie" and text.endswith((" \r\n", "\t\r\n")):
        return False  # a carriage return alone is a command to it
    if is_template(text.split(maxsplit=1)[0] if text.split() else ""):
        return False  # `@DAILY@`, which is to be filled in, and on which lint is silent
    if text.startswith("\ufeff") and "=" in text:
        return False  # of a variable the mark becomes the name, quotes and all
    if key == "debian" and "W154" in codes(text, DEBIAN):
        return False  # what its releases do not read alike
    return is_refused(text, CRON_PROGRAMS[key]) is bool(verdict)


def test_lint_agrees_with_the_recorded_verdicts_on_whole_lines() -> None:
    assert len(ROWS) >= 800
    assert {key for _, verdicts in ROWS for key in verdicts} == {"debian", "cronie"}
    assert [(key, line) for line, said in ROWS for key in said if differs(line, key, said[key])] == []


@pytest.mark.torture
@pytest.mark.timeout(3600)
def test_ten_thousand_whole_lines_through_the_programs_that_are_installed() -> None:
    if not checkers():
        pytest.skip("no crontab that checks is installed here; CHRONEX_CRONS says where they are")
    assert [
        (key, line) for line, said in record_lines(10_000, 2) for key in said if differs(line, key, said[key])
    ] == []


# -- variables ----------------------------------------------------------------------------------------------------

LONG = "x" * 1000


@pytest.mark.parametrize(
    ("line", "program", "expected"),
    [
        ("A=b", DEBIAN, ("A", "b")),
        (" A = b c ", DEBIAN, ("A", "b c")),
        ("'A B'='x y' ", DEBIAN, ("A B", "x y")),
        ("$A=x", DEBIAN, ("$A", "x")),
        ("*=x", CRONIE, ("*", "x")),
        ("=x", CRONIE, ("", "x")),
        ("@dailyA=b x", DEBIAN, ("@dailyA", "b x")),
        ("A=", DEBIAN, ("A", "")),
        ("A=x'y", DEBIAN, ("A", "x'y")),
        ("A='x", DEBIAN, "open quote"),
        ("A='x' y", CRONIE, "text after a quote"),
        ("A='a''b'", DEBIAN, "text after a quote"),
        (f"A='{LONG}'", DEBIAN, "long value"),
        (f"A='{LONG}'", CRONIE, ("A", LONG)),
        (f"A={LONG}", DEBIAN, ("A", "x" * 996)),
        ("A='x", SUPERCRONIC, ("A", "'x")),
        ("A='x' y", BUSYBOX, ("A", "'x' y")),
        ("'A=b'", DEBIAN, None),
        ("export A=b", DEBIAN, None),
        ("17 4 * * * A=b x", DEBIAN, None),
        ("17 4 * * *", SUPERCRONIC, None),
    ],
    ids=lambda value: getattr(value, "key", str(value)[:20]),
)
def test_each_cron_tells_variables_from_schedules(
    line: str, program: CronProgram, expected: tuple[str, str] | str | None
) -> None:
    found = read_variable(line, program)
    if isinstance(found, CronVariable):
        assert (found.name, found.value) == expected
        assert line[found.value_start : found.value_end].strip("'\"") == found.value.strip("'\"")
    else:
        assert (found.why if isinstance(found, NoVariable) else None) == expected


@pytest.mark.parametrize(
    ("text", "program", "expected"),
    [
        ("MAILTO='a' # b\n", DEBIAN, ["E149"]),
        ("MAILTO='a' # b\n", BUSYBOX, []),
        ("A='b\n", CRONIE, ["E149"]),
        (f"A='{LONG}'\n", DEBIAN, ["E149"]),
        (f"A={LONG}\n", DEBIAN, ["E139"]),
        (f"A={LONG}\n", CRONIE, []),
        ("A=\n", DEBIAN, ["W154"]),
        ("A=\n", CRONIE, []),
        ("MAILTO=a, b\n", DEBIAN, ["W154"]),
        ("MAILTO=a,b@example.org\n", DEBIAN, []),
        ("MAILTO=-a\n", DEBIAN, ["W154"]),
        ("NAME=a b\n", DEBIAN, []),
        (f"17 4 * * * {LONG}\n", DEBIAN, ["E136"]),
        (f"17 4 * * * {LONG}\n", CRONIE, []),
        ("17 4 * * * " + "é" * 500 + "\n", DEBIAN, ["E136"]),
        ("17 4 * * *\n", BSD, ["E136"]),
        ("17 4 * * * " + "x" * 998 + "\r\n", DEBIAN, ["W144", "E136"]),
        ("@daily ='x' y\n", DEBIAN, []),
        ("17 4 * * * x\r\n\r\n", DEBIAN, ["W144", "E130"]),
        (" \r\n17 4 * * * x\n", CRONIE, ["E130"]),
        ("\r\n", BUSYBOX, []),
        ("# a\r\n", DEBIAN, []),
        ("17 4 * * * x\0 5 4 * * * y\n", DEBIAN, ["E139"]),
        ("17 4 * * * x\0 5 4 * * * y\n", CRONIE, ["E139"]),
        ("A=b\0c\n", BSD, ["E139"]),
        ("# a\0b\n", DEBIAN, []),
        ("MAIL\0TO=x\n", DEBIAN, ["E010"]),
        ("\0A=x\n", CRONIE, ["E010"]),
        ("17 4 * * * x\0y\n", BUSYBOX, []),
        ("\udcff\udcfe1\x007\0 \x004\0 \0*\0\n\0", DEBIAN, ["E143"]),
        ("1\x007\0 \x004\0 \0*\0\n\0", CRONIE, ["E143"]),
        ("17 4\udcff * * * x\n", DEBIAN, ["E010"]),
        ("17 4\udcfe * * * x\n", DEBIAN, ["E139"]),
    ],
    ids=lambda value: getattr(value, "key", str(value)[:20]),
)
def test_what_is_said_of_a_line(text: str, program: CronProgram, expected: list[str]) -> None:
    assert codes(text, program) == expected


@pytest.mark.parametrize(
    ("program", "words"),
    [(DEBIAN, "Debian's cron takes the line and runs nothing"), (CRONIE, "cronie refuses the line")],
    ids=lambda value: getattr(value, "key", None),
)
def test_a_line_without_a_command_is_told_as_its_cron_takes_it(program: CronProgram, words: str) -> None:
    (found,) = lint_document(open_document("crontab", "17 4 * * *\n"), assume()._replace(cron=program)).findings
    assert words in found.message


@pytest.mark.parametrize(
    ("line", "is_taken"),
    [("@hourly\n", True), ("@hourly \r\n", True), ("@hourly\r\n", False), ("\t* * * * *\r\n", True)],
)
def test_a_carriage_return_is_a_part_of_a_nickname_without_a_command(line: str, is_taken: bool) -> None:
    assert is_refused(line, DEBIAN) is not is_taken


def test_an_empty_value_is_put_into_quotes() -> None:
    document = open_document("crontab", "MAILTO=\n17 4 * * * /bin/x\n")
    assert fixed(document, assume()._replace(cron=DEBIAN)).text == 'MAILTO=""\n17 4 * * * /bin/x\n'
