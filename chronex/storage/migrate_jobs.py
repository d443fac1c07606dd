"""From format 1 to 2: a job was one row with its definition and its progress; it becomes two.

The due index stood for the row of the job; it stands for the row of its progress now, which has the time.
"""

from __future__ import annotations

from typing import Any

import msgspec

from chronex.errors import DamagedRecordError, RecordTooLargeError
from chronex.model.job import JobProgress
from chronex.storage import keys
from chronex.storage.codec import payload_of, with_header
from chronex.storage.ports import Row, Transaction

_PROGRESS = frozenset(field.name for field in msgspec.structs.fields(JobProgress)) - {"job"}


def split_jobs(key: bytes, raw: bytes) -> list[Row]:
    """The rows of a job; every other record, and a damaged one, as it is."""
    if key[:1] not in (keys.JOB, keys.JOB_VERSION):
        return [(key, raw)]
    try:
        fields = msgspec.msgpack.decode(payload_of(key, raw))
        if key[:1] == keys.JOB_VERSION:
            fields["job"]["progress"] = _taken_out(fields["job"])
            return [_row(key, fields)]
        progress = _taken_out(fields)
        return [_row(key, fields), _row(keys.job_progress_key(progress["job"]), progress)]
    except (DamagedRecordError, RecordTooLargeError, msgspec.MsgspecError, KeyError, TypeError):
        return [(key, raw)]  # for quarantine to find


def _taken_out(job: dict[str, Any]) -> dict[str, Any]:
    """The fields of the progress, which are no longer among those of the job."""
    progress = {name: job.pop(name) for name in _PROGRESS if name in job}
    return {"job": job["id"], **progress}


def _row(key: bytes, fields: dict[str, Any]) -> Row:
    return key, with_header(key, msgspec.msgpack.encode(fields))


def move_due_jobs(tx: Transaction) -> None:
    """Let the due index stand for the progress of each job."""
    after: bytes | None = None
    while rows := tx.scan(keys.DUE, after, 1_000):
        for index, _ in rows:
            record = keys.record_of(index)
            if record[:1] == keys.JOB:
                tx.delete(index)
                tx.put(keys.timed(keys.DUE, keys.instant_of(index), keys.JOB_PROGRESS + record[1:]), b"")
        after = rows[-1][0]
