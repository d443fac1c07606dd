"""Test your jobs without waiting for them: a fake clock, a store in memory, a simulated machine and program.

The names below are public. Nothing here imports a test framework.
"""

from __future__ import annotations

from chronex.testing.clock import DAY, HOUR, MINUTE, SECOND, WEEK, FakeClock
from chronex.testing.machine import KillPoint, ProcessOutcome, RandomOutcomes, SimulatedMachine, SimulatedProcess
from chronex.testing.simulated_program import CalledFunction, SimulatedProgram
from chronex_store import MemoryStore

__all__ = [
    "DAY",
    "HOUR",
    "MINUTE",
    "SECOND",
    "WEEK",
    "CalledFunction",
    "FakeClock",
    "KillPoint",
    "MemoryStore",
    "ProcessOutcome",
    "RandomOutcomes",
    "SimulatedMachine",
    "SimulatedProcess",
    "SimulatedProgram",
]
