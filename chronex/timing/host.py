"""The zone of this host, and where it was found."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from chronex.errors import UnknownZoneError
from chronex.timing.zones import Zone, load_zone, utc_zone


class ZoneChoice(NamedTuple):
    zone: Zone
    source: str


def host_zone() -> ZoneChoice:
    for name, source in _host_candidates():
        try:
            return ZoneChoice(load_zone(name), source)
        except UnknownZoneError:
            continue
    return ZoneChoice(utc_zone(), "the host names no zone; UTC assumed")


def _host_candidates() -> list[tuple[str, str]]:
    found = []
    if variable := os.environ.get("TZ", "").lstrip(":"):
        found.append((variable, "the host's, from the TZ variable"))
    localtime = Path("/etc/localtime")
    if localtime.is_symlink():
        _, marker, name = os.path.realpath(localtime).partition("zoneinfo/")
        if marker:
            found.append((name, "the host's, from /etc/localtime"))
    with suppress(OSError, UnicodeDecodeError):
        found.append((Path("/etc/timezone").read_text("utf-8").strip(), "the host's, from /etc/timezone"))
    return found
