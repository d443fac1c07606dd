"""`why`: the causal chain of any instant of a job, from its records, the journal and the planner (specs/why.md)."""

from __future__ import annotations

from chronex.views.why.answer import Cause, Link, Source, WhyAnswer
from chronex.views.why.ask import latest_and_next, why

__all__ = ["Cause", "Link", "Source", "WhyAnswer", "latest_and_next", "why"]
