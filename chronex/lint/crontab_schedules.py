"""A line of a crontab as its cron reads it: refused and why, read otherwise than it is written, or a schedule."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from chronex.expr.diagnostics import Diagnostic, diagnostic
from chronex.expr.fields import FieldSet
from chronex.expr.meaning import Cron, Meaning
from chronex.expr.parser import Parsed
from chronex.lint.cron_grammar import (
    FIELD_BOUNDS,
    FIELD_NAMES,
    CronField,
    CronReading,
    CronRefusal,
    read_schedule,
    refusals_of,
)
from chronex.lint.cron_programs import BCRON, BUSYBOX, DEBIAN, SUPERCRONIC, CronProgram
from chronex.lint.hosts import ScheduleHost, as_read_by, policy_for
from chronex.lint.rules.refusals import E130, E139, refused
from chronex.text.terminal import quoted
from chronex.timing import read
from chronex.timing.advice import advise
from chronex.timing.zones import Zone

_STEPPED_DAYS = re.compile(r"\*/0*([2-9]|[1-9][0-9]+)")
_STEP_ON_ONE_VALUE = re.compile(r"([0-9]+)/([0-9]+)")
_CLOCK_RULES = ("W111", "W112")


def judge_crontab(text: str, host: ScheduleHost, zone: Zone, reference_ms: int) -> Iterator[Diagnostic]:
    program = host.program or DEBIAN
    reading = read_schedule(text, program)
    if isinstance(reading, CronRefusal):
        seen = dict.fromkeys(d for each in refusals_of(text, program) for d in _refusal(text, host, each))
        yield from seen
        return
    misread = list(_misread(reading, host, program))
    yield from misread
    if misread or not reading.fields or reading.is_random:
        return
    parsed = read(text)
    meaning = meaning_of(parsed, reading, host)
    if meaning is None:
        return
    speaker = host.key if program not in (BUSYBOX, SUPERCRONIC) else program.key
    advice = advise(parsed._replace(meaning=meaning), zone, reference_ms, policy_for(host, meaning))
    for d in (*parsed.report.warnings, *advice):
        # What a clock change does to supercronic and bcron is not known well enough to be claimed.
        is_unclear = not program.clock_rule_is_known and d.code in _CLOCK_RULES
        if host.key not in d.rule.silent_for and not is_unclear:
            yield d.for_host(speaker)


def meaning_of(parsed: Parsed, reading: CronReading, host: ScheduleHost) -> Meaning | None:
    """The schedule with the values that this cron will match; None where there are no next runs to tell."""
    if parsed.meaning is None or not reading.fields or reading.is_random:
        return None
    meaning = as_read_by(host, parsed.meaning)
    body = meaning.body
    if not isinstance(body, Cron):
        return None
    fields = (body.minute, body.hour, body.day_of_month, body.month, body.day_of_week)
    read_by_cron = [
        own if own.rules else _with_values(own, _bits(theirs.values, bounds.low))
        for own, theirs, bounds in zip(fields, reading.fields, FIELD_BOUNDS, strict=True)
    ]
    if host.program in (BUSYBOX, SUPERCRONIC):
        # For BusyBox a day field with all its values restricts nothing, for supercronic one with a `*` in its list.
        read_by_cron[2] = read_by_cron[2]._replace(is_star=reading.fields[2].is_free)
        read_by_cron[4] = read_by_cron[4]._replace(is_star=reading.fields[4].is_free)
    if all(ours is theirs for ours, theirs in zip(fields, read_by_cron, strict=True)):
        return meaning  # as nearly always
    minute, hour, day, month, weekday = read_by_cron
    body = body._replace(minute=minute, hour=hour, day_of_month=day, month=month, day_of_week=weekday)
    return meaning._replace(body=body)


def _with_values(field: FieldSet, values: int) -> FieldSet:
    return field if field.values == values else field._replace(values=values)


@lru_cache(maxsize=256)
def _bits(values: frozenset[int], low: int) -> int:
    return sum(1 << value for value in values if value >= low)


# -- refused ------------------------------------------------------------------------------------------------------


def _refusal(text: str, host: ScheduleHost, refusal: CronRefusal) -> Iterator[Diagnostic]:
    """What is wrong with the part at which the program stops, in the words for texts that nobody takes if there are
    such, and else in those for what only this program refuses."""
    value = text[refusal.start : refusal.end]
    there = [d for d in refused(text, host) if refusal.field < 0 or _touches(d, refusal)]
    if not there:
        errors = (d.for_host(host.key) for d in read(text).report.errors)
        there = [d for d in errors if refusal.field < 0 or d.field == "expression" or _touches(d, refusal)]
    if there and "~" not in value:  # of random ranges only this program knows what is wrong
        yield from there
        return
    where = FIELD_NAMES[refusal.field] if refusal.field >= 0 else "expression"
    names = {"value": quoted(value), "host": host.title, "meant": None, "low": 0, "high": 0}
    fix = None
    if refusal.field >= 0:
        bounds = FIELD_BOUNDS[refusal.field]
        counts_to_six = host.program in (BUSYBOX, SUPERCRONIC) and bounds.high == 7
        names |= {"low": bounds.low, "high": 6 if counts_to_six else bounds.high}
        if refusal.why == "step on one value" and (match := _STEP_ON_ONE_VALUE.fullmatch(value)):
            high = 6 if bounds.high == 7 else bounds.high
            fix = f"*/{match[2]}" if int(match[1]) == bounds.low else f"{match[1]}-{high}/{match[2]}"
    case = refusal.why if refusal.why in E130.messages else "not a value"
    if fix is None and case == "step on one value":
        case = "step on one name"
    yield diagnostic(E130, where, value, refusal.start, case, fix=fix, **(names | {"meant": fix}))


def _touches(d: Diagnostic, refusal: CronRefusal) -> bool:
    return d.start <= refusal.end and refusal.start <= max(d.end, d.start + 1)


# -- taken, and read otherwise than it is written -------------------------------------------------------------------


class _Misread(NamedTuple):
    """A part of a field, the case of the rule that it is, and what only this case names."""

    text: str
    case: str
    start: int = 0
    fix: str | None = None
    names: Mapping[str, str] = MappingProxyType({})


def _misread(reading: CronReading, host: ScheduleHost, program: CronProgram) -> Iterator[Diagnostic]:
    for number, field in enumerate(reading.fields):
        part = _misread_part(number, field, program, is_dead=not reading.ever_matches)
        if part is not None:
            names = {"host": host.title, "value": quoted(part.text), **part.names}
            at = field.start + part.start
            yield diagnostic(E139, FIELD_NAMES[number], part.text, at, part.case, fix=part.fix, **names)
    if program is BCRON and reading.fields and not any(reading.fields[n].text.startswith("*") for n in (2, 4)):
        weekday = reading.fields[4]
        yield diagnostic(E139, FIELD_NAMES[4], weekday.text, weekday.start, "both days", host=host.title)


def _misread_part(number: int, field: CronField, program: CronProgram, *, is_dead: bool) -> _Misread | None:
    text = field.text
    if field.used < len(text):
        case = "random range left out" if text[field.used] == "~" else "rest left out"
        return _Misread(text, case, names={"kept": quoted(text[: field.used])})
    if field.backwards is not None:
        start, end = field.backwards
        is_empty = is_dead and not field.values and not field.day_rules
        return _Misread(text[start:end], "backwards" if is_empty else "backwards in a list", start)
    if field.other_weekday is not None:
        return _misread_weekday(text, *field.other_weekday)
    if program is BUSYBOX and number == 2 and (step := _STEPPED_DAYS.fullmatch(text)):
        shown = ", ".join(str(day) for day in sorted(field.values - {0})[:3])
        return _Misread(text, "days from 0", fix=f"1-31/{step[1]}", names={"days": shown})
    if program in (BUSYBOX, BCRON) and _STEP_ON_ONE_VALUE.fullmatch(text):
        return _Misread(text, "step without effect")
    return None


def _misread_weekday(text: str, start: int, end: int) -> _Misread:
    """`05` is meant as 5; `0-7` as the whole week, of which supercronic makes 0-0; `7/2` was hardly meant as 0/2."""
    part = text[start:end]
    if part.isdigit():
        return _Misread(part, "weekday with a zero", start, fix=part[1:], names={"meant": part[1:]})
    body, slash, step = part.partition("/")
    kept = f"{'0-0' if '-' in body else '0'}{slash}{step}"
    meant = f"0-6{slash}{step}" if body.lstrip("0").startswith("-") else "0"
    return _Misread(part, "seven in a range", start, fix=meant, names={"kept": quoted(kept), "meant": meant})
