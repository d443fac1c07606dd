"""An update leaves no job behind another one that is not there, nor jobs that follow each other in a circle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from chronex.errors import JobChainError
from chronex.model.circles import circle_in
from chronex.model.job import Job
from chronex.model.policies import RunOn
from chronex.text.suggestions import nearest

# One end may decide about all that follow, one inside the other, in one transaction.
LONGEST_CHAIN = 50


def refuse_broken_chains(before: Mapping[str, Job], after: Mapping[str, Job]) -> None:
    """JobChainError with every reason why the jobs of a store cannot become these."""
    following = {name: job for name, job in after.items() if job.after}
    problems = list(_missing(before, after, following))
    circle = circle_in({name: job.after for name, job in following.items()})
    if circle is not None:
        problems.append(f"the jobs follow each other: {' -> '.join(circle)}; one of them must not follow the next")
    elif (longest := _longest(following)) > LONGEST_CHAIN:
        problems.append(
            f"{longest} jobs follow one another; at most {LONGEST_CHAIN}: let some of them be tasks of one"
        )
    if problems:
        raise JobChainError(problems)


def _missing(before: Mapping[str, Job], after: Mapping[str, Job], following: Mapping[str, Job]) -> Iterator[str]:
    for name, job in following.items():
        for parent in job.after:
            if parent in after:
                if after[parent].run_on is RunOn.EACH and not after[parent].target:
                    yield f"{name} cannot follow {parent}, which runs on each node; follow that of one node"
                continue
            if parent in before:
                way = f"{name} -> {parent}"
                yield f"{parent} would be removed, and {name} follows it ({way}); remove both, or neither"
            else:
                meant = nearest(parent, (one for one in after if one != name))
                hint = f"did you mean {meant}?" if meant else "apply that job first, or name another one"
                yield f"{name} follows {parent}, and there is no such job; {hint}"


def _longest(following: Mapping[str, Job]) -> int:
    """How many jobs the longest chain has; there is no circle."""
    depth: dict[str, int] = {}
    for name in following:
        left = [name]
        while left:
            at = left[-1]
            before = following[at].after if at in following else ()
            unknown = [parent for parent in before if parent not in depth]
            if unknown:
                left += unknown
            else:
                depth[at] = 1 + max((depth[parent] for parent in before), default=0)
                left.pop()
    return max(depth.values(), default=0)
