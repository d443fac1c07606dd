"""The job file: `read_job_file` for chronex.toml, `read_triggers` for trigger definitions in JSON.

Either gives a JobFile, or raises one JobFileError that has every problem with its line, column and a hint.
docs/job-file.md lists the keys.
"""

from __future__ import annotations

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
