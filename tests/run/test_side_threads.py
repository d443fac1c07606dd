"""Looks on threads of their own, where there may be none."""

from __future__ import annotations

import pytest

from chronex.run.side_threads import NoAnswerError, SideThreads
from tests.run.conftest import forbid_threads


async def test_where_no_thread_can_be_started_there_is_no_answer_and_later_there_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was an error that nobody expects: an attempt whose check was to look at a file never ended."""
    threads = SideThreads(most=1)
    with monkeypatch.context() as patched:
        forbid_threads(patched)
        for _ in range(2):
            with pytest.raises(NoAnswerError, match="no thread can be started to look"):
                await threads.run(lambda: "", 30)
    assert await threads.run(lambda: "found", 30) == "found"
