"""How things are shown: the signs and words of states, the zone of times, and instants in few characters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from chronex.engine.usual import UsualBand
from chronex.model.job import Job
from chronex.model.occurrence import Usage
from chronex.model.states import AttemptState, OccurrenceState, RunState
from chronex.text.durations import DAY_MS, SECOND_MS, elapsed, rounded_duration
from chronex.text.instants import SHORT_MONTHS, SHORT_WEEKDAYS, local_datetime
from chronex.timing.job_schedule import timing_of
from chronex.timing.zones import Zone, load_zone, utc_zone
from chronex.views.jobs import GLYPHS, Situation
from chronex.views.wording import WITH_ERRORS

_S, _O = Situation, OccurrenceState
_WITHIN_THE_YEAR = 300  # days; what is further away is told with its year


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
    WITH_ERRORS: "retry",
    "success": "ok",
    "waiting": "dim",
}

_SIGN_OF: dict[str, Situation] = {
    _O.PENDING: _S.WAITING,
    _O.QUEUED: _S.QUEUED,
    _O.RUNNING: _S.RUNNING,
    _O.COMPLETED: _S.OK,
    WITH_ERRORS: _S.OK,
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
    WITH_ERRORS: "errors",
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


UNKNOWN = "unknown"  # what is on record as running, where no scheduler runs that would record its end


TIMES = ("local", "job", "utc")


@dataclass(frozen=True, slots=True)
class DisplaySettings:
    """How the user sees the data: the signs, and the zone of times. `home` is the zone of the user."""

    now_ms: int
    glyphs: Glyphs
    home: Zone
    times: str = "local"
    is_watched: bool = True  # a scheduler runs, and records how what runs ends

    def spent_since(self, ms: int) -> str:
        """How long something has been running. Without a scheduler it may have ended long ago."""
        return elapsed(self.now_ms - ms) if self.is_watched else "?"

    def state_word(self, state: str) -> str:
        """The state as a word; what is on record as running is unknown where no scheduler runs."""
        shown = word(state)
        return UNKNOWN if shown == "running" and not self.is_watched else shown

    def sign_of(self, state: str) -> str:
        """The sign of a state of an occurrence, a run or an attempt, and that of what is unknown."""
        return self.glyphs.unsure if self.state_word(state) == UNKNOWN else sign(state, self.glyphs)

    def sign_of_job(self, situation: Situation) -> str:
        return self.glyphs.unsure if self.state_word(situation) == UNKNOWN else self.glyphs.situation[situation]

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


# -- instants -------------------------------------------------------------------------------------------------


def local_time(ms: int, zone: Zone) -> datetime:
    return local_datetime(ms, zone.tzinfo)


def clock_time(ms: int, zone: Zone) -> str:
    """14:45, or 14:45:10 where there are seconds."""
    moment = local_time(ms, zone)
    return f"{moment:%H:%M:%S}" if moment.second else f"{moment:%H:%M}"


def exact_clock_time(ms: int, zone: Zone) -> str:
    """14:45:00: always with seconds."""
    return f"{local_time(ms, zone):%H:%M:%S}"


def stamp(ms: int, now_ms: int, zone: Zone, *, is_exact: bool = False) -> str:
    """15:00 today, Mon 03:00 within a week, 28 Mar 02:30 within the year, else with the year.

    With `is_exact` times of today always have seconds: in a column 10:05 beside 10:04:50 looks like missing data.
    """
    moment, today = local_time(ms, zone), local_time(now_ms, zone).date()
    days = (moment.date() - today).days
    if days == 0:
        return exact_clock_time(ms, zone) if is_exact else clock_time(ms, zone)
    if abs(days) < 7:
        return f"{SHORT_WEEKDAYS[moment.weekday()]} {clock_time(ms, zone)}"
    if abs(days) < _WITHIN_THE_YEAR:
        return f"{_date(moment).strip()} {moment:%H:%M}"
    return f"{_date(moment).strip()} {moment.year}"


def full_stamp(ms: int, zone: Zone, *, is_exact: bool = False, now_ms: int | None = None) -> str:
    """Mon 16 Nov 02:30 CET; with `is_exact` always with seconds, as beside others that have some.

    What is most of a year from `now_ms` has its year: else the runs of a yearly job look like one.
    """
    moment = local_time(ms, zone)
    time = exact_clock_time(ms, zone) if is_exact else clock_time(ms, zone)
    is_far = now_ms is not None and abs(ms - now_ms) >= _WITHIN_THE_YEAR * DAY_MS
    year = f" {moment.year}" if is_far else ""
    return f"{SHORT_WEEKDAYS[moment.weekday()]} {_date(moment)}{year} {time} {abbreviation(ms, zone)}"


def have_seconds(instants: Iterable[int]) -> bool:
    """Whether one of the times that stand together has seconds, so that all of them show theirs."""
    return any(ms // SECOND_MS % 60 for ms in instants)


def _date(moment: datetime) -> str:
    return f"{moment.day:2} {SHORT_MONTHS[moment.month - 1]}"


def abbreviation(ms: int, zone: Zone) -> str:
    """CET, or the name of a zone that has no abbreviation."""
    return local_time(ms, zone).tzname() or zone.name


def day_of(ms: int, zone: Zone) -> str:
    """Sun 28 Mar 2027."""
    moment = local_time(ms, zone)
    return f"{SHORT_WEEKDAYS[moment.weekday()]} {moment.day} {SHORT_MONTHS[moment.month - 1]} {moment.year}"


def count(number: int, noun: str) -> str:
    """1 run, 1,200 runs."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def usage_words(usage: Usage | None) -> str:
    """What a command took of the machine: `cpu 1.2s, 45 MiB`; empty where nobody counted it."""
    if usage is None:
        return ""
    processor = f"cpu {rounded_duration(usage.cpu_ms)}"
    return processor if usage.peak_kib is None else f"{processor}, {memory_words(usage.peak_kib)}"


def memory_words(kibibytes: int) -> str:
    """45 MiB, 3.1 MiB."""
    mebibytes = kibibytes / 1024
    return f"{mebibytes:,.0f} MiB" if mebibytes >= 10 else f"{mebibytes:.1f} MiB"


def band_words(before: str, band: UsualBand | None, words: Callable[[int], str]) -> str:
    """`cpu 0.2s to 0.9s`: what half of the runs and what 19 of 20 had at most; empty where nobody counted it."""
    if band is None:
        return ""
    middle, most = words(band.median), words(band.p95)
    return f"{before}{middle}" if middle == most else f"{before}{middle} to {most}"
