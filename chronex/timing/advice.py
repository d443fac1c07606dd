"""Advice on a valid expression: what will happen that its writer may not expect."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property, lru_cache
from itertools import islice, pairwise

from chronex.expr.advice_rules import (
    E022,
    E025,
    W101,
    W102,
    W103,
    W104,
    W105,
    W106,
    W107,
    W108,
    W109,
    W111,
    W112,
    W121,
    W122,
    W124,
)
from chronex.expr.describe import values_of
from chronex.expr.diagnostics import Diagnostic, Rule, diagnostic
from chronex.expr.fields import FIVE_FIELDS, SIX_FIELDS, Anchor, FieldSpec
from chronex.expr.meaning import Cron, Every, Meaning, Once
from chronex.expr.option_block import Fragment
from chronex.expr.parser import Parsed
from chronex.text.durations import MINUTE_MS, format_duration
from chronex.text.terminal import quoted
from chronex.timing.clock_changes import effect_of, wall_date
from chronex.timing.dst import DstPolicy
from chronex.timing.occurrences import Occurrences
from chronex.timing.zones import ClockChange, Zone, load_zone

_WORD = r"[^ \t]+"
_STEP = r"(\*|[0-9]+|[A-Za-z]{3})(?:-([0-9]+|[A-Za-z]{3}))?/([0-9]+)"
_DAYS = ("dayOfMonth", "dayOfWeek")
_YEAR_SECONDS = 366 * 86_400
_SAMPLE_START = 1_704_067_200_000  # 2024-01-01, a leap year: distances do not depend on today
_SAMPLE_SIZE = 1000
_SIZES = {"second": 60, "minute": 60, "hour": 24, "month": 12, "dayOfWeek": 7}
_LETTERS = {"second": "s", "minute": "m", "hour": "h"}  # of durations
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
        self.parsed = parsed
        self.meaning = meaning
        self.reference = reference_ms
        self.zone = load_zone(meaning.zone) if meaning.zone else caller_zone
        self.policy = policy
        if meaning.is_relative:
            self.meaning = meaning.resolved(reference_ms or 0)

    @cached_property
    def timing(self) -> Occurrences:
        """Most lines of a crontab never need it: their days exist, and no clock change comes near them."""
        return Occurrences(self.meaning, self.zone, self.policy)

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
        words = list(re.finditer(_WORD, self.parsed.body.text))
        start = self.parsed.body.start
        specs: tuple[FieldSpec, ...] = SIX_FIELDS if len(words) == 6 else FIVE_FIELDS
        if len(words) not in (5, 6):
            return {spec.name: Fragment(words[0][0], start + words[0].start()) for spec in specs}
        return {spec.name: Fragment(word[0], start + word.start()) for spec, word in zip(specs, words, strict=True)}

    def _at_field(
        self, rule: Rule, field: str, case: str = "", /, *, fix: str | None = None, **arguments: object
    ) -> Diagnostic:
        text, start = self._fields[field]
        return diagnostic(rule, field, text, start, case, fix=fix, **arguments)

    def _at_fields(self, rule: Rule, first: str, last: str, case: str = "", /, **arguments: object) -> Diagnostic:
        """From the field `first` to the field `last`."""
        start = self._fields[first].start
        end = self._fields[last].start + len(self._fields[last].text)
        return diagnostic(rule, first, self.parsed.text[start:end], start, case, fix=None, **arguments)

    def _at_option(self, rule: Rule, name: str, case: str = "", /, **arguments: object) -> Diagnostic:
        block = self.parsed.block or self.parsed.body
        found = re.search(rf"{name}[ \t]*:[ \t]*[^,]*[^,\s]", block.text, re.IGNORECASE)
        start = block.start + (found.start() if found else 0)
        text = found[0] if found else block.text
        return diagnostic(rule, f"options.{name}", text, start, case, fix=None, **arguments)

    # -- meaning -----------------------------------------------------------------------------------------

    def _never(self, cron: Cron) -> Diagnostic:
        months = [_MONTH_NAMES[m] for m in values_of(cron.month.values)]
        named = months[0] if len(months) == 1 else "the selected months"
        return self._at_fields(W101, "dayOfMonth", "dayOfWeek", "cron", months=named)

    def _either_day(self, cron: Cron) -> Iterator[Diagnostic]:
        dom, dow = cron.day_of_month, cron.day_of_week
        if dom.is_star or dow.is_star:
            return
        stepped = next((name for name, f in (("dayOfMonth", dom), ("dayOfWeek", dow)) if f.text[0] == "*"), None)
        if stepped:
            yield self._at_field(W106, stepped, value=self._fields[stepped].text)
        else:
            yield self._at_fields(W102, "dayOfMonth", "dayOfWeek")

    def _steps(self) -> Iterator[Diagnostic]:
        if "/" not in self.parsed.body.text:
            return
        for name, span in self._fields.items():
            match = re.fullmatch(_STEP, span.text) if "/" in span.text else None
            if match is None:
                continue
            first, last, step = match[1], match[2], int(match[3][:9])
            if first == "*" and step == 1:
                if name not in _DAYS or self._is_only_day_field(name):
                    yield self._at_field(W107, name, fix="*")
            elif first == "*" and (case := _uneven(name, step)):
                rest = _SIZES.get(name, 31) % step
                names = {"unit": _UNITS.get(name), "letter": _LETTERS.get(name)}
                yield self._at_field(W103, name, case, step=step, rest=rest, **names)
            elif first != "*" and last is None and step >= _SIZES.get(name, 31):
                yield self._at_field(W103, name, "longer from a value", step=step, first=first)

    def _is_only_day_field(self, name: str) -> bool:
        """Beside another restricted day field `*/1` is no `*`: it joins that field by OR, and W106 says so."""
        return all(self._fields[other].text in ("*", "?") for other in _DAYS if other != name)

    def _question_marks(self, cron: Cron) -> Iterator[Diagnostic]:
        for name, field in (("dayOfMonth", cron.day_of_month), ("dayOfWeek", cron.day_of_week)):
            if field.text == "?":
                # What has a Quartz mark may have Quartz's numbers too; without the mark nobody could tell any more.
                is_numbered = re.search("(?<!#)[1-7]", cron.day_of_week.text) is not None
                case, text = "numbered weekdays" if is_numbered else "", quoted(cron.day_of_week.text)
                yield self._at_field(W108, name, case, fix="*", text=text)

    def _every_minute_of_an_hour(self, cron: Cron) -> Iterator[Diagnostic]:
        if not cron.minute.is_star or cron.hour.is_interval or (cron.has_seconds and cron.second.is_interval):
            return
        yield self._at_field(W104, "minute", fix="0", hour=values_of(cron.hour.values)[0])

    def _missing_days(self, cron: Cron) -> Iterator[Diagnostic]:
        day_field, weekdays = cron.day_of_month, cron.day_of_week
        if not weekdays.is_star:
            is_fifth_alone = weekdays.values == 0 and all(rule.number == 5 for rule in weekdays.rules)
            if day_field.is_star and is_fifth_alone:
                yield self._at_field(W105, "dayOfWeek", "fifth weekday")
            return
        if day_field.is_interval or any(rule.anchor is not Anchor.NEAREST_WEEKDAY for rule in day_field.rules):
            return  # a month without one of the days has another
        months = values_of(cron.month.values)
        days = sorted([*values_of(day_field.values), *(rule.number for rule in day_field.rules)])
        if days == [29] and months == [2]:
            yield self._at_fields(W105, "dayOfMonth", "month", "leap day")
            return
        day = max(days, default=0)
        lacking = [m for m in months if day > (28 if m == 2 else _LONGEST[m])]
        if lacking:
            skipped = ", ".join(_MONTH_NAMES[m] for m in lacking)
            if lacking == [2] and day == 29:
                skipped += " in most years"
            fix = "L" if cron.day_of_month.text == "31" else None
            case = "last day meant" if fix else "no such day"
            yield self._at_field(W105, "dayOfMonth", case, fix=fix, day=day, months=skipped)

    # -- clock -------------------------------------------------------------------------------------------

    def _clock_changes(self, cron: Cron) -> Iterator[Diagnostic]:
        """The first gap and the first overlap of the coming year that change a run at a chosen hour."""
        if self.reference is None or cron.hour.is_star:
            return
        seen: set[Rule] = set()
        for change in _coming_changes(self.zone, self.reference // 1000):
            rule = W111 if change.is_gap else W112
            effect = effect_of(self.timing, change)
            if not effect.touches or rule in seen:
                continue
            seen.add(rule)
            date = wall_date(change.at + change.before)
            yield self._at_fields(rule, "minute", "hour", date=date, zone=self.zone.name, effect=effect.text)

    # -- bounds and options ------------------------------------------------------------------------------

    def _bounds(self) -> Iterator[Diagnostic]:
        options, body = self.meaning.options, self.meaning.body
        anchor = self.reference or 0
        if isinstance(body, Once):
            at = self.timing.nearest(self.timing.low, 1)
            if at is None:
                yield self._at_option(W109, "until", "moment outside")
            elif self.reference is not None and at < self.reference and body.relative is None:
                text, start = self.parsed.body
                yield diagnostic(W109, "once", text.strip(), start, "moment passed")
            return
        if options.until is None:
            return
        start = max(self.timing.low, self.reference or self.timing.low)
        if self.timing.nearest(start, 1, anchor) is None and not self._never_at_all():
            yield self._at_option(W109, "until", "none left" if self.reference is not None else "none between")

    def _never_at_all(self) -> bool:
        pattern = self.timing.pattern
        return pattern is not None and pattern.first_from(_SAMPLE_START // 1000) is None

    def _offsets(self) -> Iterator[Diagnostic]:
        options, shortest = self.meaning.options, self._shortest_distance
        jitter, stagger, window = options.jitter or 0, options.stagger or 0, options.window
        is_every = isinstance(self.meaning.body, Every)
        if shortest and jitter * 2 > shortest:
            rule = E022 if is_every else W122
            shown = {"jitter": format_duration(jitter), "shortest": format_duration(shortest)}
            yield self._at_option(rule, "jitter", **shown)
        if is_every and shortest and stagger > shortest:
            yield self._at_option(E025, "stagger", stagger=format_duration(stagger))
        if window is not None and stagger + jitter > window:
            yield self._at_option(W121, "window", total=format_duration(stagger + jitter))
        if window is not None and shortest and window > shortest:
            yield self._at_option(W124, "window", shortest=format_duration(shortest))

    @cached_property
    def _shortest_distance(self) -> int | None:
        """Between two runs; None where it is so long, or the options so short, that nothing follows from it."""
        body, options = self.meaning.body, self.meaning.options
        if not (options.jitter or options.stagger or options.window):
            return None
        if isinstance(body, Every):
            return body.low
        longest = max((options.jitter or 0) * 2, options.window or 0)
        if isinstance(body, Cron) and not body.has_seconds and longest <= MINUTE_MS:
            return None
        unbounded = Occurrences(self.meaning._replace(options=type(options)()), self.zone)
        instants = islice(unbounded.between(_SAMPLE_START, unbounded.high, _SAMPLE_START), _SAMPLE_SIZE)
        return min((b - a for a, b in pairwise(instants)), default=None)


@lru_cache(maxsize=64)
def _coming_changes(zone: Zone, second: int) -> list[ClockChange]:
    """Those of the year from this second on, the same for every line of a file."""
    return zone.changes(second, second + _YEAR_SECONDS)


def _may_never_fire(cron: Cron) -> bool:
    """Every month has days 1 to 28 and all weekdays: only other dates are worth a search."""
    day, weekday = cron.day_of_month, cron.day_of_week
    return bool(day.rules or weekday.rules) or not day.values & _DAYS_OF_EVERY_MONTH


def _uneven(name: str, step: int) -> str | None:
    """The case of W103 for a step that does not divide its field; None where the rule does not apply."""
    if name == "dayOfMonth":
        return "uneven days" if step < 31 else "longer than the field"
    size = _SIZES[name]
    if step >= size:
        return "interval" if name in _LETTERS and step > size else "longer than the field"
    return "uneven" if size % step else None
