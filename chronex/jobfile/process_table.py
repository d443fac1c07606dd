"""The keys that say as whom a command runs and within what: user, group, umask, nice, limits; files with variables;
and where the values of secrets come from."""

from __future__ import annotations

import re
from typing import Any

from msgspec.structs import replace

from chronex.jobfile.entries import Entry, Reader, read_each, read_table
from chronex.jobfile.values import OFF, filled_text, refuse_duplicates, size, whole_number
from chronex.model.policies import ResourceLimits
from chronex.text.suggestions import nearest
from chronex.text.terminal import quoted

_ACCOUNT = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,254}\$?|[0-9]{1,10}", re.ASCII)
_UMASK = re.compile(r"0?[0-7]{3}", re.ASCII)
_PERCENT = re.compile(r"([0-9]{1,7})%", re.ASCII)
_CREDENTIAL = re.compile(r"[A-Za-z0-9_.-]{1,255}", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
LEAST_MEMORY = 4 * 2**20  # the smallest programs need as much before they have done anything
MOST_CPU = 1_000_000
SOURCES = ("file", "env", "credential", "command")


# -- as whom ------------------------------------------------------------------------------------------------------


def account(entry: Entry) -> str:
    """The name or the number of a user or a group; whether there is one, the machine says that runs the command."""
    value = entry.value
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**32 - 1:
        return str(value)
    name = filled_text(entry)
    if not _ACCOUNT.fullmatch(name):
        hint = f'write its name or its number, such as {entry.label} = "www-data"'
        entry.refuse(f"{entry.label}: {quoted(name)} cannot name a {entry.label}", hint, "J013")
    return name


def umask(entry: Entry) -> str:
    """Text, because 27 and 0o27 are easily taken for each other."""
    if not isinstance(entry.value, str):
        entry.refuse_type("octal digits in text", entry.assignment('"027"'))
    if not _UMASK.fullmatch(entry.value):
        hint = f"write three octal digits, such as {entry.assignment(chr(34) + '027' + chr(34))}"
        entry.refuse(f"{entry.label} cannot be {quoted(entry.value)}", hint, "J014")
    return entry.value


# -- within what --------------------------------------------------------------------------------------------------


def _memory(entry: Entry) -> int:
    found = size(entry)
    if found < LEAST_MEMORY:
        entry.refuse(f"{entry.label} cannot be less than 4MiB", 'write for example "512MiB" or "2G"', "J014")
    return found


def _cpu(entry: Entry) -> int:
    if not isinstance(entry.value, str):
        entry.refuse_type("percent of one processor in text", entry.assignment('"150%"'))
    match = _PERCENT.fullmatch(entry.value)
    found = int(match[1]) if match is not None else 0
    if not 1 <= found <= MOST_CPU:
        hint = f'write percent of one processor, such as "150%"; it goes from 1% to {MOST_CPU}%'
        entry.refuse(f"{entry.label} cannot be {quoted(entry.value)}", hint, "J014")
    return found


def _or_off(reader: Reader) -> Reader:
    """None for the word that lifts an inherited limit."""
    return lambda entry: None if entry.value == OFF else reader(entry)


TASKS_LIMIT, OPEN_FILES_LIMIT = whole_number(1, 4_194_304), whole_number(8, 1_048_576)
LIMITS: dict[str, Reader] = {
    "memory": _or_off(_memory),
    "cpu": _or_off(_cpu),
    "tasks": _or_off(TASKS_LIMIT),
    "open_files": _or_off(OPEN_FILES_LIMIT),
}


def limits(entry: Entry) -> dict[str, Any]:
    return read_table(entry, LIMITS, entry.assignment('{ memory = "2G", cpu = "150%", tasks = 100 }'))


def merged_limits(base: ResourceLimits | None, given: dict[str, Any]) -> ResourceLimits | None:
    """`base` with the given limits changed; None where none is left."""
    merged = replace(base or ResourceLimits(), **given)
    return None if merged == ResourceLimits() else merged


def limits_table(found: ResourceLimits) -> dict[str, Any]:
    """The limits as they would be written."""
    fields = {"memory": found.memory, "tasks": found.tasks, "open_files": found.open_files}
    table: dict[str, Any] = {key: value for key, value in fields.items() if value is not None}
    return table if found.cpu is None else {**table, "cpu": f"{found.cpu}%"}


# -- variables ----------------------------------------------------------------------------------------------------


def env_file(entry: Entry) -> tuple[str, ...]:
    """A path, or a list of them; a relative one lies beside the job file."""
    if isinstance(entry.value, str):
        return (filled_text(entry),)
    if not isinstance(entry.value, list):
        entry.refuse_type("a path or a list of paths", entry.assignment('"/etc/default/app"'))
    found: list[str] = read_each(entry, filled_text)
    refuse_duplicates(entry, found)
    return tuple(found)


def secret_source(entry: Entry) -> str:
    """Where a secret comes from: `file:PATH`, `env:NAME`, `credential:NAME` or `command:TEXT`."""
    example = entry.assignment('"file:/run/secrets/pg"')
    if isinstance(entry.value, dict):  # { file = "…" }, as other schedulers have it
        entry.refuse_type("text", example)
    value = filled_text(entry)
    kind, colon, rest = value.partition(":")
    if not colon or kind not in SOURCES:
        meant = nearest(kind, SOURCES) if colon else None
        hint = f"did you mean {meant}:?" if meant else f"write where it comes from, such as {example}"
        # The text may be the secret itself, which must not stand in a message.
        entry.refuse(f"{entry.label} names no source: file:, env:, credential: or command:", hint, "J013")
    if not rest.strip():
        entry.refuse(f"{entry.label} has nothing after {kind}:", f"write for example {example}", "J013")
    if kind == "credential" and (not _CREDENTIAL.fullmatch(rest) or rest in (".", "..")):
        entry.refuse(
            f"{entry.label}: {quoted(rest)} cannot name a credential", "use letters, digits, _, - and .", "J013"
        )
    if kind == "env" and not _VARIABLE.fullmatch(rest):
        entry.refuse(f"{entry.label}: {quoted(rest)} cannot name a variable", "use letters, digits and _", "J020")
    return value


PROCESS: dict[str, Reader] = {
    "env_file": env_file,
    "user": account,
    "group": account,
    "umask": umask,
    "nice": whole_number(-20, 19),
    "limits": limits,
}
# The keys that a Python function cannot have: it runs inside its scheduler's process, or as a part of its program.
OF_COMMANDS = ("user", "group", "umask", "nice", "limits", "env_file")
