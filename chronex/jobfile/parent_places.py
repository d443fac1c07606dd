"""Where a job file says that a job follows another one.

Whether that one exists is known only when the file is applied, because it may be of another source. So the place is
looked for then, in the text, and only where the update was refused.
"""

from __future__ import annotations

from collections.abc import Iterable

from chronex.jobfile.entries import Entry, JobFileError
from chronex.jobfile.parsing import open_json, open_toml
from chronex.text.terminal import escaped

FileText = tuple[str, bytes]


def place_of_parent(files: Iterable[FileText], job: str, parent: str) -> str:
    """`FILE:LINE:COLUMN` of the name of the parent; empty where none of the files has it."""
    for path, text in files:
        if job.encode() not in text:
            continue  # most files of a directory are about other jobs, and need not be read
        try:
            root = (open_json if path.endswith(".json") else open_toml)(text, path, "UTC")
        except JobFileError:
            continue
        for table in _tables_of(root, job):
            if (entry := _parent_in(table, parent)) is not None:
                line, column = entry.sheet.lines.line_and_column(entry.node.value.start)
                return f"{escaped(path)}:{line}:{column}"
    return ""


def _tables_of(root: Entry, job: str) -> Iterable[Entry]:
    """The table of the job in a job file, or its trigger definition."""
    if isinstance(root.value, list):
        return (one for one in root.children() if isinstance(one.value, dict) and one.value.get("id") == job)
    if not isinstance(root.value, dict):
        return ()
    if root.value.get("id") == job:
        return (root,)
    jobs = root.value.get("jobs")
    return (root.child("jobs").child(job),) if isinstance(jobs, dict) and job in jobs else ()


def _parent_in(table: Entry, parent: str) -> Entry | None:
    if not isinstance(table.value, dict) or "after" not in table.value:
        return None
    after = table.child("after")
    if after.value == parent:
        return after
    named = after.children() if isinstance(after.value, list) else ()
    return next((one for one in named if one.value == parent), None)
