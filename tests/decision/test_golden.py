"""The golden vectors of the public kron engine, from the directory that CHRONEX_VECTORS names.

specs/vectors/decision-*.json has rows of our own for every topic of theirs.
"""

from __future__ import annotations

import json
import os
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from chronex.decision import DecisionRequest, decide

FOLDER = os.environ.get("CHRONEX_VECTORS")
FILES = sorted(Path(FOLDER).glob("kron-core-v*.json")) if FOLDER else []
CASES = [case for path in FILES for case in json.loads(path.read_text())["cases"]]
UNITS = {"h": "hours", "m": "minutes", "s": "seconds"}


def duration(text: str) -> timedelta:
    return sum(
        (timedelta(**{UNITS[unit]: int(count)}) for count, unit in re.findall(r"(\d+)([hms])", text)),
        timedelta(),
    )


def clauses(given: dict[str, Any], side: str) -> str:
    def clock(minute: int) -> str:
        return f"{minute // 60:02}:{minute % 60:02}"

    texts = []
    for kind in ("hours", "dow", "dom", "months"):
        if values := given.get(side + kind.capitalize()):
            texts.append(f"{kind}={','.join(map(str, values))}")
    for span in given.get(side + "Between", []):
        texts.append(f"between={clock(span['startMinute'])}-{clock(span['endMinute'])}")
    return ";".join(texts)


@pytest.mark.skipif(not CASES, reason="CHRONEX_VECTORS names no directory")
def test_there_are_golden_cases() -> None:
    assert len(CASES) >= 13


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_golden_case(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    result = decide(
        DecisionRequest(
            identity=given["identity"],
            nominal_time=datetime.fromisoformat(given["periodStart"]),
            timezone=given.get("timezone", "UTC"),
            window_mode=given["mode"],
            window_duration=duration(given["window"]),
            distribution=given["distribution"],
            seed_strategy=given["seedStrategy"],
            salt=given["salt"],
            only=clauses(given, "only"),
            avoid=clauses(given, "avoid"),
        )
    ).to_dict()
    assert {
        "periodId": result["period_id"],
        "periodKey": result["period_key"],
        "windowStart": result["window_start"],
        "windowEnd": result["window_end"],
        "seedHash": result["seed_hash"],
        "chosenTime": result["chosen_time"] or "",
        "attempts": result["attempts"],
    } == {key: value for key, value in expected.items() if key not in {"unschedulable", "reason"}}
    assert result["unschedulable"] == expected.get("unschedulable", False)
    assert result["reason"] == expected.get("reason", "")
