"""What a host does with a schedule that is valid: too often, too crowded, too slow to retry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from chronex.expr.diagnostics import WARNING
from chronex.expr.meaning import Cron, Every
from chronex.jobfile.positions import TextNode
from chronex.lint.document import Document
from chronex.lint.finders.job_files import scan_job_file
from chronex.lint.findings import INFO, Edit, Finding, Fix, Place
from chronex.lint.hosts import GITHUB
from chronex.lint.schedules import CronSchedule, schedule_of
from chronex.lint.strings import text_of, toml_string
from chronex.lint.zones import abbreviation_message, is_abbreviation
from chronex.text.durations import format_duration, parse_duration
from chronex.timing.occurrences import LAST_MS, Occurrences

_SAMPLE_START = 1_704_067_200_000  # 2024-01-01: the shortest distance does not depend on today
_SAMPLE_SIZE = 400
_GITHUB_MINIMUM_MS = 5 * 60_000
_CROWD = 10
_MOST_STARTS = 48
_DAY_MS = 86_400_000
_MOST_RETRIES = 1_000


def place_rules(place: Place, reference_ms: int) -> Iterator[Finding]:
    """Advice on one expression that its host takes."""
    if place.host is not GITHUB and "TZ=" not in place.text:
        return
    schedule = schedule_of(place, reference_ms)
    if not isinstance(schedule, CronSchedule):
        return
    if place.host is GITHUB:
        yield from _github(place, schedule)
    if schedule.meaning.zone and is_abbreviation(schedule.meaning.zone):
        at = place.text.find(schedule.meaning.zone)
        start, end = place.span(at, at + len(schedule.meaning.zone))
        yield Finding("W113", WARNING, abbreviation_message(schedule.meaning.zone), start, end, None, place)


def _github(place: Place, schedule: CronSchedule) -> Iterator[Finding]:
    body = schedule.meaning.body
    if not isinstance(body, Cron):
        return
    shortest = shortest_distance(schedule)
    start, end = place.span(0, len(place.text))
    if shortest is not None and shortest < _GITHUB_MINIMUM_MS:
        message = f"every {format_duration(shortest)}: GitHub runs a workflow at most once in 5 minutes"
        yield Finding("W131", WARNING, message, start, end, None, place)
    elif body.minute.values == 1 and body.minute.text.isdigit():
        message = "at minute 0 GitHub is busiest: the run comes late, or not at all; another minute is safer"
        start, end = place.span(*_first_word(place.text))
        yield Finding("W132", INFO, message, start, end, spread_fix(place), place)


def _first_word(text: str) -> tuple[int, int]:
    start = len(text) - len(text.lstrip(" \t"))
    return start, start + len(text.split(maxsplit=1)[0])


def spread_fix(place: Place) -> Fix | None:
    """Another minute, the same on every machine for the same job, away from the quarters of the hour."""
    if place.content is None:
        return None
    minute = 7 + sum(place.name.encode()) % 46
    minute += minute % 15 == 0
    start, end = place.span(*_first_word(place.text))
    return Fix(f"spread to minute {minute}", (Edit(start, end, str(minute)),), is_safe=False)


def shortest_distance(schedule: CronSchedule) -> int | None:
    """Between two runs, in milliseconds; None when there are no two."""
    meaning = schedule.meaning
    if isinstance(meaning.body, Every):
        return meaning.body.low
    timing = Occurrences(meaning._replace(options=type(meaning.options)()), schedule.zone)
    instants = islice(timing.between(_SAMPLE_START, LAST_MS), _SAMPLE_SIZE)
    return min((b - a for a, b in pairwise(instants)), default=None)


# -- chronex.toml as a whole ------------------------------------------------------------------------------


def job_file_rules(document: Document, places: Sequence[Place], reference_ms: int) -> Iterator[Finding]:
    root = scan_job_file(document.text)
    jobs, defaults = root.children.get("jobs"), root.children.get("defaults")
    for place in places:
        job = jobs.children.get(place.name) if jobs else None
        retry = (job.children.get("retry") if job else None) or (defaults.children.get("retry") if defaults else None)
        total = None if retry is None else _total_pause(retry, document.text)
        schedule = None if total is None else schedule_of(place, reference_ms)
        if total is not None and isinstance(schedule, CronSchedule):
            yield from _slow_retries(total, place, schedule)
    if len(places) > _CROWD and not (defaults is not None and "spread" in defaults.children):
        yield from _crowd(_unspread(places, jobs), reference_ms)


def _slow_retries(total: int, place: Place, schedule: CronSchedule) -> Iterator[Finding]:
    shortest = shortest_distance(schedule)
    if shortest is None or total <= shortest:
        return
    message = (
        f"the retries of '{place.name}' wait up to {format_duration(total)} in all, but it runs every "
        f"{format_duration(shortest)}: a run that keeps failing meets the next ones"
    )
    yield Finding("W151", WARNING, message, place.start, place.end, None, place)


def _total_pause(retry: TextNode, text: str) -> int | None:
    """All pauses of a run that never succeeds, in milliseconds; None when that is not written here."""

    def written(key: str) -> str:
        node = retry.children.get(key)
        return "" if node is None else text_of(node, text, toml_string) or text[node.value.start : node.value.end]

    interval, longest = parse_duration(written("interval")), parse_duration(written("max_interval"))
    try:
        count, factor = int(written("max")), float(written("backoff") or 1)
    except ValueError:
        return None
    if interval is None or not 1 <= count <= _MOST_RETRIES or not 1 <= factor <= 1000:
        return None
    pause, total = float(interval), 0.0
    for _ in range(count):
        total += pause if longest is None else min(pause, longest)
        pause = min(pause * factor, 1e15)
    return int(total)


def _unspread(places: Sequence[Place], jobs: TextNode | None) -> list[Place]:
    """The jobs that start on the second: no spread of their own, no jitter, no stagger."""
    found = []
    for place in places:
        job = jobs.children.get(place.name) if jobs else None
        if "{" not in place.text and "<" not in place.text and not (job is not None and "spread" in job.children):
            found.append(place)
    return found


def _crowd(places: list[Place], reference_ms: int) -> Iterator[Finding]:
    """Many jobs in the same minute of the coming day."""
    starts: Counter[int] = Counter()
    members: dict[int, Place] = {}
    for place in places:
        schedule = schedule_of(place, reference_ms)
        upcoming = schedule.upcoming(reference_ms, _MOST_STARTS) if schedule is not None else []
        for minute in {ms // 60_000 for ms in upcoming if ms < reference_ms + _DAY_MS}:
            starts[minute] += 1
            if starts[minute] == _CROWD + 1:
                members.setdefault(minute, place)
    if not members:
        return
    minute, count = max(((m, starts[m]) for m in members), key=lambda pair: (pair[1], -pair[0]))
    place = members[minute]
    message = f"{count} jobs start in the same minute as this one; spread or {{stagger:…}} keeps them apart"
    yield Finding("W152", INFO, message, place.start, place.end, spread_fix(place), place)
