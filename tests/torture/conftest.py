"""The machine of the daemon's tests."""

from __future__ import annotations

from tests.daemon.conftest import machine

__all__ = ["machine"]
