"""The command palette: every action that can be done now, found by name or by sentence."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider

from chronex_tui.actions import Action, available, key_text

if TYPE_CHECKING:
    from chronex_tui.app import ChronexApp


class ActionProvider(Provider):
    @property
    def desk(self) -> ChronexApp:
        return cast("ChronexApp", self.app)

    def _actions(self) -> list[Action]:
        return [action for action in available(self.desk.context()) if action.id != "palette"]

    async def discover(self) -> Hits:
        for action in self._actions():
            name = _name(action)
            yield DiscoveryHit(name, partial(self.desk.do, action.id), text=name, help=action.sentence)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for action in self._actions():
            name = _name(action)
            score = max(matcher.match(name), matcher.match(action.sentence) * 0.6)
            if score > 0:
                shown = matcher.highlight(name)
                yield Hit(score, shown, partial(self.desk.do, action.id), text=name, help=action.sentence)


def _name(action: Action) -> str:
    return f"{action.label}  ({key_text(action)})"
