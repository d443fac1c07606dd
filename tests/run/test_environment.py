"""What a child sees, and that values stay values."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chronex.model import AttemptState
from chronex.run import RunContext
from chronex.run.environment import TRACE_VARIABLE, ChildEnvironment, Inheritance, child_environment, instant_text
from chronex.run.request import AttemptRequest, NotStarted
from chronex.run.secret_values import secret_values
from tests.run.requests import outcome, output, python, request

DAEMON = {
    "PATH": "/usr/bin:/bin", "HOME": "/home/u", "USER": "u", "LOGNAME": "u", "SHELL": "/bin/sh", "LANG": "C.UTF-8",
    "LC_TIME": "C", "TZ": "Asia/Seoul", "TMPDIR": "/tmp", "XDG_RUNTIME_DIR": "/run/u",
    "API_TOKEN": "t0ken", "AWS_SECRET": "not declared", "PYTHONPATH": "/bundle", "CHRONEX_STORE": "/s",
    "LD_PRELOAD": "evil.so", "_MEIPASS2": "/tmp/_MEI1",
}  # fmt: skip


def made_for(asked: AttemptRequest, inheritance: Inheritance) -> ChildEnvironment | NotStarted:
    secrets = secret_values(asked, inheritance, {})
    return secrets if isinstance(secrets, NotStarted) else child_environment(asked, inheritance, secrets)


def seen(asked: AttemptRequest, daemon: dict[str, str] = DAEMON, *, frozen: bool = False) -> dict[str, str]:
    made = made_for(asked, Inheritance(daemon, frozen=frozen))
    assert isinstance(made, ChildEnvironment), made
    return {os.fsdecode(name): os.fsdecode(value) for name, value in made.variables.items()}


def refused(asked: AttemptRequest) -> NotStarted:
    made = made_for(asked, Inheritance(DAEMON))
    assert isinstance(made, NotStarted)
    return made


def test_only_a_short_list_of_the_daemons_variables_is_inherited() -> None:
    inherited = {name for name in seen(request()) if not name.startswith("CHRONEX_")}
    assert inherited - {TRACE_VARIABLE} == {
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LC_TIME",
        "TZ",
        "TMPDIR",
        "XDG_RUNTIME_DIR",
    }


def test_the_child_is_told_who_calls_and_what_for() -> None:
    asked = request(
        metadata={"owner": "ops", "cost-centre": "7", "cost.centre": "8", "größe": "x"},
        parameters={"day": "2026-03-01"},
        span_start_ms=0,
        span_end_ms=1500,
        idempotency_key="k1",
        number=3,
        run_id="run_1",
        version=4,
        recovery=True,
        fire_count=17,
        epoch=2,
        fence=40,
        last_run_ms=1_500,
    )
    given = {name: value for name, value in seen(asked).items() if name.startswith("CHRONEX_")}
    assert given == {
        "CHRONEX_JOB": "backup",
        "CHRONEX_TASK": "dump",
        "CHRONEX_OCCURRENCE": "occ_1",
        "CHRONEX_ATTEMPT": asked.attempt_id,
        "CHRONEX_ATTEMPT_NUMBER": "3",
        "CHRONEX_SCHEDULED_TIME": "2026-03-01T03:00:00Z",
        "CHRONEX_RUN_ID": "run_1",
        "CHRONEX_VERSION": "4",
        "CHRONEX_RECOVERY": "true",
        "CHRONEX_FIRE_COUNT": "17",
        "CHRONEX_EPOCH": "2",
        "CHRONEX_FENCE": "40",
        "CHRONEX_LAST_RUN": "1970-01-01T00:00:01.500Z",
        "CHRONEX_SPAN_START": "1970-01-01T00:00:00Z",
        "CHRONEX_SPAN_END": "1970-01-01T00:00:01.500Z",
        "CHRONEX_IDEMPOTENCY_KEY": "k1",
        "CHRONEX_META_OWNER": "ops",
        "CHRONEX_META_COST_CENTRE": "7",
        "CHRONEX_META_GR_SSE": "x",
        "CHRONEX_PARAM_DAY": "2026-03-01",
    }


def test_the_later_source_wins() -> None:
    asked = request(
        env={"PATH": "/opt", "API_TOKEN": "job's", "CHRONEX_JOB": "forged"},
        secrets=("API_TOKEN",),
        extra_environment={"CHRONEX_STORE": "/store"},
    )
    got = seen(asked)
    assert (got["PATH"], got["API_TOKEN"], got["CHRONEX_JOB"]) == ("/opt", "t0ken", "backup")
    assert got["CHRONEX_STORE"] == "/store"


def test_a_missing_secret_is_named_and_its_neighbours_values_are_not() -> None:
    problem = refused(request(secrets=("API_TOKEN", "MISSING")))
    assert "the secret 'MISSING' is not in the daemon's environment" in problem.error
    assert not problem.retryable
    assert "t0ken" not in problem.error


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"env": {"A": "x\0y"}}, "'A' contains a NUL"),
        ({"metadata": {"k": "\0"}}, "'CHRONEX_META_K' contains a NUL"),
        ({"parameters": {"k": "a\0"}}, "'CHRONEX_PARAM_K' contains a NUL"),
        ({"idempotency_key": "\0"}, "CHRONEX_IDEMPOTENCY_KEY"),
        ({"env": {"": "x"}}, "cannot name"),
        ({"env": {"A=B": "x"}}, "cannot name"),
        ({"env": {"A\0": "x"}}, "cannot name"),
        ({"env": {"A": "\ud800"}}, "cannot be written"),
    ],
)
def test_what_no_environment_can_hold_is_refused_by_name(changes: dict[str, Any], named: str) -> None:
    problem = refused(request(**changes))
    assert named in problem.error
    assert not problem.retryable


@pytest.mark.parametrize(
    ("daemon", "frozen", "expected"),
    [
        ({"LD_LIBRARY_PATH": "/user"}, False, "/user"),
        ({"LD_LIBRARY_PATH": "/bundle", "LD_LIBRARY_PATH_ORIG": "/user"}, True, "/user"),
        ({"LD_LIBRARY_PATH": "/bundle"}, True, None),
        ({"LD_LIBRARY_PATH": "/bundle", "LD_LIBRARY_PATH_ORIG": ""}, True, None),
        ({}, False, None),
    ],
)
def test_a_frozen_bundles_library_path_is_not_the_childs(
    daemon: dict[str, str], frozen: bool, expected: str | None
) -> None:
    got = seen(request(), daemon, frozen=frozen)
    assert got.get("LD_LIBRARY_PATH") == expected
    assert "LD_LIBRARY_PATH_ORIG" not in got


def test_without_a_path_the_child_gets_the_usual_one() -> None:
    assert seen(request(), {})["PATH"] == "/usr/local/bin:/usr/bin:/bin"


@pytest.mark.parametrize(
    ("at_ms", "text"),
    [(0, "1970-01-01T00:00:00Z"), (-1, "1969-12-31T23:59:59.999Z"), (253402300799999, "9999-12-31T23:59:59.999Z")],
)
def test_instants_are_rfc_3339_in_utc(at_ms: int, text: str) -> None:
    assert instant_text(at_ms) == text


SHOW = "import json, os, sys; print(json.dumps([sys.argv[1:], {k: v for k, v in os.environ.items() if 'V' in k}]))"
HOSTILE = [
    "", " ", "'", '"', "`id`", "$(id)", "$HOME", "${IFS}", ";id", "&&id", "|id", ">x", "a\nb", "\r\n", "-rf", "--", "-c",
    "*", "~", "\\", "\\n", "%s%n", "{x}", "{{metadata.x}}", "%(x)s", "$1", "!!", "\x1b[2J", "\x1b]52;c;eA==\a", "#", "é", "漢", "\u202e",
    "x" * 100_000, "$(touch pwned)", "`touch pwned`", "';touch pwned;'", '";touch pwned;"', "\n touch pwned\n",
]  # fmt: skip


async def test_hostile_values_arrive_byte_for_byte(run_context: RunContext, tmp_path: Path) -> None:
    short = [value for value in HOSTILE if len(value) < 1000]
    result = await outcome(
        run_context,
        python(SHOW, *short),
        directory=str(tmp_path),
        env={f"V{i}": value for i, value in enumerate(HOSTILE)},
        metadata={f"v{i}": value for i, value in enumerate(HOSTILE)},
    )
    argv, environment = json.loads(output(run_context, result))
    assert argv == short
    for i, value in enumerate(HOSTILE):
        assert environment[f"V{i}"] == value
        assert environment[f"CHRONEX_META_V{i}"] == value
    assert os.listdir(tmp_path) == ["logs"]


async def test_in_a_shell_command_values_come_only_as_variables(run_context: RunContext, tmp_path: Path) -> None:
    for value in HOSTILE:
        result = await outcome(
            run_context, 'printf %s "$CHRONEX_PARAM_V"', parameters={"v": value}, directory=str(tmp_path)
        )
        assert output(run_context, result) == value.encode()
    assert os.listdir(tmp_path) == ["logs"]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), max_size=50), max_size=20)
)
async def test_generated_arguments_arrive_byte_for_byte(run_context: RunContext, values: list[str]) -> None:
    result = await outcome(run_context, ("/usr/bin/printf", r"%s\0", *values))
    expected = "".join(value + "\0" for value in values) if values else "\0"
    assert output(run_context, result) == expected.encode()


async def test_a_value_of_a_mebibyte_is_a_readable_failure(run_context: RunContext) -> None:
    result = await outcome(run_context, ("true",), metadata={"big": "x" * 2**20})
    assert result.state is AttemptState.FAILED
    assert "too long" in result.error
    assert "E2BIG" in result.error
