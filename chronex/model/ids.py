"""Deterministic ids: whoever computes the id of the same thing gets the same text.

The three name spaces are those of RFC 4122 for DNS, URL and OID; they only keep the kinds apart.
"""

from __future__ import annotations

import re
from functools import lru_cache
from uuid import UUID, uuid5

from chronex.errors import ChronexError

MAX_NAME = 128
# The ids of what runs now are asked for again and again, and a hash costs as much as a record.
_REMEMBERED = 4096
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}", re.ASCII)

# What the template of an idempotency key may name between braces.
KEY_FIELDS = ("job", "task", "scheduled", "date", "occurrence")
KEY_FIELD = re.compile(r"\{([^{}]*)\}")
MAX_KEY_BYTES = 512

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


def unknown_key_fields(template: str) -> list[str]:
    """What the template of an idempotency key names that no key can be made of."""
    return [name for name in KEY_FIELD.findall(template) if name not in KEY_FIELDS]


def is_name(text: str) -> bool:
    """Could this name a job or a task?"""
    return _NAME.fullmatch(text) is not None


def check_name(name: str, what: str = "job") -> str:
    """The name of a job or task is part of its key: letters, digits, `_`, `-`, at most 128 of them."""
    if not _NAME.fullmatch(name):
        raise ChronexError(f"{name[:40]!r} cannot name a {what}; use 1 to {MAX_NAME} letters, digits, '_' and '-'")
    return name
