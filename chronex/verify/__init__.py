"""The formal model as monitors over the journal (specs/formal-model.md).

`verify_store` judges a store's journal; a `Verifier` that is fed with `follow` judges it as it grows.
"""

from __future__ import annotations

from chronex.verify.trace import Coverage, Report, Verifier, follow, verify_events, verify_store
from chronex.verify.verdicts import TITLES, Finding, PropertyResult, Verdict

__all__ = [
    "TITLES",
    "Coverage",
    "Finding",
    "PropertyResult",
    "Report",
    "Verdict",
    "Verifier",
    "follow",
    "verify_events",
    "verify_store",
]
