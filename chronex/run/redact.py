"""Take secrets out of a stream of bytes, wherever the stream happens to be cut."""

from __future__ import annotations

from collections.abc import Iterable

REDACTED = b"[redacted]"


class Redactor:
    """Every byte that belongs to an occurrence of a secret is replaced, also where occurrences overlap.

    Bytes that may be the beginning of a secret are held back until the next bytes, or `finish`, decide.
    That is at most the length of the longest secret, minus one.
    """

    def __init__(self, secrets: Iterable[bytes]) -> None:
        wanted = {secret for value in secrets for secret in (value, value.strip()) if secret}
        self._secrets = tuple(sorted(wanted, key=len, reverse=True))
        self._held = b""
        # So many of the held bytes belong to a secret whose mark has been written already.
        self._covered = 0

    def feed(self, chunk: bytes) -> bytes:
        """What can be shown by now."""
        data = self._held + chunk
        return self._emit(data, self._first_open_start(data))

    def finish(self) -> bytes:
        """What was held back: no more bytes will come."""
        return self._emit(self._held, len(self._held))

    def _emit(self, data: bytes, end: int) -> bytes:
        shown: list[bytes] = []
        position, marked = 0, self._covered
        self._covered = 0
        for start, stop in self._covers(data, marked):
            goes_on = start == 0 and marked > 0
            if start >= end and not goes_on:
                break
            shown.append(data[position:start])
            if not goes_on:
                shown.append(REDACTED)
            position = min(stop, end)
            self._covered = max(0, stop - end)
        shown.append(data[position:end])
        self._held = data[end:]
        return b"".join(shown)

    def _covers(self, data: bytes, marked: int) -> list[tuple[int, int]]:
        """The stretches of `data` that belong to secrets, merged and in order."""
        found = [(0, marked)] if marked else []
        for secret in self._secrets:
            start = data.find(secret)
            while start >= 0:
                found.append((start, start + len(secret)))
                start = data.find(secret, start + 1)
        found.sort()
        merged: list[tuple[int, int]] = []
        for start, stop in found:
            if merged and start < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
            else:
                merged.append((start, stop))
        return merged

    def _first_open_start(self, data: bytes) -> int:
        """Where the longest end of `data` begins that may still grow into a secret."""
        first = len(data)
        for secret in self._secrets:
            start = data.find(secret[:1], max(0, len(data) - len(secret) + 1))
            while 0 <= start < first:
                if secret.startswith(data[start:]):
                    first = start
                start = data.find(secret[:1], start + 1)
        return first
