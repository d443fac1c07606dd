"""The file of ends: what it says after every way in which a keeper can die."""

from __future__ import annotations

import errno
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chronex.keeper.ends_file import ENDS_NAME, EndsFile, read_ends
from chronex.keeper.messages import Ended, Opened, frame
from chronex.model import AttemptState, ProcessIdentity
from chronex.run.request import AttemptResult, EndReason

PROCESS = ProcessIdentity(77, "boot", 123_456, 77)


def ended(name: str, code: int = 0) -> Ended:
    return Ended(name, AttemptResult(state=AttemptState.SUCCESS, reason=EndReason.EXITED, exit_code=code))


@pytest.fixture
def file(tmp_path: Path) -> Iterator[EndsFile]:
    held = os.open(tmp_path, os.O_DIRECTORY)
    made = EndsFile(held)
    yield made
    made.close()
    os.close(held)


def test_the_last_word_on_each_attempt_is_read(file: EndsFile, tmp_path: Path) -> None:
    file.opened(Opened("a", PROCESS))
    file.opened(Opened("b", PROCESS))
    file.ended(ended("a", 3))
    assert read_ends(tmp_path) == {"a": ended("a", 3), "b": Opened("b", PROCESS)}


def test_an_attempt_that_is_opened_again_has_no_end_any_more(file: EndsFile, tmp_path: Path) -> None:
    file.ended(ended("a"))
    file.opened(Opened("a", PROCESS))
    assert read_ends(tmp_path) == {"a": Opened("a", PROCESS)}
    assert not file.ends


@pytest.mark.parametrize("cut", [1, 4, 9])
def test_a_frame_that_a_kill_cut_short_hides_nothing_before_it(file: EndsFile, tmp_path: Path, cut: int) -> None:
    file.ended(ended("a"))
    with open(tmp_path / ENDS_NAME, "ab") as other:
        other.write(frame(ended("b"))[:cut])
    assert read_ends(tmp_path) == {"a": ended("a")}


@pytest.mark.parametrize("content", [b"", b"\xff" * 64, b"\0" * 64])
def test_a_file_that_is_none_has_no_ends(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ENDS_NAME).write_bytes(content)
    assert read_ends(tmp_path) == {}
    assert read_ends(tmp_path / "nowhere") == {}


def test_it_does_not_grow_with_the_number_of_commands(file: EndsFile, tmp_path: Path) -> None:
    file.opened(Opened("long", PROCESS))
    for number in range(10_000):
        file.ended(ended(f"attempt_{number}"))
        file.recorded(f"attempt_{number}")
    assert (tmp_path / ENDS_NAME).stat().st_size < 300 * 1024
    assert read_ends(tmp_path)["long"] == Opened("long", PROCESS)
    file.ended(ended("last"))
    assert read_ends(tmp_path)["last"] == ended("last")


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """A disk that is full for this file, by the limit of this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


def test_what_a_full_disk_does_not_take_is_written_when_there_is_room(file: EndsFile, tmp_path: Path) -> None:
    file.ended(ended("a"))
    with files_of_at_most((tmp_path / ENDS_NAME).stat().st_size + 10):
        file.ended(ended("b"))
        file.ended(ended("c"))
        file.write_rest()
        assert read_ends(tmp_path) == {"a": ended("a")}
        was_behind = file.is_behind
    file.write_rest()
    assert (was_behind, file.is_behind) == (True, False)
    assert set(read_ends(tmp_path)) == {"a", "b", "c"}


def test_what_is_on_record_does_not_wait_for_a_full_disk(file: EndsFile, tmp_path: Path) -> None:
    """A disk may be full for a week, and commands begin and end all the time."""
    file.ended(ended("a"))
    with files_of_at_most((tmp_path / ENDS_NAME).stat().st_size + 10):
        for number in range(100):
            file.opened(Opened(f"{number}", PROCESS))
            file.ended(ended(f"{number}"))
            file.recorded(f"{number}")
        is_behind = [file.is_behind]
        file.opened(Opened("b", PROCESS))
        file.ended(ended("b"))
        is_behind.append(file.is_behind)
    assert is_behind == [False, True]
    size = (tmp_path / ENDS_NAME).stat().st_size
    file.write_rest()
    assert read_ends(tmp_path) == {"a": ended("a"), "b": ended("b")}
    assert (tmp_path / ENDS_NAME).stat().st_size - size < 2 * size, "the last word alone is written"


def test_a_file_that_cannot_be_opened_now_is_not_taken_for_an_empty_one(
    file: EndsFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.ended(ended("a"))

    def refuse(_path: Path) -> bytes:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(OSError, match="Too many"):
        read_ends(tmp_path)
