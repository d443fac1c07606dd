"""What a check of the machine says."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class CheckVerdict(StrEnum):
    FINE = "fine"
    NOTE = "note"
    WRONG = "wrong"


class Check(NamedTuple):
    """`topic` is what was checked; `advice` what to do, empty where there is nothing to do."""

    topic: str
    verdict: CheckVerdict
    message: str
    advice: str = ""
