"""For any test that leaves a journal behind: the formal model must find nothing in it."""

from __future__ import annotations

from pathlib import Path

from chronex.model.event import Event
from chronex.storage import journal
from chronex.storage.ports import Store
from chronex.verify import PropertyResult, VerificationReport, verify_events, verify_store
from chronex.verify.results import event_to_dict
from chronex_store import LmdbStore


def broken(store: Store) -> list[PropertyResult]:
    """The properties that the store's journal breaks."""
    return verify_store(store).violated()


def assert_verified(store: Store | Path, *, has_daemon: bool = True) -> VerificationReport:
    """The store's journal breaks no property. A path is opened as an LMDB store, and closed again.

    Without a daemon no event says that a scheduler has started: then that is assumed, as before a cut.
    """
    if isinstance(store, Path):
        with LmdbStore.open(store, create=False) as opened:
            return assert_verified(opened, has_daemon=has_daemon)
    report = verify_store(store) if has_daemon else verify_events(_events(store), first=2)
    findings = [
        f"{result.property} {finding.message}: " + " → ".join(str(event_to_dict(line)) for line in finding.evidence)
        for result in report.violated()
        for finding in result.findings[:3]
    ]
    assert not findings, "\n".join(findings)
    return report


def _events(store: Store) -> list[Event]:
    return [event for _, event in store.view(lambda tx: journal.tail(tx, limit=1_000_000))]
