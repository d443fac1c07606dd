"""Attempts beside the bare system call: throughput at one concurrency, and many starts on one instant.

The floor starts the same command with os.posix_spawn and waits for it; it captures, records and watches nothing.
"""

from __future__ import annotations

import asyncio
import gc
import os
import tempfile
import time
from collections.abc import Iterator
from itertools import count as count_from
from pathlib import Path
from statistics import median

from benchmarks.measure import FULL, Row, Size
from chronex.model import attempt_id
from chronex.model.job import Command
from chronex.run import AttemptRequest, Hooks, LogDirectory, RunContext, Started, run_attempt
from chronex.run.environment import Inheritance

COMMANDS: dict[str, Command] = {"argv": ("/bin/echo", "done"), "sh": "echo done"}
AT_ONCE = 50
_NUMBERS = count_from(1)


def notes() -> list[str]:
    return [
        "Beside a bare os.posix_spawn loop of the same round; medians of the rounds.",
        "The floor writes no files. With logs in memory our own work is compared; on disk the file system's comes",
        "on top, and ext4 takes up to half a millisecond for a new file where thousands have just been deleted.",
        "The floor has 1.5 of two idle processors busy: what supervision needs of them is missing at once. On a busy",
        "machine it waits in each posix_spawn, where our starts wait on threads and are up to twice as many.",
    ]


def run(size: Size = FULL) -> Iterator[Row]:
    count, rounds = (1000, 3) if size is FULL else (20, 1)
    gc.freeze()  # as a daemon does; what other topics left in memory is not ours to walk through
    for where, parent in (("in memory", Path("/dev/shm")), ("on disk", Path.cwd())):
        if not parent.is_dir():
            continue
        with tempfile.TemporaryDirectory(dir=parent) as place:
            run_context = RunContext.of_this_process(LogDirectory(Path(place) / "logs"))
            for kind, command in COMMANDS.items():
                yield from compared(f"{kind}, logs {where}", command, count, rounds, run_context)
            run_context.logs.close()


def compared(kind: str, command: Command, count: int, rounds: int, run_context: RunContext) -> Iterator[Row]:
    ratios, starts, cpu = [], [], []
    for _ in range(rounds):
        floor_rate, _ = floor(command, count, AT_ONCE)
        rate, _, _ = attempts(command, count, AT_ONCE, run_context)
        ratios.append(rate / floor_rate)
        _, floor_last = floor(command, count, count)
        _, last, used = attempts(command, count, count, run_context)
        starts.append(last / floor_last)
        cpu.append(used)
    bound = "memory" in kind
    yield Row("run", f"{AT_ONCE} at once, {kind}: rate", median(ratios), "×", at_least=0.9 if bound else None)
    yield Row("run", f"{count} due, {kind}: last start", median(starts), "×", at_most=1.5 if bound else None)
    yield Row("run", f"{count} due, {kind}: CPU", median(cpu), " s", at_most=1.0)


def floor(command: Command, count: int, at_once: int) -> tuple[float, float]:
    """(commands a second, seconds until the last start)"""
    argv = ("/bin/sh", "-c", command) if isinstance(command, str) else command
    # The same as the attempts': a program that finds LANG set reads its locale, and that takes it longer.
    environment = Inheritance(os.environ).variables
    nowhere = [(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)]
    alive = 0
    began = time.perf_counter()
    for _ in range(count):
        if alive >= at_once:
            os.waitpid(-1, 0)
            alive -= 1
        os.posix_spawn(argv[0], argv, environment, file_actions=nowhere)
        alive += 1
    last = time.perf_counter() - began
    for _ in range(alive):
        os.waitpid(-1, 0)
    return count / (time.perf_counter() - began), last


def attempts(command: Command, count: int, at_once: int, run_context: RunContext) -> tuple[float, float, float]:
    """(attempts a second, seconds until the last start, CPU seconds of this process)"""
    requests = [requested(command) for _ in range(count)]
    used, began = time.process_time(), time.perf_counter()
    last = asyncio.run(_all(requests, at_once, run_context))
    taken, used = time.perf_counter() - began, time.process_time() - used
    return count / taken, last - began, used


def requested(command: Command) -> AttemptRequest:
    return AttemptRequest(
        attempt_id=attempt_id("run_bench", next(_NUMBERS)),
        number=1,
        job="bench",
        task="main",
        occurrence_id="occ_bench",
        nominal_ms=0,
        command=command,
    )


async def _all(requests: list[AttemptRequest], at_once: int, run_context: RunContext) -> float:
    waiting = iter(requests)
    last = 0.0

    async def note(_started: Started) -> None:
        nonlocal last
        last = time.perf_counter()

    async def worker() -> None:
        for request in waiting:
            result = await run_attempt(request, Hooks(started=note), run_context)
            assert result.exit_code == 0, result
            assert result.log.size == 5, result

    await asyncio.gather(*(worker() for _ in range(at_once)))
    return last
