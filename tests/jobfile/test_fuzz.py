"""Whatever the bytes: a JobFile whose jobs can be stored, or a JobFileError whose problems lie in the file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chronex.jobfile import STARTER, JobFile, JobFileError, Problem, read_job_file, read_triggers
from chronex.lint.rules import rules
from chronex.storage import keys
from chronex.storage.codec import decode, encode
from tests.jobfile.test_values import FULL_EXAMPLE

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.toml"))
VALID = [STARTER, FULL_EXAMPLE, *(path.read_text() for path in EXAMPLES)]
TRIGGER = """[{"id": "health-check", "expression": "TZ=UTC @every 15m {stagger:3m}", "enabled": true,
 "metadata": {"env": "prod"}, "run": ["true"], "retry": {"max": 2, "interval": "5s"}, "spread": {"duration": "1h"}}]"""
ODD = [
    "nan", "-1", "0", "99999999999999999999999", "0x" + "f" * 50, "true", '""', '"\\u0000"', "[]", "{}", "[[]]", '"x"',
    "1979-05-27", "inf", '"\\U0010FFFF"', '"' + "9" * 300 + 'd"', "'''\n'''", '"local"', '"unlimited"', "\n", "=", '"',
    "[jobs.a]", "[[jobs.a.tasks]]", "\x00", "\u2028", "é", "off", '"TZ=Nowhere * * * * *"', '"@every 0s"', "#", ",", "{",
    "retry", "spread", "tasks", "env", ".", "\\", "null", '"\\ud800"', ":", "}", "]",
]  # fmt: skip


def check(read: object, content: str | bytes) -> None:
    assert callable(read)
    text = content if isinstance(content, str) else content.decode("utf-8", "replace")
    lines = text.count("\n") + 1
    try:
        found = read(content, "f.toml", "Europe/Berlin")
    except JobFileError as error:
        check_problems(error.problems, lines)
        return
    assert isinstance(found, JobFile)
    for job in found.jobs:
        key = keys.job_key(job.id)
        assert decode(key, encode(key, job)) == job


def check_problems(problems: tuple[Problem, ...], lines: int) -> None:
    assert problems
    assert list(problems) == sorted(problems, key=lambda p: (p.line, p.column))
    for problem in problems:
        assert 1 <= problem.line <= lines
        assert 1 <= problem.column < problem.end_column
        assert problem.message
        assert problem.hint
        assert problem.code in rules() or problem.code.startswith("E")
        assert str(problem).isprintable()


@st.composite
def mutations(draw: st.DrawFn, valid: list[str]) -> str:
    text = draw(st.sampled_from(valid))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.sampled_from([0, 0, 1, 3, 12])))
        new = draw(st.sampled_from(ODD) | st.text(max_size=3))
        text = text[:start] + new + text[end:]
    return text


@st.composite
def replaced_values(draw: st.DrawFn) -> str:
    """A valid file in which values are exchanged for odd ones, so that TOML stays valid and the reader is reached."""
    lines = draw(st.sampled_from(VALID)).split("\n")
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(lines) - 1))
        key, equals, _ = lines[at].partition(" = ")
        if equals and not key.startswith("#"):
            lines[at] = f"{key} = {draw(st.sampled_from(ODD))}"
    return "\n".join(lines)


@settings(max_examples=150, deadline=None)
@given(mutations(VALID))
def test_mutated_files(text: str) -> None:
    check(read_job_file, text)


@settings(max_examples=150, deadline=None)
@given(replaced_values())
def test_odd_values(text: str) -> None:
    check(read_job_file, text)


@settings(max_examples=150, deadline=None)
@given(mutations([TRIGGER]))
def test_mutated_triggers(text: str) -> None:
    check(read_triggers, text)


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=80) | st.text(max_size=80))
def test_any_bytes(content: str | bytes) -> None:
    check(read_job_file, content)
    check(read_triggers, content)


KEYS = [
    "schedule",
    "timezone",
    "run",
    "tasks",
    "retry",
    "recovery",
    "spread",
    "dst",
    "env",
    "metadata",
    "cadence",
    "x",
]
VALUES = st.recursive(
    st.sampled_from(
        [v for v in ODD if v[0] in '"[{-0123456789tni' and v not in ("[jobs.a]", "[[jobs.a.tasks]]", "{")]
    )
    | st.sampled_from(['"@daily"', '"@every 5m"', '"1h"', "3", '"bounded"', '"skip"', '"after"', '"execute_all"']),
    lambda inner: (
        st.lists(inner, max_size=2).map(lambda vs: "[" + ", ".join(vs) + "]")
        | st.dictionaries(
            st.sampled_from(
                ["max", "interval", "strategy", "max_count", "gap", "duration", "only", "name", "run", "mode"]
            ),
            inner,
            max_size=3,
        ).map(lambda d: "{ " + ", ".join(f"{k} = {v}" for k, v in d.items()) + " }")
    ),
    max_leaves=4,
)


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6),
    st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=3),
)
def test_generated_jobs(job: dict[str, str], defaults: dict[str, str]) -> None:
    lines = ["[defaults]", *(f"{k} = {v}" for k, v in defaults.items())]
    lines += ["[jobs.a]", *(f"{k} = {v}" for k, v in job.items())]
    check(read_job_file, "\n".join(lines))


@pytest.mark.torture
@settings(max_examples=20_000, deadline=None)
@given(mutations(VALID) | replaced_values())
def test_many_mutated_files(text: str) -> None:
    check(read_job_file, text)
