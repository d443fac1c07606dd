"""What `why` answers with: one cause, one sentence, and the links of the chain that leads to it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from chronex.text.instants import local_datetime
from chronex.timing.zones import Zone
from chronex.views.why.causes import Cause
from chronex.views.wording import stamp

__all__ = ["NO_NAMES", "Link", "Source", "WhyAnswer", "moment", "stamp"]

NO_NAMES: Mapping[str, Any] = MappingProxyType({})


class Source(StrEnum):
    """Where a fact was found: what was written down, or what the schedule and the policies say."""

    RECORD = "record"
    JOURNAL = "journal"
    SCHEDULE = "schedule"
    POLICY = "policy"


class Link(NamedTuple):
    """One fact of the chain. `at_ms` is when it came to be, None for what always holds."""

    fact: str
    at_ms: int | None
    source: Source


class WhyAnswer(NamedTuple):
    """`names` holds what the chain speaks of, for programs: the run in the way, a version, a downtime."""

    job: str
    instant_ms: int
    zone: Zone
    cause: Cause
    summary: str
    links: tuple[Link, ...] = ()
    occurrence: str = ""
    names: Mapping[str, Any] = NO_NAMES
    previous_ms: int | None = None
    next_ms: int | None = None


def moment(ms: int, zone: Zone) -> datetime:
    return local_datetime(ms, zone.tzinfo)
