"""How commands tell a time: one rule for all of them.

People are told an instant in the zone of its job, with the offset: `2026-11-16 03:00+09:00`. Where no job is meant it
is in the host's zone. `list` and `status` put many jobs beside the clock on the wall: their short times (`07:41`) are
the host's too, and a line names the zone. The daemon's log and what `verify` shows of the journal are RFC 3339 in
UTC, so that lines of both can be put beside each other.

Programs are told every instant twice: RFC 3339 in UTC under its name, and epoch milliseconds under that and `_ms`.
"""

from __future__ import annotations

from typing import Any

from chronex.cli.arguments import host_zone
from chronex.cli.explain import iso_utc
from chronex.errors import ChronexError
from chronex.storage.records import Reading
from chronex.timing.zones import Zone, load_zone
from chronex.views.why.instants import zone_of
from chronex.views.wording import stamp

__all__ = ["Zones", "rfc3339", "shown_zone", "time_text", "timed", "zone_of"]


def shown_zone() -> Zone:
    """Of times that belong to no job."""
    return host_zone().zone


def time_text(ms: int | None, zone: Zone) -> str:
    """`2026-11-16 03:00+09:00`, for people: nobody reads milliseconds of a wall clock."""
    return "" if ms is None else stamp(ms // 1000 * 1000, zone)


def rfc3339(ms: int | None) -> str | None:
    return None if ms is None else iso_utc(ms)


def timed(name: str, ms: int | None) -> dict[str, Any]:
    """Both forms of an instant, for programs."""
    return {name: rfc3339(ms), f"{name}_ms": ms}


class Zones:
    """The zones of jobs by their names, also of those that are gone; each is looked up once."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._known: dict[tuple[str, int | None], Zone] = {}

    def of(self, job: str, version: int | None = None) -> Zone:
        """The zone of the version that was in force where one is named, else of the job as it is."""
        key = (job, version)
        if key not in self._known:
            self._known[key] = self._find(job, version)
        return self._known[key]

    def _find(self, name: str, version: int | None) -> Zone:
        job = self._reading.job_version(name, version) if version is not None else None
        job = job or self._reading.job(name)
        try:
            return shown_zone() if job is None else zone_of(job)
        except ChronexError:  # zone data that this machine has lost
            return load_zone("UTC")
