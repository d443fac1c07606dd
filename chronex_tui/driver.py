"""The terminal may be gone at any moment: a window that was closed, a connection that was lost.

Textual writes from a thread of its own, which ends with the first write that fails. What is written after that fills
its queue, and then the program waits for ever: out of sight, with the engine beside it and the store in its hands.
So what cannot be written is thrown away, and the program leaves as if it had been asked to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import IO, Any

from textual.app import App
from textual.driver import Driver


class TerminalStream:
    """A stream like the one it is given, until that fails; from then on nothing is written and nothing is raised."""

    def __init__(self, stream: IO[str], gone: Callable[[], object]) -> None:
        self._stream, self._gone, self.is_gone = stream, gone, False

    def write(self, text: str) -> int:
        return self._tried(self._stream.write, text) or len(text)

    def flush(self) -> None:
        self._tried(self._stream.flush)

    def _tried(self, act: Callable[..., int | None], *arguments: str) -> int | None:
        if self.is_gone:
            return None
        try:
            return act(*arguments)
        except (OSError, ValueError):  # ValueError: somebody has closed it
            self.is_gone = True
            self._gone()
            return None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def exit_with_terminal(kind: type[Driver]) -> type[Driver]:
    """The driver of this platform, on such a stream; one that writes elsewhere (a browser, a test) is left alone."""

    class Leaving(kind):  # type: ignore[valid-type,misc]
        def __init__(self, app: App[Any], **options: Any) -> None:
            super().__init__(app, **options)
            stream: IO[str] | None = getattr(self, "_file", None)
            if stream is not None:
                self._file = TerminalStream(stream, lambda: app.call_later(app.exit, 0))

    return Leaving
