"""What an update locks and reads beforehand, so that machines which share a store do not wait for one another.

A store of one machine runs one update at a time and asks for no scope. A shared one locks the jobs that are named, or
those that are due and that nobody holds, and runs the update beside others. Whatever an update touches outside of its
scope is found out by the store, which runs it again with more locked: a scope that is too small costs time, and is
never wrong (specs/machines.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

# At most so many records of what is due are claimed at a time, so that what falls due at once is spread over nodes.
MOST_CLAIMED = 100
# A node whose pool is full takes only what the others have left for so long.
LEFT_BY_OTHERS_MS = 500
# How soon to look again at what is due while another node holds it: it is decided there, or that node has died.
HELD_ELSEWHERE_MS = 100


@dataclass(frozen=True)
class DueClaim:
    """What is due up to `until_ms`, and the queues that can be served, of jobs that nobody holds.

    `slots` is the size of the pool of `node`: no more is claimed than is free there. `beyond` counts what the node
    left to others last time, which must not be in the way. `served_last` is the job whose queue had its turn last.
    """

    until_ms: int
    node: str
    slots: int
    most: int = MOST_CLAIMED
    beyond: int = 0
    served_last: str = ""
    begins: bool = True  # False for a node that only stops what it runs


@dataclass(frozen=True)
class Scope:
    """The jobs that an update decides on, by name, and those that it claims; the record of `node`, if any.

    `shared` names groups and channels, which belong to no job; the groups of the jobs are held with them anyway.
    Nothing of all this is a scope too: the update only adds to the journal.
    """

    jobs: frozenset[str] = frozenset()
    due: DueClaim | None = None
    node: str = ""
    is_whole: bool = False
    shared: frozenset[str] = frozenset()

    def with_more(self, jobs: Iterable[str], shared: Iterable[str]) -> Scope:
        return Scope(self.jobs.union(jobs), self.due, self.node, shared=self.shared.union(shared))


# The store to itself: jobs are applied, nodes are given up, clocks are followed.
WHOLE = Scope(is_whole=True)
JOURNAL_ONLY = Scope()


def of_jobs(*names: str) -> Scope:
    """What people type may be no name at all; then whoever looks for it looks everywhere."""
    is_plain = all(name.isascii() and name.isprintable() for name in names)
    return Scope(frozenset(names)) if is_plain else WHOLE


def shared_group(name: str) -> str:
    """A group as a scope names it. Its line is held with it."""
    return f"group {name}"


def shared_channel(name: str) -> str:
    return f"channel {name}"


def of_channel(name: str) -> Scope:
    return Scope(shared=frozenset((shared_channel(name),)))


def of_node(node: str) -> Scope:
    return Scope(node=node)
