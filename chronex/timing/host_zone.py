"""The zone of this host, and where it was found."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from chronex.errors import UnknownZoneError
from chronex.timing.zones import Zone, load_zone, utc_zone

_FROM_VARIABLE = "the host's, from the TZ variable"


class ZoneChoice(NamedTuple):
    """A zone, and for people where it was found."""

    zone: Zone
    source: str


def host_zone() -> ZoneChoice:
    """The first zone that the zone data knows. If TZ is none (JST-9), `source` says that it was not used."""
    unused = ""
    for name, source in _host_candidates():
        try:
            return ZoneChoice(load_zone(name), source + unused)
        except UnknownZoneError:
            if source == _FROM_VARIABLE:
                unused = f"; TZ={name!r} is no zone name and not used"
    return ZoneChoice(utc_zone(), f"the host names no zone; UTC assumed{unused}")


def _host_candidates() -> list[tuple[str, str]]:
    found = []
    if variable := os.environ.get("TZ", "").lstrip(":"):
        found.append((variable, _FROM_VARIABLE))
    localtime = Path("/etc/localtime")
    if localtime.is_symlink():
        _, marker, name = os.path.realpath(localtime).partition("zoneinfo/")
        if marker:
            found.append((name, "the host's, from /etc/localtime"))
    with suppress(OSError, UnicodeDecodeError):
        found.append((Path("/etc/timezone").read_text("utf-8").strip(), "the host's, from /etc/timezone"))
    return found
