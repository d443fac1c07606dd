"""A spread made visible: decisions for a list of instants, where they land, and the text of `--dist`."""

from __future__ import annotations

from collections.abc import Iterable

from chronex.decision.decide import result_of
from chronex.decision.distributions import known_parameters, make_distribution
from chronex.decision.request import DecisionResult
from chronex.decision.spread import Spread
from chronex.errors import DistributionError, DistributionParameterError


def preview(spread: Spread, nominals_ms: Iterable[int]) -> list[DecisionResult]:
    """The decision for each nominal instant (epoch milliseconds), in the given order."""
    return [result_of(spread, at * 1_000, spread.decide_at(at)) for at in nominals_ms]


def histogram(spread: Spread, nominals_ms: Iterable[int], bins: int) -> list[int]:
    """How many of the periods start in each of `bins` equal parts of their window, the earliest part first.

    A period that is unschedulable is in no part.
    """
    if bins < 1:
        raise ValueError(f"a histogram has at least one bin, not {bins}")
    counts = [0] * bins
    for at in nominals_ms:
        decision = spread.decide_at(at)
        if decision.chosen is not None:
            seconds = decision.window_end - decision.window_start + 1
            counts[(decision.chosen - decision.window_start) * bins // seconds] += 1
    return counts


def parse_distribution(text: str) -> tuple[str, dict[str, str]]:
    """`skewEarly:3` or `normal:mu=mid,sigma=10m` as a name and its parameters, both checked.

    One bare value stands for the first parameter of the distribution.
    """
    if not isinstance(text, str):
        raise DistributionError("a distribution is text such as skewEarly:3", value=text)
    name, colon, listed = text.partition(":")
    name = name.strip()
    params: dict[str, str] = {}
    for place, entry in enumerate(listed.split(",") if colon else ()):
        key, equals, value = (part.strip() for part in entry.partition("="))
        if not equals and place == 0 and key and known_parameters(name):
            key, value = known_parameters(name)[0], key
        elif not key or not value:
            make_distribution(name, {})  # a wrong name is the better message
            message = f"write {name}:name=value,name=value, not {text[:60]!r}"
            raise DistributionParameterError(message, value=entry)
        if key in params:
            raise DistributionParameterError(f"{key} is given twice", value=entry)
        params[key] = value
    make_distribution(name, params)
    return name, params
