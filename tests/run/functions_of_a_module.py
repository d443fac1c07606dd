"""Functions that another process can find."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time

from chronex.run.callables import TaskContext


def work(context: TaskContext, to: str, copies: int = 1) -> None:
    print(f"to {to}, {copies} copies")
    context.log(
        f"{context.job} {context.attempt} {context.scheduled:%H:%M} {context.metadata} was {context.state.get('n')}"
    )
    context.state.set("n", "2")


async def awaits(context: TaskContext) -> None:
    await asyncio.sleep(0)
    context.state.set("async", "yes")


def plain(word: str) -> None:
    print(word, os.environ["OF_THE_PROGRAM"])


def fails(context: TaskContext) -> None:
    context.state.set("n", "3")
    raise ValueError("boom")


def leaves() -> None:
    sys.exit("good bye")


def polite(context: TaskContext) -> None:
    print("ready", flush=True)
    context.cancellation.wait()
    print("ends in order")


async def canceled() -> None:
    print("ready", flush=True)
    try:
        await asyncio.sleep(3600)
    finally:
        print("canceled")


def deaf() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("ready", flush=True)
    time.sleep(3600)
