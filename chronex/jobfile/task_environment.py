"""What a task runs, and what it runs in: each level adds to the environment and replaces the rest."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from chronex.jobfile.entries import Entry, Reader, RefusedError, read_each
from chronex.jobfile.values import codes, filled_text, refuse_duplicates, text, text_table
from chronex.model.job import ONLY_ZERO, Command
from chronex.text.terminal import quoted

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
# Chronex sets these for every attempt, so a value of the user's would be lost.
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
        entry.refuse_type("a list of arguments or a line for the shell", entry.assignment('["echo", "hello"]'))
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
    entry.expect_list(entry.assignment('["PGPASSWORD"]'))
    found: list[str] = read_each(entry, _variable)
    refuse_duplicates(entry, found)
    return tuple(found)


def _variable(entry: Entry) -> str:
    name = text(entry)
    check_variable(entry, name)
    return name


def check_variable(entry: Entry, name: str, *, at_key: bool = False) -> None:
    span = entry.key_span if at_key else None
    if not _VARIABLE.fullmatch(name):
        hint = "use letters, digits and _, and no digit first"
        entry.refuse(f"{quoted(name)} cannot name a variable", hint, "J020", span)
    if _OURS.fullmatch(name):
        entry.refuse(f"{name} is set by Chronex itself", "choose another name", "J020", span)


def _success_codes(entry: Entry) -> tuple[int, ...]:
    found = codes(entry)
    if not found:
        entry.refuse(f"{entry.label} names no code, so nothing would succeed", "write [0]", "J014")
    return found


ENVIRONMENT: dict[str, Reader] = {
    "env": environment,
    "secrets": secrets,
    "directory": filled_text,
    "success_codes": _success_codes,
    "retry_codes": codes,
}


class TaskEnvironment(Struct, frozen=True):
    env: dict[str, str] = {}
    secrets: tuple[str, ...] = ()
    directory: str | None = None
    success_codes: tuple[int, ...] = ONLY_ZERO
    retry_codes: tuple[int, ...] | None = None

    def within(self, entry: Entry, given: dict[str, Any]) -> TaskEnvironment:
        """These, as the level of `entry` changes them."""
        own = {key: given[key] for key in ENVIRONMENT if key in given}
        env = {**self.env, **own.get("env", {})}
        secrets = tuple(dict.fromkeys((*self.secrets, *own.get("secrets", ()))))
        merged = replace(self, **{**own, "env": env, "secrets": secrets})
        _check_secrets_apart(entry, own, merged)
        _check_codes_apart(entry, own, merged)
        return merged


def _check_secrets_apart(entry: Entry, own: dict[str, Any], merged: TaskEnvironment) -> None:
    """A secret whose value also stands in the file would be none."""
    hint = "remove it from env; the daemon's environment has it"
    reported = set[str]()
    for index, name in enumerate(own.get("secrets", ())):
        if name in merged.env:
            entry.child("secrets").child(index).report(f"{quoted(name)} is both in secrets and in env", hint, "J020")
            reported.add(name)
    for name in own.get("env", {}):
        if name in merged.secrets and name not in reported:
            place = entry.child("env").child(name)
            place.report(f"{quoted(name)} is both in secrets and in env", hint, "J020", place.key_span)


def _check_codes_apart(entry: Entry, own: dict[str, Any], merged: TaskEnvironment) -> None:
    key = "retry_codes" if "retry_codes" in own else "success_codes"
    both = sorted(set(merged.success_codes) & set(merged.retry_codes or ()))
    if key in own and both:
        message = f"exit code {both[0]} is both in success_codes and in retry_codes"
        entry.child(key).report(message, "remove it from one of them", "J024")
