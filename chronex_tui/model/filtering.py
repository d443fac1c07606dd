"""The filter of the engine as the screens use it: over jobs, and over a hundred thousand runs at a keystroke."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chronex.views import filters
from chronex.views.jobs import Row
from chronex_tui.model.glyphs import word
from chronex_tui.model.runs import state_of
from chronex_tui.model.snapshot import RunItem

_STATE = "state:"


@dataclass(frozen=True, slots=True)
class Filter:
    """`jobs` asks everything of jobs; `names` the same without states, which runs have of their own."""

    text: str
    jobs: filters.Filter
    names: filters.Filter
    wanted: frozenset[str]
    unwanted: frozenset[str]

    @property
    def trouble(self) -> str:
        return self.jobs.problems[0] if self.jobs.problems else ""

    def takes_row(self, row: Row, now_ms: int) -> bool:
        return self.jobs.matches(row, now_ms)

    def narrows(self, before: Filter) -> bool:
        """Letters were added to a plain word: whatever did not pass before does not pass now."""
        last = self.text.rpartition(" ")[2]
        is_plain = not any(sign in last for sign in ":<>") and not last.startswith("-")
        return is_plain and self.text.startswith(before.text) and " " not in self.text[len(before.text) :]

    @property
    def has_states(self) -> bool:
        return bool(self.wanted or self.unwanted)

    def runs(self, items: Sequence[RunItem], rows: Sequence[Row], now_ms: int) -> list[RunItem]:
        """Jobs are asked once each, runs only for their job and state."""
        found = list(items)
        if self.names.tests:
            taken = {row.job.id for row in rows if self.names.matches(row, now_ms)}
            found = [item for item in found if item.key.job in taken]
        if self.wanted:
            found = [item for item in found if not self.wanted.isdisjoint(_names(item))]
        if self.unwanted:
            found = [item for item in found if self.unwanted.isdisjoint(_names(item))]
        return found


def _names(item: RunItem) -> tuple[str, ...]:
    """A run by the words people use for its state; what gave up has failed as well."""
    state = state_of(item)
    return (state, word(state), item.state)


def parse_filter(text: str) -> Filter:
    words = text.split()
    wanted = frozenset(one[len(_STATE) :] for one in words if one.startswith(_STATE) and len(one) > len(_STATE))
    unwanted = frozenset(one[len(_STATE) + 1 :] for one in words if one.startswith(f"-{_STATE}"))
    others = [one for one in words if not one.removeprefix("-").startswith(_STATE)]
    return Filter(text.strip(), filters.parse_filter(text), filters.parse_filter(" ".join(others)), wanted, unwanted)
