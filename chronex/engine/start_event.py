"""What the journal says of a start beside its names: enough to verify it, and no more."""

from __future__ import annotations

from typing import Any

from chronex.model.job import Job
from chronex.model.occurrence import Occurrence
from chronex.model.policies import OverlapPolicy
from chronex.model.states import OccurrenceState


def start_data(job: Job, occurrence: Occurrence, now_ms: int) -> dict[str, Any]:
    """What verifying a start from the journal takes; ordinary values are left out."""
    data: dict[str, Any] = {"due_ms": occurrence.due_ms, "lag_ms": now_ms - occurrence.due_ms}
    if job.overlap is OverlapPolicy.ALLOW:
        data["overlap"] = job.overlap.value
    if occurrence.state is OccurrenceState.QUEUED and now_ms < occurrence.due_ms:
        data["queued"] = True  # it was due when it was queued; since then the clock was set back
    if occurrence.recovery:
        data["recovery"] = True
    if occurrence.manual or occurrence.replay_of:
        data["manual"] = True
    if occurrence.behind:
        data["behind"] = True
    return data
