"""The tables of a job file with the keys that each one takes, for whoever completes or documents them."""

from __future__ import annotations

from collections.abc import Mapping

from chronex.jobfile.entries import Reader
from chronex.jobfile.jobs import DEFAULTS, JOB, TASK
from chronex.jobfile.keymap import KEYS, TUI
from chronex.jobfile.policies import DST, RECOVERY, RETRY
from chronex.jobfile.properties import PROPERTY
from chronex.jobfile.reader import TOP_LEVEL
from chronex.jobfile.settings import HISTORY, LOGS, SCHEDULER
from chronex.jobfile.spreads import SPREAD

# By the name under which the table is written; "top" is the file itself, "job" a table under [jobs].
TABLES: Mapping[str, Mapping[str, Reader]] = {
    "top": TOP_LEVEL, "scheduler": SCHEDULER, "defaults": DEFAULTS, "job": JOB, "tasks": TASK, "retry": RETRY,
    "recovery": RECOVERY, "dst": DST, "spread": SPREAD, "history": HISTORY, "logs": LOGS, "property": PROPERTY,
    "tui": TUI, "keys": KEYS,
}  # fmt: skip
