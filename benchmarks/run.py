"""Attempts beside the bare system call: throughput at one concurrency, and many starts on one instant.

The floor starts the same command with os.posix_spawn and waits for it; it captures, records and watches nothing.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from itertools import count as count_from
from pathlib import Path
from statistics import median

from chronex.model import attempt_id
from chronex.model.records import Command
from chronex.run import AttemptRequest, Hooks, LogDirectory, Started, Surroundings, run_attempt

Row = tuple[str, float, str]
COMMANDS: dict[str, Command] = {"argv": ("/bin/echo", "done"), "sh": "echo done"}
AT_ONCE = 50
_NUMBERS = count_from(1)


def run(count: int = 1000, rounds: int = 3) -> list[Row]:
    """(name, ratio to the floor of the same round, remark); medians, because machines are busy with other things."""
    # One directory for all rounds: a file system that has just deleted thousands of files creates new ones slowly.
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as place:
        surroundings = Surroundings.of_this_process(LogDirectory(Path(place) / "logs"))
        rows = [
            row for kind, command in COMMANDS.items() for row in compared(kind, command, count, rounds, surroundings)
        ]
        surroundings.logs.close()
    return rows


def compared(kind: str, command: Command, count: int, rounds: int, surroundings: Surroundings) -> list[Row]:
    rows: list[Row] = []
    ratios, starts, cpu = [], [], []
    for _ in range(rounds):
        floor_rate, _ = floor(command, count, AT_ONCE)
        rate, _, _ = attempts(command, count, AT_ONCE, surroundings)
        ratios.append(rate / floor_rate)
        _, floor_last = floor(command, count, count)
        _, last, used = attempts(command, count, count, surroundings)
        starts.append(last / floor_last)
        cpu.append(used)
    rows.append((f"run {kind}, {AT_ONCE} at once", median(ratios), "at least 0.80 of the floor's rate"))
    rows.append((f"{count} {kind} on one instant, last start", median(starts), "at most 1.50 of the floor's"))
    rows.append((f"{count} {kind} on one instant, CPU s", median(cpu), "at most 1.0"))
    return rows


def floor(command: Command, count: int, at_once: int) -> tuple[float, float]:
    """(commands a second, seconds until the last start)"""
    argv = ("/bin/sh", "-c", command) if isinstance(command, str) else command
    environment = {"PATH": os.environ["PATH"]}
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


def attempts(command: Command, count: int, at_once: int, surroundings: Surroundings) -> tuple[float, float, float]:
    """(attempts a second, seconds until the last start, CPU seconds of this process)"""
    used, began = time.process_time(), time.perf_counter()
    last = asyncio.run(_all(command, count, at_once, surroundings))
    taken, used = time.perf_counter() - began, time.process_time() - used
    return count / taken, last - began, used


async def _all(command: Command, count: int, at_once: int, surroundings: Surroundings) -> float:
    numbers = iter(range(count))
    last = 0.0

    async def note(_started: Started) -> None:
        nonlocal last
        last = time.perf_counter()

    async def worker() -> None:
        for _ in numbers:
            request = AttemptRequest(
                attempt_id=attempt_id("run_bench", next(_NUMBERS)),
                number=1,
                job="bench",
                task="main",
                occurrence_id="occ_bench",
                nominal_ms=0,
                command=command,
            )
            result = await run_attempt(request, Hooks(started=note), surroundings)
            assert result.exit_code == 0, result
            assert result.log.size == 5, result

    await asyncio.gather(*(worker() for _ in range(at_once)))
    return last


if __name__ == "__main__":
    for name, ratio, remark in run():
        print(f"{name:40} {ratio:6.2f}  {remark}")
