"""What a long journal costs grows with its length and no faster; how fast it is judged, the benchmarks say."""

from __future__ import annotations

import pytest

from benchmarks.verify import journal_of
from chronex.verify import PropertyVerdict, verify_events
from tests.kit.work import assert_cheap


@pytest.mark.parametrize("count", [50_000, pytest.param(1_000_000, marks=pytest.mark.torture)])
def test_a_long_journal_is_judged_at_a_cost_that_grows_with_its_length(count: int) -> None:
    events = list(journal_of(count))
    assert_cheap(lambda: verify_events(events), count / 10, f"{count} events")
    report = verify_events(events)
    assert report.coverage.events >= count
    assert report.verdict is not PropertyVerdict.VIOLATED
    assert sum(result.checked for result in report.properties) > count
