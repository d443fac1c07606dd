"""Whether things that come after each other can be put in an order at all, and are there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from chronex.text.suggestions import nearest


def circle_in(order: Mapping[str, Sequence[str]]) -> list[str] | None:
    """The first way from a name back to itself, with that name at both ends; None where there is none.

    `order` has for each name those that it comes after; names that it does not have come after nothing.
    """
    done: set[str] = set()
    for start in order:
        way: dict[str, None] = {}  # in the order in which it was gone; a long chain is looked up often
        left: list[tuple[str, Iterator[str]]] = [] if start in done else [(start, iter(order[start]))]
        while left:
            at, more = left[-1]
            way.setdefault(at)
            following = next(more, None)
            if following is None:
                way.popitem()
                done.add(at)
                left.pop()
            elif following in way:
                names = list(way)
                return [*names[names.index(following) :], following]
            elif following in order and following not in done:
                left.append((following, iter(order[following])))
    return None


def no_such_parent(name: str, parent: str, others: Iterable[str], among: str = "") -> tuple[str, str]:
    """That the job follows one that is not there, and what to do: the same words wherever it is found."""
    meant = nearest(parent, (one for one in others if one != name))
    hint = f"did you mean {meant}?" if meant else "apply that job first, or name another one"
    return f"{name} follows {parent}, and there is no such job{among}", hint
