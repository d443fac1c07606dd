"""Files with variables, one `NAME=value` a line, as services and containers have them. Nothing in them is run."""

from __future__ import annotations

import os
import re

MOST_BYTES = 1 << 20
_LINE = re.compile(rb"(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*(.*)", re.DOTALL)
_DOUBLE_QUOTED = re.compile(rb'"((?:[^"\\]|\\.)*)"[ \t]*(?:#.*)?', re.DOTALL)
_SINGLE_QUOTED = re.compile(rb"'([^']*)'[ \t]*(?:#.*)?", re.DOTALL)
_ESCAPED = re.compile(rb'\\(["\\$`])')


class VariableFileError(Exception):
    """What is wrong with a file of variables; never a value of it."""


def parse_variables(text: bytes) -> dict[str, str]:
    """Empty lines and those that begin with # or ; are passed over; quotes are taken off; the last of a name wins.

    In double quotes a backslash escapes what it does in a shell; without quotes everything counts as it stands, up to
    the spaces at the end. Raises VariableFileError with the number of the first line that is none.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(text.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        stripped = line.strip()
        if not stripped or stripped[:1] in b"#;":
            continue
        match = _LINE.fullmatch(stripped)
        if match is None or b"\0" in stripped:
            raise VariableFileError(f"line {number} is not NAME=value")
        found[match[1].decode()] = os.fsdecode(_value(match[2], number))
    return found


def _value(written: bytes, number: int) -> bytes:
    if written[:1] == b'"':
        quoted = _DOUBLE_QUOTED.fullmatch(written)
        if quoted is not None:
            return _ESCAPED.sub(rb"\1", quoted[1])
    elif written[:1] == b"'":
        quoted = _SINGLE_QUOTED.fullmatch(written)
        if quoted is not None:
            return quoted[1]
    else:
        return written
    raise VariableFileError(f"line {number} has a quote that does not end where its value ends")
