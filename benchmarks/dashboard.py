"""The dashboard at a real terminal: from the command to the first picture, and from a key to its answer."""

from __future__ import annotations

import os
import pty
import select
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from fcntl import ioctl
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks.filled import fill
from benchmarks.measure import FULL, Row, Size

TOPIC = "dashboard"
STEPS = 25
# An answer is over when nothing has been painted for so long.
_QUIET_S = 0.02
_MOST_S = 60.0
PAGE_DOWN = b"\x1b[6~"


@dataclass(frozen=True, slots=True)
class Load:
    jobs: int
    runs: int


def load_of(size: Size) -> Load:
    return Load(10_000, 100_000) if size is FULL else Load(50, 200)


def notes() -> list[str]:
    return [
        "A process at a terminal of 120x40. A step is a key until the last byte of its answer; the median of 25.",
        "The ticking clock repaints once a second, so a step now and then meets it.",
    ]


def run(size: Size = FULL) -> Iterator[Row]:
    load = load_of(size)
    with tempfile.TemporaryDirectory() as directory:
        small, large = Path(directory, "small"), Path(directory, "large")
        fill(small, 10, 100)
        yield Row(TOPIC, "first paint", _first_paint(small, size) * 1e3, " ms", at_most=600, remark="10 jobs")
        fill(large, load.jobs, load.runs)
        first = _first_paint(large, size, "job-") * 1e3
        yield Row(TOPIC, "jobs on the screen", first, " ms", remark=f"{load.jobs} jobs")
        steps = STEPS if size is FULL else 2
        with closing(Terminal(large, "tui")) as terminal:
            terminal.until("job-")
            terminal.rest()
            yield _row("jobs: scroll a page", terminal, [PAGE_DOWN] * steps, f"{load.jobs} jobs")
            terminal.answer(b"/")
            yield _row("jobs: filter, a letter", terminal, _letters(steps), f"{load.jobs} jobs")
        with closing(Terminal(large, "tui", "--screen", "runs")) as terminal:
            terminal.until(f"{load.runs:,}")
            terminal.rest()
            yield _row("runs: scroll a page", terminal, [PAGE_DOWN] * steps, f"{load.runs} runs")
            terminal.answer(b"/")
            yield _row("runs: filter, a letter", terminal, _letters(steps), f"{load.runs} runs")


def _row(what: str, terminal: Terminal, keys: list[bytes], load: str) -> Row:
    before = terminal.cpu_ms()
    seconds = terminal.steps(keys)
    spent = (terminal.cpu_ms() - before) / len(keys)
    remark = f"{load}, {spent:.0f} ms of CPU a step, slowest {max(seconds) * 1e3:.0f} ms"
    return Row(TOPIC, what, median(seconds) * 1e3, " ms", at_most=30, remark=remark)


def _letters(count: int) -> list[bytes]:
    """A name is typed and taken back, a letter at a time."""
    typed = [bytes([letter]) for letter in b"job-77"]
    return ([*typed, *[b"\x7f"] * len(typed)] * count)[:count]


def _first_paint(store: Path, size: Size, text: str = "Jobs") -> float:
    best = _MOST_S
    for _ in range(3 if size is FULL else 1):
        start = perf_counter()
        with closing(Terminal(store, "tui")) as terminal:
            terminal.until(text)
            best = min(best, perf_counter() - start)
    return best


class Terminal:
    """A program at a terminal of its own."""

    def __init__(self, store: Path, *arguments: str) -> None:
        self._master, slave = pty.openpty()
        ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        env = os.environ | {"TERM": "xterm-256color", "CHRONEX_STORE": str(store), "TZ": "UTC", "LANG": "C.UTF-8"}
        env["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "chronex", *arguments], env=env, stdin=slave, stdout=slave, stderr=slave
        )
        os.close(slave)
        self._seen = b""

    def _read(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], seconds)
        if not ready:
            return False
        self._seen = (self._seen + os.read(self._master, 1 << 20))[-(1 << 20) :]
        return True

    def until(self, text: str) -> None:
        end = perf_counter() + _MOST_S
        while text.encode() not in self._seen:
            if perf_counter() > end:
                raise TimeoutError(f"the dashboard never showed {text!r}")
            self._read(0.05)

    def rest(self, seconds: float = 0.4) -> None:
        """Until nothing is painted but the clock."""
        end = perf_counter() + _MOST_S
        while self._read(seconds) and perf_counter() < end:
            pass

    def answer(self, key: bytes) -> float:
        """From the key to the last byte of what it changed."""
        while self._read(0):
            pass
        start = last = perf_counter()
        os.write(self._master, key)
        if self._read(1.0):
            last = perf_counter()
        while self._read(_QUIET_S):
            last = perf_counter()
        return last - start

    def cpu_ms(self) -> float:
        """What the program has used so far, all its threads together: its own part on a busy machine."""
        try:
            fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")

    def steps(self, keys: list[bytes]) -> list[float]:
        return [self.answer(key) for key in keys]

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._master)
