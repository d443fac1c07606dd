"""What there is to say about an expression, as plain data: its next runs, their distances, and clock changes.

Nothing here reads a clock or writes to a terminal.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from chronex.expr.diagnostics import Diagnostic
from chronex.expr.meaning import Every, Meaning
from chronex.text.instants import LAST_MS, rfc3339, rfc3339_in, utc_offset
from chronex.timing.clock_changes import Cell, ClockEffect, day_cells, effect_of, note_of
from chronex.timing.expression import Expression
from chronex.timing.occurrences import Occurrences, stagger_offset
from chronex.timing.zones import ClockChange, Zone, ZoneChoice

if (
    TYPE_CHECKING
):  # the decision core is loaded only for a question with a spread, calendars only where there are some
    from chronex.decision import DecisionResult
    from chronex.decision.decide import Spread
    from chronex.model.calendars import CalendarRules
    from chronex.timing.calendar_schedule import ExcludedInstant, WithMoved, WithoutExcluded

_YEAR_MS = 366 * 86_400_000
_MOST_SAMPLED = 600_000  # more than the minutes of a year; a schedule of seconds is only sampled
_YEARS_AHEAD = 3
HISTOGRAM_PERIODS = 200
HISTOGRAM_BINS = 24
MOST_EXCLUDED = 100


class ExplainedRun(NamedTuple):
    """One run: its scheduled time, the span in which it starts, and the start that a spread chooses, if any."""

    nominal: int
    earliest: int
    latest: int
    note: str
    decision: DecisionResult | None


class Distances(NamedTuple):
    """Between neighbouring runs of the next year, in milliseconds."""

    shortest: int
    longest: int
    runs: int
    is_sample: bool


class ChangeReport(NamedTuple):
    change: ClockChange
    effect: ClockEffect
    cells: list[Cell]


class Explanation(NamedTuple):
    text: str
    expression: Expression
    zone: Zone
    zone_source: str
    since: int
    runs: list[ExplainedRun]
    distances: Distances | None
    changes: list[ChangeReport]
    warnings: tuple[Diagnostic, ...]
    spread: Spread | None
    histogram: list[int]
    calendars: CalendarRules | None = None
    # What the calendars leave out or move, up to the last of the runs.
    excluded: tuple[ExcludedInstant, ...] = ()

    @property
    def meaning(self) -> Meaning:
        return self.expression.meaning

    def to_dict(self) -> dict[str, Any]:
        data: dict[str, Any] = {
            "expression": self.text,
            "canonical": str(self.expression),
            "kind": self.expression.kind,
            "dialect": self.expression.dialect,
            "timezone": self.zone.name,
            "timezone_source": self.zone_source,
            "description": self.expression.describe(),
            "from": rfc3339_in(self.since, self.zone.tzinfo),
            "occurrences": [self._occurrence(run) for run in self.runs],
            "distances": self._distance_dict(),
            "clock_changes": [_change_dict(report, self.zone) for report in self.changes],
            "diagnostics": [d.to_dict() for d in self.warnings],
        }
        if self.spread is not None:
            data["histogram"] = self.histogram
        if self.calendars is not None:
            data["excluded"] = [self._excluded(one) for one in self.excluded]
        return data

    def _excluded(self, one: ExcludedInstant) -> dict[str, Any]:
        moved = None if one.moved_to_ms is None else rfc3339_in(one.moved_to_ms, self.zone.tzinfo)
        nominal = {"nominal": rfc3339_in(one.nominal_ms, self.zone.tzinfo), "nominal_ms": one.nominal_ms}
        return {**nominal, "calendar": one.calendar, "moved_to": moved, "moved_to_ms": one.moved_to_ms}

    def _occurrence(self, run: ExplainedRun) -> dict[str, Any]:
        row = {
            "nominal": rfc3339_in(run.nominal, self.zone.tzinfo),
            "utc": rfc3339(run.nominal),
            "nominal_ms": run.nominal,
            "earliest": rfc3339_in(run.earliest, self.zone.tzinfo),
            "latest": rfc3339_in(run.latest, self.zone.tzinfo),
            "note": run.note,
        }
        return row if run.decision is None else row | {"decision": run.decision.to_dict()}

    def _distance_dict(self) -> dict[str, Any] | None:
        if self.distances is None:
            return None
        shortest, longest, runs, is_sample = self.distances
        return {"shortest_ms": shortest, "longest_ms": longest, "runs": runs, "sample": is_sample}


def _change_dict(report: ChangeReport, zone: Zone) -> dict[str, Any]:
    change = report.change
    return {
        "at": rfc3339_in(change.at * 1000, zone.tzinfo),
        "kind": "gap" if change.is_gap else "overlap",
        "from_offset": utc_offset(change.before),
        "to_offset": utc_offset(change.after),
        "effect": report.effect.text,
    }


class Question(NamedTuple):
    """What is asked about an expression: its next `most` runs after `since`, for a job with this id and spread."""

    since: int
    most: int
    identity: str | None = None
    spread: Spread | None = None
    calendars: CalendarRules | None = None


def explain(
    text: str, expression: Expression, warnings: tuple[Diagnostic, ...], choice: ZoneChoice, question: Question
) -> Explanation:
    timing = expression.occurrences(choice.zone.tzinfo)
    since, spread = question.since, question.spread
    instants = _Instants(timing, since, question.calendars)
    nominals = _next_nominals(timing, instants, question.most)
    last = nominals[-1] if nominals else since + _YEAR_MS
    changes = timing.zone.changes(since // 1000, since // 1000 + _YEARS_AHEAD * 366 * 86_400)[:2]
    return Explanation(
        text=text,
        expression=expression,
        zone=timing.zone,
        zone_source="from the expression" if expression.timezone else choice.source,
        since=since,
        runs=[
            _run(timing, ms, index, question.identity, spread)._replace(note=instants.note(ms))
            for index, ms in enumerate(nominals, 1)
        ],
        distances=_distances(timing, instants),
        changes=[ChangeReport(c, effect_of(timing, c), day_cells(timing, c)) for c in changes],
        warnings=warnings,
        spread=spread,
        histogram=_histogram(instants, spread),
        calendars=question.calendars,
        excluded=tuple(islice(instants.excluded(last), MOST_EXCLUDED)),
    )


class _Instants:
    """The instants of an expression after `since`, as its calendars leave them."""

    def __init__(self, timing: Occurrences, since: int, calendars: CalendarRules | None) -> None:
        self.timing, self.since = timing, since
        self._schedule: WithoutExcluded | WithMoved | None = None
        if calendars is not None:
            from chronex.timing.calendar_schedule import WithMoved, WithoutExcluded
            from chronex.timing.job_schedule import ExpressionSchedule

            base = ExpressionSchedule(timing, since)
            kind = WithoutExcluded if calendars.on_excluded == "skip" else WithMoved
            self._schedule = kind(base, calendars, timing.zone)

    def until(self, last: int) -> Iterator[int]:
        if self._schedule is not None:
            return self._schedule.between(self.since, last)
        return self.timing.between(self.since + 1, last, self.since)

    def excluded(self, last: int) -> Iterator[ExcludedInstant]:
        return iter(()) if self._schedule is None else self._schedule.excluded(self.since, last)

    def note(self, instant: int) -> str:
        """What a clock change or a calendar did to it."""
        moved = None if self._schedule is None else self._schedule.moved_from(instant)
        if moved is None:
            return note_of(self.timing, instant)
        return f"moved from {rfc3339_in(moved.nominal_ms, self.timing.zone.tzinfo)} by {moved.calendar}"


def _next_nominals(timing: Occurrences, instants: _Instants, count: int) -> list[int]:
    limit = timing.meaning.options.max
    wanted = count if limit is None else min(count, limit)
    return list(islice(instants.until(LAST_MS), wanted))


def _run(timing: Occurrences, nominal: int, index: int, identity: str | None, spread: Spread | None) -> ExplainedRun:
    options, body = timing.meaning.options, timing.meaning.body
    earliest = latest = nominal
    if isinstance(body, Every) and body.high is not None:
        latest += index * (body.high - body.low)
    if options.stagger and identity:
        offset = stagger_offset(identity, options.stagger)
        earliest, latest = earliest + offset, latest + offset
    elif options.stagger:
        latest += options.stagger
    latest += options.jitter or 0
    if options.window is not None:
        latest = nominal + options.window
    if spread is None:
        return ExplainedRun(nominal, earliest, latest, "", None)
    return ExplainedRun(nominal, earliest, latest, "", _decision(spread, nominal))


def _decision(spread: Spread, nominal: int) -> DecisionResult:
    from chronex.decision.decide import preview

    return preview(spread, [nominal])[0]


def _histogram(instants: _Instants, spread: Spread | None) -> list[int]:
    if spread is None:
        return []
    from chronex.decision.decide import histogram

    return histogram(spread, list(islice(instants.until(LAST_MS), HISTOGRAM_PERIODS)), HISTOGRAM_BINS)


def _distances(timing: Occurrences, instants: _Instants) -> Distances | None:
    body = timing.meaning.body
    if isinstance(body, Every) and body.high is not None:
        return Distances(body.low, body.high, 0, is_sample=False)
    found = list(islice(instants.until(instants.since + _YEAR_MS), _MOST_SAMPLED))
    if len(found) < 2:
        return None
    gaps = [later - earlier for earlier, later in pairwise(found)]
    return Distances(min(gaps), max(gaps), len(found), is_sample=len(found) == _MOST_SAMPLED)
