"""For any test that leaves a journal behind: the formal model must find nothing in it."""

from __future__ import annotations

from pathlib import Path

from chronex.engine.ports import Store
from chronex.verify import Report, verify_store
from chronex.verify.verdicts import shown
from chronex_store import LmdbStore


def assert_verified(store: Store | Path) -> Report:
    """The store's journal breaks no property. A path is opened as an LMDB store, and closed again."""
    if isinstance(store, Path):
        with LmdbStore.open(store, create=False) as opened:
            return assert_verified(opened)
    report = verify_store(store)
    told = [
        f"{result.property} {finding.message}: " + " → ".join(str(shown(line)) for line in finding.evidence)
        for result in report.violated()
        for finding in result.findings[:3]
    ]
    assert not told, "\n".join(told)
    return report
