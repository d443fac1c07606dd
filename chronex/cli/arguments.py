"""What the values of command-line arguments mean: choices, instants, zones, durations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chronex.errors import ChronexError

if TYPE_CHECKING:
    from chronex.timing.zones import Zone, ZoneChoice

TEXT_OR_JSON = ("text", "json")


class UsageError(ChronexError):
    """The command was not understood; see --help."""


def choose(option: str, value: str, allowed: tuple[str, ...]) -> str:
    """One of a few words, or a usage error that names them."""
    if value not in allowed:
        from chronex.text.suggestions import nearest

        meant = nearest(value, allowed)
        hint = f"did you mean {meant}?" if meant else f"use {', '.join(allowed[:-1])} or {allowed[-1]}"
        raise UsageError(f"{option}: {value!r} is not known; {hint}")
    return value


def check_format(form: str) -> None:
    choose("--format", form, TEXT_OR_JSON)


def choose_zone(option: str | None) -> ZoneChoice:
    """--tz, else the host's zone, else UTC; always with a word on where it came from."""
    from chronex.timing.zones import ZoneChoice, host_zone

    if not option:
        return host_zone()
    from chronex.errors import UnknownZoneError
    from chronex.timing.zones import load_zone

    try:
        return ZoneChoice(load_zone(option), "from --tz")
    except UnknownZoneError:
        raise UsageError(f"--tz: unknown time zone {option!r}; {_zone_hint(option)}") from None


def _zone_hint(option: str) -> str:
    from chronex.text.suggestions import nearest
    from chronex.timing.zones import zone_names

    meant = nearest(option, zone_names())
    return f"did you mean {meant}?" if meant else "use an IANA name such as Europe/Berlin"


def read_instant(text: str | None, zone: Zone, option: str = "--from") -> int:
    """Epoch milliseconds of an ISO 8601 text (in `zone` when it has no offset); now when absent."""
    if text is None or text == "now":
        from chronex.clock import wall_ms

        return wall_ms()
    from datetime import datetime

    from chronex.text.instants import epoch_ms

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"{option}: {text!r} is not an ISO 8601 time; write 2027-03-14T01:00:00 or 2027-03-14"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone.tzinfo)
    try:
        return epoch_ms(moment)
    except OverflowError:
        raise UsageError(f"{option}: {text!r} lies outside the years 1 to 9999") from None


def read_since(text: str | None, zone: Zone) -> int | None:
    """`2h` is that long ago; otherwise an ISO 8601 time in `zone`."""
    if text is None:
        return None
    from chronex.clock import wall_ms
    from chronex.text.durations import parse_duration

    span = parse_duration(text)
    if span is not None:
        return wall_ms() - span
    try:
        return read_instant(text, zone, "--since")
    except UsageError as error:
        raise UsageError(f"{error}, or how long ago: 90m, 2d") from None


def read_duration(option: str, text: str | None) -> int | None:
    """Milliseconds of a duration that must be longer than nothing."""
    if text is None:
        return None
    from chronex.text.durations import parse_duration, suggest_duration

    ms = parse_duration(text)
    if ms == 0:
        raise UsageError(f"{option}: {text!r} is no time at all; write 90s, 10m or 2h30m")
    if ms is None:
        meant = suggest_duration(text)
        hint = f"did you mean {meant}?" if meant else "write 90s, 10m or 2h30m"
        raise UsageError(f"{option}: {text!r} is not a duration; {hint}")
    return ms
