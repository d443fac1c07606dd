"""The groups of a source in the store: written with its jobs, in one transaction with them.

A group may be named by several files; what was applied last holds. One that its source names no longer is removed
once no job is in it. Lowering a limit ends nothing: who holds a place keeps it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msgspec.structs import replace

from chronex.engine.group_limits import POOL
from chronex.engine.lines import leave_lines
from chronex.model.event import Event
from chronex.model.groups import Group, GroupSettings
from chronex.model.job import Job
from chronex.storage.journal import append
from chronex.storage.keys import group_key
from chronex.storage.records import Reading, Records

_MOST_JOBS = 1_000_000


class GroupChange(NamedTuple):
    """`old` is None for a new group, `new` for one that is removed."""

    name: str
    old: GroupSettings | None
    new: GroupSettings | None


def plan_group_changes(
    reading: Reading, desired: Iterable[GroupSettings], source: str, jobs: Iterable[Job]
) -> list[GroupChange]:
    """What an update of `source` changes, where `jobs` are those that the store has after it."""
    stored = {group.name: group for group in own_groups(reading)}
    named = {settings.name: settings for settings in desired}
    changes = [
        GroupChange(name, stored[name].settings if name in stored else None, settings)
        for name, settings in sorted(named.items())
        if name not in stored or stored[name].settings != settings
    ]
    gone = [group for group in stored.values() if group.source == source and group.name not in named]
    if gone:
        used = {name for job in jobs for name in job.groups}
        changes += [GroupChange(group.name, group.settings, None) for group in gone if group.name not in used]
    return changes


def own_groups(reading: Reading) -> list[Group]:
    """Those that people made."""
    return [group for group in reading.groups() if not group.name.startswith(POOL[0])]


def write_groups(records: Records, desired: Iterable[GroupSettings], source: str, actor: str) -> list[GroupChange]:
    changes = plan_group_changes(records, desired, source, records.jobs(limit=_MOST_JOBS))
    for change in changes:
        old = records.group(change.name)
        if change.new is None:
            records.delete(group_key(change.name))
        else:
            _put(records, old, change.new, source, actor)
        append(records.tx, _event(records, change, actor))
    return changes


def _put(records: Records, old: Group | None, new: GroupSettings, source: str, actor: str) -> None:
    made = Group(
        name=new.name,
        limit=new.limit,
        rate=new.rate,
        version=1 if old is None else old.version + 1,
        source=source,
        updated_by=actor,
        updated_ms=records.now_ms,
    )
    starts = () if old is None or new.rate is None else old.starts
    records.put(replace(made, starts=starts))


def _event(records: Records, change: GroupChange, actor: str) -> Event:
    kind = "Removed" if change.new is None else "New" if change.old is None else "Changed"
    data: dict[str, object] = {"group": change.name}
    if change.new is not None:
        rate = change.new.rate
        data |= {"limit": change.new.limit, "rate": None if rate is None else [rate.count, rate.per_ms]}
    return Event(name=f"Group{kind}", at_ms=records.now_ms, actor=actor, data=data)


def leave_changed_groups(records: Records, job: str) -> None:
    """Those of a job that stand in line for groups it is no longer in, or weigh otherwise, are admitted anew."""
    for one in records.queued(job):
        if one.lines:
            records.put(leave_lines(one))
