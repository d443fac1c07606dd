"""Names."""

from __future__ import annotations

import re

from chronex.errors import ChronexError

MAX_NAME = 128
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}", re.ASCII)

# What the template of an idempotency key may name between braces.
KEY_FIELDS = ("job", "task", "scheduled", "date", "occurrence")
KEY_FIELD = re.compile(r"\{([^{}]*)\}")
MAX_KEY_BYTES = 512


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
