"""SplitMix64: the one source of numbers, a pure function of a seed."""

from __future__ import annotations

_MASK = 0xFFFF_FFFF_FFFF_FFFF
_INCREMENT = 0x9E37_79B9_7F4A_7C15
_FIRST_MULTIPLIER = 0xBF58_476D_1CE4_E5B9
_SECOND_MULTIPLIER = 0x94D0_49BB_1331_11EB

UNIT_BITS = 53
UNIT = 1 << UNIT_BITS


class SplitMix64:
    """Draws in a fixed order; two generators with one seed agree for ever."""

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def next(self) -> int:
        """The next 64 bits."""
        self._state = z = (self._state + _INCREMENT) & _MASK
        z = ((z ^ (z >> 30)) * _FIRST_MULTIPLIER) & _MASK
        z = ((z ^ (z >> 27)) * _SECOND_MULTIPLIER) & _MASK
        return z ^ (z >> 31)

    def next_unit(self) -> int:
        """The numerator u of U = u / 2**53, so that 0 <= U < 1 holds exactly."""
        return self.next() >> (64 - UNIT_BITS)
