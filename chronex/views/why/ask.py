"""The question `why`: which instant of the job its time means, and which of the answers that instant gets."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from chronex.model.job import Job
from chronex.model.occurrence import occurrence_id
from chronex.storage import keys
from chronex.storage.records import Reading
from chronex.text.durations import DAY_MS, MINUTE_MS, SECOND_MS, parse_duration
from chronex.text.instants import FIRST_MS, LAST_MS, epoch_ms, local_datetime, with_named_day
from chronex.timing.clock_changes import effect_of
from chronex.timing.dst import wall_to_instant
from chronex.timing.job_schedule import timing_of
from chronex.timing.occurrences import Occurrences
from chronex.timing.zones import Zone
from chronex.views.nodes import WATCHED, Watch
from chronex.views.why.across_nodes import on_each
from chronex.views.why.answer import Link, Source, WhyAnswer, stamp
from chronex.views.why.recorded import recorded
from chronex.views.why.schedule_versions import VersionHistory, next_of, previous_of, version_history
from chronex.views.why.unrecorded import ahead, unrecorded

_CLOCK = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?", re.ASCII)
_RELATIVE = re.compile(r"([+-])(.+)", re.ASCII)


def why(reading: Reading, job: str, instant_ms: int, now_ms: int, watch: Watch = WATCHED) -> WhyAnswer | None:
    """What happened, or will happen, to `job` at exactly `instant_ms`; None where the store has no such job.

    `watch` says whether a scheduler is there to start and to record what the answer speaks of.
    """
    history = version_history(reading, job)
    if history is None:
        return None
    occurrence = reading.occurrence(job, instant_ms)
    if occurrence is not None:
        return recorded(reading, history, occurrence, now_ms, watch)
    if (spread := on_each(reading, history, instant_ms)) is not None:
        return spread
    if instant_ms > now_ms:
        return ahead(reading, history, instant_ms, now_ms, watch)
    return unrecorded(reading, history, instant_ms, now_ms)


def latest_and_next(reading: Reading, job: str, now_ms: int, watch: Watch = WATCHED) -> list[WhyAnswer]:
    """Without a time: the last thing that happened, and the next that will.

    Where no scheduler runs, the newest time that has passed meanwhile stands between them: nobody has decided it.
    """
    history = version_history(reading, job)
    if history is None:
        return []
    answers = []
    latest = reading.occurrences(job, now_ms + 1, 1)
    if latest:
        answers.append(recorded(reading, history, latest[0], now_ms, watch))
    if not watch.has_scheduler and (passed := _passed_since_then(history, now_ms)) is not None:
        answers += filter(None, [why(reading, job, passed, now_ms, watch)])
    upcoming = _upcoming(reading, history, now_ms)
    if upcoming is not None:
        found = why(reading, job, upcoming, now_ms, watch)
        answers += [found] if found else []
    return answers


def _passed_since_then(history: VersionHistory, now_ms: int) -> int | None:
    """The newest time of its schedule behind what was decided last."""
    cursor_ms = history.last.progress.cursor_ms
    if history.is_gone or not history.last.enabled or cursor_ms is None:
        return None
    passed = previous_of(history.last, now_ms + 1)
    return passed if passed is not None and passed > cursor_ms else None


def _upcoming(reading: Reading, history: VersionHistory, now_ms: int) -> int | None:
    pending = [o.nominal_ms for o in reading.occurrences(history.last.id, None, 20) if o.nominal_ms > now_ms]
    if pending:
        return min(pending)
    return None if history.is_gone else next_of(history.last, max(now_ms, history.last.progress.cursor_ms or now_ms))


class AskedTime(NamedTuple):
    """The instants [at, at + width): a minute is asked for as a whole. `toward` is -1 or 1 for a relative time."""

    at_ms: int
    width_ms: int = 1
    toward: int = 0
    wall_ms: int | None = None  # as written, where the zone decides which instant it is


def read_time(text: str, zone: Zone, now_ms: int) -> AskedTime | None:
    """ISO 8601, HH:MM of today in `zone`, `yesterday 03:00`, `-2h`, `+1d`, `now`; None where it is none of these."""
    if text == "now":
        return AskedTime(now_ms, toward=-1)
    if match := _RELATIVE.fullmatch(text):
        distance = parse_duration(match[2])
        if distance is None:
            return None
        toward = -1 if match[1] == "-" else 1
        return AskedTime(now_ms + toward * distance, toward=toward)
    if match := _CLOCK.fullmatch(text):
        return _of_today(int(match[1]), int(match[2]), match[3], zone, now_ms)
    return _iso(with_named_day(text, local_datetime(now_ms, zone.tzinfo).date()), zone)


def _of_today(hour: int, minute: int, second: str | None, zone: Zone, now_ms: int) -> AskedTime | None:
    if hour > 23 or minute > 59 or int(second or 0) > 59:
        return None
    midnight = local_datetime(now_ms, zone.tzinfo).replace(
        hour=0, minute=0, second=0, microsecond=0, tzinfo=UTC, fold=0
    )
    wall = midnight + timedelta(hours=hour, minutes=minute, seconds=int(second or 0))
    return _on_the_wall(wall, zone, MINUTE_MS if second is None else SECOND_MS)


def _iso(text: str, zone: Zone) -> AskedTime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    width = DAY_MS if _is_date(text) else 1 if found.microsecond else SECOND_MS if found.second else MINUTE_MS
    if found.tzinfo is None:
        return _on_the_wall(found, zone, width)
    try:
        ms = epoch_ms(found)
    except OverflowError:
        return None
    return AskedTime(ms, width)


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _on_the_wall(wall: datetime, zone: Zone, width_ms: int) -> AskedTime:
    wall_ms = epoch_ms(wall.replace(tzinfo=UTC))
    return AskedTime(wall_to_instant(wall_ms, zone), width_ms, wall_ms=wall_ms)


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


def instant_of(reading: Reading, history: VersionHistory, asked: AskedTime, now_ms: int) -> int:
    """The instant that is meant: one on record, else one that the schedule names, else the time itself."""
    if not FIRST_MS < asked.at_ms < LAST_MS:  # `-9000000d`
        return max(min(asked.at_ms, LAST_MS), FIRST_MS)
    if asked.toward:
        return _nearest_to(reading, history, asked)
    job = history.last.id
    start = keys.occurrence_key(job, asked.at_ms - 1)
    for key, _ in reading.tx.scan(keys.within_job(keys.OCCURRENCE, job), start, 1):
        if keys.nominal_of(key) < asked.at_ms + asked.width_ms:
            return keys.nominal_of(key)
    version = history.in_force(asked.at_ms) or history.last
    named = next_of(version, asked.at_ms - 1)
    return named if named is not None and named < asked.at_ms + asked.width_ms else asked.at_ms


def _nearest_to(reading: Reading, history: VersionHistory, asked: AskedTime) -> int:
    """`-2h` asks for the last occurrence not after that time, `+2h` for the first not before it."""
    version = history.in_force(asked.at_ms) or history.last
    if asked.toward > 0:
        found = next_of(version, asked.at_ms - 1)
        return asked.at_ms if found is None else found
    recorded = [one.nominal_ms for one in reading.occurrences(history.last.id, asked.at_ms + 1, 1)]
    named = previous_of(version, asked.at_ms + 1)
    if named is not None and named >= history.first_ms:
        recorded.append(named)
    return max(recorded, default=asked.at_ms)


def clock_links(job: Job, asked: AskedTime) -> list[Link]:
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
