"""Job files that say something else than what was applied from them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from chronex.cli.job_file import load_job_file
from chronex.daemon.reload import file_source
from chronex.errors import ChronexError
from chronex.jobfile import JobFileError
from chronex.storage.ports import Store
from chronex.storage.records import Reading
from chronex.views.source_changes import SourceChanges, file_sources, source_changes


class UnappliedFile(NamedTuple):
    """A file or directory with changes, or with a `problem` that keeps it from being read."""

    path: str
    changes: SourceChanges | None
    problem: str = ""


def unapplied_files(store: Store) -> list[UnappliedFile]:
    """Of all files that jobs of the store come from, those that differ from what is applied. Nothing is written."""
    found = [_look(store, path) for path in store.view(lambda tx: file_sources(Reading(tx)))]
    return [one for one in found if one.problem or (one.changes is not None and not one.changes.is_applied)]


def _look(store: Store, path: str) -> UnappliedFile:
    try:
        wanted = load_job_file(Path(path)).jobs
        source = file_source(Path(path))
        changes = store.view(lambda tx: source_changes(Reading(tx), wanted, source, store.now()))
    except JobFileError as error:
        return UnappliedFile(path, None, str(error.problems[0]))
    except ChronexError as error:
        return UnappliedFile(path, None, str(error))
    return UnappliedFile(path, changes)
