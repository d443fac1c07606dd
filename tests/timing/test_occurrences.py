"""Stagger: a job's offset inside its stagger never changes."""

from __future__ import annotations

import pytest

from chronex.timing.occurrences import stagger_offset


@pytest.mark.parametrize(
    ("identity", "stagger_ms", "offset"),
    [
        ("my-trigger", 30_000, 4970),
        ("same-id", 30_000, 10591),
        ("health-check", 180_000, 81830),
        ("a", 300_000, 102220),
    ],
)
def test_the_offset_is_fnv_1a_of_the_id(identity: str, stagger_ms: int, offset: int) -> None:
    assert stagger_offset(identity, stagger_ms) == offset
