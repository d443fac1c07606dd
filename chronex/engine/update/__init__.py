"""Bring the jobs of the store to what is wanted: plan the changes, then write them in one transaction.

`apply_jobs` does both; views/apply_preview.py shows what it would do, as occurrences added, removed and moved.
"""

from __future__ import annotations

from chronex.engine.update.apply import apply_jobs, roll_back
from chronex.engine.update.diff import Change, Changed, Policy, UpdateOptions, definition_data, kept_versions

__all__ = [
    "Change",
    "Changed",
    "Policy",
    "UpdateOptions",
    "apply_jobs",
    "definition_data",
    "kept_versions",
    "roll_back",
]
