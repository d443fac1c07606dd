"""The meaning of an expression as an immutable value: equal by meaning, printed in one canonical form."""

from __future__ import annotations

import re
from typing import Any, NamedTuple, TypeAlias

from chronex.expr.fields import DAY_OF_MONTH, DAY_OF_WEEK, FieldSet
from chronex.expr.iso8601 import Moment, Period, moment_from_instant
from chronex.expr.option_block import NO_OPTIONS, Options
from chronex.text.durations import format_duration

ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class Cron(NamedTuple):
    """Six fields; five in the text imply second 0."""

    second: FieldSet
    minute: FieldSet
    hour: FieldSet
    day_of_month: FieldSet
    month: FieldSet
    day_of_week: FieldSet
    has_seconds: bool
    alias: str | None = None

    @property
    def is_interval(self) -> bool:
        """The kind that fires on both passes of an overlap (specs/timing.md)."""
        in_seconds = self.has_seconds and self.second.is_interval
        return in_seconds or self.minute.is_interval or self.hour.is_interval

    @property
    def written_fields(self) -> tuple[FieldSet, ...]:
        return self[0:6] if self.has_seconds else self[1:6]

    def __str__(self) -> str:
        if self.alias:
            return self.alias
        return (
            " ".join(_canonical_field(f.text) for f in self.written_fields[:-1])
            + " "
            + _canonical_weekday(self.day_of_week.text)
        )

    def meaning_key(self) -> tuple[Any, ...]:
        times = (self.second.values, self.minute.values, self.hour.values)
        return (
            "cron",
            *times,
            self.is_interval,
            self.month.values,
            *_day_key(self.day_of_month, self.day_of_week),
        )


def _day_key(day: FieldSet, weekday: FieldSet) -> tuple[Any, ...]:
    """Which days match, so that `1-31` beside `*` is every day, as is any OR with a full field."""
    any_day = day.values == DAY_OF_MONTH.star.values
    any_weekday = weekday.values == DAY_OF_WEEK.star.values
    day_part = (day.values, () if any_day else day.rules)
    weekday_part = (weekday.values, weekday.added_rules)
    if day.is_star or weekday.is_star:
        restricted = (any_day and weekday.is_star) or (any_weekday and day.is_star)
        return ("every",) if restricted else ("days", day_part) if weekday.is_star else ("weekdays", weekday_part)
    return ("every",) if any_day or any_weekday else ("either", day_part, weekday_part)


_LEADING_ZEROS = r"(?<![0-9])0+(?=[0-9])"
_LONE_SEVEN = r"(?<![^,])7(?=$|,|L|#)"


def _canonical_field(text: str) -> str:
    if text == "?":
        return "*"
    upper = text.upper()
    return re.sub(_LEADING_ZEROS, "", upper) if "0" in upper[:-1] else upper


def _canonical_weekday(text: str) -> str:
    """Sunday as 0; inside a range or a step 7 stays, because `5-7` and `5-0` read differently."""
    field = _canonical_field(text)
    return re.sub(_LONE_SEVEN, "0", field) if "7" in field else field


class Every(NamedTuple):
    """Milliseconds between runs; with `high` each distance is drawn from low..high."""

    low: int
    high: int | None = None

    def __str__(self) -> str:
        top = "" if self.high is None else f"-{format_duration(self.high)}"
        return f"@every {format_duration(self.low)}{top}"

    def meaning_key(self) -> tuple[Any, ...]:
        return ("interval", self.low, self.high)


class Once(NamedTuple):
    """At one moment. A relative one (`+20m`) gets its moment from the reference time."""

    at: Moment | None
    relative: int | None = None

    def __str__(self) -> str:
        return f"@once {self.at}" if self.at is not None else f"@once +{format_duration(self.relative or 0)}"

    def meaning_key(self) -> tuple[Any, ...]:
        if self.at is None:
            return ("once", "relative", self.relative)
        instant = self.at.instant_ms
        return ("once", "wall", self.at.wall_ms) if instant is None else ("once", "instant", instant)

    def resolved(self, reference_ms: int) -> Once:
        """With the moment filled in; nothing changes for an absolute one."""
        if self.at is not None or self.relative is None:
            return self
        return self._replace(at=moment_from_instant(reference_ms + self.relative))


class AtStart(NamedTuple):
    """Each time the machine has started: no instants of its own, because nobody knows when that will be."""

    def __str__(self) -> str:
        return "@start"

    def meaning_key(self) -> tuple[Any, ...]:
        return ("start",)


class Repeating(NamedTuple):
    """An ISO 8601 repeating interval: start + k·period; `repetitions` after the first.

    With an end, the last interval ends there and the others lie before it. With neither, it is anchored: it counts
    from where the caller says, as `@every` does.
    """

    repetitions: int | None
    start: Moment | None
    period: Period
    end: Moment | None = None

    @property
    def is_anchored(self) -> bool:
        return self.start is None and self.end is None

    def __str__(self) -> str:
        count = "" if self.repetitions is None else self.repetitions
        parts = (self.start, self.period, self.end)
        return f"R{count}/" + "/".join(str(part) for part in parts if part is not None)

    def meaning_key(self) -> tuple[Any, ...]:
        moment = self.start or self.end
        side = "from" if self.start is not None else "up to"
        if moment is None:
            return ("repeating", self.repetitions, None, self.period)
        instant = moment.instant_ms
        at = (side, "wall", moment.wall_ms) if instant is None else (side, "instant", instant)
        return ("repeating", self.repetitions, at, self.period)


Body: TypeAlias = Cron | Every | Once | Repeating | AtStart
_KINDS: dict[type, str] = {
    Cron: "cron", Every: "interval", Once: "once", Repeating: "repeating", AtStart: "start",
}  # fmt: skip


class Meaning(NamedTuple):
    """A schedule body with its zone (None: the caller's) and options."""

    body: Body
    zone: str | None = None
    options: Options = NO_OPTIONS
    dialect: str = "chronex"

    @property
    def kind(self) -> str:
        return _KINDS[type(self.body)]

    def __str__(self) -> str:
        zone = f"TZ={self.zone} " if self.zone else ""
        options = f" {{{text}}}" if (text := str(self.options)) else ""
        return f"{zone}{self.body}{options}"

    def meaning_key(self) -> tuple[Any, ...]:
        return (self.body.meaning_key(), self.zone, self.options.meaning_key(), self.dialect)

    def resolved(self, reference_ms: int) -> Meaning:
        if isinstance(self.body, Once):
            return self._replace(body=self.body.resolved(reference_ms))
        return self

    @property
    def is_relative(self) -> bool:
        return isinstance(self.body, Once) and self.body.at is None

    @property
    def is_anchored(self) -> bool:
        """Does it count from an anchor that is not in the text?"""
        return isinstance(self.body, Every) or (isinstance(self.body, Repeating) and self.body.is_anchored)
