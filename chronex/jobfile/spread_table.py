"""The spread table, checked by the decision core itself, and how many runs may wait for their start at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from datetime import timedelta
from itertools import islice
from typing import Any

from chronex.decision import make_spread
from chronex.decision.distributions import known_parameters, parse_distribution
from chronex.errors import ConstraintError, DecisionError
from chronex.expr.meaning import Cron, Every
from chronex.jobfile.entries import Entry, Reader, RefusedError, read_table
from chronex.jobfile.positions import TextSpan
from chronex.jobfile.values import duration, text
from chronex.model.job import Job
from chronex.model.policies import Cadence, SpreadPolicy
from chronex.text.durations import DAY_MS, UNITS, format_duration
from chronex.timing.job_schedule import options_of, schedule_of, timing_of

# Planning looks ahead by as much as a spread may start early, so a window has an end somewhere.
MAX_WINDOW_MS = 366 * UNITS["d"]


def _window(entry: Entry) -> int:
    found = duration(entry)
    if found > MAX_WINDOW_MS:
        hint = f"the longest is {format_duration(MAX_WINDOW_MS)}"
        entry.refuse(f"{entry.label}: a window of {format_duration(found)} is too long", hint, "J015")
    return found


def _parameters(entry: Entry) -> dict[str, float | str]:
    table = entry.expect_table(entry.assignment("{ s = 3 }"))
    return read_table(entry, dict.fromkeys(table, _parameter))


def _parameter(entry: Entry) -> float | str:
    value = entry.value
    if isinstance(value, str):
        return text(entry)
    if not isinstance(value, int | float) or isinstance(value, bool):
        entry.refuse_type("a number or text", entry.assignment("2"))
    if isinstance(value, int) and value.bit_length() > 64:
        entry.refuse(f"{entry.label} cannot be a number this large", "write a smaller one", "J014")
    return float(value)


SPREAD: dict[str, Reader] = {
    "mode": text,
    "duration": _window,
    "distribution": text,
    "parameters": _parameters,
    "seed": text,
    "salt": text,
    "only": text,
    "avoid": text,
}
# The decision core's names of our keys, and the value each key takes when the given one is refused.
_KEYS = {
    "window_mode": "mode",
    "distribution": "distribution",
    "distribution_params": "parameters",
    "seed_strategy": "seed",
    "salt": "salt",
    "only": "only",
    "avoid": "avoid",
}
_NEUTRAL: dict[str, Any] = {
    "mode": "after",
    "distribution": "uniform",
    "parameters": {},
    "seed": "stable",
    "salt": "",
    "only": "",
    "avoid": "",
}


def spread(entry: Entry) -> SpreadPolicy:
    given = read_table(entry, SPREAD, entry.assignment('{ duration = "1h" }'))
    table = entry.expect_table()
    if "duration" not in table:
        entry.refuse(f"{entry.label} has no duration", 'write for example duration = "2h"', "J012", entry.key_span)
    if not _has_no_faults(entry, given) or any(key not in given for key in table):
        raise RefusedError
    policy = {("duration_ms" if key == "duration" else key): value for key, value in given.items()}
    return SpreadPolicy(**policy)


def _has_no_faults(entry: Entry, given: dict[str, Any]) -> bool:
    """The core names one fault at a time: report it, put a neutral value in its place, check again."""
    is_valid = True
    candidate = {**_NEUTRAL, **given}
    if "distribution" in entry.expect_table() and "distribution" not in given:
        candidate["parameters"] = {}  # whose they are is not known
    for _ in range(2 * len(_KEYS)):
        try:
            _split_distribution(entry, given, candidate)
            _make(candidate)
        except DecisionError as error:
            is_valid = False
            key = _KEYS.get(error.field, "duration")
            _report(entry, key, error)
            candidate[key] = _NEUTRAL.get(key)
            if key == "distribution":
                candidate["parameters"] = {}
            given.pop(key, None)
        else:
            return is_valid
    return False


def _split_distribution(entry: Entry, given: dict[str, Any], candidate: dict[str, Any]) -> None:
    """`skewEarly:3` is a distribution with its parameters in one text."""
    if ":" not in candidate["distribution"]:
        return
    if "parameters" in entry.expect_table():
        entry.child("parameters").refuse(
            "the parameters are given twice", "write them in distribution or in parameters", "J024"
        )
    try:
        name, parameters = parse_distribution(candidate["distribution"])
    except DecisionError as error:
        error.field = "distribution"
        raise
    candidate["distribution"] = given["distribution"] = name
    candidate["parameters"] = given["parameters"] = dict(parameters)


def _make(candidate: dict[str, Any]) -> None:
    make_spread(
        identity="job",
        window_mode=candidate["mode"],
        window_duration=timedelta(milliseconds=candidate.get("duration", 0)),
        distribution=candidate["distribution"],
        distribution_params=candidate["parameters"],
        seed_strategy=candidate["seed"],
        salt=candidate["salt"],
        only=candidate["only"],
        avoid=candidate["avoid"],
    )


def _report(entry: Entry, key: str, error: DecisionError) -> None:
    place = entry.child(key) if key in entry.expect_table() else entry
    span: TextSpan | None = None
    if isinstance(error, ConstraintError):
        span = place.span_inside(error.position, error.position + len(str(error.value or "")))
    place.report(f"{key}: {error.problem}", error.hint or _fallback_hint(key, entry.value), "J021", span)


def _fallback_hint(key: str, table: object) -> str:
    if key == "parameters" and isinstance(table, dict):
        known = known_parameters(str(table.get("distribution", "uniform")))
        return f"it takes {', '.join(known)}" if known else "remove the parameters"
    return "write for example dow=MON-FRI;between=08:00-20:00" if key in ("only", "avoid") else "see docs/job-file.md"


# -- how many runs wait at once -----------------------------------------------------------------------------

MOST_WAITING = 100_000
_YEAR_MS = 366 * DAY_MS
_SOME_YEAR = 1_798_761_600_000  # 2027: one year has as many runs as another


def check_backlog_limit(entry: Entry, job: Job) -> None:
    """Each run waits from when it is planned until spread, stagger and jitter let it start.

    A spread of a year on a job that runs every second would be planned a year ahead, thirty million records.
    """
    options = options_of(job)
    window = (job.spread.duration_ms if job.spread else 0) + (options.jitter or 0) + (options.stagger or 0)
    if not window or not _holds_too_many(job, window):
        return
    own = entry.expect_table()
    place = entry.child("spread" if job.spread is not None and "spread" in own else "schedule")
    message = f"within {format_duration(window)} more than {MOST_WAITING} runs would wait for their start"
    place.report(message, "make the window shorter, or the schedule rarer", "J024")


def _holds_too_many(job: Job, window_ms: int) -> bool:
    timing = timing_of(job)
    body = timing.meaning.body if timing is not None else None
    if timing is None or not isinstance(body, Cron | Every) or job.cadence is Cadence.FIXED_DELAY:
        return False
    if window_ms // (body.low if isinstance(body, Every) else 1000) < MOST_WAITING:
        return False  # not even if it were due at every step
    begin = max(_SOME_YEAR, timing.low - 1)
    instants = schedule_of(job.progressed(anchor_ms=begin)).between(begin, begin + _YEAR_MS + window_ms)
    return _most_within(islice(instants, 2 * MOST_WAITING), window_ms) > MOST_WAITING


def _most_within(instants: Iterable[int], window_ms: int) -> int:
    """The largest number of them in any window of that length, no further than it takes to know."""
    waiting: deque[int] = deque()
    most = 0
    for at in instants:
        waiting.append(at)
        while at - waiting[0] > window_ms:
            waiting.popleft()
        most = max(most, len(waiting))
        if most > MOST_WAITING:
            break
    return most
