"""Where a store is, and what a machine keeps of its own."""

from __future__ import annotations

from pathlib import Path

from chronex_store.opening import host_identity


def test_who_only_looks_makes_no_name_for_the_machine(tmp_path: Path) -> None:
    place = tmp_path / "state"
    assert host_identity(place, create=False) == ""
    assert not place.exists()
    named = host_identity(place)
    assert named
    assert host_identity(place, create=False) == host_identity(place) == named
