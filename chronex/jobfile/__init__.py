"""The job file: `read_job_file` for chronex.toml, `read_triggers` for trigger definitions in JSON.

Either gives a JobFile, or raises one JobFileError that has every problem with its line, column and a hint.
docs/job-file.md lists the keys. The names are loaded when they are first used: the linter needs the positions of a
text alone, and must not wait for the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chronex.jobfile.problems import JobFileError, Problem
    from chronex.jobfile.properties import Property
    from chronex.jobfile.reader import JobFile, read_job_file, read_keys, read_triggers
    from chronex.jobfile.settings import Address, HistorySettings, LogSettings, SchedulerSettings
    from chronex.jobfile.starter import STARTER

__all__ = [
    "STARTER",
    "Address",
    "HistorySettings",
    "JobFile",
    "JobFileError",
    "LogSettings",
    "Problem",
    "Property",
    "SchedulerSettings",
    "read_job_file",
    "read_keys",
    "read_triggers",
]

_HOMES = {
    "chronex.jobfile.problems": ("JobFileError", "Problem"),
    "chronex.jobfile.properties": ("Property",),
    "chronex.jobfile.reader": ("JobFile", "read_job_file", "read_keys", "read_triggers"),
    "chronex.jobfile.settings": ("Address", "HistorySettings", "LogSettings", "SchedulerSettings"),
    "chronex.jobfile.starter": ("STARTER",),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            from importlib import import_module

            return getattr(import_module(home), name)
    raise AttributeError(f"module 'chronex.jobfile' has no attribute {name!r}")
