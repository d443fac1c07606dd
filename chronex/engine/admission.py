"""May a due occurrence start now? A pure answer from what the store says of its job."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from chronex.engine import reasons
from chronex.model.policies import OverlapPolicy
from chronex.model.records import Job, Occurrence


class Verdict(Enum):
    START = "start"
    WAIT = "wait"  # becomes queued
    SKIP = "skip"
    CANCEL_OTHERS = "cancel others"  # becomes queued, the running ones are canceled


class Admission(NamedTuple):
    verdict: Verdict
    reason: str = ""


START = Admission(Verdict.START)


def admit(
    job: Job, occurrence: Occurrence, running: Sequence[Occurrence], waiting: int, free_places: int, now_ms: int,
    window_ms: int | None,
) -> Admission:  # fmt: skip
    """`running` are the job's other occurrences that run, `waiting` counts those queued before this one."""
    if window_ms is not None and now_ms > occurrence.nominal_ms + window_ms and not occurrence.manual:
        return Admission(Verdict.SKIP, reasons.WINDOW_EXCEEDED)
    if running and job.overlap is not OverlapPolicy.ALLOW:
        return _overlapping(job.overlap, running, waiting)
    if free_places <= 0:
        return Admission(Verdict.WAIT, reasons.POOL_FULL)
    return START


def _overlapping(policy: OverlapPolicy, running: Sequence[Occurrence], waiting: int) -> Admission:
    holder = running[0].id
    match policy:
        case OverlapPolicy.QUEUE:
            return Admission(Verdict.WAIT, f"{reasons.OVERLAP}: {holder}")
        case OverlapPolicy.QUEUE_ONE if waiting == 0:
            return Admission(Verdict.WAIT, f"{reasons.OVERLAP}: {holder}")
        case OverlapPolicy.QUEUE_ONE:
            return Admission(Verdict.SKIP, f"{reasons.ONE_WAITS}: {holder}")
        case OverlapPolicy.CANCEL_RUNNING:
            return Admission(Verdict.CANCEL_OTHERS, f"{reasons.CANCELED_FOR_NEXT}: {holder}")
        case _:
            return Admission(Verdict.SKIP, f"{reasons.OVERLAP}: {holder}")
