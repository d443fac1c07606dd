"""Our evaluator of Quartz's expressions beside Quartz 2.3.2 itself: its recorded answers, and itself where it can be had."""

from __future__ import annotations

import json
from itertools import islice

import pytest

from chronex.imports.quartz_calendar import instants, read_quartz, unclear_change
from chronex.timing.zones import load_zone
from tests.imports.real_quartz import ANSWERS, Question, ask, class_path, questions

ROWS: list[tuple[Question, list[int] | None]] = [
    (Question(*row[:4]), row[4]) for row in json.loads(ANSWERS.read_text())
]
_EIGHT_YEARS = 8 * 366 * 86_400


def difference(question: Question, answer: list[int] | None) -> tuple[Question, list[int] | None, list[int]] | None:
    """None where both name the same instants, or a clock change falls on one, of which nothing is claimed."""
    if answer is None:
        return question, answer, []
    pattern, zone, start = read_quartz(question.text), load_zone(question.zone), question.after + 1
    assert pattern is not None
    is_full = len(answer) == question.length  # else there are no more before Quartz gives up, in 2099
    end = answer[-1] + 1 if is_full else start + _EIGHT_YEARS
    if unclear_change(pattern, zone, start, end) is not None:
        return None
    ours = list(islice(instants(pattern, zone, start, end), question.length))
    theirs = [second for second in answer if second < end]
    return None if ours == theirs else (question, theirs, ours)


def test_the_evaluator_names_the_instants_that_quartz_named() -> None:
    assert len(ROWS) == 240
    assert [found for row in ROWS if (found := difference(*row)) is not None] == []


def test_the_record_has_every_form_of_day() -> None:
    days = " ".join(f"{fields[3]} {fields[5]}" for question, _ in ROWS if (fields := question.text.split()))
    for form in ("L ?", "LW ?", "L-", "W ?", "? SUN", "L", "#5", "-", "/"):
        assert form in days


def test_a_difference_would_be_seen() -> None:
    question, answer = ROWS[0]
    assert answer
    assert difference(question, [answer[0] + 60, *answer[1:]]) is not None


@pytest.mark.torture
@pytest.mark.timeout(3600)
def test_quartz_itself_agrees_on_thousands_of_expressions() -> None:
    jars = class_path()
    if jars is None:
        pytest.skip("Quartz and Java are not installed")
    asked = questions(8_000, seed=2)
    answers = zip(asked, ask(asked, jars), strict=True)
    assert [found for row in answers if (found := difference(*row)) is not None] == []
