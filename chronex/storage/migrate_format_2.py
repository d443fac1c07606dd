"""From format 2 to 3: retry policies say all of their fields.

Format 2 left out what was a default, and the defaults were others then: pauses that do not grow, without a random
part and without a longest one. A job keeps the pauses it was stored with until its file or program is applied again.
"""

from __future__ import annotations

from typing import Any

import msgspec

from chronex.errors import DamagedRecordError, RecordTooLargeError
from chronex.model.policies import LONGEST_PAUSE_MS, FailureStrategy
from chronex.storage import keys
from chronex.storage.codec import payload_of, with_header
from chronex.storage.ports import Row

_LEFT_OUT = {
    "max": 0,
    "interval_ms": 30_000,
    "backoff": 1.0,
    "max_interval_ms": None,
    "jitter": 0.0,
    "newest_wins": False,
}


def spell_out_retries(key: bytes, raw: bytes) -> list[Row]:
    """The row of a job or of an earlier version of one; every other record, and a damaged one, as it is."""
    if key[:1] not in (keys.JOB, keys.JOB_VERSION):
        return [(key, raw)]
    try:
        fields = msgspec.msgpack.decode(payload_of(key, raw))
        _spell_out(fields["job"] if key[:1] == keys.JOB_VERSION else fields)
        return [(key, with_header(key, msgspec.msgpack.encode(fields)))]
    except (DamagedRecordError, RecordTooLargeError, msgspec.MsgspecError, AttributeError, KeyError, TypeError):
        return [(key, raw)]


def _spell_out(job: dict[str, Any]) -> None:
    """A job that never retries has no pauses to keep, and stays equal to what its file says."""
    tasks = job.get("tasks", ())
    strategies = [job.get("failure"), *(task.get("on_failure") for task in tasks)]
    if "retry" in job or FailureStrategy.RETRY_ON_FAILURE in strategies:
        job["retry"] = _complete(job.get("retry", {}))
    for task in tasks:
        if task.get("retry") is not None:
            task["retry"] = _complete(task["retry"])


def _complete(retry: dict[str, Any]) -> dict[str, Any]:
    found = {**_LEFT_OUT, **retry}
    if found["max_interval_ms"] is None and found["backoff"] > 1:
        found["max_interval_ms"] = LONGEST_PAUSE_MS
    return found
