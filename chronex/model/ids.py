"""Ids."""

from __future__ import annotations

from functools import lru_cache
from uuid import UUID, uuid5

# An id is a hash of what it names, so every process computes the same text for the same thing. The ids of what runs
# now are computed again and again, and a hash costs as much as a record.
_REMEMBERED = 4096
# The name spaces of RFC 4122 for DNS, URL and OID; they only keep the three kinds apart.
_OCCURRENCES = UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
_RUNS = UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")
_ATTEMPTS = UUID("6ba7b812-9dad-11d1-80b4-00c04fd430c8")


@lru_cache(maxsize=_REMEMBERED)
def occurrence_id(job: str, nominal_ms: int) -> str:
    """`occ_` and the UUIDv5 of "job:seconds", or "job:seconds.mmm" where the time is not a whole second."""
    seconds, milliseconds = divmod(nominal_ms, 1000)
    fraction = f".{milliseconds:03d}" if milliseconds else ""
    return f"occ_{uuid5(_OCCURRENCES, f'{job}:{seconds}{fraction}')}"


@lru_cache(maxsize=_REMEMBERED)
def run_id(occurrence: str, task: str) -> str:
    """`run_` and the UUIDv5 of "occurrence:task"."""
    return f"run_{uuid5(_RUNS, f'{occurrence}:{task}')}"


@lru_cache(maxsize=_REMEMBERED)
def attempt_id(run: str, number: int) -> str:
    """`attempt_` and the UUIDv5 of "run:number"; the first attempt is number 1."""
    return f"attempt_{uuid5(_ATTEMPTS, f'{run}:{number}')}"
