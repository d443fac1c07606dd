"""Logs are private, stay where they belong, and never outgrow their limit."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from chronex.errors import LogDirectoryError
from chronex.model import attempt_id
from chronex.run.attempt_log import SEAM, BoundedLog, LogDirectory

ID = attempt_id("run_test", 0)


def read(logs: LogDirectory, name: str) -> bytes:
    descriptor = logs.open(name)
    with open(descriptor, "rb") as source:
        return source.read()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
def test_modes_do_not_depend_on_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        logs = LogDirectory(tmp_path / "state" / "logs")
        log = BoundedLog(logs, ID)
        log.write(b"x")
        log.finish()
    finally:
        os.umask(before)
    logs.close()
    for path in (tmp_path / "state", tmp_path / "state" / "logs"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "state" / "logs" / f"{ID}.log").stat().st_mode) == 0o600


def test_a_directory_open_to_others_is_refused_with_the_fixing_command(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)
    with pytest.raises(LogDirectoryError, match=f"run: chmod 700 {tmp_path}"):
        LogDirectory(tmp_path)


def test_a_directory_that_is_a_link_or_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "file").write_text("")
    for name in ("link", "file"):
        with pytest.raises(LogDirectoryError, match="cannot hold logs"):
            LogDirectory(tmp_path / name)


HOSTILE_IDS = [
    "",
    "..",
    "../x",
    "/etc/passwd",
    "attempt_",
    "a" * 4096,
    ID.upper(),
    ID + "/x",
    ID + "\n",
    "attempt_" + "." * 36,
]


@pytest.mark.parametrize("name", HOSTILE_IDS, ids=lambda name: ascii(name[:20]))
def test_only_ids_name_logs(logs: LogDirectory, name: str) -> None:
    log = BoundedLog(logs, name)
    log.write(b"x")
    assert log.finish().name == ""
    assert "not the id of an attempt" in log.error
    for use in (logs.open, logs.remove):
        with pytest.raises(LogDirectoryError, match="not the name of a log"):
            use(name)
    assert os.listdir(logs.path) == []


@pytest.mark.parametrize("planted", ["symlink", "dangling symlink", "hard link", "fifo", "directory", "file"])
def test_what_lies_in_a_logs_place_is_neither_followed_nor_changed(
    logs: LogDirectory, tmp_path: Path, planted: str
) -> None:
    place, victim = Path(logs.path) / f"{ID}.log", tmp_path / "victim"
    victim.write_text("precious")
    match planted:
        case "symlink":
            place.symlink_to(victim)
        case "dangling symlink":
            place.symlink_to(tmp_path / "new")
        case "hard link":
            place.hardlink_to(victim)
        case "fifo":
            os.mkfifo(place)
        case "directory":
            place.mkdir()
        case "file":
            place.write_text("precious")
    log = BoundedLog(logs, ID)
    log.write(b"output")
    summary = log.finish()
    assert summary.name == f"{ID}.2.log"
    assert read(logs, summary.name) == b"output"
    assert victim.read_text() == "precious"
    assert not (tmp_path / "new").exists()
    if planted != "file":
        with pytest.raises(LogDirectoryError):
            logs.open(f"{ID}.log")
        with pytest.raises(LogDirectoryError):
            BoundedLog.resume(logs, f"{ID}.log")
    if planted != "directory":
        assert logs.remove(f"{ID}.log")
    assert victim.read_text() == "precious"


def test_when_every_name_is_taken_output_is_counted_and_the_reason_told(logs: LogDirectory) -> None:
    for _ in range(9):
        os.close(logs.create(ID)[1])
    log = BoundedLog(logs, ID)
    log.write(b"12345")
    summary = log.finish()
    assert (summary.name, summary.dropped) == ("", 5)
    assert "is taken" in summary.error


@pytest.mark.parametrize("length", [0, 1, 50, 99, 100, 101, 199, 200])
def test_what_fits_is_kept_as_it_is(logs: LogDirectory, length: int) -> None:
    data = bytes(i % 251 for i in range(length))
    log = BoundedLog(logs, ID, limit=200)
    for i in range(0, length, 7):
        log.write(data[i : i + 7])
    summary = log.finish()
    assert (summary.size, summary.dropped) == (length, 0)
    assert length == 0 or read(logs, summary.name) == data


@pytest.mark.parametrize("piece", [1, 3, 64, 499, 500, 501, 1000, 5000])
@pytest.mark.parametrize("length", [1001, 1063, 1500, 1999, 2500, 9999])
def test_beyond_the_limit_head_and_tail_are_kept(logs: LogDirectory, length: int, piece: int) -> None:
    data = b"".join(b"%d," % i for i in range(length))[:length]
    log = BoundedLog(logs, ID, limit=1000)
    for i in range(0, length, piece):
        log.write(data[i : i + piece])
        assert os.path.getsize(f"{logs.path}/{log.name}") <= 1000 + len(SEAM)
    summary = log.finish()
    kept = read(logs, summary.name)
    mark = b"\n--- chronex: %d bytes of output dropped here ---\n" % summary.dropped
    head, _, tail = kept.partition(mark)
    assert head == data[:500]
    assert data.endswith(tail)
    assert 500 - len(SEAM) <= len(tail) <= 500
    assert len(head) + summary.dropped + len(tail) == length
    assert summary.size == len(kept)


def test_a_running_log_says_where_its_newest_line_is(logs: LogDirectory) -> None:
    log = BoundedLog(logs, ID, limit=1000)
    for i in range(100):
        log.write(b"this is line %d\n" % i)
    live = (Path(logs.path) / log.name).read_bytes()
    assert b"this is line 99\n" + SEAM in live
    log.finish()


@pytest.mark.parametrize("before", [10, 500, 700, 1000, 1200, 3333])
def test_a_log_goes_on_after_its_daemon_died(logs: LogDirectory, before: int) -> None:
    data = b"".join(b"%d," % i for i in range(5000))
    first = BoundedLog(logs, ID, limit=1000)
    first.write(data[:before])
    os.close(first._descriptor)  # as a kill -9 would
    second = BoundedLog.resume(logs, first.name, limit=1000)
    second.write(data[before:])
    kept = read(logs, second.finish().name)
    assert kept.startswith(data[:500])
    assert data.endswith(kept[-400:])


def test_a_disk_that_refuses_loses_output_but_raises_nothing(logs: LogDirectory) -> None:
    log = BoundedLog(logs, ID)
    log.write(b"kept")
    os.close(log._descriptor)
    log._descriptor = os.open("/dev/full", os.O_RDWR)
    log.write(b"lost")
    log.write(b"lost too")
    summary = log.finish()
    assert summary.dropped == 12
    assert "No space left" in summary.error
