"""Files with variables: what is read, what is refused, and that nothing in them is run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chronex.run import RunContext
from chronex.run.environment import variables_of_files
from chronex.run.request import NotStarted
from chronex.text.variable_files import VariableFileError, parse_variables
from tests.run.requests import outcome, output

READ: dict[str, tuple[bytes, dict[str, str]]] = {
    "nothing": (b"", {}),
    "plain": (b"A=1\nB=two words\n", {"A": "1", "B": "two words"}),
    "comments": (b"# A=1\n; B=2\n\n   # C=3\nD=4", {"D": "4"}),
    "exported": (b"export A=1\nexport\tB=2", {"A": "1", "B": "2"}),
    "spaces": (b"  A = 1  \r\n", {"A": "1"}),
    "empty values": (b"A=\nB=''\nC=\"\"", {"A": "", "B": "", "C": ""}),
    "single quotes": (b"A='a \\n $B \"c\"'", {"A": 'a \\n $B "c"'}),
    "double quotes": (b'A="a \\"b\\" \\\\ \\$c \\n"', {"A": 'a "b" \\ $c \\n'}),
    "a comment behind quotes": (b"A='1' # one\nB=\"2\"#two", {"A": "1", "B": "2"}),
    "a hash without quotes": (b"A=a#b # c", {"A": "a#b # c"}),
    "nothing is run": (b"A=$(id)\nB=`id`\nC=$HOME", {"A": "$(id)", "B": "`id`", "C": "$HOME"}),
    "the last one": (b"A=1\nA=2", {"A": "2"}),
    "equals": (b"A=b=c==", {"A": "b=c=="}),
    "a byte order mark": (b"\xef\xbb\xbfA=1", {"A": "1"}),
    "bytes that are no text": (b"A=\xff", {"A": "\udcff"}),
}
REFUSED: dict[str, tuple[bytes, str]] = {
    "no equals": (b"A=1\nB", "line 2 is not NAME=value"),
    "a bad name": (b"A-B=1", "line 1 is not NAME=value"),
    "a digit first": (b"\n1A=1", "line 2 is not NAME=value"),
    "a NUL": (b"A=a\0b", "line 1 is not NAME=value"),
    "an open quote": (b'A="abc', "line 1 has a quote that does not end where its value ends"),
    "a quote too early": (b"A='a' b", "line 1 has a quote that does not end where its value ends"),
}


@pytest.mark.parametrize("case", READ)
def test_what_is_read(case: str) -> None:
    text, expected = READ[case]
    assert parse_variables(text) == expected


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_and_no_value_is_told(case: str) -> None:
    text, expected = REFUSED[case]
    with pytest.raises(VariableFileError, match=f"^{expected}$"):
        parse_variables(text)


def test_a_later_file_wins_and_a_missing_one_is_named(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("A=1\nB=1\n")
    second.write_text("B=2\n")
    assert variables_of_files((str(first), str(second))) == {"A": "1", "B": "2"}
    missing = variables_of_files((str(first), str(tmp_path / "none")))
    assert isinstance(missing, NotStarted)
    assert missing.error == f"env_file {tmp_path}/none: no such file or directory"


def test_what_is_no_plain_file_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "long").write_bytes(b"A=1\n" * 300_000)
    for name, problem in (("pipe", "not a regular file"), ("long", "longer than 1048576 bytes")):
        found = variables_of_files((str(tmp_path / name),))
        assert isinstance(found, NotStarted)
        assert found.error == f"env_file {tmp_path / name}: {problem}"


async def test_a_command_has_them_below_its_own(run_context: RunContext, tmp_path: Path) -> None:
    file = tmp_path / "app.env"
    file.write_text("A=file\nB=file\nCHRONEX_JOB=file\n")
    result = await outcome(run_context, "echo $A $B $CHRONEX_JOB", env_file=(str(file),), env={"B": "job"})
    assert output(run_context, result) == b"file job backup\n"
    file.write_text("A=changed\n")
    result = await outcome(run_context, "echo $A $B", env_file=(str(file),), env={"B": "job"})
    assert output(run_context, result) == b"changed job\n"
