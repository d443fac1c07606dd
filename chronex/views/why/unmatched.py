"""Why a schedule does not name an instant: which field says no, or which bound, or which clock change."""

from __future__ import annotations

from chronex.expr.fields import MONTHS, WEEKDAYS, FieldSet
from chronex.expr.meaning import Cron, Every, Once, Repeating
from chronex.model.job import Job
from chronex.text.durations import format_duration
from chronex.timing.clock_changes import effect_of
from chronex.timing.job_schedule import timing_of
from chronex.timing.occurrences import Occurrences
from chronex.views.why.answer import Link, Source, moment, stamp
from chronex.views.why.causes import Cause

_DAY = 86_400


def unmatched(job: Job, instant_ms: int) -> tuple[Cause, list[Link]]:
    """The links that say why this version of the job does not fire at `instant_ms`."""
    timing = timing_of(job)
    assert timing is not None, "only records speak for the schedule of a program"
    if instant_ms < timing.low:
        return Cause.BEFORE_FROM, [_link(f"the schedule begins only at {stamp(timing.low, timing.zone)} (from)")]
    if instant_ms > timing.high:
        return Cause.AFTER_UNTIL, [_link(f"the schedule ended at {stamp(timing.high, timing.zone)} (until)")]
    return Cause.NOT_MATCHED, [_link(fact) for fact in _facts(job, timing, instant_ms)]


def _link(fact: str) -> Link:
    return Link(fact, None, Source.SCHEDULE)


def _facts(job: Job, timing: Occurrences, instant_ms: int) -> list[str]:
    match timing.meaning.body:
        case Cron() as cron:
            return _cron_facts(cron, timing, instant_ms)
        case Every() as every if every.high is not None:
            return [f"{every} draws each distance when the run before it is decided; no record says it fell here"]
        case Every() as every:
            return [_interval_fact(job, every, timing, instant_ms)]
        case Once():
            at = timing.nearest(timing.low, 1)
            return [
                f"it runs once, at {stamp(at, timing.zone)}" if at is not None else "its only run is out of reach"
            ]
        case Repeating() as body:
            return [f"it repeats every {body.period} from {body.start}, and this is not one of its steps"]


def _interval_fact(job: Job, every: Every, timing: Occurrences, instant_ms: int) -> str:
    start = timing.interval_start(job.progress.anchor_ms or 0)
    if instant_ms < start:
        return f"{every} counts from {stamp(start, timing.zone)}, which is later"
    rest = (instant_ms - start) % every.low
    return f"{every} counts from {stamp(start, timing.zone)}; this is {format_duration(rest)} after one of its steps"


def _cron_facts(cron: Cron, timing: Occurrences, instant_ms: int) -> list[str]:
    when = moment(instant_ms, timing.zone)
    facts = [] if _day_matches(timing, instant_ms) else [_day_fact(cron, when.day, when.month, _weekday(when))]
    for name, value, field in (
        ("hour", when.hour, cron.hour), ("minute", when.minute, cron.minute), ("second", when.second, cron.second),
    ):  # fmt: skip
        if not field.values >> value & 1:
            facts.append(f"{name} {value} is not in {_shown(field)}")
    if not facts and instant_ms % 1000:
        facts.append("it fires on whole seconds")
    return facts + _clock_facts(timing, instant_ms, fits=not facts)


def _weekday(when: object) -> int:
    return (when.weekday() + 1) % 7  # type: ignore[attr-defined,no-any-return]


def _shown(field: FieldSet) -> str:
    return f"'{field.text}'"


def _day_matches(timing: Occurrences, instant_ms: int) -> bool:
    pattern = timing.pattern
    assert pattern is not None, "cron fields have their search"
    second = instant_ms // 1000
    midnight = (second + timing.zone.offset_at(second)) // _DAY * _DAY
    return any(True for _ in pattern.walls_between(midnight, midnight + _DAY - 1))


def _day_fact(cron: Cron, day: int, month: int, weekday: int) -> str:
    if not cron.month.values >> month & 1:
        return f"month {month} ({MONTHS[month - 1]}) is not in {_shown(cron.month)}"
    by_day = f"day {day} of the month is not in {_shown(cron.day_of_month)}"
    by_weekday = f"weekday {WEEKDAYS[weekday]} is not in {_shown(cron.day_of_week)}"
    if cron.day_of_month.is_star:
        return by_weekday
    return by_day if cron.day_of_week.is_star else f"{by_day}, and {by_weekday}"


def _clock_facts(timing: Occurrences, instant_ms: int, *, fits: bool) -> list[str]:
    """A clock change on that local day, where it touches the schedule."""
    second = instant_ms // 1000
    offset = timing.zone.offset_at(second)
    midnight = (second + offset) // _DAY * _DAY - offset
    facts = []
    for change in timing.zone.changes(midnight - 7_200, midnight + _DAY + 7_200):
        effect = effect_of(timing, change)
        if effect.touches:
            turn = "forward" if change.is_gap else "back"
            facts.append(f"the clock goes {turn} at {stamp(change.at * 1000, timing.zone)}: {effect.text}")
    if fits and not facts and not instant_ms % 1000:
        facts.append("the fields fit, yet the clock change of that day leaves no run here")
    return facts
