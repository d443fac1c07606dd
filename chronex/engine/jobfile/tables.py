"""The tables of a job file with the keys that each one takes, for whoever completes or documents them."""

from __future__ import annotations

from collections.abc import Mapping

from chronex.engine.jobfile.entries import Reader
from chronex.engine.jobfile.jobs import DEFAULTS, JOB, TASK
from chronex.engine.jobfile.keymap import KEYS, TUI
from chronex.engine.jobfile.policies import DST, RECOVERY, RETRY
from chronex.engine.jobfile.properties import PROPERTY
from chronex.engine.jobfile.reader import TOP_LEVEL
from chronex.engine.jobfile.settings import HISTORY, LOGS, SCHEDULER
from chronex.engine.jobfile.spreads import SPREAD

# By the name under which the table is written; "top" is the file itself, "job" a table under [jobs].
TABLES: Mapping[str, Mapping[str, Reader]] = {
    "top": TOP_LEVEL, "scheduler": SCHEDULER, "defaults": DEFAULTS, "job": JOB, "tasks": TASK, "retry": RETRY,
    "recovery": RECOVERY, "dst": DST, "spread": SPREAD, "history": HISTORY, "logs": LOGS, "property": PROPERTY,
    "tui": TUI, "keys": KEYS,
}  # fmt: skip
