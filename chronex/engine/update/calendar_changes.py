"""What is the same of two readings of a calendar, so that a new year or a new package is not taken for an edit.

A calendar is made anew with every apply, up to a later day each year and by the data of that moment. Where the days
to come are the same, the job keeps the calendar that it has: it gets no new version, and no missed instant is lost.
"""

from __future__ import annotations

from msgspec.structs import replace

from chronex.model.calendars import CalendarRules, JobCalendar
from chronex.model.job import Job
from chronex.text.durations import DAY_MS

# A calendar that reaches at least so far is not renewed for its reach alone.
ENOUGH_DAYS = 2 * 366


def with_kept_calendars(old: Job, new: Job, now_ms: int) -> Job:
    """`new` with those calendars of `old` that say the same and still reach far enough."""
    before, after = old.calendars, new.calendars
    if before is None or after is None:
        return new
    today = now_ms // DAY_MS
    rules = replace(
        after,
        excluded=_kept(before.excluded, after.excluded, today),
        only=_kept(before.only, after.only, today),
        blackout=_kept(before.blackout, after.blackout, today),
    )
    return replace(new, calendars=rules)


def _kept(old: tuple[JobCalendar, ...], new: tuple[JobCalendar, ...], today: int) -> tuple[JobCalendar, ...]:
    known = {calendar.name: calendar for calendar in old}
    return tuple(_older_or(known.get(calendar.name), calendar, today) for calendar in new)


def _older_or(old: JobCalendar | None, new: JobCalendar, today: int) -> JobCalendar:
    reaches = old is not None and (old.until_day is None or old.until_day - today >= ENOUGH_DAYS)
    return old if old is not None and reaches and say_the_same(old, new, today) else new


def say_the_same(old: JobCalendar, new: JobCalendar, today: int) -> bool:
    """Do both contain the same from today on, as far as both are known?"""
    if (old.source, old.origin, old.weekdays, old.weekend) != (new.source, new.origin, new.weekdays, new.weekend):
        return False
    until = min((one.until_day for one in (old, new) if one.until_day is not None), default=None)
    end = None if until is None else (until + 1) * 86_400
    return _cut(old.days, today, until) == _cut(new.days, today, until) and (
        _cut(old.times, today * 86_400, end) == _cut(new.times, today * 86_400, end)
    )


def _cut(edges: tuple[int, ...], begin: int, end: int | None) -> list[int]:
    """The spans that are not over at `begin` and begin up to `end`, each cut to that."""
    found: list[int] = []
    for first, last in zip(edges[::2], edges[1::2], strict=True):
        if last >= begin and (end is None or first <= end):
            found += (max(first, begin), last if end is None else min(last, end))
    return found


def exclude_the_same(old: CalendarRules | None, new: CalendarRules | None, now_ms: int) -> bool:
    """Do the instants of a job stay where they are under the other rules? A blackout moves none of them."""
    before, after = old or CalendarRules(), new or CalendarRules()
    if (before.on_excluded, before.workday) != (after.on_excluded, after.workday):
        return False
    if (len(before.excluded), len(before.only)) != (len(after.excluded), len(after.only)):
        return False
    pairs = zip((*before.excluded, *before.only), (*after.excluded, *after.only), strict=True)
    return all(say_the_same(one, other, now_ms // DAY_MS) for one, other in pairs)
