"""Bytes in words."""

from __future__ import annotations

_WHOLE = (("GiB", 2**30), ("GB", 10**9), ("MiB", 2**20), ("MB", 10**6), ("KiB", 2**10), ("KB", 10**3))


def size_text(count: int) -> str:
    """As somebody would write it, where that is exact: 2GB, 512MiB; else about so much: 1.4MiB."""
    for unit, factor in _WHOLE:
        if count >= factor and count % factor == 0 and count // factor < 10_000:
            return f"{count // factor}{unit}"
    return rough_size(count)


def rough_size(count: int) -> str:
    """In the unit in which it is easily read: 900B, 1.4MiB, 23MiB."""
    for unit, factor in _WHOLE[::2]:
        if count >= factor:
            amount = count / factor
            return f"{amount:.1f}{unit}" if amount < 10 else f"{amount:.0f}{unit}"
    return f"{count}B"
