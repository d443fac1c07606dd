"""[groups.NAME], what a job says of groups and of the conditions it waits for, the check of a task, and catch-up."""

from __future__ import annotations

import re
from typing import Any

from chronex.jobfile.entries import Entry, Reader, RefusedError, read_each, read_table
from chronex.jobfile.inherited_tables import command
from chronex.jobfile.values import (
    check_name,
    duration,
    filled_text,
    number,
    positive_duration,
    refuse_duplicates,
    text,
    whole_number,
    yes_or_no,
)
from chronex.model.groups import MOST_PLACES, MOST_PRIORITY, MOST_STARTS, CatchUpPace, GroupSettings, StartRate
from chronex.model.job import TaskCheck
from chronex.model.policies import MOST_CONDITIONS, WORDS, read_condition
from chronex.text.durations import UNITS, parse_duration
from chronex.text.suggestions import nearest
from chronex.text.terminal import quoted

MOST_GROUPS = 200
MOST_OF_A_JOB = 8
LONGEST_SPACING_MS = 3_600_000
LONGEST_WINDOW_MS = 366 * UNITS["d"]
_RATE = re.compile(r"([0-9]{1,18})/(?:([a-z0-9]+))", re.ASCII)
_SIZE = re.compile(r"([0-9]{1,15}) ?([KMG]i?)?B?", re.ASCII)
_SIZE_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


# -- [groups.NAME] ------------------------------------------------------------------------------------------


def rate(entry: Entry) -> StartRate:
    """So many starts in a unit of time, or in several: 30/m, 5/10s."""
    if not isinstance(entry.value, str):
        entry.refuse_type("starts and time in text", entry.assignment('"30/m"'))
    written = text(entry).strip().replace(" ", "")
    match = _RATE.fullmatch(written)
    window = parse_duration(match[2] if match[2][0].isdigit() else f"1{match[2]}") if match else None
    if match is None or not window:
        example = entry.assignment('"30/m"')
        hint = f"write {example} for thirty starts a minute; the units are s, m, h and d"
        entry.refuse(f"{quoted(written)} is not a rate", hint, "J033")
    count = int(match[1])
    if count == 0:
        entry.refuse("a rate of 0 would start nothing, ever", "write at least 1, or pause the jobs", "J033")
    if count > MOST_STARTS:
        hint = f"write at most {MOST_STARTS}, in a shorter time: 20/s is 1200/m"
        entry.refuse(f"a rate counts at most {MOST_STARTS} starts", hint, "J033")
    if window > LONGEST_WINDOW_MS:
        entry.refuse("the window of a rate is at most a year", "write for example 10/d", "J033")
    return StartRate(count, window)


GROUP: dict[str, Reader] = {"limit": whole_number(1, MOST_PLACES), "rate": rate}


def read_groups(entry: Entry) -> None:
    """The groups of the file onto its sheet; a name whose group is refused is known all the same."""
    table = entry.expect_table("[groups.NAME] and its keys below it")
    if len(table) > MOST_GROUPS:
        entry.refuse(f"there are more than {MOST_GROUPS} groups", "join some of them", "J033", entry.key_span)
    known = entry.sheet.groups = entry.sheet.groups or {}
    for name in table:
        known[name] = None
        child = entry.child(name)
        try:
            check_name(child, name, f"group {quoted(name)}", at_key=True)
            known[name] = _group(child, name)
        except RefusedError:
            continue


def _group(entry: Entry, name: str) -> GroupSettings:
    found = read_table(entry, GROUP, f"[groups.{entry.label}] with limit = 1 below it")
    if not any(key in GROUP for key in entry.expect_table()):
        hint = 'write limit = 1, or rate = "30/m"'
        entry.refuse(f"group {quoted(name)} has neither a limit nor a rate", hint, "J012", entry.key_span)
    return GroupSettings(name, found.get("limit"), found.get("rate"))


# -- what a job says ----------------------------------------------------------------------------------------


def job_groups(entry: Entry) -> dict[str, int]:
    """A list of groups, each with one place, or a table of names and places."""
    if isinstance(entry.value, dict):
        found: dict[str, int] = read_table(entry, dict.fromkeys(entry.value, whole_number(1, MOST_PLACES)))
        if len(found) < len(entry.value):
            raise RefusedError
        places = {name: entry.child(name) for name in found}
    elif isinstance(entry.value, list):
        names: list[str] = read_each(entry, filled_text)
        refuse_duplicates(entry, names)
        found = dict.fromkeys(names, 1)
        places = {name: entry.child(index) for index, name in enumerate(names)}
    else:
        entry.refuse_type("a list or a table of groups", entry.assignment('["database"]'))
    if len(found) > MOST_OF_A_JOB:
        entry.refuse(f"{entry.label} names {len(found)} groups", f"a job is in at most {MOST_OF_A_JOB}", "J033")
    for name, place in places.items():
        _check_group(place, name, found[name], is_key=isinstance(entry.value, dict))
    return found


