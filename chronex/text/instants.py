"""Instants: epoch milliseconds, aware datetimes, and RFC 3339 text.

Chronex stores and computes instants as whole milliseconds since 1970-01-01T00:00:00Z. The functions here are the only
place where such a number becomes a datetime or a text, and back.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import NoReturn

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST_MS = -62_135_596_800_000  # 0001-01-01T00:00:00Z
LAST_MS = 253_402_300_799_999  # 9999-12-31T23:59:59.999Z
EPOCH_ORDINAL = EPOCH.toordinal()  # days since 1970 plus this are the ordinals of datetime.date
SHORT_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
SHORT_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_NAMED_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}

# -- milliseconds and datetimes -------------------------------------------------------------------------------


def utc_datetime(ms: int) -> datetime:
    """The instant as a datetime in UTC. Raises OverflowError outside the years 1 to 9999."""
    return EPOCH + timedelta(milliseconds=ms)


def local_datetime(ms: int, zone: tzinfo) -> datetime:
    """The instant as a datetime in `zone`. One that no datetime can name there is the end of the calendar: looking at
    a record never fails, whatever it holds."""
    moment = utc_datetime(_on_calendar(ms))
    try:
        return moment.astimezone(zone)
    except OverflowError:
        return datetime.min.replace(tzinfo=zone) if ms < 0 else datetime.max.replace(tzinfo=zone)


def _on_calendar(ms: int) -> int:
    return max(FIRST_MS, min(ms, LAST_MS))


def epoch_ms(moment: datetime) -> int:
    """Whole milliseconds since 1970 of an aware datetime, rounded down. Raises TypeError without a zone."""
    second, microsecond = epoch_parts(moment)
    return second * 1000 + microsecond // 1000


def epoch_parts(moment: datetime) -> tuple[int, int]:
    """Whole seconds since 1970 of an aware datetime, and the microseconds beyond them."""
    try:
        delta = moment - EPOCH
    except TypeError:
        _refuse(moment)
    return delta.days * 86_400 + delta.seconds, delta.microseconds


def _refuse(moment: object) -> NoReturn:
    if isinstance(moment, datetime):
        hint = "give it a zone, such as datetime.now(UTC) or moment.replace(tzinfo=ZoneInfo('Europe/Berlin'))"
        raise TypeError(f"the instant {moment.isoformat()} has no time zone; {hint}") from None
    raise TypeError(f"an instant is an aware datetime, not {type(moment).__name__}") from None


# -- RFC 3339 -------------------------------------------------------------------------------------------------


def rfc3339(ms: int) -> str:
    """In UTC, with milliseconds only where there are some: `2027-03-28T01:00:00Z`, `2027-03-28T01:00:00.250Z`."""
    return utc_datetime(_on_calendar(ms)).isoformat(timespec=_precision(ms)).removesuffix("+00:00") + "Z"


def rfc3339_to_seconds(ms: int) -> str:
    """In UTC, cut to whole seconds: `2027-03-28T01:00:00Z`."""
    return rfc3339(ms // 1000 * 1000)


def rfc3339_to_milliseconds(ms: int) -> str:
    """In UTC, always with milliseconds, so that texts sort as their instants do: `2027-03-28T01:00:00.000Z`."""
    return utc_datetime(_on_calendar(ms)).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def rfc3339_in(ms: int, zone: tzinfo) -> str:
    """On the clock of `zone`, with its offset, UTC as `+00:00`; milliseconds only where there are some.

    `2027-03-28T03:00:00+02:00`, `2027-03-28T03:00:00.250+02:00`.
    """
    return local_datetime(ms, zone).isoformat(timespec=_precision(ms))


def _precision(ms: int) -> str:
    return "milliseconds" if ms % 1000 else "seconds"


# -- offsets from UTC -----------------------------------------------------------------------------------------


def utc_offset(seconds: int) -> str:
    """`+02:00`, `-03:30`; with seconds where there are some: `+00:53:28` was Berlin's before 1893."""
    sign, rest = ("-" if seconds < 0 else "+"), abs(seconds)
    text = f"{sign}{rest // 3600:02}:{rest // 60 % 60:02}"
    return f"{text}:{rest % 60:02}" if rest % 60 else text


def short_utc_offset(seconds: int) -> str:
    """`+02`, `-03:30`: minutes only where there are some, seconds never."""
    sign, rest = ("-" if seconds < 0 else "+"), abs(seconds)
    return f"{sign}{rest // 3600:02}" + (f":{rest // 60 % 60:02}" if rest % 3600 else "")


def with_named_day(text: str, today: date) -> str:
    """`yesterday` and `yesterday 03:00` as ISO 8601; any other text as it is."""
    word, _, clock = text.partition(" ")
    shift = _NAMED_DAYS.get(word.lower())
    if shift is None:
        return text
    day = (today + timedelta(days=shift)).isoformat()
    hour = "0" if clock[1:2] == ":" else ""
    return f"{day}T{hour}{clock}" if clock else day
