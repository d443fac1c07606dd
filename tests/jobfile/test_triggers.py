"""Trigger definitions in JSON: the same jobs, and problems in the same form."""

from __future__ import annotations

import pytest

from chronex.jobfile import JobFileError, SchedulerSettings, read_triggers
from chronex.model import Job, RetryPolicy, Task
from tests.jobfile.marked import Place, unmarked


def test_a_definition_as_its_schema_has_it() -> None:
    found = read_triggers(
        '{"id": "health-check", "expression": "TZ=UTC @every 15m {stagger:3m}", "enabled": false,'
        ' "metadata": {"delivery.mode": "webhook"}}',
        "t.json",
        "Europe/Berlin",
    )
    assert found.settings == SchedulerSettings(timezone="Europe/Berlin")
    assert found.jobs == (
        Job(
            id="health-check",
            schedule="TZ=UTC @every 15m {stagger:3m}",
            timezone="UTC",
            enabled=False,
            metadata={"delivery.mode": "webhook"},
            source="t.json",
        ),
    )


def test_a_list_and_keys_of_jobs() -> None:
    text = '[{"id": "a", "expression": "@daily"},\n {"id": "b", "expression": "@hourly", "run": ["x"], "retry": 1}]'
    assert read_triggers(text, "t.json", "Asia/Tokyo").jobs == (
        Job(id="a", schedule="@daily", timezone="Asia/Tokyo", source="t.json"),
        Job(
            id="b",
            schedule="@hourly",
            timezone="Asia/Tokyo",
            source="t.json",
            retry=RetryPolicy(max=1),
            tasks=(Task(name="main", run=("x",)),),
        ),
    )


CASES: dict[str, list[tuple[str, str]]] = {
    "«»": [("J002", "Expecting value")],
    '{"id": "a", «b»: 1}': [("J002", "Expecting property name enclosed in double quotes")],
    "«3»": [("J011", "the file takes a trigger definition or a list of them, not a whole number")],
    '[«"a"»]': [("J011", "the file[0] takes a table, not text")],
    '«{"id": "a"}»': [("J012", "a trigger definition has no expression")],
    '{"id": «"a b"», "expression": "@daily"}': [("J017", "'a b' is not a name")],
    '{"id": "a",\n "expression": "0 «99» * * *"}': [("E003", "hour: value 99")],
    '{"id": "a", "expression": «"0 99 * * \\u002a"»}': [("E003", "hour: value 99")],
    '{"id": "a", "expression": "@daily", "metadata": {"a": «1»}}': [("J011", "a takes text")],
    '{"id": "a", "expression": "@daily", "enabled": «null»}': [("J011", "enabled takes true or false, not nothing")],
    '{"id": "a", "expression": "@daily", "retry": {«"maks"»: 1}}': [("J010", "unknown key 'maks'")],
    '{"id": "a", "expression": "@daily", «"id"»: "b"}': [("J018", "the key 'id' is given twice")],
    '{"id": "a", "expression": "@daily", "description": "«\\ud8»00"}': [("J002", "half of a surrogate pair")],
    '{"id": "a", "expression": "@daily", "retry": {"backoff": «N»aN}}': [("J002", "NaN is not JSON")],
    '[{"id": "a", "expression": "@daily"}, {"id": «"a"», "expression": "@daily"}]': [("J018", "trigger 'a' is given twice")],
    "[" * 32 + "«[»" + "[" * 100_000: [("J003", "more than 32 levels deep")],
}  # fmt: skip


@pytest.mark.parametrize("marked", CASES, ids=lambda text: text[:60])
def test_problems(marked: str) -> None:
    text, marked_positions = unmarked(marked)
    with pytest.raises(JobFileError) as caught:
        read_triggers(text, "t.json", "UTC")
    found = caught.value.problems
    assert [Place(*p[1:4]) for p in found] == marked_positions
    for problem, (code, message) in zip(found, CASES[marked], strict=True):
        assert problem.code == code
        assert problem.message.startswith(message), problem
        assert problem.hint


def test_keys_of_other_programs_are_left_out_and_noted() -> None:
    text = '{"$schema": "x", "id": "a", "expression": "@daily",\n "comment": 1, "enabeld": false}'
    found = read_triggers(text, "t.json", "UTC")
    assert found.jobs == (Job(id="a", schedule="@daily", timezone="UTC", source="t.json"),)
    assert [str(warning) for warning in found.warnings] == [
        "t.json:2:2: the key 'comment' is not read; what the task should know belongs into metadata",
        "t.json:2:16: the key 'enabeld' is not read; did you mean enabled?",
    ]
    assert {warning.code for warning in found.warnings} == {"J102"}


@pytest.mark.parametrize("keys", ["", ', "enabled": false', ', "metadata": {"run": "x"}', ', "tasks": []'])
def test_a_definition_without_a_task_is_refused_where_nobody_has_a_handler(keys: str) -> None:
    text = f'{{"id": "hc", "expression": "@every 1s {{max:2}}"{keys}}}'
    assert read_triggers(text, "t.json", "UTC").jobs[0].tasks == ()
    with pytest.raises(JobFileError, match=r'^t\.json:1:1: trigger \'hc\' has nothing to run; write "run"'):
        read_triggers(text, "t.json", "UTC", needs_tasks=True)


@pytest.mark.parametrize("task", ['"run": ["true"]', '"tasks": [{"name": "a", "run": "true"}]'])
def test_a_definition_with_a_task_needs_no_handler(task: str) -> None:
    text = f'{{"id": "hc", "expression": "@daily", {task}}}'
    assert read_triggers(text, "t.json", "UTC", needs_tasks=True).jobs[0].tasks
