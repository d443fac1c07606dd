"""Offsets from nominal to planned start that depend on nothing but the job: stagger."""

from __future__ import annotations

_FNV_OFFSET, _FNV_PRIME = 0x811C_9DC5, 0x0100_0193


def stagger_offset(identity: str, stagger_ms: int) -> int:
    """Milliseconds in [0, stagger): FNV-1a 32 of the id's UTF-8 bytes, so that an id keeps its place for ever."""
    value = _FNV_OFFSET
    for byte in identity.encode():
        value = (value ^ byte) * _FNV_PRIME & 0xFFFF_FFFF
    return value % stagger_ms
