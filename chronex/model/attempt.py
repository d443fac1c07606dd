"""One try of a run, and the process that it is."""

from __future__ import annotations

from msgspec import Struct

from chronex.model.ids import attempt_id, occurrence_id, run_id
from chronex.model.reasons import NO_REASON, Reason
from chronex.model.states import AttemptState


class ProcessIdentity(Struct, frozen=True, gc=False, omit_defaults=True):
    """A process for sure: pids are reused; the boot and the start time (in ticks after boot) are not."""

    pid: int
    boot_id: str
    start_time: int
    # The process group, where it leads one.
    group: int | None = None


class Attempt(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """One try of a run."""

    # The run it belongs to, and which try it is, from 1: together the key.
    job: str
    nominal_ms: int
    task: str
    number: int
    state: AttemptState = AttemptState.RUNNING
    # Why it ended so.
    reason: Reason = NO_REASON
    # The node that started it, and the epoch of that claim: an end with another epoch comes too late.
    owner: str = ""
    epoch: int = 0
    # Who runs it; None before it has started, and for a Python function.
    process: ProcessIdentity | None = None
    exit_code: int | None = None
    signal: int | None = None
    # What went wrong, in the words of the system or of the function.
    error: str = ""
    # Where its output is, relative to the directory of logs.
    log_path: str = ""
    # The limit of its log in bytes: where the head ends while it is written; 0 where that is not known.
    log_limit: int = 0
    # What it wrote, and how much of that was dropped from the middle.
    log_bytes: int = 0
    log_dropped: int = 0
    # How many processes it left behind.
    leftovers: int = 0
    # The system's error number, where it could not be started.
    errno: int | None = None
    created_ms: int = 0
    started_ms: int | None = None
    finished_ms: int | None = None

    @property
    def id(self) -> str:
        return attempt_id(run_id(occurrence_id(self.job, self.nominal_ms), self.task), self.number)
