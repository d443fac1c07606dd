"""Our reading of CronJobs beside robfig/cron 3.0.1 itself: its recorded answers, and itself where it can be had."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import islice

import pytest

from chronex.imports.oracle import KUBERNETES, instants, pattern_of
from chronex.lint.findings import ScheduleSite, ZoneNote
from chronex.lint.host_schedules import judge
from chronex.lint.hosts import KUBERNETES as KUBERNETES_HOST
from chronex.lint.kubernetes_grammar import read_for_kubernetes
from chronex.timing.zones import load_zone
from tests.imports.real_kubernetes import ANSWERS, Question, ask, program, questions

ROWS: list[tuple[Question, list[int] | None]] = [
    (Question(*row[:4]), row[4]) for row in json.loads(ANSWERS.read_text())
]
_SIX_YEARS = 6 * 366 * 86_400


def differs(question: Question, answer: list[int] | None) -> bool:
    text, zone, after, count = question
    taken = read_for_kubernetes(text)
    if (taken is None) is not (answer is None):
        return True
    site = ScheduleSite(text, 0, len(text), 0, KUBERNETES_HOST, ZoneNote(zone, ""))
    refusals = [d for d in judge(site, after * 1000) if d.is_error and d.code != "E139"]
    if bool(refusals) is not (answer is None):
        return True
    pattern = pattern_of(text, KUBERNETES)
    if answer is None or pattern is None:
        return False
    end = after + _SIX_YEARS
    found = instants(pattern, KUBERNETES, load_zone(zone), after + 1, end)
    return list(islice(found, count)) != [second for second in answer if second < end]


def differences(rows: list[tuple[Question, list[int] | None]]) -> list[Question]:
    return [question for question, answer in rows if differs(question, answer)]


def test_the_reading_agrees_with_the_recorded_answers() -> None:
    assert len(ROWS) >= 500
    assert sum(answer is None for _, answer in ROWS) > 100
    assert differences(ROWS) == []


def test_the_night_without_a_midnight_has_no_runs() -> None:
    """In Cairo the clock goes from 00:00 to 01:00 on Friday, 26 April 2024: the library loses that day."""
    pattern = pattern_of("30 2 * * FRI", KUBERNETES)
    assert pattern is not None
    zone = load_zone("Africa/Cairo")
    start = int(datetime(2024, 4, 16, tzinfo=UTC).timestamp())
    found = [
        datetime.fromtimestamp(second, UTC)
        for second in instants(pattern, KUBERNETES, zone, start, start + 18 * 86_400)
    ]
    assert [f"{moment:%m-%d %H:%M}" for moment in found] == ["04-19 00:30", "05-02 23:30"]


@pytest.mark.torture
@pytest.mark.timeout(3600)
def test_ten_thousand_questions_to_the_library_itself() -> None:
    command = program()
    if command is None:
        pytest.skip("CHRONEX_ROBFIG names no program")
    asked = questions(10_000, seed=2)
    assert differences(list(zip(asked, ask(asked, command), strict=True))) == []
