"""What an update does, or would do, to the jobs and their coming runs: lines for people, values for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from chronex.cli.output import rfc3339, time_text, timed
from chronex.text.terminal import terminal_safe

if TYPE_CHECKING:
    from chronex.engine.update import Changed
    from chronex.engine.update.diff import Losses
    from chronex.engine.update.group_changes import GroupChange
    from chronex.model.groups import GroupSettings
    from chronex.timing.zones import Zone
    from chronex.views.apply_preview import JobPreview, Preview
    from chronex.views.coming_runs import ForecastRun

# So many lines of each kind of effect on each job are shown to people; programs get them all.
_MOST_LINES = 10
# The change of a job in words; programs get the value of the classification, which is a promise to them.
_CHANGE_WORDS = {"preserved": "unchanged", "overridden": "changed", "orphaned": "removed"}


def preview_lines(seen: Preview, zone: Callable[[str], Zone]) -> Iterator[str]:
    effects = {effect.job: effect for effect in seen.effects}
    for change in seen.changes:
        yield change_line(change)
        if change.job in effects:
            yield from effect_lines(effects[change.job], zone(change.job))
    yield from map(group_change_line, seen.groups)
    if seen.fires_now:
        yield "FIRES NOW: this edit starts runs at once"


def lost_of(changes: Iterable[Changed]) -> Losses:
    from chronex.engine.update.diff import Change, Losses

    kinds = [change.change for change in changes if change.change is not Change.NEW]
    return Losses(kinds.count(Change.REMOVED), len(kinds))


def change_word(change: Changed) -> str:
    return _CHANGE_WORDS.get(change.change.value, change.change.value)


def change_line(change: Changed) -> str:
    return f"{change_word(change):10} {change.job}"


def group_change_line(change: GroupChange) -> str:
    """`changed    group database: 2 at once -> 3 at once`."""
    from chronex.views.group_rows import limits_text

    sides = [limits_text(side) for side in (change.old, change.new) if side is not None]
    word = "new" if change.old is None else "removed" if change.new is None else "changed"
    return f"{word:10} group {change.name}: {' -> '.join(sides)}"


def group_change_rows(changes: Iterable[GroupChange]) -> list[dict[str, Any]]:
    def row(side: GroupSettings | None) -> dict[str, Any] | None:
        if side is None:
            return None
        rate = None if side.rate is None else {"count": side.rate.count, "per_ms": side.rate.per_ms}
        return {"limit": side.limit, "rate": rate}

    return [{"group": one.name, "from": row(one.old), "to": row(one.new)} for one in changes]


def change_rows(changes: Iterable[Changed]) -> list[dict[str, Any]]:
    return [{"job": c.job, "change": c.change.value, "version": c.version or None} for c in changes]


def effect_json(effect: JobPreview) -> dict[str, Any]:
    def times(one: Any) -> dict[str, Any]:
        return {**timed("nominal", one.nominal_ms), **timed("due", one.due_ms), **timed("latest", one.latest_ms)}

    return {
        "job": effect.job,
        "after": list(effect.after),
        **timed("until", effect.until_ms),
        "added": [times(one) for one in effect.added],
        "removed": [times(one) for one in effect.removed],
        "moved": [{"from": times(pair.before), "to": times(pair.after)} for pair in effect.moved],
        "fires_now": [rfc3339(one.nominal_ms) for one in effect.fires_now],
        "fires_now_ms": [one.nominal_ms for one in effect.fires_now],
        "may_wait_for": list(effect.may_wait),
        "first_later": None if effect.first_later is None else times(effect.first_later),
        "barred": [{**timed("nominal", one.nominal_ms), "reason": str(one.reason)} for one in effect.barred],
    }


def effect_lines(effect: JobPreview, zone: Zone) -> Iterator[str]:
    def at(ms: int) -> str:
        return time_text(ms, zone)

    def lines(kind: str, instants: Sequence[Any], text: Callable[[Any], str]) -> Iterator[str]:
        for one in instants[:_MOST_LINES]:
            yield f"  {kind:9} {text(one)}"
        if len(instants) > _MOST_LINES:
            yield f"  {kind:9} … {len(instants) - _MOST_LINES} more until {at(effect.until_ms)}"

    if effect.after:
        yield f"  follows   {', '.join(effect.after)}"
    yield from lines("fires now", effect.fires_now, lambda one: f"the instant of {at(one.nominal_ms)}")
    yield from lines("moved", effect.moved, lambda pair: f"{at(pair.before.due_ms)} -> {at(pair.after.due_ms)}")
    yield from lines("removed", effect.removed, lambda one: at(one.due_ms))
    yield from lines("added", effect.added, lambda one: at(one.due_ms) + _moved(one, zone))
    if effect.may_wait and (effect.added or effect.moved):
        yield f"  {'may wait':9} each for {terminal_safe(', '.join(effect.may_wait))}"
    if effect.first_later is not None:
        yield f"  {'first':9} {at(effect.first_later.due_ms)}{_moved(effect.first_later, zone)}"
    if effect.not_before_ms is not None:
        yield f"  {'first':9} not before {at(effect.not_before_ms)}; what comes then was not looked at"
    if effect.never:
        yield f"  {'never':9} nothing of its schedule will start"
    yield from lines("no run", effect.barred, lambda one: f"{at(one.nominal_ms)}: {one.reason}")


def _moved(one: ForecastRun, zone: Zone) -> str:
    moved = one.moved
    return "" if moved is None else f", moved by {moved.calendar} from {time_text(moved.nominal_ms, zone)}"
