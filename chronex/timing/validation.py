"""Text to an Expression: the parser's findings, and the checks that need zone data."""

from __future__ import annotations

from chronex.errors import ExpressionError, UnknownZoneError
from chronex.expr.diagnostics import ValidationResult
from chronex.expr.meaning import Once
from chronex.expr.parser import Parsed, parse_text
from chronex.expr.syntax_rules import E011, E017, E020
from chronex.text.suggestions import nearest
from chronex.text.terminal import quoted
from chronex.timing.dst import DstPolicy
from chronex.timing.expression import Expression, ZoneLike
from chronex.timing.occurrences import LAST_MS, resolve, resolve_until
from chronex.timing.zones import load_zone, utc_zone, zone_names, zone_of


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
    return parse_and_validate(text, dialect, tz, reference_ms, policy=policy)[1]


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
    if parsed.meaning is None:
        return None, ValidationResult(parsed.report.errors, parsed.report.warnings)
    from chronex.timing.advice import advise  # only for people: `chronex next` starts without it

    advice = advise(parsed, zone_of(tz), reference_ms, policy)
    meaning = parsed.meaning if reference_ms is None else parsed.meaning.resolved(reference_ms)
    return Expression(meaning, tz), ValidationResult(parsed.report.errors, (*parsed.report.warnings, *advice))


def _check_zone(parsed: Parsed) -> bool:
    """Is the zone of the text known? A text without one passes."""
    if parsed.zone is None:
        return True
    try:
        load_zone(parsed.zone.text)
    except UnknownZoneError:
        name = parsed.zone.text
        meant = nearest(name, zone_names())
        case = "misspelt" if meant else "unknown"
        names = {"value": quoted(name), "meant": meant}
        parsed.report.add(E011, "timezone", name, parsed.zone.start, case, fix=meant, **names)
        return False
    return True


def _within_calendar(parsed: Parsed, reference_ms: int | None) -> Parsed:
    """ParseReport a relative `@once` that ends after the calendar does: it would have no date to print."""
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
    """ParseReport a `from` that is not before `until`: in which order they lie depends on the zone."""
    assert parsed.meaning is not None
    options = parsed.meaning.options
    if options.from_ is None or options.until is None or parsed.block is None:
        return
    zone = load_zone(parsed.meaning.zone) if parsed.meaning.zone else utc_zone()
    if resolve(options.from_, zone) >= resolve_until(options.until, zone):
        parsed.report.add(E020, "options", parsed.block.text, parsed.block.start)
