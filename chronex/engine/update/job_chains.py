"""An update leaves no job behind another one that is not there, nor jobs that follow each other in a circle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from chronex.engine.update.sources import PositionOfParent, no_position
from chronex.errors import ChainProblem, JobChainError
from chronex.model.circles import circle_in, no_such_parent
from chronex.model.job import Job
from chronex.model.policies import RunOn

# One end may decide about all that follow, one inside the other, in one transaction.
LONGEST_CHAIN = 50


def refuse_broken_chains(
    before: Mapping[str, Job], after: Mapping[str, Job], position_of: PositionOfParent = no_position
) -> None:
    """JobChainError with every reason why the jobs of a store cannot become these."""
    following = {name: job for name, job in after.items() if job.after}
    problems = list(_missing(before, after, following, position_of))
    circle = circle_in({name: job.after for name, job in following.items()})
    if circle is not None:
        sentence = f"the jobs follow each other: {' -> '.join(circle)}; one of them must not follow the next"
        positions = (position_of(*link) for link in pairwise(circle))
        problems.append(ChainProblem(sentence, next(filter(None, positions), "")))
    elif len(longest := _longest(following)) > LONGEST_CHAIN:
        sentence = (
            f"{len(longest)} jobs follow one another; at most {LONGEST_CHAIN}: let some of them be tasks of one"
        )
        problems.append(ChainProblem(sentence, position_of(*longest[:2])))
    if problems:
        raise JobChainError(problems)


def _missing(
    before: Mapping[str, Job], after: Mapping[str, Job], following: Mapping[str, Job], position_of: PositionOfParent
) -> Iterator[ChainProblem]:
    for name, job in following.items():
        for parent in job.after:
            if (sentence := _why_not(name, parent, before, after)) is not None:
                yield ChainProblem(sentence, position_of(name, parent))


def _why_not(name: str, parent: str, before: Mapping[str, Job], after: Mapping[str, Job]) -> str | None:
    """Why `name` cannot follow `parent`; None where it can."""
    if parent in after:
        if after[parent].run_on is RunOn.EACH and not after[parent].target:
            return f"{name} cannot follow {parent}, which runs on each node; follow that of one node"
        return None
    if parent in before:
        other = after[name].source
        of_other = f" of {other}" if other.startswith("/") and other != before[parent].source else ""
        way = f"{name} -> {parent}"
        return f"{parent} would be removed, and {name}{of_other} follows it ({way}); remove both, or neither"
    return "; ".join(no_such_parent(name, parent, after))


def _longest(following: Mapping[str, Job]) -> list[str]:
    """The longest chain, the last job of it first; there is no circle."""
    before_it: dict[str, str | None] = {}
    depth: dict[str, int] = {}
    for name in following:
        left = [name]
        while left:
            at = left[-1]
            parents = following[at].after if at in following else ()
            unknown = [parent for parent in parents if parent not in depth]
            if unknown:
                left += unknown
                continue
            before_it[at] = max(parents, key=lambda one: depth[one], default=None)
            parent = before_it[at]
            depth[at] = 1 + (depth[parent] if parent is not None else 0)
            left.pop()
    chain: list[str] = []
    at_last: str | None = max(depth, key=lambda one: depth[one], default=None)
    while at_last is not None:
        chain.append(at_last)
        at_last = before_it[at_last]
    return chain
