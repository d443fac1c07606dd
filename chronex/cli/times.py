"""How commands write a time: one rule for all of them.

People see an instant in the zone of its job, with the offset: `2026-11-16 03:00+09:00`. An instant that belongs to no
job is in the host's zone. `list` and `status` put many jobs beside the clock on the wall: their short times (`07:41`)
are the host's too, and a line names the zone. The daemon's log and what `verify` shows of the journal are RFC 3339 in
UTC, so that lines of both can be compared.

Programs get every instant twice: RFC 3339 in UTC under its name, and epoch milliseconds under that and `_ms`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chronex.model.job import Job
    from chronex.storage.records import Reading
    from chronex.timing.zones import Zone


def shown_zone() -> Zone:
    """The zone of times that belong to no job."""
    from chronex.timing.zones import host_zone

    return host_zone().zone


def zone_of(job: Job) -> Zone:
    from chronex.views.why.schedule_versions import zone_of as job_zone

    return job_zone(job)


def time_text(ms: int | None, zone: Zone) -> str:
    """`2026-11-16 03:00+09:00`, for people, who do not read the milliseconds of a wall clock."""
    if ms is None:
        return ""
    from chronex.views.wording import stamp

    return stamp(ms // 1000 * 1000, zone)


def rfc3339(ms: int | None) -> str | None:
    if ms is None:
        return None
    from chronex.text import instants

    return instants.rfc3339(ms)


def timed(name: str, ms: int | None) -> dict[str, Any]:
    """Both forms of an instant, for programs."""
    return {name: rfc3339(ms), f"{name}_ms": ms}


class JobZones:
    """The zones of jobs by their names, also of jobs that were removed; each is looked up once."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._known: dict[tuple[str, int | None], Zone] = {}

    def of(self, job: str, version: int | None = None) -> Zone:
        """The zone of the named version of the job, else of the job as it is."""
        key = (job, version)
        if key not in self._known:
            self._known[key] = self._find(job, version)
        return self._known[key]

    def _find(self, name: str, version: int | None) -> Zone:
        from chronex.errors import ChronexError
        from chronex.timing.zones import load_zone

        job = self._reading.job_version(name, version) if version is not None else None
        job = job or self._reading.job(name)
        try:
            return shown_zone() if job is None else zone_of(job)
        except ChronexError:  # zone data that this machine has lost
            return load_zone("UTC")
