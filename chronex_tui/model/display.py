"""What a viewer sees by: the signs of each state, and the zone in which times are shown."""

from __future__ import annotations

from dataclasses import dataclass

from chronex.model.job import Job
from chronex.model.states import AttemptState, OccurrenceState, RunState
from chronex.timing.job_schedule import timing_of
from chronex.timing.zones import Zone, load_zone, utc_zone
from chronex.views.jobs import GLYPHS, Situation

_S, _O = Situation, OccurrenceState


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One set of signs."""

    situation: dict[Situation, str]
    clock: str
    up: str
    down: str
    mark: str
    ellipsis: str
    dot: str
    arrow: str
    now: str
    planned: str
    bar: str
    short: str
    overlap: str
    gap: str
    plain: str
    second: str
    unused: str
    unsure: str
    runs: str
    ramp: tuple[str, str, str, str, str, str]
    sparks: str
    rule: str
    border: str
    keys: str


UNICODE = Glyphs(
    situation=GLYPHS,
    clock="◷",
    up="●",
    down="○",
    mark="▸",
    ellipsis="…",
    dot="·",
    arrow="→",
    now="│",
    planned="┆",
    bar="█",
    short="▪",
    overlap="!",
    gap="╳",
    plain="█",
    second="▒",
    unused="·",
    unsure="?",
    runs="▲",
    ramp=("  ", "··", "░░", "▒▒", "▓▓", "██"),
    sparks="▁▂▃▄▅▆▇█",
    rule="─",
    border="round",
    keys="│",
)
ASCII = Glyphs(
    situation={
        _S.RUNNING: ">",
        _S.RETRYING: "~",
        _S.QUEUED: "%",
        _S.DISABLED: "-",
        _S.PAUSED: "=",
        _S.FAILED: "x",
        _S.DONE: "#",
        _S.OK: "*",
        _S.WAITING: "o",
    },
    clock="!",
    up="*",
    down="o",
    mark="+",
    ellipsis="~",
    dot=".",
    arrow=">",
    now="|",
    planned=":",
    bar="#",
    short="#",
    overlap="!",
    gap="x",
    plain="#",
    second="=",
    unused=".",
    unsure="?",
    runs="^",
    ramp=("  ", "..", "--", "==", "%%", "##"),
    sparks=".:-=+*#@",
    rule="-",
    border="ascii",
    keys="|",
)

# The name of the style of each state.
STYLES: dict[str, str] = {
    "running": "running",
    "claimed": "running",
    "retrying": "retry",
    "retry": "retry",
    "queued": "retry",
    "pending": "dim",
    "scheduled": "dim",
    "disabled": "dim",
    "paused": "paused",
    "failed": "failed",
    "failed_stale": "failed",
    "timeout": "failed",
    "crashed": "failed",
    "dlq": "failed",
    "missed": "retry",
    "skipped": "paused",
    "canceled": "paused",
    "done": "dim",
    "ok": "ok",
    "completed": "ok",
    "success": "ok",
    "waiting": "dim",
}

_SIGN_OF: dict[str, Situation] = {
    _O.PENDING: _S.WAITING,
    _O.QUEUED: _S.QUEUED,
    _O.RUNNING: _S.RUNNING,
    _O.COMPLETED: _S.OK,
    _O.FAILED: _S.FAILED,
    _O.FAILED_STALE: _S.FAILED,
    _O.CANCELED: _S.DONE,
    _O.SKIPPED: _S.PAUSED,
    _O.MISSED: _S.DISABLED,
    RunState.SCHEDULED: _S.WAITING,
    RunState.CLAIMED: _S.RUNNING,
    RunState.RETRY: _S.RETRYING,
    RunState.SUCCESS: _S.OK,
    RunState.DLQ: _S.FAILED,
    AttemptState.TIMEOUT: _S.FAILED,
    AttemptState.CRASHED: _S.FAILED,
    "retrying": _S.RETRYING,
}
WORDS: dict[str, str] = {
    _O.COMPLETED: "ok",
    _O.FAILED_STALE: "stale",
    RunState.SUCCESS: "ok",
    RunState.RETRY: "retrying",
    RunState.DLQ: "gave up",
}


def sign(state: str, glyphs: Glyphs) -> str:
    """The sign of a state of an occurrence, a run or an attempt."""
    return glyphs.situation[_SIGN_OF.get(state, _S.WAITING)]


def word(state: str) -> str:
    return WORDS.get(state, state)


TIMES = ("local", "job", "utc")


@dataclass(frozen=True, slots=True)
class DisplaySettings:
    """How the user sees the data: the signs, and the zone of times. `home` is the zone of the user."""

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
        """The zone of times that belong to no job."""
        return utc_zone() if self.times == "utc" else self.home

    @property
    def times_text(self) -> str:
        return {"job": "each job's zone", "local": self.home.name, "utc": "UTC"}[self.times]


def job_zone(job: Job) -> Zone:
    """The zone of the job's schedule; an expression with `TZ=` names its own."""
    timing = timing_of(job) if "TZ=" in job.schedule else None
    return load_zone(job.timezone) if timing is None else timing.zone
