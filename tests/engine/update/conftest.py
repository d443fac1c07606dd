"""After every test of updates the formal model finds nothing in the journals either."""

from __future__ import annotations

from tests.engine.commands.conftest import journals_are_verified

__all__ = ["journals_are_verified"]
