"""The terminal may close at any moment: a window is closed, a connection is lost.

Textual writes from a thread of its own, which ends with the first write that fails. Later writes fill its queue, and
then the program waits for ever, invisible, with the engine running and the store open. So output that cannot be
written is dropped, and the program quits in good order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import IO, Any

from textual.app import App
from textual.driver import Driver


class TerminalStream:
    """Writes to a stream until that fails; then it calls `on_close` once and drops all further output."""

    def __init__(self, stream: IO[str], on_close: Callable[[], object]) -> None:
        self._stream = stream
        self._on_close = on_close
        self.is_closed = False

    def write(self, text: str) -> int:
        return self._try(self._stream.write, text) or len(text)

    def flush(self) -> None:
        self._try(self._stream.flush)

    def _try(self, write: Callable[..., int | None], *arguments: str) -> int | None:
        if self.is_closed:
            return None
        try:
            return write(*arguments)
        except (OSError, ValueError):  # ValueError: the stream object is closed
            self.is_closed = True
            self._on_close()
            return None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def exit_with_terminal(kind: type[Driver]) -> type[Driver]:
    """The driver of this platform on such a stream; one that writes elsewhere (a browser, a test) is unchanged."""

    class ExitingDriver(kind):  # type: ignore[valid-type,misc]
        def __init__(self, app: App[Any], **options: Any) -> None:
            super().__init__(app, **options)
            stream: IO[str] | None = getattr(self, "_file", None)
            if stream is not None:
                self._file = TerminalStream(stream, lambda: app.call_later(app.exit, 0))

    return ExitingDriver
