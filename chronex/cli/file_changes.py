"""Whether job files say something else than what is applied: a saved file is not an applied one."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from shlex import quote

from chronex.errors import ChronexError, JobChainError
from chronex.model.job import Job
from chronex.model.trouble_codes import Severity, TroubleCode
from chronex.storage.records import Reading
from chronex.views.source_changes import SourceChanges, source_changes
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
    newer = [path for path, jobs in sorted(by_file.items()) if _is_newer(Path(path), jobs)]
    found = (_difference(store, Path(path)) for path in newer[:_MOST_FILES])
    return [one for one in found if one is not None]


def _is_newer(path: Path, applied: list[Job]) -> bool:
    try:
        saved_ms = path.stat().st_mtime_ns // 1_000_000
    except OSError:
        return False  # on another machine, or removed: its jobs are still what was applied
    return saved_ms > max(job.updated_ms for job in applied)


def _difference(store: OpenedStore, path: Path) -> Trouble | None:
    shown = str(path)
    try:
        names = _changes(store, path).names
    except ChronexError as error:
        first = str(error).partition("\n")[0]
        words = f"{shown} has a mistake and is not applied: {first}"
        # What the jobs of other files have to do with it no linter of one file can tell.
        tell = "apply --dry-run" if isinstance(error, JobChainError) else "lint"
        return Trouble(Severity.WARNING, TroubleCode.UNAPPLIED_CHANGES, words, f"chronex {tell} {quote(shown)}")
    if not names:
        return None
    of = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    words = f"{shown} has changes that are not applied: {of}"
    hint = f"chronex apply --dry-run {quote(shown)} shows what"
    return Trouble(Severity.WARNING, TroubleCode.UNAPPLIED_CHANGES, words, hint)


def _changes(store: OpenedStore, path: Path) -> SourceChanges:
    """What an apply would do, and nothing else, is a change that is not applied."""
    from chronex.cli.job_file import load_job_file
    from chronex.daemon.reload import file_source

    found = load_job_file(path)
    source = file_source(path)._replace(groups=found.groups)
    return store.view(lambda tx: source_changes(Reading(tx), found.jobs, source, store.now()))
