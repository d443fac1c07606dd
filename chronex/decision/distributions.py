"""From a draw to a second of the window. Each transform is a non-decreasing function of the draw.

A distribution is made once from its name and parameters. For a window of W seconds it gives a sampler that
turns u (U = u / 2**53) into floor(x(U) * (W + 1)), a whole second between 0 and W. specs/decision.md states
the transforms x; nothing here uses floating point.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Protocol

from chronex.decision import fixedpoint
from chronex.decision.parameters import Exact, bad_parameter, read_duration, read_number, shown
from chronex.decision.seed import UNIT, UNIT_BITS
from chronex.errors import DistributionError, DistributionParameterError

Sampler = Callable[[int], int]
Shape = Callable[[int], tuple[int, int]]  # u to x as (numerator, bits): x = numerator / 2**bits

MAX_SHAPE = 1_000
# Whole powers up to here are computed exactly; a larger one costs more than its logarithm.
_LARGEST_EXACT_POWER = 64


class Distribution(Protocol):
    """A named transform; `params` are the parameters as understood, defaults included."""

    @property
    def name(self) -> str: ...

    @property
    def params(self) -> dict[str, str]: ...

    def sampler(self, seconds: int, nominal: int) -> Sampler:
        """For a window of 0..seconds whose nominal time falls on the second `nominal`."""
        ...


@dataclass(frozen=True, slots=True)
class Uniform:
    """x = U."""

    name = "uniform"

    @property
    def params(self) -> dict[str, str]:
        return {}

    def sampler(self, seconds: int, nominal: int) -> Sampler:
        return lambda u: (u * (seconds + 1)) >> UNIT_BITS


@dataclass(frozen=True, slots=True)
class Skew:
    """x = U**s (early), or its mirror image 1 - (1 - U)**s (late)."""

    name: str
    shape: Exact

    @property
    def params(self) -> dict[str, str]:
        return {"s": self.shape.text}

    def sampler(self, seconds: int, nominal: int) -> Sampler:
        return placed(self._early, seconds, late=self.name == "skewLate")

    def _early(self, u: int) -> tuple[int, int]:
        s, q = self.shape.numerator, self.shape.denominator
        if q == 1 and s <= _LARGEST_EXACT_POWER:
            return u**s, UNIT_BITS * s
        if u == 0:
            return 0, 0
        logarithm = fixedpoint.ln(u << (fixedpoint.BITS - UNIT_BITS))
        return fixedpoint.exp(logarithm * s // q), fixedpoint.BITS


@dataclass(frozen=True, slots=True)
class Exponential:
    """x = -ln(1 - U * (1 - e**-lambda)) / lambda (early), or its mirror image (late)."""

    rate: Exact
    direction: str
    name = "exponential"

    @property
    def params(self) -> dict[str, str]:
        return {"lambda": self.rate.text, "dir": self.direction}

    def sampler(self, seconds: int, nominal: int) -> Sampler:
        return placed(self._early(), seconds, late=self.direction == "late")

    def _early(self) -> Shape:
        rate, q = self.rate.numerator, self.rate.denominator
        mass = fixedpoint.ONE - fixedpoint.exp(-fixedpoint.ratio(rate, q))

        def early(u: int) -> tuple[int, int]:
            left = fixedpoint.ln(fixedpoint.ONE - (u * mass >> UNIT_BITS))
            return -left * q // rate, fixedpoint.BITS

        return early


@dataclass(frozen=True, slots=True)
class Normal:
    """The normal curve around the middle of the second `mu`, cut off at the window's ends."""

    mu: str
    sigma: Exact
    of_window: bool
    name = "normal"

    @property
    def params(self) -> dict[str, str]:
        return {"mu": self.mu, "sigma": self.sigma.text}

    def sampler(self, seconds: int, nominal: int) -> Sampler:
        anchors = {"nominal": 2 * nominal + 1, "start": 1, "mid": seconds + 1, "end": 2 * seconds + 1}
        middle = anchors[self.mu]  # in half seconds, so that it is whole
        top = self.sigma.numerator * (seconds if self.of_window else 1)
        bottom = self.sigma.denominator
        low = fixedpoint.normal_cdf(fixedpoint.ratio(-middle * bottom, 2 * top))
        high = fixedpoint.normal_cdf(fixedpoint.ratio((2 * (seconds + 1) - middle) * bottom, 2 * top))

        def sample(u: int) -> int:
            if u == 0:
                return 0
            z = fixedpoint.normal_quantile(low + (u * (high - low) >> UNIT_BITS))
            second = (middle * bottom * fixedpoint.ONE + 2 * top * z) // (2 * bottom * fixedpoint.ONE)
            return clamped(second, seconds)

        return sample


def placed(early: Shape, seconds: int, *, late: bool) -> Sampler:
    """The sampler floor(x(U) * (W + 1)), or that of the mirror image 1 - x(1 - U)."""

    def from_start(u: int) -> int:
        numerator, bits = early(u)
        return clamped(numerator * (seconds + 1) >> bits, seconds)

    def from_end(u: int) -> int:
        numerator, bits = early(UNIT - u)
        return clamped(((1 << bits) - numerator) * (seconds + 1) >> bits, seconds)

    return from_end if late else from_start


