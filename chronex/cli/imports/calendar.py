"""A calendar event of systemd as a cron expression with seconds, where one says the same."""

from __future__ import annotations

from typing import Any, NamedTuple

from chronex.lint.calendar_event import CalendarEvent, Chain, Values

_MICRO = 1_000_000
_CRON_WEEKDAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")


class Translated(NamedTuple):
    """`extra` are keys of the job beside its schedule; `lost` says what no expression can."""

    schedule: str
    extra: dict[str, Any]
    lost: str = ""


def translate(event: CalendarEvent) -> Translated:
    if event.at is not None:
        return Translated("", {}, "a single instant that is counted from 1970")
    seconds = _scaled(event.micros)
    if seconds is None:
        return Translated("", {}, "fractions of a second")
    if event.years is not None:
        return Translated("", {}, "years: use {from:…} and {until:…}")
    days = _days(event)
    if days is None:
        return Translated("", {}, "several days counted from the end of the month")
    times = [_field(seconds), _field(event.minutes), _field(event.hours)]
    fields = [*(times if times[0] != "0" else times[1:]), days, _field(event.months)]
    weekdays = _weekdays(event.weekdays)
    if weekdays != "*" and days != "*":
        # systemd wants both to hold; cron's fields are joined by "or".
        return Translated(" ".join([*fields, "*"]), {"spread": {"duration": "0s", "only": f"dow={weekdays}"}})
    return Translated(" ".join([*fields, weekdays]), {})


def _scaled(values: Values) -> Values:
    """Microseconds as seconds; None where one is no whole second."""
    if values is None:
        return (Chain(0, 59, 1),)
    parts = [part for chain in values for part in (chain.start, chain.stop or 0, chain.step)]
    if any(part % _MICRO for part in parts if part != 60 * _MICRO - 1):
        return None
    return tuple(
        Chain(c.start // _MICRO, None if c.stop is None else c.stop // _MICRO, c.step // _MICRO) for c in values
    )


def _field(values: Values) -> str:
    if values is None:
        return "*"
    return ",".join(_chain(chain) for chain in values)


def _chain(chain: Chain) -> str:
    if chain.stop is None:
        return f"{chain.start}/{chain.step}" if chain.step else str(chain.start)
    span = f"{chain.start}-{chain.stop}"
    return f"{span}/{chain.step}" if chain.step > 1 else span


def _days(event: CalendarEvent) -> str | None:
    if not event.from_end:
        return _field(event.days)
    chain = event.days[0] if event.days is not None and len(event.days) == 1 else None
    if chain is None or chain.stop is not None or chain.step:
        return None
    return "L" if chain.start == 1 else f"L-{chain.start - 1}"


def _weekdays(bits: int | None) -> str:
    if bits is None or bits == 0b1111111:
        return "*"
    return ",".join(name for number, name in enumerate(_CRON_WEEKDAYS) if bits >> number & 1)
