"""What a task of a program runs: a command as in a file, or the call of a function."""

from __future__ import annotations

import math

from chronex.jobfile.entries import Entry
from chronex.jobfile.inherited_tables import command
from chronex.jobfile.positions import MAX_DEPTH
from chronex.model.job import Call, Work
from chronex.text.terminal import quoted


def work(entry: Entry) -> Work:
    """A command, or the call of a function, which only a program can write."""
    if not isinstance(entry.value, Call):
        return command(entry)
    call = entry.value
    if not isinstance(call.target, str) or not call.target.strip() or "\0" in call.target:
        entry.refuse(f"{entry.label} calls a function without a name", 'write Call("send_mail")', "J019")
    _check_storable(entry, call)
    return call


def _check_storable(entry: Entry, call: Call) -> None:
    """The function is given what the store gives back, so that must be what was written."""
    args: object = call.args
    kwargs: object = call.kwargs
    if not isinstance(args, list | tuple) or not isinstance(kwargs, dict):
        hint = 'write args=("ann",) and kwargs={"copies": 2}'
        entry.refuse(f"args of {quoted(call.target)} is a list, and kwargs a table", hint, "J019")
    if not _is_storable(args) or not _is_storable(kwargs):
        hint = "give text, numbers, lists and tables, or bind other values with functools.partial"
        entry.refuse(f"the arguments of {quoted(call.target)} cannot be stored", hint, "J019")


def _is_storable(value: object, depth: int = 0) -> bool:
    if depth > MAX_DEPTH:
        return False
    if isinstance(value, list | tuple):
        return all(_is_storable(one, depth + 1) for one in value)
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_storable(one, depth + 1) for key, one in value.items())
    if isinstance(value, int):
        return -(2**63) <= value < 2**63
    return value is None or type(value) is str or (type(value) is float and math.isfinite(value))