def _check_group(entry: Entry, name: str, weight: int, *, is_key: bool) -> None:
    span = entry.key_span if is_key else None
    known = entry.sheet.groups
    if known is None:  # a program, or a trigger definition: the groups are those of the store
        check_name(entry, name, f"group {quoted(name)}", at_key=is_key)
        return
    if name not in known:
        meant = nearest(name, known)
        hint = f"did you mean {meant}?" if meant else f"add [groups.{quoted(name)[1:-1]}] with limit = 1"
        fix = None if meant is None else meant if is_key else f'"{meant}"'
        entry.refuse(f"unknown group {quoted(name)}", hint, "J032", span, fix=fix)
    group = known[name]
    if group is not None and group.limit is not None and weight > group.limit:
        hint = f"write at most {group.limit}, or raise the limit of [groups.{name}]"
        entry.refuse(f"a run would take {weight} places of {name}, which has {group.limit}", hint, "J033")


def condition(entry: Entry) -> str:
    written = filled_text(entry).strip()
    try:
        read_condition(written)
    except ValueError as problem:
        kind = written.partition(":")[0]
        meant = nearest(kind, WORDS) if kind not in WORDS else None
        hint = f"did you mean {meant}?" if meant else str(problem)
        entry.refuse(f"{quoted(written)} is not a condition", hint, "J034")
    return written


def conditions(entry: Entry) -> tuple[str, ...]:
    entry.expect_list(entry.assignment('["network", "tcp:db:5432"]'))
    found: list[str] = read_each(entry, condition)
    refuse_duplicates(entry, found)
    if len(found) > MOST_CONDITIONS:
        hint = f"write at most {MOST_CONDITIONS}; a command can look at many things"
        entry.refuse(f"{entry.label} has {len(found)} conditions", hint, "J034")
    return tuple(found)


# What [defaults] and a job say.
GROUP_KEYS: dict[str, Reader] = {
    "groups": job_groups,
    "priority": whole_number(-MOST_PRIORITY, MOST_PRIORITY),
    "wait_for": conditions,
    "wait_at_most": positive_duration,
}


# -- the check of a task ------------------------------------------------------------------------------------


def _least_size(entry: Entry) -> int:
    """Bytes from 1 on: a file that is there and empty is the usual trace of a command that did nothing."""
    value = entry.value
    written = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(written, str):
        entry.refuse_type("a size", entry.assignment('"1MB"'))
    match = _SIZE.fullmatch(written)
    found = int(match[1]) * _SIZE_UNITS[match[2] or ""] if match else 0
    if not 1 <= found <= 2**60:
        entry.refuse(f"{entry.label} cannot be {quoted(written[:100])}", "write bytes, or for example 1MB", "J014")
    return found


CHECK: dict[str, Reader] = {
    "file": filled_text,
    "min_size": _least_size,
    "newer": yes_or_no,
}


def task_check(entry: Entry) -> TaskCheck:
    """A command that must end with 0, or a table with a file that must be there."""
    if isinstance(entry.value, str | list):
        return TaskCheck(run=command(entry))
    example = entry.assignment('{ file = "/backup/app.dump", min_size = "1MB", newer = true }')
    if not isinstance(entry.value, dict):
        entry.refuse_type("a command or a table with a file", example)
    found: dict[str, Any] = read_table(entry, CHECK, example)
    if "file" not in entry.value:
        entry.refuse(f"{entry.label} names no file", f"write {example}", "J012", entry.key_span)
    if len(found) < len(entry.value):
        raise RefusedError
    return TaskCheck(**found)


def check_table(check: TaskCheck) -> Any:
    """As it would be written."""
    if check.run:
        return check.run if isinstance(check.run, str) else list(check.run)
    table: dict[str, Any] = {"file": check.file}
    if check.min_size:
        table["min_size"] = check.min_size
    return {**table, "newer": True} if check.newer else table


# -- [scheduler] catch_up -----------------------------------------------------------------------------------


def _spacing(entry: Entry) -> int:
    found = duration(entry)
    if found > LONGEST_SPACING_MS:
        entry.refuse(f"{entry.label} is longer than an hour", 'write for example "500ms"', "J015")
    return found


CATCH_UP: dict[str, Reader] = {"spacing": _spacing, "share": number(0.01, 1)}


def catch_up(entry: Entry) -> CatchUpPace:
    found = read_table(entry, CATCH_UP, entry.assignment('{ spacing = "500ms", share = 0.5 }'))
    fields = {"spacing": "spacing_ms", "share": "share"}
    return CatchUpPace(**{fields[key]: value for key, value in found.items()})
