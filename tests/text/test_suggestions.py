"""Did you mean."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chronex.text.suggestions import distance_within_two, nearest

ZONES = ("America/New_York", "Asia/Seoul", "Asia/Shanghai", "Europe/Berlin", "UTC")


@pytest.mark.parametrize(
    ("wrong", "right", "edits"),
    [
        ("mon", "mon", 0),
        ("mno", "mon", 1),
        ("mn", "mon", 1),
        ("moon", "mon", 1),
        ("min", "mon", 1),
        ("nom", "mon", 2),
        ("", "ab", 2),
        ("", "abc", 3),
        ("kitten", "sitting", 3),
        ("jiter", "jitter", 1),
        ("tijter", "jitter", 2),
    ],
)
def test_the_distance_counts_edits_and_swaps_up_to_two(wrong: str, right: str, edits: int) -> None:
    assert distance_within_two(wrong, right) == edits


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("MNO", ("SUN", "MON"), "MON"),
        ("XYZ", ("SUN", "MON"), None),
        ("@wekly", ("@weekly", "@yearly"), "@weekly"),
        ("jiter", ("jitter", "stagger"), "jitter"),
        ("Asia/Seul", ZONES, "Asia/Seoul"),
        ("asia/seoul", ZONES, "Asia/Seoul"),
        ("America/NewYork", ZONES, "America/New_York"),
        ("Amerika/New_Yrok", ZONES, "America/New_York"),
        ("Nowhere/Land", ZONES, None),
        ("", ZONES, None),
        ("utc", ZONES, "UTC"),
        ("ab", ("abc", "ab"), "ab"),
    ],
)
def test_the_nearest_known_word_is_offered_when_it_is_near(
    word: str, known: tuple[str, ...], meant: str | None
) -> None:
    assert nearest(word, known) == meant


def _distance(one: str, other: str) -> int:
    """The textbook table: optimal string alignment."""
    table = [[i + j if i * j == 0 else 0 for j in range(len(other) + 1)] for i in range(len(one) + 1)]
    for i in range(1, len(one) + 1):
        for j in range(1, len(other) + 1):
            same = one[i - 1] == other[j - 1]
            table[i][j] = min(table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + (not same))
            if i > 1 and j > 1 and one[i - 1] == other[j - 2] and one[i - 2] == other[j - 1]:
                table[i][j] = min(table[i][j], table[i - 2][j - 2] + 1)
    return table[-1][-1]


@given(st.text("abc", max_size=9), st.text("abc", max_size=9))
@settings(deadline=None)
def test_the_distance_is_that_of_the_textbook(one: str, other: str) -> None:
    assert distance_within_two(one, other) == min(_distance(one, other), 3)


@given(st.text("abcdef", min_size=1, max_size=10), st.lists(st.text("abcdef", max_size=10), max_size=8))
@settings(deadline=None)
def test_the_nearest_word_is_the_first_of_the_closest(word: str, known: list[str]) -> None:
    allowed = 1 if len(word) < 7 else 2
    ranked = sorted((_distance(word, k), n) for n, k in enumerate(known))
    expected = known[ranked[0][1]] if ranked and ranked[0][0] <= allowed else None
    assert nearest(word, known) == expected