def clamped(second: int, seconds: int) -> int:
    """Keep a second in 0..seconds: x = 1 would give seconds + 1, and a rounding may go below 0."""
    return min(max(second, 0), seconds)


def make_distribution(name: object, params: object, mode: str = "after") -> Distribution:
    """The distribution of this name with these parameters in a window of this mode. Raises a DecisionError."""
    if not isinstance(name, str):
        raise DistributionError(f"a distribution is named by text, not {shown(name)}", value=name)
    if name not in _MAKERS:
        close = get_close_matches(name[:40].lower(), [n.lower() for n in _MAKERS], 1, 0.5)
        known = {n.lower(): n for n in _MAKERS}
        raise DistributionError(
            f"unknown distribution {shown(name)}",
            hint=f"it is one of {', '.join(_MAKERS)}",
            value=name,
            suggestion=known[close[0]] if close else None,
        )
    if not isinstance(params, Mapping):
        raise DistributionParameterError(f"parameters are a mapping, not {shown(params)}", value=params)
    given = _checked(name, params)
    if name == "normal":  # around its nominal time, or in the middle of a window that lies to one side of it
        given.setdefault("mu", "nominal" if mode == "around" else "mid")
    return _MAKERS[name](given)


def parse_distribution(text: str) -> tuple[str, dict[str, str]]:
    """`skewEarly:3` or `normal:mu=mid,sigma=10m` as a name and its parameters, both checked.

    One bare value stands for the first parameter of the distribution.
    """
    if not isinstance(text, str):
        raise DistributionError("a distribution is text such as skewEarly:3", value=text)
    name, colon, listed = text.partition(":")
    name = name.strip()
    params: dict[str, str] = {}
    for index, entry in enumerate(listed.split(",") if colon else ()):
        key, equals, value = (part.strip() for part in entry.partition("="))
        if not equals and index == 0 and key and known_parameters(name):
            key, value = known_parameters(name)[0], key
        elif not key or not value:
            make_distribution(name, {})  # if the name is wrong too, its error is the more helpful one
            message = f"write {name}:name=value,name=value, not {text[:60]!r}"
            raise DistributionParameterError(message, value=entry)
        if key in params:
            raise DistributionParameterError(f"{key} is given twice", value=entry)
        params[key] = value
    make_distribution(name, params)
    return name, params


def known_parameters(name: str) -> tuple[str, ...]:
    """The parameters of a distribution, the main one first; none for an unknown name."""
    return _PARAMETERS.get(name, ())


def _checked(name: str, params: Mapping[object, object]) -> dict[str, object]:
    known = _PARAMETERS[name]
    found: dict[str, object] = {}
    for key, value in params.items():
        if not isinstance(key, str) or _SYNONYMS.get(key, key) not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            close = get_close_matches(key[:40], known, 1, 0.5) if isinstance(key, str) else []
            raise DistributionParameterError(
                f"{name} has no parameter {shown(key)}",
                hint=takes,
                value=key,
                suggestion=close[0] if close else None,
            )
        plain = _SYNONYMS.get(key, key)
        if plain in found:
            raise DistributionParameterError(f"{plain} is given twice", value=key)
        found[plain] = value
    return found


def _choice(name: str, value: object, choices: tuple[str, ...]) -> str:
    if isinstance(value, str) and value in choices:
        return value
    raise bad_parameter(name, value, f"is one of {', '.join(choices)}")


def _make_uniform(params: dict[str, object]) -> Distribution:
    return Uniform()


def _make_skew(name: str) -> Callable[[dict[str, object]], Distribution]:
    return lambda params: Skew(name, read_number("s", params.get("s", 2), MAX_SHAPE))


def _make_exponential(params: dict[str, object]) -> Distribution:
    rate = read_number("lambda", params.get("lambda", 1), MAX_SHAPE)
    return Exponential(rate, _choice("dir", params.get("dir", "early"), ("early", "late")))


def _make_normal(params: dict[str, object]) -> Distribution:
    mu = _choice("mu", params["mu"], ("nominal", "start", "mid", "end"))
    sigma = params.get("sigma", "window/6")
    if isinstance(sigma, str) and sigma.startswith("window/"):
        share = read_number("sigma", sigma.removeprefix("window/"), MAX_SHAPE)
        return Normal(mu, Exact(share.denominator, share.numerator, f"window/{share.text}"), of_window=True)
    return Normal(mu, read_duration("sigma", sigma), of_window=False)


_MAKERS: dict[str, Callable[[dict[str, object]], Distribution]] = {
    "uniform": _make_uniform,
    "skewEarly": _make_skew("skewEarly"),
    "skewLate": _make_skew("skewLate"),
    "normal": _make_normal,
    "exponential": _make_exponential,
}
_PARAMETERS: dict[str, tuple[str, ...]] = {
    "uniform": (),
    "skewEarly": ("s",),
    "skewLate": ("s",),
    "normal": ("mu", "sigma"),
    "exponential": ("lambda", "dir"),
}
_SYNONYMS = {"shape": "s"}
