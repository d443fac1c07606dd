"""A log is read in order at every moment, also while it is a ring."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chronex.run.attempt_log import STILL_DROPPING, BoundedLog, LogDirectory, LogReader

LIMIT = 400
ATTEMPT = "attempt_00000000-0000-5000-8000-000000000001"


@settings(max_examples=60, deadline=None)
@given(sizes=st.lists(st.integers(1, 150), max_size=30))
def test_head_and_tail_are_read_in_order_while_it_is_written(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int]
) -> None:
    place = tmp_path_factory.mktemp("logs") / "logs"
    directory = LogDirectory(place)
    log, reader = BoundedLog(directory, ATTEMPT, LIMIT), LogReader(place)
    written = b""
    for number, size in enumerate(sizes):
        piece = (b"%d," % number * size)[:size]
        log.write(piece)
        written += piece
        head, seam, tail = reader.whole(f"{ATTEMPT}.log", LIMIT, is_over=False).partition(STILL_DROPPING)
        assert written.startswith(head)
        assert written.endswith(tail)
        assert bool(seam) == (len(written) > LIMIT)
    log.finish()
    reader.close()
    directory.close()


def test_where_there_are_no_logs_nothing_is_read_and_nothing_made(tmp_path: Path) -> None:
    reader = LogReader(tmp_path / "logs")
    assert reader.whole(f"{ATTEMPT}.log") == b""
    assert not (tmp_path / "logs").exists()
    directory = LogDirectory(tmp_path / "made")
    reader = LogReader(directory.path)
    assert reader.whole(f"{ATTEMPT}.log") == b""
    reader.close()
    directory.close()
