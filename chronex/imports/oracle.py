"""When cron and Kubernetes themselves would fire: an evaluator that is independent of Chronex's own.

The proof of an import compares two independent answers, so nothing here uses Chronex's parser or search; only the
clock changes of a zone are shared, and the grammars of the crons, which were checked against the programs themselves.

- cron: each program by its own grammar (chronex/lint/cron_grammar.py). In those of Vixie's line (Debian, cronie, BSD)
  a day field that begins with `*` is no restriction (so with `*/2` beside a weekday both must
  hold). When the clock is set forward, a job at fixed times that was jumped over runs at once; one with `*` in its
  minute or hour follows the wall clock. When it is set back, a job at fixed times does not run again, one with `*`
  does.
- kubernetes (robfig/cron): only a plain `*` or `?` is no restriction; the wall clock alone decides, so a skipped time
  does not run and a repeated one runs twice.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator
from datetime import date, timedelta
from typing import NamedTuple

from chronex.imports.kubernetes_calendar import kubernetes_instants
from chronex.lint.cron_grammar import CronRefusal, read_schedule
from chronex.lint.cron_programs import DEBIAN, CronProgram
from chronex.lint.kubernetes_grammar import read_for_kubernetes
from chronex.text.instants import EPOCH_ORDINAL
from chronex.timing.zones import Zone

_DAY = 86_400
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_NICKNAMES = {
    "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}  # fmt: skip


class CronRules(NamedTuple):
    """The points in which the implementations differ: whether `*/2` restricts its field as little as `*` does, and
    whether a job at fixed times runs once on a day whose clock is set."""

    name: str
    step_is_free: bool
    fixed_times_follow_the_day: bool
    program: CronProgram | None = None  # the cron whose grammar holds


def rules_of(program: CronProgram) -> CronRules:
    return CronRules(
        "cron", step_is_free=True, fixed_times_follow_the_day=not program.follows_the_clock, program=program
    )


CRON = rules_of(DEBIAN)
KUBERNETES = CronRules("kubernetes", step_is_free=False, fixed_times_follow_the_day=False)


class CronPattern(NamedTuple):
    """The five fields as sets. `free_days` and `free_weekdays` mark fields that restrict nothing; `has_star` that the
    minute or hour begins with `*`, so that the wall clock alone decides. The two sorts of rules are days by their
    place in the month, beside those of the sets: `l`, `lw` and `15w`, and `fril` and `fri#2`."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    free_days: bool
    free_weekdays: bool
    has_star: bool
    day_rules: tuple[str, ...] = ()
    weekday_rules: tuple[str, ...] = ()

    def holds_on(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        by_day = day.day in self.days or any(_is_day(rule, day) for rule in self.day_rules)
        weekday = day.isoweekday() % 7
        by_weekday = weekday in self.weekdays or any(_is_weekday(rule, weekday, day) for rule in self.weekday_rules)
        if self.free_days or self.free_weekdays:
            return by_day and by_weekday
        return by_day or by_weekday


def _is_day(rule: str, day: date) -> bool:
    """`l`, `lw` and `15w`: a working day is the nearest in the same month."""
    last = monthrange(day.year, day.month)[1]
    if rule == "l":
        return day.day == last
    meant = last if rule == "lw" else int(rule[:-1])
    if meant > last:
        return False
    weekday = day.replace(day=meant).isoweekday()
    if weekday == 6:
        meant += -1 if meant > 1 else 2
    elif weekday == 7:
        meant += 1 if meant < last else -2
    return day.day == meant


def _is_weekday(rule: str, weekday: int, day: date) -> bool:
    """`fril` and `5#2`."""
    name, hash_sign, place = rule.partition("#")
    if not hash_sign:
        name = name.removesuffix("l")
    if (int(name) % 7 if name.isdigit() else _WEEKDAYS.index(name[:3])) != weekday:
        return False
    if hash_sign:
        return (day.day - 1) // 7 + 1 == int(place)
    return day.day + 7 > monthrange(day.year, day.month)[1]


def pattern_of(text: str, rules: CronRules) -> CronPattern | None:
    """The fields as the source reads them; None where it refuses the text or never fires, or for no calendar."""
    if rules.program is not None:
        return _pattern_of_cron(text, rules.program)
    taken = read_for_kubernetes(text)
    fields = [] if taken is None or taken.text is None else _NICKNAMES.get(taken.text, taken.text).split()
    if len(fields) != 5:
        return None
    ranges = ((0, 59, ()), (0, 23, ()), (1, 31, ()), (1, 12, _MONTHS), (0, 6, _WEEKDAYS))
    read = [_field(field, *bounds) for field, bounds in zip(fields, ranges, strict=True)]
    if any(values is None for values in read):
        return None
    minutes, hours, days, months, weekdays = (values or frozenset() for values in read)
    return CronPattern(
        minutes, hours, days, months, weekdays,
        free_days=_is_free(fields[2], rules), free_weekdays=_is_free(fields[4], rules),
        has_star=fields[0].startswith("*") or fields[1].startswith("*"),
    )  # fmt: skip


def _pattern_of_cron(text: str, program: CronProgram) -> CronPattern | None:
    reading = read_schedule(text, program)
    if isinstance(reading, CronRefusal) or not reading.fields or reading.is_random:
        return None
    if not reading.ever_matches:
        return None
    minutes, hours, days, months, weekdays = reading.fields
    return CronPattern(
        minutes.values, hours.values, days.values, months.values, weekdays.values,
        free_days=days.is_free, free_weekdays=weekdays.is_free,
        has_star=minutes.is_free or hours.is_free,
        day_rules=days.day_rules, weekday_rules=weekdays.day_rules,
    )  # fmt: skip


def _is_free(field: str, rules: CronRules) -> bool:
    return field[0] in "*?" if rules.step_is_free else field in ("*", "?", "*/1")


def _field(text: str, low: int, high: int, names: tuple[str, ...]) -> frozenset[int] | None:
    values: set[int] = set()
    for element in text.split(","):
        span, _, step_text = element.partition("/")
        step = int(step_text) if step_text.isdecimal() else 1 if "/" not in element else 0
        bounds = _span(span, low, high, names, is_stepped="/" in element)
        if bounds is None or step < 1:
            return None
        values.update(range(bounds[0], bounds[1] + 1, step))
    return frozenset(values)


def _span(text: str, low: int, high: int, names: tuple[str, ...], *, is_stepped: bool) -> tuple[int, int] | None:
    if text in ("*", "?"):
        return low, high
    first, dash, last = text.partition("-")
    begin = _value(first, low, names)
    end = _value(last, low, names) if dash else high if is_stepped else begin
    if begin is None or end is None or not low <= begin <= end <= high:
        return None
    return begin, end


def _value(text: str, low: int, names: tuple[str, ...]) -> int | None:
    if text.isdecimal() and text.isascii():
        return int(text)
    word = text.lower()[:3]
    return names.index(word) + low if word in names else None


def instants(pattern: CronPattern, rules: CronRules, zone: Zone, start: int, end: int) -> Iterator[int]:
    """Every UTC second in [start, end) at which the source fires, in order."""
    if rules.program is None:
        wanted = (pattern.minutes, pattern.hours, pattern.months, pattern.holds_on)
        yield from kubernetes_instants(
            wanted, zone, start, end, lambda since, until: _instants(pattern, rules, zone, since, until)
        )
    else:
        yield from _instants(pattern, rules, zone, start, end)


def _instants(pattern: CronPattern, rules: CronRules, zone: Zone, start: int, end: int) -> Iterator[int]:
    times = sorted(hour * 3600 + minute * 60 for hour in pattern.hours for minute in pattern.minutes)
    day = (start + zone.offset_at(start)) // _DAY - 1
    last = (end + zone.offset_at(end)) // _DAY + 1
    while day <= last:
        if pattern.holds_on(date.fromordinal(day + EPOCH_ORDINAL)):
            found = (
                _on_transition_day(day, times, pattern, rules, zone)
                if zone.is_transition_day(day)
                else _on_plain_day(day, times, zone)
            )
            yield from (second for second in found if start <= second < end)
        day += 1


def _on_plain_day(day: int, times: list[int], zone: Zone) -> list[int]:
    midnight = day * _DAY
    shift = midnight - zone.offset_at(midnight - zone.offset_at(midnight))
    return [shift + time for time in times]


def _on_transition_day(day: int, times: list[int], pattern: CronPattern, rules: CronRules, zone: Zone) -> list[int]:
    """The instants of a day on which the clock is set: every minute whose wall is wanted, in order."""
    wanted = set(times)
    follows_the_day = rules.fixed_times_follow_the_day and not pattern.has_star
    begin, end = (day - 1) * _DAY, (day + 2) * _DAY
    found: set[int] = set()
    passed: set[int] = set()
    for change in zone.changes(begin, end):
        jumped = range(change.at + change.before, change.at + change.after, 60)
        if follows_the_day and any(wall // _DAY == day and wall % _DAY in wanted for wall in jumped):
            found.add(change.at)
    for since, until, offset in _stretches(zone, begin, end):
        for time in times:
            second = day * _DAY + time - offset
            if not since <= second < until or (follows_the_day and time in passed):
                continue
            passed.add(time)
            found.add(second)
    return sorted(found)


def _stretches(zone: Zone, begin: int, end: int) -> Iterator[tuple[int, int, int]]:
    """From when until when the clock has been set so far from UTC."""
    since, offset = begin, zone.offset_at(begin)
    for change in zone.changes(begin + 1, end):
        yield since, change.at, offset
        since, offset = change.at, change.after
    yield since, end, offset


def five_years(now_s: int) -> tuple[int, int]:
    """The five years to compare, from the next whole minute: start and end in UTC seconds."""
    start = -(-now_s // 60) * 60
    return start, start + int(timedelta(days=5 * 365 + 2).total_seconds())
