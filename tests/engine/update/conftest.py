"""Updates too leave journals in which the formal model finds nothing."""

from __future__ import annotations

from tests.engine.commands.conftest import worlds_are_verified

__all__ = ["worlds_are_verified"]
