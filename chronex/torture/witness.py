"""What the commands of a campaign write themselves: only that can prove that no two of them ran at a time."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

# The kernel's own clock, in hundredths of a second, which no clock of a node has a part in.
_STEP_S = 0.2
# Two lines within one hundredth may stand in either order.
_TOLERANCE_S = 0.011


def witness_command(file: Path, steps: int) -> str:
    """A command that writes when it begins, every 0.2 s while it lives, and when it ends."""
    line = "$1 $CHRONEX_OCCURRENCE $CHRONEX_ATTEMPT $CHRONEX_FENCE $up"
    say = f'w() {{ read up rest < /proc/uptime; echo "{line}" >> {shlex.quote(str(file))}; }}'
    return f"{say}; w start; i=0; while [ $i -lt {steps} ]; do sleep {_STEP_S}; w alive; i=$((i+1)); done; w end"


class WitnessedRun(NamedTuple):
    """One execution of one attempt: from its first line to its last; `ended` where it came to its end."""

    occurrence: str
    attempt: str
    fence: int
    begun: float
    last: float
    ended: bool


def read_witness(file: Path) -> list[WitnessedRun]:
    """Every execution, by its beginning. A line that was cut off by a kill is left out."""
    lines = file.read_text().splitlines() if file.exists() else []
    found: dict[tuple[str, int], WitnessedRun] = {}
    starts: defaultdict[str, int] = defaultdict(int)
    for line in lines:
        parts = line.split(" ")
        if len(parts) != 5 or not parts[3].isdecimal():
            continue
        word, occurrence, attempt, fence, up = parts
        if word == "start":
            starts[attempt] += 1
            found[attempt, starts[attempt]] = WitnessedRun(
                occurrence, attempt, int(fence), float(up), float(up), ended=False
            )
        elif (key := (attempt, starts[attempt])) in found:
            found[key] = found[key]._replace(last=float(up), ended=word == "end")
    return sorted(found.values(), key=lambda one: one.begun)


def overlaps(executions: Iterable[WitnessedRun]) -> Iterator[tuple[WitnessedRun, WitnessedRun]]:
    """Two executions of one occurrence of which the second began before the first had written its last line."""
    by_occurrence: defaultdict[str, list[WitnessedRun]] = defaultdict(list)
    for one in executions:
        by_occurrence[one.occurrence].append(one)
    for several in by_occurrence.values():
        yield from at_a_time(several)


def at_a_time(executions: Iterable[WitnessedRun]) -> Iterator[tuple[WitnessedRun, WitnessedRun]]:
    """Executions of which the second began before the first had written its last line."""
    for before, after in pairwise(sorted(executions, key=lambda one: one.begun)):
        if after.begun + _TOLERANCE_S < before.last:
            yield before, after


def begun_twice(executions: Iterable[WitnessedRun]) -> list[str]:
    """Attempts that were executed more than once: an attempt is one execution."""
    counts: defaultdict[str, int] = defaultdict(int)
    for one in executions:
        counts[one.attempt] += 1
    return [attempt for attempt, count in counts.items() if count > 1]


def fences_went_back(executions: Iterable[WitnessedRun]) -> list[str]:
    """Occurrences of which a later execution had a smaller number: what they guard would refuse the right one."""
    newest: dict[str, WitnessedRun] = {}
    found = []
    for one in sorted(executions, key=lambda one: one.begun):
        before = newest.get(one.occurrence)
        if before is not None and one.fence <= before.fence:
            found.append(one.occurrence)
        newest[one.occurrence] = one
    return found


class Span(NamedTuple):
    """From when to when, in seconds of the kernel's own clock."""

    since: float
    until: float

    @property
    def seconds(self) -> float:
        return self.until - self.since


def longest_pause(executions: Iterable[WitnessedRun], watched: Span, cannot: Sequence[Span] = ()) -> Span:
    """The longest time in which nothing began anywhere, without the spans in which it `cannot`."""
    begun = [one.begun for one in executions if watched.since <= one.begun <= watched.until]
    ends = sorted({watched.since, watched.until, *begun, *(end for span in cannot for end in span)})
    within = [Span(*two) for two in pairwise(ends) if two[0] >= watched.since and two[1] <= watched.until]
    could = [span for span in within if not any(one.since < span.until and span.since < one.until for one in cannot)]
    return max(could, key=lambda span: span.seconds, default=Span(watched.since, watched.since))
