"""The job file: `read_job_file` for chronex.toml, `read_triggers` for trigger definitions in JSON.

Either gives a JobFile, or raises one JobFileError that has every problem with its line, column and a hint.
docs/job-file.md lists the keys. The names are loaded when they are first used: the linter needs the positions of a
text alone, and must not wait for the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chronex.jobfile.entries import JobFileError, Problem
    from chronex.jobfile.properties import Property
    from chronex.jobfile.reader import JobFile, read_job_directory, read_job_file, read_keys, read_triggers
    from chronex.jobfile.settings import Address, HistorySettings, LogSettings, SchedulerSettings

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
    "read_job_directory",
    "read_job_file",
    "read_keys",
    "read_triggers",
]

_HOMES = {
    "chronex.jobfile.entries": ("JobFileError", "Problem"),
    "chronex.jobfile.properties": ("Property",),
    "chronex.jobfile.reader": ("JobFile", "read_job_directory", "read_job_file", "read_keys", "read_triggers"),
    "chronex.jobfile.settings": ("Address", "HistorySettings", "LogSettings", "SchedulerSettings"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            from importlib import import_module

            return getattr(import_module(home), name)
    raise AttributeError(f"module 'chronex.jobfile' has no attribute {name!r}")


# The file that `chronex init` writes: it runs as it is, and teaches by what can be uncommented.
STARTER = """\
# The jobs of Chronex. Put your own below, then: chronex apply
# Every key is explained in docs/job-file.md; chronex explain "0 9 * * MON-FRI" shows when a schedule fires.

[scheduler]
timezone = "local"                  # for schedules that name no zone; or for example "Europe/Berlin"
# max_concurrent_jobs = 50          # at most this many run at once, the others wait in a queue
# grace_period = "30s"              # between asking a command to stop and killing it

[defaults]                          # holds for every job that does not say otherwise
task_timeout = "1h"                 # a command that hangs is stopped after this; "off" lets it run for ever
# retry = { max = 3, interval = "30s", backoff = 2.0, max_interval = "10m", jitter = 0.1 }

[jobs.hello]
schedule = "@every 20s"             # or minute hour day month weekday: "*/5 * * * *"; also @daily, @once +20m
description = "Says hello every 20 seconds; change or delete it."
run = ["echo", "hello from Chronex"]

# A job can have several tasks, a zone of its own, and rules for when things go wrong:
#
# [jobs.backup]
# schedule = "TZ=Asia/Seoul 0 3 * * * {jitter:5m}"
# overlap = "skip"                  # the last run is not over yet: skip, queue, queue_one, allow, cancel_running
# recovery = "execute_last"         # the machine was off: execute_all, execute_last, mark_missed, bounded, compressed
# execution_timeout = "1h"
#
# [[jobs.backup.tasks]]
# name = "dump"
# run = ["pg_dump", "-Fc", "-f", "app.dump", "app"]   # a list is started as it stands, without a shell
# directory = "/var/backups"
# env = { PGUSER = "app" }
# secrets = ["PGPASSWORD"]          # taken from the daemon's environment, never stored, hidden in output
#
# [[jobs.backup.tasks]]
# name = "prune"
# run = "ls -t *.dump | tail -n +8 | xargs -r rm"     # a text goes to the shell
# directory = "/var/backups"
# on_failure = "continue"
"""
