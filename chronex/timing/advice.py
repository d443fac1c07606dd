"""Advice on a valid expression: what will happen that its writer may not expect."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from itertools import islice, pairwise

from chronex.expr.describe import values_of
from chronex.expr.diagnostics import WARNING, Diagnostic
from chronex.expr.fields import FIVE_FIELDS, SIX_FIELDS, Anchor, FieldSpec
from chronex.expr.meaning import Cron, Every, Meaning, Once
from chronex.expr.option_block import Fragment
from chronex.expr.parser import Parsed
from chronex.text.durations import format_duration
from chronex.timing.clock_changes import effect_of, wall_date
from chronex.timing.dst import DstPolicy
from chronex.timing.occurrences import Occurrences
from chronex.timing.zones import Zone, load_zone

_WORD = re.compile(r"[^ \t]+")
_STEP = re.compile(r"(\*|[0-9]+|[A-Za-z]{3})(?:-([0-9]+|[A-Za-z]{3}))?/([0-9]+)")
_YEAR_SECONDS = 366 * 86_400
_SAMPLE_START = 1_704_067_200_000  # 2024-01-01, a leap year: distances do not depend on today
_SAMPLE_SIZE = 1000
_SIZES = {"second": 60, "minute": 60, "hour": 24, "month": 12, "dayOfWeek": 7}
_UNITS = {"second": "minute", "minute": "hour", "hour": "day", "month": "year", "dayOfWeek": "week"}
_MONTH_NAMES = ("", "January", "February", "March", "April", "May", "June", "July", "August", "September",
                "October", "November", "December")  # fmt: skip
_DAYS_OF_EVERY_MONTH = (1 << 29) - 2
_LONGEST = (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def advise(
    parsed: Parsed, caller_zone: Zone, reference_ms: int | None, policy: DstPolicy | None = None
) -> tuple[Diagnostic, ...]:
    """Warnings in the order of the text. Those that depend on the date need a reference; without a policy for
    clock changes the dialect's holds."""
    assert parsed.meaning is not None
    adviser = _Adviser(parsed, parsed.meaning, caller_zone, reference_ms, policy)
    return tuple(sorted(adviser.all(), key=lambda d: (d.start, d.end, d.code)))


