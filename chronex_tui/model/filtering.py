"""A filter as the screens use it: over rows of jobs, and over a hundred thousand runs at a keystroke."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chronex.engine.overview import Row
from chronex_tui.model.runs import state_of
from chronex_tui.model.snapshot import RunItem


@dataclass(frozen=True, slots=True)
class Filter:
    text: str
    words: tuple[str, ...] = ()
    trouble: str = ""

    def takes_row(self, row: Row, now_ms: int) -> bool:
        return all(_takes(word, row.job.id, row.situation, row.job.tags) for word in self.words)

    def runs(self, items: Sequence[RunItem], rows: Sequence[Row], now_ms: int) -> list[RunItem]:
        """Jobs are asked once each, runs only for their job and state."""
        if not self.words:
            return list(items)
        tags = {row.job.id: row.job.tags for row in rows}
        found = list(items)
        for word in self.words:
            if word.startswith("state:"):
                found = [item for item in found if state_of(item) == word[6:]]
            else:
                names = {item.key.job for item in found}
                taken = {name for name in names if _takes(word, name, "", tags.get(name, ()))}
                found = [item for item in found if item.key.job in taken]
        return found


def parse_filter(text: str) -> Filter:
    return Filter(text.strip(), tuple(text.split()))


def _takes(word: str, name: str, situation: str, tags: Sequence[str]) -> bool:
    if word.startswith("state:"):
        return situation == word[6:]
    if word.startswith("-") and len(word) > 1:
        return not _takes(word[1:], name, situation, tags)
    return word.lower() in name.lower() or any(word in tag for tag in tags)
