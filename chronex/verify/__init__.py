"""The formal model as monitors over the journal (specs/formal-model.md).

`verify_store` judges a store's journal; a `Verifier` that is fed with `follow` judges it as it grows.
"""

from __future__ import annotations

from chronex.verify.results import TITLES, PropertyFinding, PropertyResult, PropertyVerdict
from chronex.verify.verifier import Coverage, VerificationReport, Verifier, follow, verify_events, verify_store

__all__ = [
    "TITLES",
    "Coverage",
    "PropertyFinding",
    "PropertyResult",
    "PropertyVerdict",
    "VerificationReport",
    "Verifier",
    "follow",
    "verify_events",
    "verify_store",
]
