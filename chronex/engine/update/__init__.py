"""Bring the jobs of the store to what is wanted: plan the steps from a snapshot, then write them in one transaction.

`apply_jobs` does both; `preview` shows what it would do, as occurrences added, removed and moved.
"""

from __future__ import annotations

from chronex.engine.update.applying import apply_jobs, roll_back
from chronex.engine.update.changes import Change, Changed, Policy, definition, told_of
from chronex.engine.update.effect import Effect, Preview, preview
from chronex.engine.update.steps import Way
from chronex.engine.update.versions import kept_versions

__all__ = [
    "Change",
    "Changed",
    "Effect",
    "Policy",
    "Preview",
    "Way",
    "apply_jobs",
    "definition",
    "kept_versions",
    "preview",
    "roll_back",
    "told_of",
]
