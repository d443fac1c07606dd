"""The store with a past, and what a command printed on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.past import Past


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Past:
    return Past(tmp_path_factory.mktemp("past") / "store")


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def run(fn: Callable[..., int], *arguments: Any, **options: Any) -> str:
        assert fn(*arguments, **options) == 0
        text = capsys.readouterr().out
        assert "\x1b" not in text
        assert "\x07" not in text
        return text

    return run
