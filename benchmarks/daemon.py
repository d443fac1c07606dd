"""The real daemon: a thousand commands on one instant, and how soon it is ready with many jobs and a long past.

A start is seen from outside: every command makes a file, and the file's time is the start. The floor is a bare
os.posix_spawn loop over the same commands, in the same minute.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.engine import fields_of
from benchmarks.filled import fill, jobs_of
from benchmarks.measure import FULL, Row, Size, seconds
from chronex.clock import wall_ms
from chronex.engine.update import apply_jobs
from chronex.jobfile import read_job_file
from chronex.model.job import Command, Job, Task
from chronex_store import LmdbStore

TOPIC = "daemon"
TOUCH = shutil.which("touch") or "/usr/bin/touch"
_TICKS = os.sysconf("SC_CLK_TCK")
Make = Callable[[Path], Command]
COMMANDS: dict[str, Make] = {
    "argv": lambda path: (TOUCH, str(path)),
    "sh": lambda path: f": > {path}",
}


def notes() -> list[str]:
    return [
        "Starts are the times of files that the commands make; the floor is a bare os.posix_spawn loop of this run.",
        "cronstable runs from a generated YAML without its durable state. Ready: from after the imports until the",
        "first tick is done, with the jobs in the store; reading a job file comes on top and is told beside it.",
    ]


def run(size: Size = FULL) -> Iterator[Row]:
    count, few, many, past = (1_000, 1_000, 10_000, 100_000) if size is FULL else (10, 10, 20, 50)
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        place = Path(name)
        for kind, command in COMMANDS.items():
            yield from burst(place / kind, kind, command, count)
            yield from completed(place / f"{kind}-completed", kind, command, 2 * count)
        for jobs, limit in ((few, 0.3), (many, 1.0)):
            store = place / f"jobs-{jobs}"
            fill(store, jobs, past)
            yield Row(TOPIC, f"{jobs:,} jobs, {past:,} past runs: ready", _ready(store), " s", at_most=limit)
        yield Row(TOPIC, f"{few:,} jobs: reading the job file", _reading(few), " s")
        yield from crowd(place / "crowd", 100_000 if size is FULL else 100)


# -- many commands on one instant ------------------------------------------------------------------------------------


class Burst(NamedTuple):
    """Seconds after the instant, and what the scheduler used for it."""

    last: float
    median: float
    lost: int
    cpu: float


def burst(place: Path, kind: str, command: Make, count: int) -> Iterator[Row]:
    place.mkdir()
    before = _floor(place / "before", command, count)
    ours = _chronex(place / "chronex", command, count)
    bare = max(before, _floor(place / "after", command, count))  # a machine that is busy for one is busy for both
    theirs = _cronstable(place / "cronstable", command, count)
    what, seen = f"{count:,} due, {kind}", f"{ours.last * 1e3:.0f} ms, floor {bare.last * 1e3:.0f} ms"
    yield Row(
        TOPIC, f"{what}: last start", ours.last / bare.last, "×", at_most=1.3 if kind == "sh" else 1.0, remark=seen
    )
    yield Row(TOPIC, f"{what}: lost", ours.lost, "", at_most=0)
    yield Row(TOPIC, f"{what}: CPU of the scheduler", ours.cpu, " s", at_most=1.0)
    if theirs is not None:
        told = f"{theirs.last * 1e3:.0f} ms, {theirs.lost} lost, {theirs.cpu:.2f} s CPU"
        yield Row(TOPIC, f"{what}: cronstable's last start", theirs.last / bare.last, "×", remark=told)


def _floor(place: Path, command: Make, count: int) -> Burst:
    place.mkdir()
    began = time.time()
    children = []
    for number in range(count):
        children.append(_spawn_bare(command(place / str(number))))
    for child in children:
        os.waitpid(child, 0)
    return _seen(place, began, count, 0.0)


def _spawn_bare(command: Command) -> int:
    argv = ("/bin/sh", "-c", command) if isinstance(command, str) else command
    return os.posix_spawn(argv[0], argv, os.environ)


def _chronex(place: Path, command: Make, count: int, at_once: int | None = None) -> Burst:
    started = place / "started"
    started.mkdir(parents=True)
    config, store = place / "chronex.toml", place / "store"
    config.write_text(f"[scheduler]\nmax_concurrent_jobs = {at_once or count}\n")
    arguments = ["-m", "chronex", "run", "--headless", "--config", str(config), "--store", str(store)]
    with _process([sys.executable, *arguments], place / "log", "SchedulerStarted") as daemon:
        at = wall_ms() // 1000 + 3
        jobs = [_once(f"job-{number}", at, command(started / str(number))) for number in range(count)]
        with LmdbStore.open(store) as opened:
            apply_jobs(opened, jobs, wall_ms())
        return _watched(daemon, started, at, count)


def _once(name: str, second: int, command: Command) -> Job:
    return Job(id=name, schedule=fields_of(second), tasks=(Task(name="main", run=command),))


def _cronstable(place: Path, command: Make, count: int) -> Burst | None:
    program = Path(sys.executable).with_name("cronstable")
    if not program.exists():
        return None
    started = place / "started"
    started.mkdir(parents=True)
    config = place / "cronstable.yaml"
    at = wall_ms() // 1000 + (12 if count > 100 else 5)
    second, minute, hour, day, month, _ = fields_of(at).split()
    schedule = f"{second} {minute} {hour} {day} {month} * *"
    lines = ["jobs:"]
    for number in range(count):
        wanted = command(started / str(number))
        text = wanted if isinstance(wanted, str) else " ".join(wanted)
        lines += [f"  - name: job-{number}", f'    command: "{text}"', f'    schedule: "{schedule}"', "    utc: true"]
    config.write_text("\n".join(lines) + "\n")
    with _process([str(program), "-l", "WARNING", "-c", str(config)], place / "log", "") as daemon:
        return _watched(daemon, started, at, count)


def _watched(daemon: subprocess.Popen[bytes], started: Path, at: int, count: int) -> Burst:
    """CPU is counted from shortly before the instant until the last command has been seen, and a second more."""
    time.sleep(max(at - time.time() - 0.3, 0))
    before = _cpu(daemon.pid)
    end = at + 45
    while time.time() < end and len(os.listdir(started)) < count:
        time.sleep(0.05)
    time.sleep(1)
    return _seen(started, at, count, _cpu(daemon.pid) - before)


def _seen(started: Path, at: float, count: int, cpu: float) -> Burst:
    times = sorted(path.stat().st_mtime - at for path in started.iterdir())
    if not times:
        return Burst(float("inf"), float("inf"), count, cpu)
    return Burst(times[-1], times[len(times) // 2], count - len(times), cpu)


@contextmanager
def _process(command: list[str], log: Path, ready: str) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as sink:
        # Found from the directory of the run, where no job file of this one is in the way.
        paths = os.pathsep.join(path for path in sys.path if path)
        # Where no job file is found, neither here nor in a home of its own.
        environment = {**os.environ, "PYTHONPATH": paths, "XDG_CONFIG_HOME": str(log.parent)}
        environment.pop("CHRONEX_CONFIG", None)
        child = subprocess.Popen(command, stdout=sink, stderr=sink, cwd=log.parent, env=environment)
    try:
        end = time.monotonic() + 30
        while ready and ready not in log.read_text():
            assert child.poll() is None, log.read_text()
            assert time.monotonic() < end, f"not ready: {log.read_text()}"
            time.sleep(0.02)
        yield child
    finally:
        child.send_signal(signal.SIGTERM)
        try:
            child.wait(20)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _cpu(pid: int) -> float:
    """Of the process itself, not of the children it has waited for."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / _TICKS


