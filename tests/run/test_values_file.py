"""What tasks hand over: the lines of a file, the dict of a function, bounds, secrets, and what becomes of the file."""

from __future__ import annotations

import asyncio
import os
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from chronex.model.policies import ProcessSettings
from chronex.model.states import AttemptState
from chronex.run import AttemptRequest, Hooks, LogDirectory, RunContext, run_attempt
from chronex.run.callables import run_callable
from chronex.run.environment import Inheritance, chronex_variables
from chronex.run.request import AttemptResult
from chronex.run.values_file import MOST_BYTES, MOST_VALUES, ValuesFile, values_in, values_returned

ATTEMPT = "attempt_00000000-0000-5000-8000-000000000001"
LINES = [
    (b"", {}, ""),
    (b"rows=12\n", {"rows": "12"}, ""),
    (b"rows=12", {"rows": "12"}, ""),
    (b"A=1\r\nB=2\r\n", {"A": "1", "B": "2"}, ""),
    (b"# a note\n\n  \nA=1\n", {"A": "1"}, ""),
    (b"A=1\nA=2\n", {"A": "2"}, ""),
    (b"url=http://x/?a=b\n", {"url": "http://x/?a=b"}, ""),
    (b"A=\n", {"A": ""}, ""),
    ("grüße=1\nword=grüße\n".encode(), {"word": "grüße"}, "line 1 of CHRONEX_OUTPUT is not NAME=value"),
    (b"A=1\nno sign\n", {"A": "1"}, "line 2 of CHRONEX_OUTPUT is not NAME=value"),
    (b"1A=1\n-=2\na b=3\nx\ny\n", {}, "lines 1, 2, 3 and 2 more of CHRONEX_OUTPUT are not NAME=value"),
    (b"A=1\0\n", {}, "line 1 of CHRONEX_OUTPUT is not NAME=value"),
    (b"\xff=1\n", {}, "what was written to CHRONEX_OUTPUT is not UTF-8: none of it is kept"),
]


@pytest.mark.parametrize(("written", "values", "problem"), LINES)
def test_each_line_is_a_value_or_is_told(written: bytes, values: dict[str, str], problem: str) -> None:
    assert values_in(written) == (values, problem)


def test_more_than_the_bounds_is_told_and_nothing_of_it_is_kept() -> None:
    many = b"".join(b"V%d=1\n" % number for number in range(MOST_VALUES + 1))
    assert values_in(many) == ({}, "65 values are too many: at most 64, and none is kept")
    assert len(values_in(many[: many.rindex(b"V")]).values) == MOST_VALUES
    assert values_in(b"A=" + b"x" * MOST_BYTES).values == {}


@pytest.mark.parametrize(
    ("returned", "values", "problem"),
    [
        (None, {}, False),
        ("text", {}, False),
        (
            {"rows": 12, "ok": True, "share": 0.5, "name": "x"},
            {"rows": "12", "ok": "true", "share": "0.5", "name": "x"},
            False,
        ),
        ({"rows": 1, 2: 3, "list": []}, {"rows": "1"}, True),
    ],
)
def test_a_function_hands_over_the_dict_that_it_returns(
    returned: object, values: dict[str, str], problem: bool
) -> None:
    found = values_returned(returned)
    assert (found.values, bool(found.problem)) == (values, problem)


def request(command: str, **more: object) -> AttemptRequest:
    return AttemptRequest(
        attempt_id=ATTEMPT, number=1, job="etl", task="load", occurrence_id="occ", nominal_ms=0, command=command, **more  # type: ignore[arg-type]
    )  # fmt: skip


def ran(tmp_path: Path, command: str, environ: dict[str, str] | None = None, **more: object) -> AttemptResult:
    with closing(LogDirectory(tmp_path / "logs")) as logs:
        context = RunContext(logs, Inheritance({"PATH": "/usr/bin:/bin", **(environ or {})}))
        return asyncio.run(run_attempt(request(command, **more), Hooks(), context))


def test_a_command_hands_over_what_it_wrote_and_the_file_is_gone(tmp_path: Path) -> None:
    result = ran(tmp_path, 'echo rows=12 >> "$CHRONEX_OUTPUT"; echo bad >> "$CHRONEX_OUTPUT"')
    assert (result.state, result.values) == (AttemptState.SUCCESS, {"rows": "12"})
    assert result.values_problem == "line 2 of CHRONEX_OUTPUT is not NAME=value"
    assert [path.name for path in (tmp_path / "logs").iterdir()] == []


