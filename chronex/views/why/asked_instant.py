"""The time in a question: what the words mean, and which instant of the job they ask for."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from chronex.errors import CustomScheduleError
from chronex.model.job import Job
from chronex.model.occurrence import occurrence_id
from chronex.model.policies import Cadence
from chronex.storage import keys
from chronex.storage.records import Reading
from chronex.text.durations import parse_duration
from chronex.timing.clock_changes import effect_of, note_of
from chronex.timing.dst import wall_to_instant
from chronex.timing.job_schedule import RandomInterval, schedule_of, timing_of
from chronex.timing.occurrences import Occurrences
from chronex.timing.zones import Zone, load_zone
from chronex.views.why.answer import Link, Source, moment, stamp
from chronex.views.why.job_versions import Lives

_CLOCK = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?", re.ASCII)
_RELATIVE = re.compile(r"([+-])(.+)", re.ASCII)
_SECOND, _MINUTE, _DAY = 1_000, 60_000, 86_400_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FURTHEST_MS = 250_000_000_000_000  # within the years that a date can name


class Asked(NamedTuple):
    """The instants [at, at + width): a minute is asked for as a whole. `toward` is -1 or 1 for a relative time."""

    at_ms: int
    width_ms: int = 1
    toward: int = 0
    wall_ms: int | None = None  # as written, where the zone decides which instant it is


def read_time(text: str, zone: Zone, now_ms: int) -> Asked | None:
    """ISO 8601, HH:MM of today in `zone`, `-2h`, `+1d`, `now`; None where it is none of these."""
    if text == "now":
        return Asked(now_ms, toward=-1)
    if match := _RELATIVE.fullmatch(text):
        distance = parse_duration(match[2])
        if distance is None:
            return None
        toward = -1 if match[1] == "-" else 1
        return Asked(now_ms + toward * distance, toward=toward)
    if match := _CLOCK.fullmatch(text):
        return _of_today(int(match[1]), int(match[2]), match[3], zone, now_ms)
    return _iso(text, zone)


def _of_today(hour: int, minute: int, second: str | None, zone: Zone, now_ms: int) -> Asked | None:
    if hour > 23 or minute > 59 or int(second or 0) > 59:
        return None
    midnight = moment(now_ms, zone).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=UTC, fold=0)
    wall = midnight + timedelta(hours=hour, minutes=minute, seconds=int(second or 0))
    return _on_the_wall(wall, zone, _MINUTE if second is None else _SECOND)


def _iso(text: str, zone: Zone) -> Asked | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    width = _DAY if _is_date(text) else 1 if found.microsecond else _SECOND if found.second else _MINUTE
    if found.tzinfo is None:
        return _on_the_wall(found, zone, width)
    try:
        ms = (found - _EPOCH) // timedelta(milliseconds=1)
    except OverflowError:
        return None
    return Asked(ms, width)


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _on_the_wall(wall: datetime, zone: Zone, width_ms: int) -> Asked:
    wall_ms = (wall.replace(tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)
    return Asked(wall_to_instant(wall_ms, zone), width_ms, wall_ms=wall_ms)


def by_occurrence(reading: Reading, job: str, wanted: str) -> int | None:
    """The nominal time behind an occurrence's id, from the keys of the job's history alone."""
    prefix, after = keys.within_job(keys.OCCURRENCE, job), None
    while rows := reading.tx.scan(prefix, after, reverse=True):
        for key, _ in rows:
            nominal = keys.nominal_of(key)
            if occurrence_id(job, nominal) == wanted:
                return nominal
        after = rows[-1][0]
    return None


def instant_of(reading: Reading, lives: Lives, asked: Asked, now_ms: int) -> int:
    """The instant that is meant: one on record, else one that the schedule names, else the time itself."""
    if not -_FURTHEST_MS < asked.at_ms < _FURTHEST_MS:
        return max(min(asked.at_ms, _FURTHEST_MS), -_FURTHEST_MS)
    if asked.toward:
        return _nearest(reading, lives, asked)
    job = lives.last.id
    start = keys.occurrence_key(job, asked.at_ms - 1)
    for key, _ in reading.tx.scan(keys.within_job(keys.OCCURRENCE, job), start, 1):
        if keys.nominal_of(key) < asked.at_ms + asked.width_ms:
            return keys.nominal_of(key)
    version = lives.in_force(asked.at_ms) or lives.last
    named = next_of(version, asked.at_ms - 1)
    return named if named is not None and named < asked.at_ms + asked.width_ms else asked.at_ms


def _nearest(reading: Reading, lives: Lives, asked: Asked) -> int:
    """`-2h` asks for the last occurrence not after that time, `+2h` for the first not before it."""
    version = lives.in_force(asked.at_ms) or lives.last
    if asked.toward > 0:
        found = next_of(version, asked.at_ms - 1)
        return asked.at_ms if found is None else found
    recorded = [one.nominal_ms for one in reading.occurrences(lives.last.id, asked.at_ms + 1, 1)]
    named = previous_of(version, asked.at_ms + 1)
    if named is not None and named >= lives.first_ms:
        recorded.append(named)
    return max(recorded, default=asked.at_ms)


def clock_links(job: Job, asked: Asked) -> list[Link]:
    """The time as written does not exist on that day, or exists twice."""
    timing = timing_of(job)
    if asked.wall_ms is None or timing is None:
        return []
    zone, second = timing.zone, asked.wall_ms // 1000
    for change in zone.changes(second - 2 * 86_400, second + 2 * 86_400):
        low, high = sorted((change.at + change.before, change.at + change.after))
        if low <= second < high:
            return [_clock_link(timing, change.is_gap, change.at, change.after, second)]
    return []


def _clock_link(timing: Occurrences, is_gap: bool, at: int, after: int, second: int) -> Link:
    change = next(c for c in timing.zone.changes(at, at + 1))
    effect = effect_of(timing, change).text
    if is_gap:
        words = f"this time does not exist on that day: the clock goes forward to {stamp(at * 1000, timing.zone)}"
    else:
        other = stamp((second - after) * 1000, timing.zone)
        words = f"this time happens twice on that day; the first is meant, the second is {other}"
    return Link(f"{words}; {effect}", None, Source.SCHEDULE)


def zone_of(job: Job) -> Zone:
    timing = timing_of(job)
    return load_zone(job.timezone) if timing is None else timing.zone


def clock_note(job: Job, instant_ms: int) -> str:
    """What a clock change did to this instant; empty where nothing."""
    timing = timing_of(job)
    return "" if timing is None else note_of(timing, instant_ms)


def next_of(job: Job, after_ms: int) -> int | None:
    try:
        return schedule_of(job).next(after_ms)
    except CustomScheduleError:
        return None


def previous_of(job: Job, before_ms: int) -> int | None:
    try:
        return schedule_of(job).previous(before_ms)
    except CustomScheduleError:
        return None


def names_instant(job: Job, instant_ms: int) -> bool:
    """Does this version of the schedule fire at exactly this instant?"""
    return next_of(job, instant_ms - 1) == instant_ms


def is_untraceable(job: Job) -> bool:
    """Its instants follow from what happened, or from a program: only records tell them."""
    if timing_of(job) is None or job.cadence is Cadence.FIXED_DELAY:
        return True
    return isinstance(schedule_of(job), RandomInterval)