# -- many commands one after the other -------------------------------------------------------------------------------

AT_ONCE = 50


def completed(place: Path, kind: str, command: Make, count: int) -> Iterator[Row]:
    """Through the whole daemon: each claimed, recorded, kept, logged and recorded again, so many at once."""
    place.mkdir()
    bare = _bare_rate(place / "bare", command, count)
    ours = _chronex(place / "chronex", command, count, AT_ONCE)
    rate = (count - ours.lost) / ours.last
    seen = f"{rate:.0f}/s, bare {bare:.0f}/s"
    yield Row(
        TOPIC,
        f"{count:,} through the daemon, {AT_ONCE} at once, {kind}: rate",
        rate / bare,
        "×",
        at_least=0.8,
        remark=seen,
    )


def _bare_rate(place: Path, command: Make, count: int) -> float:
    place.mkdir()
    alive, began = 0, time.time()
    for number in range(count):
        if alive >= AT_ONCE:
            os.waitpid(-1, 0)
            alive -= 1
        _spawn_bare(command(place / str(number)))
        alive += 1
    for _ in range(alive):
        os.waitpid(-1, 0)
    return count / (time.time() - began)


# -- ready -----------------------------------------------------------------------------------------------------------

_MEASURE = """
import sys, time
from pathlib import Path
import chronex.cli.job_file
from chronex.daemon.headless import run_headless
from chronex.jobfile import SchedulerSettings
began = time.perf_counter()
run_headless(Path(sys.argv[1]), None, SchedulerSettings(), once=True, seconds=None)
print(time.perf_counter() - began)
"""


def _ready(store: Path) -> float:
    """The shortest of three: open, take over, the first tick, and a farewell in good order."""
    command = [sys.executable, "-c", _MEASURE, str(store)]
    return min(float(subprocess.run(command, check=True, capture_output=True, text=True).stdout) for _ in range(3))


def _reading(count: int) -> float:
    lines = ["[scheduler]"]
    for job in jobs_of(count):
        lines += [f"[jobs.{job.id}]", f'schedule = "{job.schedule}"', 'run = ["true"]']
    text = "\n".join(lines)
    return seconds(lambda: read_job_file(text, "chronex.toml", "UTC"), 3)


def crowd(store: Path, count: int) -> Iterator[Row]:
    fill(store, count, past=0)
    yield Row(TOPIC, f"{count:,} jobs: ready", _ready(store), " s", at_most=3)
    command = [sys.executable, "-m", "chronex", "run", "--headless", "--store", str(store)]
    log = store.parent / "crowd.log"
    with _process(command, log, "SchedulerStarted") as daemon:
        time.sleep(2)
        before, idle = _cpu(daemon.pid), 10 if count > 1000 else 1
        time.sleep(idle)
        share = (_cpu(daemon.pid) - before) / idle * 100
        yield Row(TOPIC, f"{count:,} jobs: memory", _memory(daemon.pid), " MiB", at_most=250)
        yield Row(TOPIC, f"{count:,} jobs: idle", share, " %", at_most=1)


def _memory(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
