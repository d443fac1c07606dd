"""`chronex show JOB --versions`: every version that is kept, who made it, and what it changed."""

from __future__ import annotations

from typing import Any

import msgspec

from chronex.cli.looking import looked_at, print_json
from chronex.cli.terminal import inert, out
from chronex.cli.times import time_text, timed, zone_of
from chronex.engine.update import definition, kept_versions
from chronex.errors import UnknownJobError
from chronex.model.ids import is_name
from chronex.model.records import Job
from chronex.storage.records import Reading
from chronex.text.suggestions import nearest

_UNTOLD = ("id", "written")


def run_versions(name: str, store: str | None, form: str) -> int:
    versions = looked_at(store, lambda reading: _find(reading, name))
    earlier: list[Job | None] = [*versions[1:], None]
    rows = [_row(job, before) for job, before in zip(versions, earlier, strict=True)]
    if form == "json":
        print_json(rows)
        return 0
    for job, row in zip(versions, rows, strict=True):
        by = f" by {row['by']}" if row["by"] else ""
        out(inert(f"version {row['version']}  {time_text(job.updated_ms, zone_of(job))}{by}"))
        for change in row["changes"]:
            out(inert(f"  {change['field']:20} {_short(change['from'])} -> {_short(change['to'])}"))
    out(inert(f"back to an earlier one: chronex apply --rollback {name} VERSION"))
    return 0


def _find(reading: Reading, name: str) -> list[Job]:
    found = kept_versions(reading, name) if is_name(name) else []
    if not found:
        raise UnknownJobError(name, nearest(name, (job.id for job in reading.jobs(limit=100_000))))
    return found


def _row(job: Job, before: Job | None) -> dict[str, Any]:
    return {
        "version": job.version,
        **timed("applied", job.updated_ms),
        "by": job.updated_by or None,
        "schedule": job.schedule,
        "source": job.source or None,
        "changes": [] if before is None else changes_between(before, job),
    }


def changes_between(before: Job, after: Job) -> list[dict[str, Any]]:
    """The fields of the definition that differ, each with both values."""
    old, new = (msgspec.to_builtins(definition(job)) for job in (before, after))
    names = sorted({*old, *new} - {*_UNTOLD})
    return [
        {"field": name, "from": old.get(name), "to": new.get(name)}
        for name in names
        if old.get(name) != new.get(name)
    ]


def _short(value: Any) -> str:
    text = "-" if value is None else value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else f"{text[:59]}…"
