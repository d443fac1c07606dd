"""Each integer function against Decimal at 90 digits: the errors stay below what specs/decision.md states."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

from chronex.decision import fixedpoint
from chronex.decision.fixedpoint import BITS, ONE
from tests.decision.reference import erf_sum

STATED = Decimal(2) ** -100
POINTS = [Fraction(n, 7) for n in (1, 2, 5, 9, 20, 41, 55, 57, 70, 83)]


@pytest.fixture(autouse=True)
def many_digits() -> Iterator[None]:
    with localcontext() as context:
        context.prec = 90
        yield


def fixed(x: Fraction) -> int:
    return fixedpoint.ratio(x.numerator, x.denominator)


def real(x: int) -> Decimal:
    return Decimal(x) / Decimal(1 << BITS)


@pytest.mark.parametrize("x", [Fraction(0), *POINTS, Fraction(1, 10**12), Fraction(700)])
def test_exponential(x: Fraction) -> None:
    exact = (-Decimal(x.numerator) / x.denominator).exp()
    assert abs(real(fixedpoint.exp(-fixed(x))) - exact) < STATED


@pytest.mark.parametrize("x", [*POINTS, Fraction(1), Fraction(1, 2**53), Fraction(2**53 - 1, 2**53)])
def test_logarithm(x: Fraction) -> None:
    exact = (Decimal(x.numerator) / x.denominator).ln()
    assert abs(real(fixedpoint.ln(fixed(x))) - exact) < STATED


@pytest.mark.parametrize("z", [Fraction(0), *POINTS])
def test_the_mass_below_a_point_of_the_normal_curve(z: Fraction) -> None:
    exact = Decimal("0.5") + erf_sum(z) / (2 * PI).sqrt()
    assert abs(real(fixedpoint.normal_cdf(fixed(z))) - exact) < STATED
    assert abs(real(fixedpoint.normal_cdf(-fixed(z))) - (1 - exact)) < STATED


@pytest.mark.parametrize("u", [1, 2, 1000, 2**30, 2**40, 2**50, 2**51, 2**52, 2**52 + 1, 2**53 - 1000, 2**53 - 1])
def test_the_quantile_inverts_the_mass(u: int) -> None:
    """The error in z is the miss in mass over the density; 2**-75 of a standard deviation bounds it."""
    p = u << (BITS - 53)
    z = fixedpoint.normal_quantile(p)
    mantissa, halvings = fixedpoint.normal_density(z)
    miss = abs(fixedpoint.normal_cdf(z) - p)
    assert real(miss << halvings) / real(mantissa) < Decimal(2) ** -75


def test_beyond_twelve_deviations_there_is_nothing() -> None:
    assert fixedpoint.normal_cdf(12 * ONE) == ONE
    assert fixedpoint.normal_cdf(-12 * ONE) == 0
    assert ONE - fixedpoint.normal_cdf(12 * ONE - 1) < ONE >> 108


# The first 80 digits, from the literature.
PI = Decimal("3.1415926535897932384626433832795028841971693993751058209749445923078164062862090")
