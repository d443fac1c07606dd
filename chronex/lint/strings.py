"""The text of a string whose place the position scanner told."""

from __future__ import annotations

import tomllib
from collections.abc import Callable

from chronex.jobfile.positions import TextNode


def text_of(node: TextNode, source: str, unescape: Callable[[str], object]) -> str | None:
    """The string's value; None when it is no string, or not a valid one."""
    raw = source[node.value.start : node.value.end]
    if raw[:1] not in ("'", '"'):
        return None
    if node.content is not None:
        return source[node.content : node.value.end - _quotes(raw)]
    try:
        value = unescape(raw)
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def _quotes(raw: str) -> int:
    return 3 if raw.startswith(('"""', "'''")) else 1


def toml_string(raw: str) -> object:
    return tomllib.loads(f"key={raw}")["key"]
