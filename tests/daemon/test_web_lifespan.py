"""The FastAPI program of docs/embedding.md: its lifespan starts and stops the engine, its routes use it.

Where FastAPI is not installed, a stand-in takes its place that keeps the lifespan and the routes, as ASGI servers use them.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.kit.waits import until_async

PAGE = Path(__file__).parents[2] / "docs" / "embedding.md"
(PROGRAM,) = (
    text for text in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL) if "import fastapi" in text
)


class StandIn:
    """As much of FastAPI as an application without requests needs."""

    def __init__(self, lifespan: Callable[[Any], Any]) -> None:
        self.router = SimpleNamespace(lifespan_context=lifespan)

    def get(self, path: str) -> Callable[[Any], Any]:
        return lambda handler: handler

    post = get


async def test_the_engine_lives_as_long_as_the_application(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("fastapi") is None:
        monkeypatch.setitem(sys.modules, "fastapi", SimpleNamespace(FastAPI=StandIn))
    monkeypatch.chdir(tmp_path)
    program: dict[str, Any] = {}
    exec(compile(PROGRAM, "program.py", "exec"), program)
    engine = program["engine"]
    async with program["app"].router.lifespan_context(program["app"]):
        assert program["jobs"]() == {"refresh": "waiting"}
        asked = program["run"]("refresh")["occurrence"]
        await until_async(lambda: engine.occurrence(asked).is_good, "the run that a request asked for")
    assert not engine.is_running
