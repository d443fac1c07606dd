from __future__ import annotations

from tests.cli.conftest import chronex

__all__ = ["chronex"]
