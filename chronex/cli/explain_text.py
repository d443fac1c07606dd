"""The explanation of an expression as text for the terminal and the dashboard."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from chronex.cli.output import caret_lines, paint, wants_unicode
from chronex.expr.fields import FIVE_FIELDS, SIX_FIELDS
from chronex.expr.meaning import Cron
from chronex.text.durations import format_duration, time_until
from chronex.text.instants import SHORT_WEEKDAYS, local_datetime, rfc3339, utc_offset
from chronex.text.terminal import terminal_safe
from chronex.timing.clock_changes import Cell, wall_clock
from chronex.timing.zones import Zone, ZoneChoice, load_zone
from chronex.views.expression_facts import (
    HISTOGRAM_PERIODS,
    MOST_EXCLUDED,
    ChangeReport,
    ExplainedRun,
    Explanation,
    Question,
    explain,
)

if TYPE_CHECKING:
    from chronex.model.calendars import CalendarRules


_FIELD_WORDS = {"dayOfMonth": "day of month", "dayOfWeek": "day of week"}
_UNICODE_CELLS = {"plain": "·", "missing": "░", "first": "┄", "second": "┅", "run": "●"}
_ASCII_CELLS = {"plain": ".", "missing": "x", "first": "-", "second": "=", "run": "*"}
_BARS = " ▁▂▃▄▅▆▇█"
_ASCII_BARS = " .:-=+*#@"


def explain_lines(
    text: str, dialect: str, zone_name: str, since_ms: int, calendars: CalendarRules | None = None
) -> list[str]:
    """The same text as `chronex explain`, line by line; for a text with errors, carets under them."""
    from chronex.timing import parse_and_validate

    choice = ZoneChoice(load_zone(zone_name), "the job's")
    expression, result = parse_and_validate(text, dialect, choice.zone.tzinfo, since_ms)
    if expression is None:
        return list(caret_lines(text, result.errors))
    return list(
        render(explain(text, expression, result.warnings, choice, Question(since_ms, 5, calendars=calendars)))
    )


def render(explanation: Explanation) -> Iterator[str]:
    yield paint(str(explanation.expression), "bold")
    yield explanation.expression.describe()
    yield ""
    yield from _assumptions(explanation)
    yield ""
    yield from _runs(explanation)
    if explanation.excluded:
        yield ""
        yield from _excluded(explanation)
    if explanation.spread is not None:
        yield ""
        yield from _histogram(explanation)
    yield ""
    yield from _clock_changes(explanation)
    if explanation.warnings:
        yield ""
        yield paint("warnings", "yellow", "bold")
        yield from caret_lines(explanation.text, explanation.warnings)


def _assumptions(explanation: Explanation) -> Iterator[str]:
    body = explanation.meaning.body
    yield f"zone      {explanation.zone.name} ({explanation.zone_source})"
    yield f"dialect   {explanation.expression.dialect}"
    if isinstance(body, Cron):
        specs = SIX_FIELDS if body.has_seconds else FIVE_FIELDS
        parts = zip(specs, body.written_fields, strict=True)
        listed = " | ".join(f"{_FIELD_WORDS.get(spec.name, spec.name)} {terminal_safe(f.text)}" for spec, f in parts)
        yield f"fields    {listed}"
        if not body.day_of_month.is_star and not body.day_of_week.is_star:
            yield "days      day of month or day of week: a match of either fires"
    if explanation.meaning.is_anchored:
        yield f"anchor    counted from {_stamp(explanation.since, explanation.zone)} here; a job keeps its own anchor"
    if explanation.distances is not None:
        yield f"distance  {_distance_text(explanation)}"


def _distance_text(explanation: Explanation) -> str:
    assert explanation.distances is not None
    shortest, longest, runs, is_sample = explanation.distances
    if shortest == longest:
        text = f"always {format_duration(shortest)}"
    else:
        text = f"{format_duration(shortest)} at the shortest, {format_duration(longest)} at the longest"
    if runs == 0:
        return text
    return f"{text}, {'in the next' if is_sample else 'over'} {runs} runs{'' if is_sample else ' of the next year'}"


# -- runs -----------------------------------------------------------------------------------------------------


def _runs(explanation: Explanation) -> Iterator[str]:
    zone, since = explanation.zone, explanation.since // 1000 * 1000
    if explanation.expression.kind == "start":
        yield "its runs come with the machine, when the first daemon begins after a boot: no clock tells when"
        return
    if not explanation.runs:
        yield f"no run after {_stamp(since, zone)}"
        return
    noun = "run" if len(explanation.runs) == 1 else f"{len(explanation.runs)} runs"
    yield paint(f"next {noun} after {_stamp(since, zone)}", "bold")
    for run in explanation.runs:
        line = f"  {_stamp(run.nominal, zone)}   {rfc3339(run.nominal)}   {time_until(run.nominal - since):>12}"
        yield line + _start_text(run, zone, explanation)
        if run.note:
            yield paint(f"      {run.note}", "yellow")
        if run.decision is not None:
            yield "      " + _decision_text(run, zone)


def _excluded(explanation: Explanation) -> Iterator[str]:
    yield paint("left out or moved until then", "bold")
    for one in explanation.excluded:
        where = "" if one.moved_to_ms is None else f", moved to {_stamp(one.moved_to_ms, explanation.zone)}"
        yield f"  {_stamp(one.nominal_ms, explanation.zone)}   {terminal_safe(one.calendar)}{where}"
    if len(explanation.excluded) == MOST_EXCLUDED:
        yield "  and more"


def _start_text(run: ExplainedRun, zone: Zone, explanation: Explanation) -> str:
    if run.earliest == run.latest:
        return "" if run.earliest == run.nominal else f"   starts {_clock(run.earliest, zone)}"
    if explanation.meaning.options.window is not None and run.earliest == run.nominal:
        until = f"not after {_clock(run.latest, zone)}"
        return f"   starts {_clock(run.earliest, zone)} or later, {until}"
    return f"   starts {_clock(run.earliest, zone)} to {_clock(run.latest, zone)}"


def _decision_text(run: ExplainedRun, zone: Zone) -> str:
    decision = run.decision
    assert decision is not None
    window = f"window {_moment(decision.window_start, zone)} to {_moment(decision.window_end, zone)}"
    if decision.chosen_time is None:
        return paint(f"{window}: unschedulable, {decision.reason}", "red")
    draws = f"{decision.attempts} draw{'s' if decision.attempts != 1 else ''}"
    return f"{window}: starts {paint(_moment(decision.chosen_time, zone), 'green')} after {draws}"


def _moment(moment: datetime, zone: Zone) -> str:
    return _day_and_clock(moment.astimezone(zone.tzinfo))


def _day_and_clock(moment: datetime) -> str:
    return f"{SHORT_WEEKDAYS[moment.weekday()]} {moment:%H:%M:%S}"


def _stamp(ms: int, zone: Zone) -> str:
    moment = local_datetime(ms, zone.tzinfo)
    offset = moment.utcoffset()
    seconds = round(offset.total_seconds()) if offset is not None else 0
    fraction = f".{ms % 1000:03}" if ms % 1000 else ""
    return f"{SHORT_WEEKDAYS[moment.weekday()]} {_date(moment)} {moment:%H:%M:%S}{fraction} {utc_offset(seconds)}"


def _date(moment: datetime) -> str:
    return f"{moment.year:04}-{moment:%m-%d}"


def _clock(ms: int, zone: Zone) -> str:
    moment = local_datetime(ms, zone.tzinfo)
    return f"{moment:%H:%M:%S}" + (f".{ms % 1000:03}" if ms % 1000 else "")


# -- where a spread lands ------------------------------------------------------------------------------------


def _histogram(explanation: Explanation) -> Iterator[str]:
    counts = explanation.histogram
    bars = _BARS if wants_unicode() else _ASCII_BARS
    highest = max(counts, default=0) or 1
    drawn = "".join(bars[-(-count * (len(bars) - 1) // highest)] for count in counts)
    yield paint(f"where the next {HISTOGRAM_PERIODS} periods land in their window", "bold")
    yield f"  |{drawn}|  {sum(counts)} scheduled, the fullest part has {highest if sum(counts) else 0}"


# -- clock changes -------------------------------------------------------------------------------------------


def _clock_changes(explanation: Explanation) -> Iterator[str]:
    if not explanation.changes:
        yield f"The clock of {explanation.zone.name} is not changed in the next three years."
        return
    yield paint(f"clock changes of {explanation.zone.name}", "bold")
    for report in explanation.changes:
        change = report.change
        day = local_datetime(change.at * 1000 - 1000, explanation.zone.tzinfo)
        before, after = wall_clock(change.at + change.before), wall_clock(change.at + change.after)
        amount = format_duration(abs(change.after - change.before) * 1000)
        move = f"{'forward' if change.is_gap else 'back'} {amount}"
        offsets = f"{utc_offset(change.before)} to {utc_offset(change.after)}"
        yield f"  {SHORT_WEEKDAYS[day.weekday()]} {_date(day)} {before} -> {after}, {move} ({offsets})"
        yield f"    {paint(report.effect.text, *(('yellow',) if report.effect.touches else ()))}"
        yield from _picture(report)


def _picture(report: ChangeReport) -> Iterator[str]:
    """The local day in half-hour cells, an hour a group, in the order of time."""
    signs = _UNICODE_CELLS if wants_unicode() else _ASCII_CELLS
    groups: list[str] = []
    labels: list[str] = []
    previous = ""
    for cell in report.cells:
        starts_hour = cell.wall % 3600 == 0
        if starts_hour or cell.kind != previous or not groups:
            groups.append("")
            labels.append(f"{cell.wall // 3600 % 24:02}" if starts_hour else "  ")
        groups[-1] += _cell_sign(cell, signs)
        previous = cell.kind
    yield "    " + " ".join(labels)
    yield "    " + " ".join(f"{group:2}" for group in groups)
    yield "    " + _legend({cell.kind for cell in report.cells}, signs)


def _cell_sign(cell: Cell, signs: dict[str, str]) -> str:
    if cell.runs == 0:
        return signs[cell.kind]
    return signs["run"] if cell.runs == 1 else str(cell.runs) if cell.runs < 10 else "+"


def _legend(kinds: set[str], signs: dict[str, str]) -> str:
    parts = [f"{signs['run']} or a number: runs in that half hour"]
    if "missing" in kinds:
        parts.append(f"{signs['missing']} does not exist")
    if "second" in kinds:
        parts.append(f"{signs['first']} first and {signs['second']} second pass")
    return ", ".join(parts)
