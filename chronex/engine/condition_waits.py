"""What becomes of an occurrence whose conditions are awaited: a pure function of what was found, and when.

The engine looks at nothing itself: a daemon looks, outside of every transaction, and what it found enters here.
"""

from __future__ import annotations

from chronex.engine.admit import Admission, Verdict
from chronex.engine.group_limits import CONDITIONS
from chronex.model.conditions import Found
from chronex.model.job import Job
from chronex.model.occurrence import Occurrence
from chronex.model.reasons import Reason, ReasonCode

# What was found counts for so long; then it is looked at again.
FRESH_MS = 10_000


def is_met(job: Job, occurrence: Occurrence, found: Found | None, now_ms: int) -> bool:
    """One that has left the line of conditions and stands in another has had its answer."""
    if not job.wait_for or (occurrence.lines and CONDITIONS not in occurrence.lines):
        return True
    return found is not None and found.holds and abs(now_ms - found.at_ms) <= FRESH_MS


def until_met(job: Job, occurrence: Occurrence, found: Found | None, now_ms: int) -> Admission:
    """It waits, or is skipped with what was lacking when its time was over."""
    lacking = found.lacking if found is not None and found.lacking else ", ".join(job.wait_for)
    if now_ms >= gives_up_at(job, occurrence):
        return Admission(Verdict.SKIP, Reason(ReasonCode.NOT_MET, lacking))
    return Admission(Verdict.QUEUE, Reason(ReasonCode.CONDITION, lacking))


def gives_up_at(job: Job, occurrence: Occurrence) -> int:
    """Counted from when it could first have started: a missed one from when it was found."""
    return max(occurrence.due_ms, occurrence.created_ms) + job.wait_at_most_ms
