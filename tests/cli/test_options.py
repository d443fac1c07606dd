"""What the values of arguments mean."""

from __future__ import annotations

import pytest

from chronex.cli.options import UsageError, read_duration


@pytest.mark.parametrize(("text", "why"), [("0s", "is no time at all"), ("2 hours", "is not a duration")])
def test_a_duration_must_be_one_and_longer_than_nothing(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        read_duration("--for", text)
