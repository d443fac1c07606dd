"""How far a job has come: what it has decided, what it has done, and whether it is paused."""

from __future__ import annotations

from msgspec import Struct


class Counters(Struct, frozen=True, gc=False, omit_defaults=True):
    """How a job's occurrences ended since it was first applied."""

    # Occurrences that began, however they ended.
    fired: int = 0
    completed: int = 0
    failed: int = 0
    skipped: int = 0
    missed: int = 0
    canceled: int = 0
    # Failures since the last occurrence that completed.
    failures_in_a_row: int = 0


class JobProgress(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """What changes while a job lives; every start and every end writes it anew."""

    # Whose progress it is: the job's id.
    job: str = ""
    # Somebody paused the job, and nobody has resumed it; a pause with an end may be over all the same.
    paused: bool = False
    # When the pause ends by itself, or ended when it was resumed; None for a pause without an end.
    paused_until_ms: int | None = None
    # Who paused it.
    paused_by: str = ""
    # When the last pause began; what was due since then and before its end is skipped.
    paused_from_ms: int | None = None
    # The last nominal instant that was decided.
    cursor_ms: int | None = None
    # What intervals count from.
    anchor_ms: int | None = None
    # When the engine must plan the job again (None: never). The due index holds it.
    next_ms: int | None = None
    # When an occurrence last started.
    last_run_ms: int | None = None
    # Since when the job is late: the nominal time of the occurrence that should have completed.
    late_ms: int | None = None
    counters: Counters = Counters()
    # When the job was first applied.
    created_ms: int = 0

    def is_paused_at(self, now_ms: int) -> bool:
        """A pause with an end is over by itself when the end has come."""
        return self.paused and (self.paused_until_ms is None or now_ms < self.paused_until_ms)

    def was_paused_at(self, ms: int) -> bool:
        """Does `ms` lie in the last pause, over or not? What was due then is skipped, whenever it is planned."""
        if self.paused_from_ms is None or ms < self.paused_from_ms:
            return False
        return self.paused_until_ms is None or ms < self.paused_until_ms
