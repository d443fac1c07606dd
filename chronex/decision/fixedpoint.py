"""Exponential, logarithm and the normal curve on integers.

A number x is held as the integer nearest below x * 2**160. Only integer operations are used, so every
platform computes the same digits, and the error of each function stays below 2**-100 over the range that a
53-bit draw can reach (specs/decision.md, section 5).
"""

from __future__ import annotations

from math import isqrt

BITS = 160
ONE = 1 << BITS
HALF = ONE >> 1

# e**x = (e**(x / 2**8))**(2**8): the series of the small argument is short.
_SQUARINGS = 8
# Beyond twelve standard deviations lies less than 2**-108 of the mass.
_TAIL = 12 << BITS


def ratio(numerator: int, denominator: int) -> int:
    """The rational number numerator / denominator."""
    return (numerator << BITS) // denominator


def multiply(x: int, y: int) -> int:
    return (x * y) >> BITS


def _atanh_of_reciprocal(n: int) -> int:
    square = n * n
    term = total = ONE // n
    odd = 3
    while term:
        term //= square
        total += term // odd
        odd += 2
    return total


LN2 = 2 * _atanh_of_reciprocal(3)


def exp(x: int) -> int:
    """e**x for x <= 0."""
    mantissa, halvings = _exp_parts(x)
    return mantissa >> halvings


def _exp_parts(x: int) -> tuple[int, int]:
    """e**x for x <= 0 as mantissa / 2**halvings, so that a tiny value keeps all its digits."""
    doublings, rest = divmod(x, LN2)
    rest >>= _SQUARINGS
    total = term = ONE
    n = 1
    while term:
        term = ((term * rest) >> BITS) // n
        total += term
        n += 1
    for _ in range(_SQUARINGS):
        total = (total * total) >> BITS
    return total, -doublings


def ln(x: int) -> int:
    """The natural logarithm of x > 0."""
    doublings = x.bit_length() - BITS - 1
    mantissa = x >> doublings if doublings >= 0 else x << -doublings
    y = ((mantissa - ONE) << BITS) // (mantissa + ONE)
    square = (y * y) >> BITS
    power = total = y
    odd = 3
    while power:
        power = (power * square) >> BITS
        total += power // odd
        odd += 2
    return 2 * total + doublings * LN2


def _pi() -> int:
    """Machin: pi = 16 atan(1/5) - 4 atan(1/239)."""
    return 16 * _atan_of_reciprocal(5) - 4 * _atan_of_reciprocal(239)


def _atan_of_reciprocal(n: int) -> int:
    square = n * n
    term = total = ONE // n
    odd, sign = 3, -1
    while term:
        term //= square
        total += sign * (term // odd)
        odd, sign = odd + 2, -sign
    return total


_SQRT_OF_TWO_PI = isqrt(2 * _pi() << BITS)


Density = tuple[int, int]


def normal_density(z: int) -> Density:
    """The height of the standard normal curve at z as mantissa and halvings."""
    mantissa, halvings = _exp_parts(-((z * z) >> (BITS + 1)))
    return (mantissa << BITS) // _SQRT_OF_TWO_PI, halvings


def normal_cdf(z: int, density: Density | None = None) -> int:
    """The mass of the standard normal curve below z; `density` saves work when it is already known."""
    if abs(z) >= _TAIL:
        return ONE if z > 0 else 0
    mantissa, halvings = density or normal_density(z)
    # z + z^3/3 + z^5/(3*5) + ...: for z >= 0 every term is positive, so nothing cancels.
    square = (z * z) >> BITS
    term = total = abs(z)
    odd = 3
    while term:
        term = ((term * square) >> BITS) // odd
        total += term
        odd += 2
    above_half = (mantissa * total) >> (BITS + halvings)
    return HALF + above_half if z >= 0 else HALF - above_half


def normal_quantile(p: int) -> int:
    """The z with normal_cdf(z) = p, for 0 < p < 1."""
    if p > HALF:
        return -normal_quantile(ONE - p)
    z = _rough_quantile(p)
    # The first guess is within 5e-4; each step of Halley's method cubes the error: 1e-9, then below 1e-24.
    for _ in range(2):
        mantissa, halvings = normal_density(z)
        miss = ((normal_cdf(z, (mantissa, halvings)) - p) << (BITS + halvings)) // mantissa
        z -= (miss << BITS) // (ONE + multiply(miss, z) // 2)
    return z


def _millionths(millionths: int) -> int:
    return ratio(millionths, 1_000_000)


_NUMERATOR = tuple(map(_millionths, (2_515_517, 802_853, 10_328)))
_DENOMINATOR = tuple(map(_millionths, (1_000_000, 1_432_788, 189_269, 1_308)))


def _rough_quantile(p: int) -> int:
    """Hastings' rational approximation (Abramowitz and Stegun 26.2.23) for 0 < p <= 1/2."""
    t = isqrt((-2 * ln(p)) << BITS)
    top = bottom = 0
    for coefficient in reversed(_NUMERATOR):
        top = multiply(top, t) + coefficient
    for coefficient in reversed(_DENOMINATOR):
        bottom = multiply(bottom, t) + coefficient
    return (top << BITS) // bottom - t
