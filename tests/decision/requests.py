"""Requests as the vector files write them."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from chronex.decision import DecisionRequest
from tests.decision.reference import VECTORS


def rows(name: str) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads((VECTORS / f"decision-{name}.json").read_text())["rows"]
    return listed


def request_of(row: dict[str, Any]) -> DecisionRequest:
    fields = dict(row)
    fields["nominal_time"] = datetime.fromisoformat(row["nominal_time"])
    fields["window_duration"] = timedelta(microseconds=int(Decimal(row.get("window_duration", "0")) * 1_000_000))
    return DecisionRequest(**fields)


def by_name(row: dict[str, Any]) -> str:
    return str(row["name"])
