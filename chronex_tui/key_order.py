"""Keys one at a time: the next one is handled when everything that the last one did has been done.

Textual hands every key at once to the widget that has the focus, and a key that opens a screen or moves the focus is
handled later. So of keys that arrive together, as when text is pasted or a slow connection delivers a second's typing
at once, the second one would go to the screen before: `/pip` would pause a job. Here a key waits until the screen
that the last one opened is there and has the focus, and until the row that it selected is selected.

`EscapeParser` reads them from the bytes of the terminal, of which Esc is also the first byte of many other keys.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any

# Textual's private parts: it has no public way to say how the bytes of a terminal are read.
from textual._xterm_parser import BRACKETED_PASTE_END, BRACKETED_PASTE_START, XTermParser
from textual.app import App
from textual.dom import DOMNode
from textual.events import Callback, Event, Key, Paste
from textual.message import Message
from textual.screen import Screen

# A widget that is removed while a key passes through it answers no more; the keys behind it must not wait for it.
_MOST_S = 2.0
# Once for the key itself, once for the messages that it caused, such as that another row is selected.
_ROUNDS = 2

Handle = Callable[[Event], Awaitable[None]]


def is_typed(event: Event) -> bool:
    """Does it come from the keyboard, and has no widget seen it yet?"""
    return isinstance(event, (Key, Paste)) and not event.is_forwarded


class KeyOrder:
    """The keys that wait, and the one that is being handled. All of it runs on the thread of the screen."""

    def __init__(self, app: App[Any], handle: Handle, opening: str) -> None:
        self._app, self._handle = app, handle
        self._opening = opening  # the group of workers that open a screen
        self._waiting: deque[Event] = deque()
        self._waiting_until_idle: asyncio.Task[None] | None = None
        self._is_idle = asyncio.Event()
        self._is_idle.set()
        self._reached = asyncio.Event()

    async def take(self, event: Event) -> None:
        """Handle it now, or when the keys before it have been handled."""
        if self._is_idle.is_set():
            self._is_idle.clear()
            await self._begin(event)
        else:
            self._waiting.append(event)

    def drop_waiting(self) -> None:
        """The terminal was given to another program: what was typed before is not meant for what is shown now."""
        self._waiting.clear()

    async def until_idle(self) -> None:
        """Until every key that has arrived has been handled."""
        await self._is_idle.wait()

    async def _begin(self, event: Event) -> None:
        target = self._target()
        await self._handle(event)
        self._waiting_until_idle = asyncio.create_task(self._wait_until_idle(target))

    def _target(self) -> DOMNode:
        """The widget that gets the keys; an app that is about to end has no screens any more."""
        app = self._app
        return (app.focused or app.screen) if app.screen_stack else app

    async def _wait_until_idle(self, target: DOMNode) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_MOST_S):
                await self._is_done_with(target)
        # The next key is handled in the app's own turn. An app that has ended takes none, and no key is left over.
        if not self._app.is_running or not self._app.call_later(self._next):
            self._waiting.clear()
            self._is_idle.set()

    async def _next(self) -> None:
        if self._waiting:
            await self._begin(self._waiting.popleft())
        else:
            self._is_idle.set()

    async def _is_done_with(self, target: DOMNode) -> None:
        for _ in range(_ROUNDS):
            await self._has_passed(target)
        opening = [one for one in self._app.workers if one.group == self._opening and not one.is_finished]
        if opening:
            # Whatever becomes of the worker, the next key is handled; Textual reports a worker that failed.
            await asyncio.wait([asyncio.ensure_future(one.wait()) for one in opening])
        # A screen begins with its messages when it is mounted, and then asks for the focus.
        if self._app.screen_stack and self._app.screen not in target.ancestors_with_self:
            await self._has_passed(self._app.screen)
        focused = self._target()
        if focused is not target:
            await self._has_passed(focused)

    async def _has_passed(self, target: DOMNode) -> None:
        """Until each of them, from the widget up to the app, is through with the messages that it has now.

        A widget hands a message on in one go, so it is through with all when none waits. A screen and the app may
        pause while they handle one; they are asked.
        """
        for node in dict.fromkeys((*target.ancestors_with_self, self._app)):
            if not isinstance(node, (Screen, App)):
                while node.message_queue_size and node.is_running:
                    await asyncio.sleep(0)
                continue
            self._reached.clear()
            # Not by `call_later`, which looks at the function's signature each time.
            if node.post_message(Callback(callback=self._reach)):
                await self._reached.wait()

    def _reach(self) -> None:
        self._reached.set()


# -- from bytes to keys -------------------------------------------------------------------------------------------

_ESC = "\x1b"
# What follows Esc where a sequence of the terminal begins: CSI, SS3, OSC, DCS, APC, PM.
_BEGINS_SEQUENCE = "[O]P_^"


class EscapeParser(XTermParser):
    """Textual's parser, but Esc and a key that arrive together are two keys.

    Textual takes them for Alt and the key, and the Esc is lost: over a slow line, Esc and Enter would give Enter to
    the dialog that Esc was to close. Alt with a letter arrives as the same bytes; it means nothing here. Esc before a
    character that begins a sequence remains ambiguous, and is Esc where nothing follows for a tenth of a second.

    Of an Esc inside marked pasted text Textual's parser would make keys, which then act; here it is left out.
    """

    def __init__(self, debug: bool = False) -> None:
        self._last = ""  # as many characters as the marks of a paste have
        self._is_pasted = False
        self._held = ""  # in a paste: what may be the beginning of the mark of its end
        super().__init__(debug)

    def feed(self, data: str) -> Iterable[Message]:
        if not data:
            yield from super().feed(data)
        for character in data:
            yield from self._pasted(character) if self._is_pasted else self._typed(character)

    def _typed(self, character: str) -> Iterable[Message]:
        waits_for_more = self._timeout_time is not None
        if waits_for_more and self._last.endswith(_ESC) and character not in _BEGINS_SEQUENCE:
            self._timeout_time = 0.0  # as if nothing had followed in time
            yield from self.tick()
        self._last = (self._last + character)[-len(BRACKETED_PASTE_START) :]
        self._is_pasted = self._last == BRACKETED_PASTE_START
        yield from super().feed(character)

    def _pasted(self, character: str) -> Iterable[Message]:
        held = self._held + character
        if held == BRACKETED_PASTE_END:
            self._held, self._last, self._is_pasted = "", "", False
            yield from super().feed(held)
        elif BRACKETED_PASTE_END.startswith(held):
            self._held = held
        else:
            self._held = _ESC if character == _ESC else ""
            for one in held.replace(_ESC, ""):
                yield from super().feed(one)
