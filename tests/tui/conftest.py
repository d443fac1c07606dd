from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from textual._compositor import Compositor
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.message import Message
from textual.message_pump import MessagePump

from tests.tui.examples import make_store


@pytest.fixture
def example_store(tmp_path: Path) -> Path:
    """A store with one job in every situation, and a living daemon."""
    return make_store(tmp_path / "store")


@pytest.fixture(autouse=True)
def frames_are_painted_when_they_are_looked_at(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a terminal Textual paints every update and throws it away, which was more than half of the time here.

    What a test looks at is painted whole. Where to live through the painting itself is the subject, `painted` is asked
    for.
    """
    if "painted" in request.fixturenames:
        return
    whole = Compositor.render_update

    def looked_at(self: Compositor, full: bool = False, **options: Any) -> Any:
        if full:
            return whole(self, full=True, **options)
        self._dirty_regions.clear()
        return None

    monkeypatch.setattr(Compositor, "render_update", looked_at)


Handlers = list[tuple[type, Callable[..., Any]]]
_search = MessagePump._get_dispatch_methods
_found: dict[tuple[type, str, type], Handlers | None] = {}


def _handlers(receiver: type, name: str, kind: type) -> Handlers | None:
    """The methods of a class and its bases for one kind of message; None where a decorator chooses by selectors."""
    found: Handlers = []
    for one in receiver.__mro__:
        if not vars(one).get("_decorated_handlers", {}).keys().isdisjoint(kind.__mro__):
            return None
        method = vars(one).get(f"_{name}") or vars(one).get(name)
        if method is not None and not getattr(method, "_textual_on", None):
            found.append((one, method))
    return found


@pytest.fixture(autouse=True)
def handlers_are_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Textual searches the handlers of every message in all base classes anew: a tenth of the time here."""

    def remembered(self: MessagePump, name: str, message: Message) -> Iterable[tuple[type, Callable[..., Any]]]:
        key = (type(self), name, type(message))
        if key not in _found:
            _found[key] = _handlers(*key)
        handlers = _found[key]
        return _search(self, name, message) if handlers is None else _until_prevented(self, handlers, message)

    monkeypatch.setattr(MessagePump, "_get_dispatch_methods", remembered)


def _until_prevented(
    pump: MessagePump, handlers: Handlers, message: Message
) -> Iterator[tuple[type, Callable[..., Any]]]:
    for one, method in handlers:
        if message._no_default_action:
            return
        yield one, method.__get__(pump, one)


_parse = Stylesheet._parse_rules
_parsed: dict[tuple[Any, ...], list[RuleSet]] = {}


@pytest.fixture(autouse=True)
def styles_are_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every app parses the same style sheets with the same few themes: a twelfth of the time here."""

    def remembered(self: Stylesheet, *given: Any, **named: Any) -> list[RuleSet]:
        key = (given, *named.items(), *self._variables.items())
        if key not in _parsed:
            _parsed[key] = _parse(self, *given, **named)
        return _parsed[key]

    monkeypatch.setattr(Stylesheet, "_parse_rules", remembered)


@pytest.fixture
def painted() -> None:
    """Every update is painted, as on a terminal."""
