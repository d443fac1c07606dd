"""How a viewer looks at the store: the moment, the signs, and whose clock times are told by."""

from __future__ import annotations

from dataclasses import dataclass

from chronex.model.records import Job
from chronex.timing.job_schedule import timing_of
from chronex.timing.zones import Zone, load_zone, utc_zone
from chronex_tui.model.glyphs import Glyphs

TIMES = ("local", "job", "utc")


@dataclass(frozen=True, slots=True)
class Look:
    """`times` is one of TIMES; `home` is the zone of whoever looks."""

    now_ms: int
    glyphs: Glyphs
    home: Zone
    times: str = "local"

    def zone_of(self, job: Job) -> Zone:
        if self.times == "job":
            return job_zone(job)
        return self.home if self.times == "local" else utc_zone()

    @property
    def board_zone(self) -> Zone:
        """For what belongs to no job."""
        return utc_zone() if self.times == "utc" else self.home

    @property
    def times_text(self) -> str:
        return {"job": "each job's zone", "local": self.home.name, "utc": "UTC"}[self.times]


def job_zone(job: Job) -> Zone:
    """The zone that the job's schedule is read in: its expression may name its own."""
    timing = timing_of(job) if "TZ=" in job.schedule else None
    return load_zone(job.timezone) if timing is None else timing.zone
