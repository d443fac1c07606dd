"""SplitMix64 against its published sequence."""

from __future__ import annotations

from chronex.decision.seed import UNIT, SplitMix64, generator_of

# The first outputs for the seed 1234567, as the algorithm's reference program prints them.
PUBLISHED = [
    6457827717110365317,
    3203168211198807973,
    9817491932198370423,
    4593380528125082431,
    16408922859458223821,
]


def test_the_published_sequence() -> None:
    generator = SplitMix64(1234567)
    assert [generator.next() for _ in PUBLISHED] == PUBLISHED


def test_a_unit_is_the_upper_53_bits() -> None:
    bits, units = SplitMix64(9), SplitMix64(9)
    for _ in range(100):
        unit = units.next_unit()
        assert unit == bits.next() // 2**11
        assert 0 <= unit < UNIT


def test_the_seed_is_the_first_eight_bytes_of_the_hash() -> None:
    digest = "000000000012d687" + "f" * 48
    assert generator_of(digest).next() == PUBLISHED[0]
