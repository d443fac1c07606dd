"""How each cron tells a variable from a schedule, and what it takes for the value.

Vixie's crons try each line as a variable first, and read it as a schedule only if that fails: `$A=x`, `*=x` and even
`=x` are variables, and a value whose quote is not closed makes the line a schedule that nobody can read.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from chronex.lint.cron_programs import BSD, CRONIE, DEBIAN, SUPERCRONIC, CronProgram

_BLANKS = " \t\r\v\f"
_BLANK = r"[ \t\r\v\f]"
# As 3.0pl1-197 and 3.0pl1-212 were seen to take it.
_SAFE_ADDRESS = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9!%+,./:=@_-]*)?")
_VIXIE = re.compile(
    rf"""[ \t]*(?:"(?P<double>[^"=]*)"|'(?P<single>[^'=]*)'|(?P<name>(?!["'])[^ \t\r\v\f=]*)){_BLANK}*={_BLANK}*"""
)
_QUOTED = re.compile(rf"""(?:"([^"]*)"|'([^']*)')(?={_BLANK}*$)""")
_SUPERCRONIC = re.compile(r"[ \t]*(?P<name>[^ \t\r\v\f=]+)[ \t\r\v\f]*=[ \t\r\v\f]*")
_OTHERS = re.compile(
    r"""[ \t]*(?:"(?P<double>[^"\n]*)"|'(?P<single>[^'\n]*)'|(?P<name>[A-Za-z_][A-Za-z0-9_]*))[ \t]*=[ \t]*"""
)


class CronVariable(NamedTuple):
    """The value is without its quotes; the offsets are of the name and of the value in the line, quotes included."""

    name: str
    value: str
    start: int
    value_start: int
    value_end: int

    @property
    def is_bare_and_empty(self) -> bool:
        return self.value_start == self.value_end

    @property
    def is_unsafe_address(self) -> bool:
        """Debian's cron refuses the file for it, since Debian 13."""
        return self.name in ("MAILTO", "MAILFROM") and _SAFE_ADDRESS.fullmatch(self.value.rstrip(_BLANKS)) is None


class NoVariable(NamedTuple):
    """A line that was meant as a variable and is read as a schedule: which part of it, and why."""

    start: int
    end: int
    why: str


def read_variable(line: str, program: CronProgram) -> CronVariable | NoVariable | None:
    """None for a line that is no variable and was not meant as one. `line` is without its line feed."""
    is_vixie = program in (DEBIAN, CRONIE, BSD)
    head = (_VIXIE if is_vixie else _SUPERCRONIC if program is SUPERCRONIC else _OTHERS).match(line)
    if head is None:
        return None
    cut = _cut(line, program)
    end = len(cut.rstrip(_BLANKS))
    name, start = _name(head)
    value = cut[head.end() : end]
    if value[:1] not in ("'", '"') or not is_vixie:
        return CronVariable(name, _unquoted(value), start, head.end(), max(end, head.end()))
    if (quoted := _QUOTED.match(cut, head.end())) is None:
        if name in program.nicknames:
            return None  # `@daily ='x' y`: what was no variable is a command
        why = "open quote" if value.count(value[0]) == 1 else "text after a quote"
        return NoVariable(start, max(end, start + 1), "long value" if len(cut) < len(line) else why)
    return CronVariable(name, quoted[1] or quoted[2] or "", start, head.end(), quoted.end())


def is_cut(line: str, program: CronProgram) -> bool:
    return len(_cut(line, program)) < len(line)


def _cut(line: str, program: CronProgram) -> str:
    """The part of the line that the program has a place for."""
    if program.longest_line is None:
        return line
    blanks = len(line) - len(line.lstrip(" \t"))
    if len(line[blanks:].encode("utf-8", "surrogateescape")) <= program.longest_line:
        return line
    size = 0
    for at in range(blanks, len(line)):
        size += len(line[at].encode("utf-8", "surrogateescape"))
        if size > program.longest_line:
            return line[:at]
    return line


def _name(head: re.Match[str]) -> tuple[str, int]:
    groups = head.groupdict()
    for quote in ("double", "single"):
        if groups.get(quote) is not None:
            return groups[quote], head.start(quote) - 1
    return groups["name"], head.start("name")


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value
