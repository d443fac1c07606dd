"""A million events in ten seconds; in the ordinary suite a tenth of them, with room for a busy machine."""

from __future__ import annotations

from time import process_time

import pytest

from benchmarks.verify import journal_of
from chronex.verify import PropertyVerdict, verify_events


@pytest.mark.parametrize(
    ("count", "seconds"), [(100_000, 5.0), pytest.param(1_000_000, 10.0, marks=pytest.mark.torture)]
)
def test_a_long_journal_is_judged_at_the_promised_speed(count: int, seconds: float) -> None:
    events = list(journal_of(count))
    began = process_time()
    report = verify_events(events)
    assert process_time() - began < seconds
    assert report.coverage.events >= count
    assert report.verdict is not PropertyVerdict.VIOLATED
    assert sum(result.checked for result in report.properties) > count
