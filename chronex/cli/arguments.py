"""What command-line arguments mean: instants, zones, and where a zone came from."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from chronex.clock import wall_ms
from chronex.errors import ChronexError, UnknownZoneError
from chronex.text.instants import epoch_ms
from chronex.text.suggestions import nearest
from chronex.timing.host_zone import ZoneChoice, host_zone
from chronex.timing.zones import Zone, load_zone, zone_names

__all__ = ["UsageError", "ZoneChoice", "choose_zone", "host_zone", "local", "read_instant"]


class UsageError(ChronexError):
    """The command was not understood; see --help."""


def choose_zone(option: str | None) -> ZoneChoice:
    """--tz, else the host's zone, else UTC; always with a word on where it came from."""
    if option:
        try:
            return ZoneChoice(load_zone(option), "from --tz")
        except UnknownZoneError:
            meant = nearest(option, zone_names())
            hint = f"did you mean {meant}?" if meant else "use an IANA name such as Europe/Berlin"
            raise UsageError(f"--tz: unknown time zone {option!r}; {hint}") from None
    return host_zone()


def read_instant(text: str | None, zone: Zone, option: str = "--from") -> int:
    """Epoch milliseconds of an ISO 8601 text (in `zone` when it has no offset); now when absent."""
    if text is None or text == "now":
        return wall_ms()
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


def local(ms: int, zone: Zone) -> datetime:
    second, rest = divmod(ms, 1000)
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=second)
    return moment.astimezone(zone.tzinfo).replace(microsecond=rest * 1000)
