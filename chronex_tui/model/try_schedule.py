"""A schedule that is being typed: what it means, or what is wrong with it and where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from chronex.expr.diagnostics import Diagnostic
from chronex.text.durations import largest_unit
from chronex.text.instants import LAST_MS
from chronex.text.terminal import cell_safe, cell_width
from chronex.timing import parse, validate
from chronex.timing.clock_changes import effect_of
from chronex.timing.zones import Zone
from chronex_tui.model.display import abbreviation, clock_time, day_of, full_stamp, have_seconds
from chronex_tui.model.layout import Line, wrap

_RUNS = 6
_CHANGES = 2
EXAMPLES = (
    ("*/15 * * * *", "every quarter of an hour"),
    ("30 2 * * *", "every night at half past two"),
    ("0 9 * * MON-FRI {jitter:5m}", "weekdays at nine or a bit later"),
    ("0 0 L * *", "at midnight on the last day of the month"),
    ("TZ=Asia/Seoul 0 9 * * MON#1", "the first Monday of the month, in Seoul"),
    ("@every 90s", "every ninety seconds"),
)


def try_schedule_lines(text: str, zone: Zone, now_ms: int, cells: int) -> list[Line]:
    """Meaning, next runs, clock changes and warnings; or the errors."""
    if not text.strip():
        return list(_examples())
    result = validate(text, "chronex", zone.tzinfo, now_ms)
    if not result.is_valid:
        return [(), *_findings(text, result.errors, "failed", cells)]
    return [(), *_answer(text, zone, now_ms, cells), *_warnings(text, result.warnings, cells)]


def _examples() -> Iterator[Line]:
    yield ()
    yield (("For example", "bold"),)
    for text, words in EXAMPLES:
        yield ((f"  {text:30}", "key"), (words, "dim"))


def _answer(text: str, zone: Zone, now_ms: int, cells: int) -> Iterator[Line]:
    expression = parse(text, "chronex", zone.tzinfo, reference_ms=now_ms)
    timing = expression.occurrences(zone.tzinfo)
    own = timing.zone
    for piece in wrap(expression.describe(), cells):
        yield ((piece, "bold"),)
    if str(expression) != text.strip():
        yield (("written  ", "label"), (cell_safe(str(expression)), "dim"))
    yield ()
    found = list(islice(timing.between(now_ms + 1, LAST_MS, now_ms), _RUNS))
    is_exact = have_seconds(found)
    for number, ms in enumerate(found):
        here = "" if own.name == zone.name else f"   {clock_time(ms, zone)} {abbreviation(ms, zone)} here"
        label = "next     " if number == 0 else "         "
        yield (
            (label, "label"),
            (full_stamp(ms, own, is_exact=is_exact, now_ms=now_ms), ""),
            (f"   in {largest_unit(ms - now_ms):4}{here}", "dim"),
        )
    if not found:
        yield (("next     ", "label"), ("it never runs", "failed"))
    yield ()
    start = now_ms // 1000
    changes = own.changes(start, start + 2 * 366 * 86_400)[:_CHANGES]
    for number, change in enumerate(changes):
        effect = effect_of(timing, change)
        label = "clock    " if number == 0 else "         "
        day = day_of(change.at * 1000 - 1000, own)
        yield ((label, "label"), (f"{day}: ", ""), (effect.text, "clock" if effect.touches else "dim"))
    if not changes:
        yield (("clock    ", "label"), (f"{own.name} does not change its clock", "dim"))


def _warnings(text: str, warnings: Iterable[Diagnostic], cells: int) -> Iterator[Line]:
    found = list(_findings(text, warnings, "retry", cells))
    if found:
        yield ()
        yield from found


def _findings(text: str, findings: Iterable[Diagnostic], style: str, cells: int) -> Iterator[Line]:
    """Carets under the exact position, and the sentence below."""
    for finding in findings:
        before, within = cell_safe(text[: finding.start]), cell_safe(text[finding.start : finding.end])
        yield ((before, ""), (within, style), (cell_safe(text[finding.end :]), ""))
        yield ((" " * cell_width(before) + "^" * max(cell_width(within), 1), style),)
        for piece in wrap(cell_safe(f"{finding.code} {finding}"), cells):
            yield ((piece, style),)
