"""What needs a person: troubles by code and severity, and those that only the scheduler itself can know."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Severity(StrEnum):
    """`error`: something does not happen that should. `warning`: it will not, or nobody hears of it."""

    ERROR = "error"
    WARNING = "warning"


class TroubleCode(StrEnum):
    """Stored as text in the record of a node; a code of a newer version is read as it stands."""

    # Of the store and of whoever works on it.
    NO_SCHEDULER = "no_scheduler"
    NODE_SILENT = "node_silent"
    DISK_FULL = "disk_full"
    STORE_FULL = "store_full"
    STORE_NEARLY_FULL = "store_nearly_full"
    JOB_FILE_REJECTED = "job_file_rejected"
    RESTART_NEEDED = "restart_needed"
    UNAPPLIED_CHANGES = "unapplied_changes"
    METRICS_UNAVAILABLE = "metrics_unavailable"
    HEARTBEAT_FAILS = "heartbeat_fails"
    CHORE_FAILS = "chore_fails"
    SPANS_FAIL = "spans_fail"

    # Of telling people.
    CHANNEL_FAILS = "channel_fails"
    NOTICES_UNDELIVERABLE = "notices_undeliverable"
    NOTICES_DROPPED = "notices_dropped"

    # Of jobs.
    JOB_FAILING = "job_failing"
    JOB_LATE = "job_late"
    JOB_NEVER_RUNS = "job_never_runs"
    NO_FUNCTION = "no_function"
    NO_NODE = "no_node"
    DEAD_LETTERS = "dead_letters"
    CALENDAR_MOVED = "calendar_moved"

    @classmethod
    def _missing_(cls, value: object) -> TroubleCode | None:
        if not isinstance(value, str):
            return None
        unknown = str.__new__(cls, value)
        unknown._name_ = unknown._value_ = value
        return unknown


class NodeTrouble(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a scheduler knows of itself, in its record, so that other processes can tell it."""

    code: TroubleCode
    # What it speaks of, in words: the file and its first mistake, the address, the answer.
    detail: str = ""
    since_ms: int = 0
