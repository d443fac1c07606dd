"""What a task runs, and what its environment holds."""

from __future__ import annotations

import re

from chronex.expr.faults import quote
from chronex.jobfile.entries import Entry, RefusedError, read_each
from chronex.jobfile.values import refuse_twins, text, text_table
from chronex.model.records import Command

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
# Chronex sets these for every attempt (DESIGN, job file), so a value of the user's would be lost.
_OURS = re.compile(
    r"CHRONEX_(?:JOB|TASK|OCCURRENCE|ATTEMPT|SCHEDULED_TIME|SPAN_START|SPAN_END|IDEMPOTENCY_KEY|META_.*)", re.ASCII
)


def command(entry: Entry) -> Command:
    """A list is argv; text goes to the shell."""
    if isinstance(entry.value, str):
        line = text(entry)
        if not line.strip():
            entry.refuse(f"{entry.label} is empty", 'write a command, such as "make backup"', "J019")
        return line
    if not isinstance(entry.value, list):
        entry.refuse_type("a list of arguments or a line for the shell", f'{entry.label} = ["echo", "hello"]')
    argv: list[str] = read_each(entry, text)
    if not argv or not argv[0].strip():
        hint = 'name the program first, such as ["echo", "hello"]'
        entry.refuse(f"{entry.label} names no program", hint, "J019")
    return tuple(argv)


def environment(entry: Entry) -> dict[str, str]:
    found = text_table(entry)
    for name in tuple(found):
        try:
            check_variable(entry.child(name), name, at_key=True)
        except RefusedError:
            del found[name]
    return found


def secrets(entry: Entry) -> tuple[str, ...]:
    """Names of variables that the daemon's environment holds."""
    entry.expect_list(f'{entry.label} = ["PGPASSWORD"]')
    found: list[str] = read_each(entry, _variable)
    refuse_twins(entry, found)
    return tuple(found)


def _variable(entry: Entry) -> str:
    name = text(entry)
    check_variable(entry, name)
    return name


def check_variable(entry: Entry, name: str, *, at_key: bool = False) -> None:
    span = entry.key_span if at_key else None
    if not _VARIABLE.fullmatch(name):
        hint = "use letters, digits and _, and no digit first"
        entry.refuse(f"{quote(name)} cannot name a variable", hint, "J020", span)
    if _OURS.fullmatch(name):
        entry.refuse(f"{name} is set by Chronex itself", "choose another name", "J020", span)