class _Adviser:
    def __init__(
        self, parsed: Parsed, meaning: Meaning, caller_zone: Zone, reference_ms: int | None, policy: DstPolicy | None
    ) -> None:
        self.parsed, self.meaning, self.reference = parsed, meaning, reference_ms
        self.zone = load_zone(meaning.zone) if meaning.zone else caller_zone
        if meaning.is_relative:
            self.meaning = meaning.resolved(reference_ms or 0)
        self.timing = Occurrences(self.meaning, self.zone, policy)

    def all(self) -> Iterator[Diagnostic]:
        if isinstance(self.meaning.body, Cron):
            yield from self._cron_advice(self.meaning.body)
        yield from self._bounds()
        yield from self._offsets()

    def _cron_advice(self, cron: Cron) -> Iterator[Diagnostic]:
        if cron.alias is None:
            yield from self._steps()
            yield from self._question_marks(cron)
            yield from self._every_minute_of_an_hour(cron)
        if _may_never_fire(cron) and self._never_at_all():
            yield self._never(cron)
            return
        yield from self._either_day(cron)
        yield from self._missing_days(cron)
        yield from self._clock_changes(cron)

    # -- where things stand in the text ------------------------------------------------------------------

    @cached_property
    def _fields(self) -> dict[str, Fragment]:
        """The written fields by name; all of them stand for the alias when it is one."""
        words = list(_WORD.finditer(self.parsed.body.text))
        start = self.parsed.body.start
        specs: tuple[FieldSpec, ...] = SIX_FIELDS if len(words) == 6 else FIVE_FIELDS
        if len(words) not in (5, 6):
            return {spec.name: Fragment(words[0][0], start + words[0].start()) for spec in specs}
        return {spec.name: Fragment(word[0], start + word.start()) for spec, word in zip(specs, words, strict=True)}

    def _span(self, first: str, last: str) -> tuple[str, int, int]:
        start = self._fields[first].start
        end = self._fields[last].start + len(self._fields[last].text)
        return self.parsed.text[start:end], start, end

    def _warn(self, code: str, field: str, message: str, fix: str | None = None) -> Diagnostic:
        text, start = self._fields[field]
        return Diagnostic(code, field, message, text, start, start + len(text), fix, WARNING)

    def _warn_over(self, code: str, first: str, last: str, message: str) -> Diagnostic:
        text, start, end = self._span(first, last)
        return Diagnostic(code, first, message, text, start, end, None, WARNING)

    def _warn_option(self, code: str, name: str, message: str) -> Diagnostic:
        block = self.parsed.block or self.parsed.body
        found = re.search(rf"{name}[ \t]*:[ \t]*[^,]*[^,\s]", block.text, re.IGNORECASE)
        start = block.start + (found.start() if found else 0)
        text = found[0] if found else block.text
        return Diagnostic(code, f"options.{name}", message, text, start, start + len(text), None, WARNING)

    # -- meaning -----------------------------------------------------------------------------------------

    def _never(self, cron: Cron) -> Diagnostic:
        months = [_MONTH_NAMES[m] for m in values_of(cron.month.values)]
        which = months[0] if len(months) == 1 else "the selected months"
        message = f"never fires: no day of {which} matches"
        return self._warn_over("W101", "dayOfMonth", "dayOfWeek", message)

    def _either_day(self, cron: Cron) -> Iterator[Diagnostic]:
        dom, dow = cron.day_of_month, cron.day_of_week
        if dom.is_star or dow.is_star:
            return
        stepped = next((name for name, f in (("dayOfMonth", dom), ("dayOfWeek", dow)) if f.text[0] == "*"), None)
        if stepped:
            text = self._fields[stepped].text
            message = f"{text} counts as a restriction, so either day field may match; other crons require both here"
            yield self._warn("W106", stepped, message)
        else:
            message = "fires when the day of month OR the day of week matches, not only when both do"
            yield self._warn_over("W102", "dayOfMonth", "dayOfWeek", message)

    def _steps(self) -> Iterator[Diagnostic]:
        for name, span in self._fields.items():
            match = _STEP.fullmatch(span.text)
            if match is None:
                continue
            first, last, step = match[1], match[2], int(match[3][:9])
            if first == "*" and step == 1:
                yield self._warn("W107", name, "*/1 is the same as *", fix="*")
            elif first == "*" and (message := _uneven(name, step)):
                yield self._warn("W103", name, message)
            elif last is None and step >= _SIZES.get(name, 31):
                yield self._warn("W103", name, f"step {step} is longer than the field: only {first} matches")

    def _question_marks(self, cron: Cron) -> Iterator[Diagnostic]:
        for name, field in (("dayOfMonth", cron.day_of_month), ("dayOfWeek", cron.day_of_week)):
            if field.text == "?":
                yield self._warn("W108", name, "'?' is Quartz's way to leave a day field open; read as *", fix="*")

    def _every_minute_of_an_hour(self, cron: Cron) -> Iterator[Diagnostic]:
        if not cron.minute.is_star or cron.hour.is_interval or (cron.has_seconds and cron.second.is_interval):
            return
        hours = values_of(cron.hour.values)
        first = f"{hours[0]:02}:00 to {hours[0]:02}:59"
        message = f"fires every minute from {first}, 60 times; for once write 0"
        yield self._warn("W104", "minute", message, fix="0")

    def _missing_days(self, cron: Cron) -> Iterator[Diagnostic]:
        rule, days = cron.day_of_month.rule, values_of(cron.day_of_month.values)
        months = values_of(cron.month.values)
        if not cron.day_of_week.is_star:
            weekday_rule = cron.day_of_week.rule
            if cron.day_of_month.is_star and weekday_rule and weekday_rule.number == 5:
                yield self._warn("W105", "dayOfWeek", "not every month has a fifth one: those months are skipped")
            return
        if rule is not None:
            days = [rule.number] if rule.anchor is Anchor.NEAREST_WEEKDAY else []
        elif cron.day_of_month.is_interval:
            return
        if days == [29] and months == [2]:
            yield self._warn_over("W105", "dayOfMonth", "month", "29 February exists in leap years only")
            return
        day = max(days, default=0)
        lacking = [m for m in months if day > (28 if m == 2 else _LONGEST[m])]
        if lacking:
            names = ", ".join(_MONTH_NAMES[m] for m in lacking)
            fix = "L" if cron.day_of_month.text == "31" else None
            hint = "; L is the last day of each month" if fix else ""
            skipped = f"{names} {'in most years ' if lacking == [2] and day == 29 else ''}"
            yield self._warn("W105", "dayOfMonth", f"there is no day {day} in {skipped.strip()}: skipped{hint}", fix)

    # -- clock -------------------------------------------------------------------------------------------

    def _clock_changes(self, cron: Cron) -> Iterator[Diagnostic]:
        """The first gap and the first overlap of the coming year that change a run at a chosen hour."""
        if self.reference is None or cron.hour.is_star:
            return
        start = self.reference // 1000
        seen: set[str] = set()
        for change in self.zone.changes(start, start + _YEAR_SECONDS):
            code = "W111" if change.is_gap else "W112"
            effect = effect_of(self.timing, change)
            if not effect.touches or code in seen:
                continue
            seen.add(code)
            message = f"on {wall_date(change.at + change.before)} in {self.zone.name} {effect.text}"
            yield self._warn_over(code, "minute", "hour", message)

    # -- bounds and options ------------------------------------------------------------------------------

    def _bounds(self) -> Iterator[Diagnostic]:
        options, body = self.meaning.options, self.meaning.body
        anchor = self.reference or 0
        if isinstance(body, Once):
            at = self.timing.nearest(self.timing.low, 1)
            if at is None:
                yield self._warn_option("W109", "until", "no occurrence: the moment lies outside from/until")
            elif self.reference is not None and at < self.reference and body.relative is None:
                span = Fragment(self.parsed.body.text.strip(), self.parsed.body.start)
                end = span.start + len(span.text)
                yield Diagnostic(
                    "W109", "once", "the moment has passed: it never fires", span.text, span.start, end, None, WARNING
                )
            return
        if options.until is None:
            return
        start = max(self.timing.low, self.reference or self.timing.low)
        if self.timing.nearest(start, 1, anchor) is None and not self._never_at_all():
            when = "is left" if self.reference is not None else "lies between from and until"
            yield self._warn_option("W109", "until", f"no occurrence {when}")

    def _never_at_all(self) -> bool:
        pattern = self.timing.pattern
        return pattern is not None and pattern.first_from(_SAMPLE_START // 1000) is None

    def _offsets(self) -> Iterator[Diagnostic]:
        options, shortest = self.meaning.options, self._shortest_distance
        jitter, stagger, window = options.jitter or 0, options.stagger or 0, options.window
        is_every = isinstance(self.meaning.body, Every)
        if shortest and jitter * 2 > shortest:
            text = f"{format_duration(jitter)} exceeds 50% of "
            what = "schedule interval" if is_every else f"the shortest distance of {format_duration(shortest)}"
            yield self._warn_option("E022" if is_every else "W122", "jitter", text + what)
        if is_every and shortest and stagger > shortest:
            yield self._warn_option("E025", "stagger", f"{format_duration(stagger)} exceeds schedule interval")
        if window is not None and stagger + jitter > window:
            total = format_duration(stagger + jitter)
            message = f"stagger and jitter of up to {total} exceed the window: such runs are skipped"
            yield self._warn_option("W121", "window", message)
        if window is not None and shortest and window > shortest:
            message = (
                f"longer than the shortest distance of {format_duration(shortest)}: a late run meets the next one"
            )
            yield self._warn_option("W124", "window", message)

    @cached_property
    def _shortest_distance(self) -> int | None:
        body, options = self.meaning.body, self.meaning.options
        if not (options.jitter or options.stagger or options.window):
            return None
        if isinstance(body, Every):
            return body.low
        unbounded = Occurrences(self.meaning._replace(options=type(options)()), self.zone)
        instants = islice(unbounded.between(_SAMPLE_START, unbounded.high), _SAMPLE_SIZE)
        return min((b - a for a, b in pairwise(instants)), default=None)


def _may_never_fire(cron: Cron) -> bool:
    """Every month has days 1 to 28 and all weekdays: only other dates are worth a search."""
    day, weekday = cron.day_of_month, cron.day_of_week
    return day.rule is not None or weekday.rule is not None or not day.values & _DAYS_OF_EVERY_MONTH


def _uneven(name: str, step: int) -> str | None:
    """What a step that does not divide its field does at the field's end."""
    if name == "dayOfMonth":
        return f"*/{step} starts again on day 1 of each month: the last distance is shorter" if step < 31 else None
    size = _SIZES[name]
    if step >= size:
        return f"step {step} is longer than the field: only its first value matches"
    rest = size % step
    if rest == 0:
        return None
    return f"*/{step} starts again with each {_UNITS[name]}: the last distance is {rest}, not {step}"
