"""Logs are private, bounded and readable at every moment; secrets never come out, however the stream is cut."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chronex.errors import LogDirectoryError
from chronex.model import AttemptState, attempt_id
from chronex.run import Hooks, RunContext, run_attempt
from chronex.run.attempt_log import (
    DEFAULT_LIMIT,
    REDACTED,
    SEAM,
    STILL_DROPPING,
    TURN_BUDGET,
    BoundedLog,
    LogDirectory,
    LogReader,
    LogSummary,
    Redactor,
)
from chronex.run.environment import Inheritance
from tests.run.requests import outcome, output, python, request

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


def test_a_directory_that_is_removed_while_it_is_held_is_made_again(logs: LogDirectory) -> None:
    """All output of all runs was lost, without a word, until the next start of scheduler and keeper."""
    before, other = BoundedLog(logs, ID), LogDirectory(logs.path)
    before.write(b"goes with the directory")
    shutil.rmtree(logs.path)
    assert other.remove(f"{ID}.log") is False
    assert not logs.path.exists(), "only a log makes it"
    log = BoundedLog(logs, ID)
    log.write(b"kept")
    assert (log.finish().error, (logs.path / f"{ID}.log").read_bytes()) == ("", b"kept")
    assert logs.path.stat().st_mode & 0o777 == 0o700
    assert other.untouched_since(2**33, 10) == [f"{ID}.log"], "who held it too finds the new one"
    before.finish()
    other.close()


def test_a_directory_that_was_moved_is_not_made_again(logs: LogDirectory) -> None:
    moved = logs.path.rename(logs.path.with_name("moved"))
    log = BoundedLog(logs, ID)
    log.write(b"kept")
    log.finish()
    assert (moved / f"{ID}.log").read_bytes() == b"kept"
    assert not logs.path.exists()


def test_a_store_that_was_removed_is_not_made_again(tmp_path: Path) -> None:
    logs = LogDirectory(tmp_path / "store" / "logs")
    shutil.rmtree(tmp_path / "store")
    log = BoundedLog(logs, ID)
    log.write(b"lost")
    assert log.finish() == LogSummary(dropped=4, error="output could not be kept: No such file or directory")
    assert not (tmp_path / "store").exists()
    logs.close()


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


MIB = 1024 * 1024
FLOODS = {
    "lines": "yes 'a line of output that repeats itself' | head -c {}",
    "no newline": "head -c {} /dev/zero",
}


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.parametrize(
    "size", [200 * MIB, pytest.param(10 * 1024 * MIB, marks=pytest.mark.torture)], ids=["200M", "10G"]
)
@pytest.mark.parametrize("kind", FLOODS)
async def test_a_flood_is_bounded_and_others_have_their_turns(run_context: RunContext, kind: str, size: int) -> None:
    before, grown, turns, on_disk = resident(), 0, 0, 0
    flood = asyncio.create_task(outcome(run_context, FLOODS[kind].format(size)))
    while not flood.done():
        await asyncio.sleep(0)
        turns += 1
        grown = max(grown, resident() - before)
        on_disk = max(on_disk, sum(os.stat(entry).st_blocks * 512 for entry in os.scandir(run_context.logs.path)))
    result = await flood
    assert result.state is AttemptState.SUCCESS
    assert on_disk <= DEFAULT_LIMIT + MIB
    assert result.log.size <= DEFAULT_LIMIT + MIB
    assert result.log.dropped + result.log.size == pytest.approx(size, abs=200)
    assert grown <= 32 * MIB
    assert turns >= size // TURN_BUDGET, "a loop that is held up by the flood comes round less often"
    assert f"{result.log.dropped} bytes of output dropped here".encode() in output(run_context, result)


async def test_one_byte_at_a_time_loses_nothing(run_context: RunContext) -> None:
    code = "import os\nfor i in range(20000): os.write(1 + i % 2, b'%d' % (i % 10))"
    result = await outcome(run_context, python(code))
    assert output(run_context, result) == b"0123456789" * 2000


async def test_a_silent_command_leaves_no_file(run_context: RunContext) -> None:
    result = await outcome(run_context, ("true",))
    assert result.log.name == ""
    assert os.listdir(run_context.logs.path) == []


async def test_a_child_that_closes_its_output_is_still_waited_for(run_context: RunContext) -> None:
    result = await outcome(run_context, "exec >/dev/null 2>&1; sleep 0.2; exit 5")
    assert (result.exit_code, result.duration_ms >= 190) == (5, True)


async def test_output_that_cannot_be_kept_does_not_fail_the_command(
    run_context: RunContext, logs: LogDirectory
) -> None:
    os.rmdir(logs.path)
    logs.path.touch()
    result = await outcome(run_context, "echo hi; exit 0")
    assert (result.state, result.log.name, result.log.dropped) == (AttemptState.SUCCESS, "", 3)
    assert "output could not be kept" in result.log.error


CANARIES = {f"CANARY_{i}": f"s3cret-{i:02d}-{'x' * i}$({i})'\"" for i in range(20)}
LEAKS = {
    "at once": "import os, sys\nfor v in VALUES: sys.stdout.write(f'<{v}>')",
    "byte by byte": "import os, time\nfor v in VALUES:\n  for b in f'<{v}>'.encode(): os.write(1, bytes([b])); time.sleep(0.0002)",
    "on both outputs": "import os\nfor v in VALUES: os.write(2, f'<{v}>'.encode())",
}


@pytest.mark.parametrize("how", LEAKS)
async def test_declared_secrets_are_nowhere_but_in_the_child(logs: LogDirectory, tmp_path: Path, how: str) -> None:
    run_context = RunContext(logs, Inheritance({**os.environ, **CANARIES, "UNDECLARED": "seen-by-nobody"}))
    code = f"VALUES = [__import__('os').environ[f'CANARY_{{i}}'] for i in range(20)]\n{LEAKS[how]}"
    asked = request(python(code), secrets=tuple(CANARIES))
    result = await run_attempt(asked, Hooks(), run_context)
    assert result.exit_code == 0
    assert output(run_context, result) == b"<[redacted]>" * 20
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert not any(value.encode() in path.read_bytes() for value in CANARIES.values())
    assert not any(value in repr(asked) + repr(result) for value in CANARIES.values())
    environment = await outcome(run_context, "env")
    assert b"seen-by-nobody" not in output(run_context, environment)
    assert b"s3cret" not in output(run_context, environment)


async def test_secrets_are_not_in_the_process_list(logs: LogDirectory) -> None:
    run_context = RunContext(logs, Inheritance({**os.environ, **CANARIES}))
    result = await outcome(run_context, "tr '\\0' ' ' </proc/$$/cmdline", secrets=tuple(CANARIES), directory="/")
    shown = output(run_context, result)
    assert b"cmdline" in shown
    assert b"redacted" not in shown


@pytest.mark.parametrize("size", [1, 4096, 65536, 65537, 262144, 1_000_000])
async def test_every_size_of_output_arrives_whole(run_context: RunContext, size: int) -> None:
    result = await outcome(run_context, python(f"import os\nos.write(1, b'') or print('x' * {size - 1})"))
    assert output(run_context, result) == b"x" * (size - 1) + b"\n"
    assert (result.log.size, result.log.dropped) == (size, 0)


def in_pieces(secrets: list[bytes], pieces: list[bytes]) -> bytes:
    redactor = Redactor(secrets)
    return b"".join([*(redactor.feed(piece) for piece in pieces), redactor.finish()])


def byte_by_byte(secrets: list[bytes], text: bytes) -> bytes:
    return in_pieces(secrets, [text[i : i + 1] for i in range(len(text))])


def by_marking_every_byte(secrets: list[bytes], text: bytes) -> bytes:
    """The same, slowly: mark the bytes of every occurrence; neighbours are one where an occurrence joins them."""
    covered, joined = [False] * len(text), [False] * len(text)
    for secret in secrets:
        for start in range(len(text)):
            if secret and text.startswith(secret, start):
                for i in range(start, start + len(secret)):
                    covered[i] = True
                    joined[i] = joined[i] or i > start
    shown = b""
    for i in range(len(text)):
        if not covered[i]:
            shown += text[i : i + 1]
        elif not joined[i]:
            shown += REDACTED
    return shown


@pytest.mark.parametrize(
    ("secrets", "text", "shown"),
    [
        ([b"hunter2"], b"password hunter2 ok", b"password [redacted] ok"),
        ([b"hunter2"], b"hunter hunter3 hunte", b"hunter hunter3 hunte"),
        ([b"hunter2"], b"hunterhunter2", b"hunter[redacted]"),
        ([b"abc", b"abcdef"], b"abcdef abcde", b"[redacted] [redacted]de"),
        ([b"abc123", b"123xyz"], b"abc123xyz", b"[redacted]"),
        ([b"abab"], b"ababab.", b"[redacted]."),
        ([b"s\n"], b"the s itself", b"the [redacted] it[redacted]elf"),
        ([b"two\nlines"], b"two\nlines!", b"[redacted]!"),
        ([b"\xff\x00"], b"a\xff\x00b", b"a[redacted]b"),
        ([b""], b"nothing to hide", b"nothing to hide"),
    ],
)
def test_every_byte_of_a_secret_is_replaced(secrets: list[bytes], text: bytes, shown: bytes) -> None:
    assert in_pieces(secrets, [text]) == shown
    assert byte_by_byte(secrets, text) == shown


_SMALL = st.binary(min_size=1, max_size=5).map(lambda raw: bytes(97 + b % 3 for b in raw))


@given(st.lists(_SMALL, min_size=1, max_size=3), st.lists(_SMALL, max_size=12))
def test_the_cuts_of_the_stream_do_not_matter(secrets: list[bytes], pieces: list[bytes]) -> None:
    whole = b"".join(pieces)
    assert in_pieces(secrets, pieces) == by_marking_every_byte(secrets, whole)
    assert in_pieces(secrets, [whole]) == byte_by_byte(secrets, whole)


def test_no_more_than_a_secret_is_held_back() -> None:
    redactor = Redactor([b"a" * 20])
    for _ in range(10):
        redactor.feed(b"a" * 1000)
        assert len(redactor._held) < 20


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
