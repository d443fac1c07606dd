"""The rules on what a host does with a schedule that is valid: too often, or in its busiest minute."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise

from chronex.expr.diagnostics import INFO, WARNING, Message, Rule
from chronex.expr.meaning import Cron, Every
from chronex.lint.findings import Edit, Fix, LintFinding, ScheduleSite, finding
from chronex.lint.host_schedules import CronSchedule, schedule_of
from chronex.lint.hosts import GITHUB
from chronex.lint.rules import workflow
from chronex.lint.rules.zone_rules import zone_abbreviation_inside
from chronex.text.durations import format_duration
from chronex.text.instants import LAST_MS
from chronex.timing.occurrences import Occurrences

_SAMPLE_START = 1_704_067_200_000  # 2024-01-01: the shortest distance does not depend on today
_SAMPLE_SIZE = 400
_GITHUB_MINIMUM_MS = 5 * 60_000


def host_findings(site: ScheduleSite, reference_ms: int) -> Iterator[LintFinding]:
    """Advice on one expression that its host takes."""
    if site.host is not GITHUB and "TZ=" not in site.text:
        return
    schedule = schedule_of(site, reference_ms)
    if not isinstance(schedule, CronSchedule):
        return
    if site.host is GITHUB:
        yield from _github(site, schedule)
    yield from zone_abbreviation_inside(site, schedule.meaning.zone)


W131 = Rule(
    "W131",
    "more often than GitHub runs it",
    WARNING,
    "GitHub runs a workflow at most once in five minutes; what is asked for in between is dropped.",
    bad=workflow('"* * * * *"'),
    good=workflow('"*/5 * * * *"'),
    messages={"": Message("every {distance}: GitHub runs a workflow at most once in 5 minutes")},
)
W132 = Rule(
    "W132",
    "busiest minute at GitHub",
    INFO,
    "Everybody's workflows start at minute 0. GitHub delays them then, and drops some under high "
    "load; any other minute is safer.",
    bad=workflow('"0 4 * * *"'),
    good=workflow('"17 4 * * *"'),
    messages={
        "": Message("at minute 0 GitHub is busiest: the run comes late, or not at all", "another minute is safer"),
    },
)


def _github(site: ScheduleSite, schedule: CronSchedule) -> Iterator[LintFinding]:
    body = schedule.meaning.body
    if not isinstance(body, Cron):
        return
    shortest = shortest_distance(schedule)
    if shortest is not None and shortest < _GITHUB_MINIMUM_MS:
        start, end = site.span(0, len(site.text))
        yield finding(W131, start, end, site=site, distance=format_duration(shortest))
    elif body.minute.values == 1 and body.minute.text.isdigit():
        start, end = site.span(*_first_word(site.text))
        yield finding(W132, start, end, fix=spread_fix(site), site=site)


def _first_word(text: str) -> tuple[int, int]:
    start = len(text) - len(text.lstrip(" \t"))
    return start, start + len(text.split(maxsplit=1)[0])


def spread_fix(site: ScheduleSite) -> Fix | None:
    """Another minute, the same on every machine for the same job, away from the quarters of the hour."""
    if site.editable is None:
        return None
    minute = 7 + sum(site.name.encode()) % 46
    minute += minute % 15 == 0
    start, end = site.span(*_first_word(site.text))
    return Fix(f"spread to minute {minute}", (Edit(start, end, str(minute)),))


def shortest_distance(schedule: CronSchedule) -> int | None:
    """Between two runs, in milliseconds; None when there are no two."""
    meaning = schedule.meaning
    if isinstance(meaning.body, Every):
        return meaning.body.low
    timing = Occurrences(meaning._replace(options=type(meaning.options)()), schedule.zone)
    instants = islice(timing.between(_SAMPLE_START, LAST_MS, _SAMPLE_START), _SAMPLE_SIZE)
    return min((b - a for a, b in pairwise(instants)), default=None)


HOST_RULES = (W131, W132)