def test_a_command_that_fails_hands_over_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    result = ran(tmp_path, 'echo rows=12 >> "$CHRONEX_OUTPUT"; exit 3')
    assert (result.state, result.values, result.values_problem) == (AttemptState.FAILED, {}, "")
    assert list((tmp_path / "logs").iterdir()) == []


def test_a_secret_is_hidden_in_a_value(tmp_path: Path) -> None:
    command = 'echo "url=https://app:$TOKEN@host" >> "$CHRONEX_OUTPUT"'
    result = ran(tmp_path, command, {"TOKEN": "s3cr3t-token"}, secrets=("TOKEN",))
    assert result.values == {"url": "https://app:[redacted]@host"}


@pytest.mark.parametrize("put", ["ln -s ../private", "ln ../private", "mkfifo"])
def test_something_else_in_the_place_of_the_file_is_not_read_and_told(tmp_path: Path, put: str) -> None:
    (tmp_path / "private").write_text("KEY=1\n")
    result = ran(tmp_path, f'cd "{tmp_path}/logs" && {put} "$CHRONEX_OUTPUT"')
    assert result.values == {}
    assert result.values_problem == "CHRONEX_OUTPUT names no plain file any more: nothing is handed over"
    assert (tmp_path / "private").read_text() == "KEY=1\n"
    assert list((tmp_path / "logs").iterdir()) == []


def test_what_is_too_long_is_not_read(tmp_path: Path) -> None:
    result = ran(tmp_path, 'head -c 70000 /dev/zero | tr "\\0" x > "$CHRONEX_OUTPUT"')
    assert result.values == {}
    assert "more than 65536 bytes" in result.values_problem


def test_an_empty_file_of_nobody_is_nothing(tmp_path: Path) -> None:
    with closing(LogDirectory(tmp_path / "logs")) as logs:
        file = ValuesFile(logs, ATTEMPT)
        assert file.take() == ({}, "")
        file.remove()


def test_what_was_handed_over_becomes_variables() -> None:
    inputs = {"extract": {"rows": "12"}, "etl.load-eu": {"rows": "3"}}
    found = chronex_variables(request("true", inputs=inputs, matrix={"region": "eu"}))
    assert found["CHRONEX_FROM_EXTRACT_ROWS"] == "12"
    assert found["CHRONEX_FROM_ETL_LOAD_EU_ROWS"] == "3"
    assert found["CHRONEX_MATRIX_REGION"] == "eu"


def test_more_than_the_system_takes_is_refused_before_the_start(tmp_path: Path) -> None:
    result = ran(tmp_path, "true", inputs={"extract": {"rows": "x" * 1_000_001}})
    assert (result.state, result.retryable) == (AttemptState.FAILED, False)
    assert "at most 1000000 fit" in result.error


@pytest.mark.parametrize("is_async", [True, False])
def test_a_function_finds_what_came_before_it_and_hands_over_its_own(tmp_path: Path, is_async: bool) -> None:
    def plain(context: object) -> dict[str, int]:
        return {"rows": int(context.inputs["extract"]["rows"]) * 2}  # type: ignore[attr-defined]

    async def awaited(context: object) -> dict[str, int]:
        return plain(context)

    asked = request("", inputs={"extract": {"rows": "12"}})
    with closing(LogDirectory(tmp_path / "logs")) as logs:
        context = RunContext(logs, Inheritance({}))
        result = asyncio.run(run_callable(asked, awaited if is_async else plain, Hooks(), context))
    assert (result.error, result.values) == ("", {"rows": "24"})


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: values of commands of other users are not tried")
def test_a_command_of_another_user_has_a_file_of_its_own(tmp_path: Path) -> None:
    """That user cannot enter the directory of logs; the file is gone afterwards, also where nothing came of it."""
    before = set(Path(tempfile.gettempdir()).glob("chronex-values-*"))
    nobody = ProcessSettings(user="nobody")
    command = 'id -un; echo "who=$(id -un)" >> "$CHRONEX_OUTPUT"'
    result = ran(tmp_path, command, settings=nobody, directory="/")
    assert (result.error, result.values) == ("", {"who": "nobody"})
    refused = ran(tmp_path, "true", settings=nobody, directory=str(tmp_path / "missing"))
    assert refused.state is AttemptState.FAILED
    assert set(Path(tempfile.gettempdir()).glob("chronex-values-*")) <= before
