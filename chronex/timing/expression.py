"""The public value: text to an Expression, checked with zone data, and its instants as datetimes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, tzinfo
from itertools import islice
from typing import TypeAlias

from chronex.errors import ExpressionError, UnknownZoneError
from chronex.expr.diagnostics import ValidationResult
from chronex.expr.meaning import Every, Meaning, Once
from chronex.expr.option_block import Options
from chronex.expr.parser import Parsed, parse_text
from chronex.expr.syntax_rules import E011, E017, E020
from chronex.text.instants import FIRST_MS, LAST_MS, epoch_ms, epoch_parts
from chronex.text.terminal import quoted
from chronex.timing.dst import DstPolicy
from chronex.timing.occurrences import Occurrences, cron_datetimes, resolve, resolve_until
from chronex.timing.search import CronSearch
from chronex.timing.zones import (
    Zone,
    is_of_several_places,
    load_zone,
    meant_zone,
    utc_zone,
    zone_example,
    zone_names,
    zone_of,
)

_from_timestamp = datetime.fromtimestamp
ZoneLike: TypeAlias = str | tzinfo | None
Draw: TypeAlias = Callable[[int, int], int]


class Expression:
    """A schedule as an immutable value: equal by meaning, `str()` is its canonical text.

    Instants given must be aware; instants returned are in the zone of the expression, else in the caller's
    `tz`, else UTC.
    """

    __slots__ = ("_default", "_in_zone", "_key", "meaning")

    def __init__(self, meaning: Meaning, tz: ZoneLike = None) -> None:
        self.meaning = meaning
        self._default = zone_of(meaning.zone if meaning.zone is not None else tz)
        self._in_zone: dict[ZoneLike, Occurrences] = {}
        self._key: tuple[object, ...] | None = None

    # -- identity -----------------------------------------------------------------------------------------

    def __str__(self) -> str:
        return str(self.meaning)

    def __repr__(self) -> str:
        return f"Expression({str(self.meaning)!r})"

    def __eq__(self, other: object) -> bool:
        return self._meaning_key() == other._meaning_key() if isinstance(other, Expression) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._meaning_key())

    def __reduce__(self) -> tuple[type[Expression], tuple[Meaning, tzinfo]]:
        """Copies and pickles carry the meaning; the searches of each zone are made again."""
        return Expression, (self.meaning, self._default.tzinfo)

    def _meaning_key(self) -> tuple[object, ...]:
        if self._key is None:
            self._key = self.meaning.meaning_key()
        return self._key

    @property
    def kind(self) -> str:
        """`cron`, `interval`, `once`, `repeating` or `start`."""
        return self.meaning.kind

    @property
    def timezone(self) -> str | None:
        """The zone written in the expression; None when it is the caller's."""
        return self.meaning.zone

    @property
    def options(self) -> Options:
        return self.meaning.options

    @property
    def dialect(self) -> str:
        return self.meaning.dialect

    @property
    def once_at(self) -> datetime | None:
        """The one instant of `@once`; None for the other kinds, and for a relative one without a reference."""
        body = self.meaning.body
        if not isinstance(body, Once) or body.at is None:
            return None
        return _to_datetime(resolve(body.at, self._default), self._default)

    def describe(self) -> str:
        """What it means, in English."""
        from chronex.expr.describe import describe

        return describe(self.meaning)

    # -- instants -----------------------------------------------------------------------------------------

    def next(
        self, after: datetime, inclusive: bool = False, tz: ZoneLike = None, anchor: datetime | None = None,
        *, draw: Draw | None = None,
    ) -> datetime | None:  # fmt: skip
        """The first occurrence after `after` (or at it, when inclusive); None when there is none.

        What is anchored (`@every`, `R/P3W`) counts from `anchor`, else from `after` itself. The distance of a random
        `@every a-b` comes from `draw(a, b)` in milliseconds; without one it is a, the earliest instant possible.
        """
        try:
            timing = self._in_zone[tz]
        except KeyError:
            timing = self.occurrences(tz)
        cron = timing.cron
        if cron is not None:
            try:
                found = cron.next_local(after, inclusive) if after.tzinfo is cron.local_tzinfo else None
            except AttributeError:
                found = None  # `after` is no datetime: epoch_parts refuses it
            return found or _next_of_cron(cron, after, inclusive)
        second, micro = epoch_parts(after)
        exact = micro % 1000 == 0 and inclusive
        bound = second * 1000 + micro // 1000 + (0 if exact else 1)
        if self.meaning.is_anchored:
            reference = second * 1000 + micro // 1000
            return _to_datetime(
                _next_anchored(timing, bound, reference, _optional_epoch_ms(anchor), draw), timing.zone
            )
        return _to_datetime(timing.nearest(bound, 1), timing.zone)

    def previous(
        self, before: datetime, inclusive: bool = False, tz: ZoneLike = None, anchor: datetime | None = None
    ) -> datetime | None:
        """The last occurrence before `before`: the exact inverse of `next` over the same instants."""
        timing = self.occurrences(tz)
        second, micro = epoch_parts(before)
        bound = second * 1000 + micro // 1000 - (0 if inclusive or micro % 1000 else 1)
        if self.meaning.is_anchored:
            reference = second * 1000 + -(-micro // 1000)
            return _to_datetime(_previous_anchored(timing, bound, reference, _optional_epoch_ms(anchor)), timing.zone)
        return _to_datetime(timing.nearest(bound, -1), timing.zone)

    def upcoming(
        self, after: datetime, tz: ZoneLike = None, until: datetime | None = None, limit: int | None = None,
        *, inclusive: bool = False, anchor: datetime | None = None,
    ) -> Iterator[datetime]:  # fmt: skip
        """Occurrences after `after`, lazily; at most `limit`, at most the expression's own `max`, up to `until`."""
        timing = self.occurrences(tz)
        second, micro = epoch_parts(after)
        start = second * 1000 + micro // 1000 + (0 if inclusive and micro % 1000 == 0 else 1)
        last = _optional_epoch_ms(until)
        anchor_ms = _optional_epoch_ms(anchor)
        if anchor_ms is None:
            anchor_ms = second * 1000 + micro // 1000
        count = min((n for n in (limit, self.options.max) if n is not None), default=None)
        last = LAST_MS if last is None else last
        if timing.cron is not None:
            return islice(cron_datetimes(timing.cron, -(-start // 1000), last // 1000), count)
        return islice(_datetimes(timing, start, last, anchor_ms), count)

    def matches(self, instant: datetime, tz: ZoneLike = None) -> bool:
        """Does the calendar pattern fire in this second? False for what is anchored and for `@once`: no patterns."""
        second, _ = epoch_parts(instant)
        if self.meaning.is_anchored or self.kind == "once":
            return False
        return self.occurrences(tz).nearest(second * 1000, 1) == second * 1000

    def occurrences(self, tz: ZoneLike = None) -> Occurrences:
        """The integer path: instants in epoch milliseconds, in the zone that applies for this caller."""
        found = self._in_zone.get(tz)
        if found is None:
            zone = self._default if tz is None or self.meaning.zone is not None else zone_of(tz)
            found = self._in_zone[tz] = Occurrences(self.meaning, zone)
        return found


def _next_of_cron(cron: CronSearch, after: datetime, inclusive: bool) -> datetime | None:
    second, micro = epoch_parts(after)
    instant = cron.first_from(second if inclusive and not micro else second + 1)
    return None if instant is None else _from_timestamp(instant, cron.zone.tzinfo)


def _next_anchored(
    timing: Occurrences, bound: int, reference: int, anchor: int | None, draw: Draw | None
) -> int | None:
    body = timing.meaning.body
    if not isinstance(body, Every) or body.high is None:
        return timing.nearest(bound, 1, reference if anchor is None else anchor)
    start = timing.interval_start(max(reference, reference if anchor is None else anchor))
    found = start + (body.low if draw is None else draw(body.low, body.high))
    return found if found <= timing.high else None


def _previous_anchored(timing: Occurrences, bound: int, reference: int, anchor: int | None) -> int | None:
    body = timing.meaning.body
    if not isinstance(body, Every):
        return timing.before_grid_point(reference, bound) if anchor is None else timing.nearest(bound, -1, anchor)
    if anchor is not None and body.high is None:
        return timing.nearest(bound, -1, anchor)
    # Without an anchor the reference itself is taken as a point of the grid.
    periods = max(1, -(-(reference - timing.high) // body.low))
    found = reference - periods * body.low
    first = timing.low + body.low if timing.low > FIRST_MS else FIRST_MS
    return found if found >= first else None


def _datetimes(timing: Occurrences, start: int, last: int, anchor: int) -> Iterator[datetime]:
    for ms in timing.between(start, last, anchor):
        moment = _to_datetime(ms, timing.zone)
        if moment is None:
            return
        yield moment


def _optional_epoch_ms(moment: datetime | None) -> int | None:
    return None if moment is None else epoch_ms(moment)


def _to_datetime(ms: int | None, zone: Zone) -> datetime | None:
    if ms is None or not FIRST_MS <= ms <= LAST_MS:
        return None
    second, rest = divmod(ms, 1000)
    try:
        moment = _from_timestamp(second, zone.tzinfo)
    except (OverflowError, ValueError):
        return None  # the local date would lie outside years 1 to 9999
    return moment.replace(microsecond=rest * 1000) if rest else moment


# -- text to an Expression: the parser's findings, and the checks that need zone data -------------------------


def read(text: str, dialect: str = "chronex") -> Parsed:
    """Parse and check against zone data; the report has every error, in the order of the text."""
    parsed = parse_text(text, dialect)
    zone_is_known = _check_zone(parsed)
    if parsed.meaning is not None and zone_is_known:
        _check_bounds(parsed)
    found = parsed.report.found
    if "\t" in text:  # the parser reads tabs as spaces; a diagnostic quotes the text as it was written
        found[:] = [d._replace(value=text[d.start : d.end]) if " " in d.value else d for d in found]
    found.sort(key=lambda d: (d.start, d.end))
    return parsed._replace(meaning=None) if parsed.report.errors else parsed


def parse(text: str, dialect: str = "chronex", tz: ZoneLike = None, reference_ms: int | None = None) -> Expression:
    """The expression, or ExpressionError with every diagnostic."""
    parsed = _within_calendar(read(text, dialect), reference_ms)
    if parsed.meaning is None:
        raise ExpressionError(text, parsed.report.found)
    meaning = parsed.meaning if reference_ms is None else parsed.meaning.resolved(reference_ms)
    return Expression(meaning, tz)


def validate(
    text: str,
    dialect: str = "chronex",
    tz: ZoneLike = None,
    reference_ms: int | None = None,
    *,
    policy: DstPolicy | None = None,
) -> ValidationResult:
    """Every error and warning. Warnings that depend on the date need a reference."""
    return _advised(_within_calendar(read(text, dialect), reference_ms), tz, reference_ms, policy)


def parse_and_validate(
    text: str,
    dialect: str = "chronex",
    tz: ZoneLike = None,
    reference_ms: int | None = None,
    *,
    policy: DstPolicy | None = None,
) -> tuple[Expression | None, ValidationResult]:
    """The expression, None where the text has an error, and every error and warning; the text is parsed once."""
    parsed = _within_calendar(read(text, dialect), reference_ms)
    result = _advised(parsed, tz, reference_ms, policy)
    if parsed.meaning is None:
        return None, result
    meaning = parsed.meaning if reference_ms is None else parsed.meaning.resolved(reference_ms)
    return Expression(meaning, tz), result


def _advised(parsed: Parsed, tz: ZoneLike, reference_ms: int | None, policy: DstPolicy | None) -> ValidationResult:
    """What the parser found, and the advice on a text that has no error."""
    if parsed.meaning is None:
        return ValidationResult(parsed.report.errors, parsed.report.warnings)
    # `chronex next` gives no advice and starts faster without this module. Importing a function out of it took 6 of
    # the 75 µs of a validation; importing the module takes 2.
    from chronex.timing import advice

    found = advice.advise(parsed, zone_of(tz), reference_ms, policy)
    return ValidationResult(parsed.report.errors, (*parsed.report.warnings, *found))


def _check_zone(parsed: Parsed) -> bool:
    """Is the zone of the text known? A text without one passes."""
    if parsed.zone is None:
        return True
    try:
        load_zone(parsed.zone.text)
    except UnknownZoneError:
        name = parsed.zone.text
        meant = meant_zone(name, zone_names())
        case = "misspelt" if meant else "of several places" if is_of_several_places(name) else "unknown"
        names = {"value": quoted(name), "meant": meant, "example": zone_example(name)}
        parsed.report.add(E011, "timezone", name, parsed.zone.start, case, fix=meant, **names)
        return False
    return True


def _within_calendar(parsed: Parsed, reference_ms: int | None) -> Parsed:
    """Report a relative `@once` that ends after the calendar does: it would have no date to print."""
    body = parsed.meaning.body if parsed.meaning else None
    if not isinstance(body, Once) or body.relative is None or reference_ms is None:
        return parsed
    if reference_ms + body.relative <= LAST_MS:
        return parsed
    start = parsed.text.index("+", parsed.body.start) + 1
    value = parsed.text[start : parsed.body.start + len(parsed.body.text.rstrip())]
    parsed.report.add(E017, "once", value, start, "after the calendar")
    return parsed._replace(meaning=None)


def _check_bounds(parsed: Parsed) -> None:
    """Report a `from` that is not before `until`: in which order they lie depends on the zone."""
    assert parsed.meaning is not None
    options = parsed.meaning.options
    if options.from_ is None or options.until is None or parsed.block is None:
        return
    zone = load_zone(parsed.meaning.zone) if parsed.meaning.zone else utc_zone()
    if resolve(options.from_, zone) >= resolve_until(options.until, zone):
        parsed.report.add(E020, "options", parsed.block.text, parsed.block.start)
