"""Whether job files say something else than what is applied: a saved file is not an applied one."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from shlex import quote

from msgspec.structs import replace

from chronex.errors import ChronexError
from chronex.model.job import Job
from chronex.model.trouble_codes import Severity, TroubleCode
from chronex.storage.records import Reading
from chronex.views.troubles import Trouble
from chronex_store.opening import OpenedStore

_MOST_FILES = 50


def unapplied_changes(store: OpenedStore) -> list[Trouble]:
    """One for each file of stored jobs that is newer than they are and differs, or has a mistake."""
    by_file: dict[str, list[Job]] = defaultdict(list)

    def read(reading: Reading) -> None:
        after: str | None = None
        while jobs := reading.jobs(after):
            after = jobs[-1].id
            for job in jobs:
                if job.source.startswith("/"):
                    by_file[job.source].append(job)

    store.view(lambda tx: read(Reading(tx)))
    found = (_difference(Path(path), jobs) for path, jobs in sorted(by_file.items())[:_MOST_FILES])
    return [one for one in found if one is not None]


def _difference(path: Path, applied: list[Job]) -> Trouble | None:
    try:
        saved_ms = path.stat().st_mtime_ns // 1_000_000
    except OSError:
        return None  # on another machine, or removed: its jobs are still what was applied
    if saved_ms <= max(job.updated_ms for job in applied):
        return None
    from chronex.cli.job_file import load_job_file

    shown, hint = str(path), f"chronex apply --dry-run {quote(str(path))} shows what"
    try:
        wanted = {job.id: job for job in load_job_file(path).jobs}
    except ChronexError as error:
        first = str(error).partition("\n")[0]
        words = f"{shown} has a mistake and is not applied: {first}"
        return Trouble(Severity.WARNING, TroubleCode.UNAPPLIED_CHANGES, words, f"chronex lint {quote(shown)}")
    names = _changed({job.id: job for job in applied}, wanted)
    if not names:
        return None
    of = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    words = f"{shown} has changes that are not applied: {of}"
    return Trouble(Severity.WARNING, TroubleCode.UNAPPLIED_CHANGES, words, hint)


def _changed(applied: dict[str, Job], wanted: dict[str, Job]) -> list[str]:
    """Calendars are compared by their own check, and a schedule that counts from its applying by its words."""

    def plain(job: Job) -> Job:
        return replace(job.as_written(), calendars=None, schedule=job.written or job.schedule, written="")

    names = sorted(applied.keys() | wanted.keys())
    return [
        name
        for name in names
        if name not in applied or name not in wanted or plain(applied[name]) != plain(wanted[name])
    ]
