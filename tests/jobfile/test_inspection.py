"""What the linter is given: every schedule with what the cascade makes of it, however broken the rest of the file is."""

from __future__ import annotations

import pytest

from chronex.jobfile.entries import WrittenSchedule
from chronex.jobfile.reader import inspect_job_file, inspect_triggers
from chronex.model.policies import DstSetting, RetryPolicy

HOST = "Europe/Berlin"


def schedules(text: str) -> list[WrittenSchedule]:
    return list(inspect_job_file(text, "chronex.toml", HOST).schedules)


def only(text: str) -> WrittenSchedule:
    (found,) = schedules(text)
    return found


JOB = '[jobs.a]\nschedule = "17 4 * * *"\nrun = "true"\n'


def test_a_valid_file_has_no_problems() -> None:
    found = inspect_job_file(JOB, "chronex.toml", HOST)
    assert (found.problems, found.warnings, found.zones) == ((), (), ())
    (schedule,) = found.schedules
    assert (schedule.job, schedule.text, schedule.dialect) == ("a", "17 4 * * *", "chronex")
    assert JOB[schedule.node.value.start : schedule.node.value.end] == '"17 4 * * *"'


@pytest.mark.parametrize(
    ("scheduler", "job", "expected"),
    [
        ("", "", (HOST, "host")),
        ('timezone = "Asia/Seoul"', "", ("Asia/Seoul", "scheduler")),
        ('timezone = "local"', "", (HOST, "host")),
        ('timezone = "Asia/Seoul"', 'timezone = "UTC"', ("UTC", "job")),
        ('timezone = "Asia/Seoul"', 'timezone = "local"', (HOST, "host")),
        ('timezone = "Asia/Seul"', "", (HOST, "host")),
        ('timezone = "Asia/Seoul"', 'timezone = "Asia/Seul"', ("Asia/Seoul", "scheduler")),
    ],
)
def test_the_zone_and_where_it_comes_from(scheduler: str, job: str, expected: tuple[str, str]) -> None:
    found = only(f"[scheduler]\n{scheduler}\n{JOB}{job}\n")
    assert (found.zone, found.zone_source) == expected


def test_defaults_and_the_job_are_merged_as_the_daemon_merges_them() -> None:
    defaults = (
        '[defaults]\ndialect = "posix"\nretry = { max = 5 }\ndst = { gap = "end" }\nspread = { duration = "1h" }\n'
    )
    found = only(f'{defaults}{JOB}retry = {{ interval = "2m" }}\ndst = {{ overlap = "both" }}\n')
    assert found.dialect == "posix"
    assert found.retry == RetryPolicy(max=5, interval_ms=120_000)
    assert found.dst == DstSetting(gap="end", overlap="both")
    assert found.has_spread


@pytest.mark.parametrize(
    "text",
    [
        JOB + "tasks = 5\n",
        JOB + "overlab = 1\n",
        JOB.replace('run = "true"', "run = "),
        JOB + "[jobs.b\n",
        JOB.replace("[jobs.a]", '[jobs."a b"]'),
        JOB.replace("\n", "\r\n"),
    ],
    ids=["tasks", "unknown key", "no value", "no bracket", "bad name", "CRLF"],
)
def test_a_schedule_is_found_whatever_else_is_wrong(text: str) -> None:
    found = only(text)
    assert found.text == "17 4 * * *"
    assert text[found.node.value.start : found.node.value.end] == '"17 4 * * *"'


def test_a_text_that_is_not_toml_has_that_one_problem() -> None:
    found = inspect_job_file(JOB + "overlab = 1\nx = \n", "chronex.toml", HOST)
    assert [problem.code for problem in found.problems] == ["J002"]


def test_zones_that_the_file_names() -> None:
    text = f'[scheduler]\ntimezone = "EST"\n{JOB}timezone = "local"\n'
    zones = inspect_job_file(text, "chronex.toml", HOST).zones
    assert [zone.name for zone in zones] == ["EST", "local"]
    assert [text[slice(*zone.span)] for zone in zones] == ['"EST"', '"local"']


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('{"id": "a", "expression": "@daily"}', ["a"]),
        ('[{"id": "a b", "expression": "@daily"}]', ["a b"]),
        ('[{"id": "a", "expression": "@daily"}, {"id": "b", "expression": 5}]', ["a"]),
        ('[{"id": "a", "expression": "@daily"},]', ["a"]),
        ('{"x": 1}', []),
        ("5", []),
    ],
)
def test_triggers(text: str, names: list[str]) -> None:
    assert [found.job for found in inspect_triggers(text, "triggers.json", HOST).schedules] == names


# -- fixes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ('overlab = "skip"', "overlap"),
        ("zzzzzzz = 1", None),
        ('overlap = "skipp"', '"skip"'),
        ('task_timeout = "30min"', '"30m"'),
        ('task_timeout = "soon"', None),
        ('timezone = "Europe/Berln"', '"Europe/Berlin"'),
        ("overlap = 5", None),
    ],
)
def test_what_was_meant_is_a_fix(key: str, expected: str | None) -> None:
    (problem,) = inspect_job_file(f"{JOB}{key}\n", "chronex.toml", HOST).problems
    assert problem.fix == expected
    assert (f"did you mean {expected}?".replace('"', "") == problem.hint) == (expected is not None)


def test_the_fix_of_an_idempotency_key_changes_the_unknown_field_alone() -> None:
    task = '[jobs.a]\nschedule = "@daily"\n[[jobs.a.tasks]]\nname = "t"\nrun = "true"\n'
    (problem,) = inspect_job_file(f'{task}idempotency_key = "{{job}}:{{schedule}}"\n', "chronex.toml", HOST).problems
    assert problem.hint == "did you mean {scheduled}?"
    assert problem.fix == '"{job}:{scheduled}"'


def test_a_problem_as_json_keeps_its_shape() -> None:
    (problem,) = inspect_job_file(f'{JOB}overlab = "skip"\n', "chronex.toml", HOST).problems
    assert list(problem.to_dict()) == ["path", "line", "column", "end_column", "message", "hint", "code"]
