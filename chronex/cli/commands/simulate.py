"""`chronex simulate`: the coming days of all jobs through the real planner, counted and drawn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from chronex.cli.options import (
    Config,
    Form,
    Since,
    StorePath,
    UsageError,
    ZoneName,
    check_format,
    choose_zone,
    read_instant,
    store_location,
)
from chronex.cli.output import err, out, padded, print_json, print_styled, time_text, timed, wants_unicode
from chronex.text.durations import DAY_MS, format_duration, parse_duration
from chronex.text.instants import SHORT_WEEKDAYS
from chronex.text.terminal import terminal_safe

if TYPE_CHECKING:
    from chronex.model.job import Job
    from chronex.storage.records import Reading
    from chronex.timing.zones import Zone
    from chronex.views.job_graph import UsualPath
    from chronex.views.simulated_chains import Played
    from chronex.views.simulation import JobTally, SimulationTally
    from chronex.views.simulation_start import SimulationStart

_SHADES = " ░▒▓█"
_ASCII_SHADES = " .:*#"
_MOST_JOBS_SHOWN = 20
_LONGEST_MS = 10 * 366 * DAY_MS
_DEFAULT_DURATION_MS = 1000  # of a run whose duration is neither given nor measured
_RUNS_MEASURED = 20  # the latest of each job
# About ten seconds of simulation: four weeks of a job that runs every second are more.
MOST_RUNS = 1_000_000


def simulate(
    file: Annotated[str | None, typer.Argument(help="The job file (default: as for run).", metavar="FILE")] = None,
    since: Since = None,
    until: Annotated[
        str | None, typer.Option("--to", help="Until this ISO 8601 time (default: four weeks).", metavar="TIME")
    ] = None,
    duration: Annotated[
        list[str] | None,
        typer.Option("--duration", help="How long runs take: JOB=5m, or 5m for all.", metavar="[JOB=]DURATION"),
    ] = None,
    config: Config = None,
    store: StorePath = None,
    tz: ZoneName = None,
    form: Form = "text",
) -> int:
    """Play the coming days of all jobs through the real planner: crowded hours, runs that will be skipped or late.
    Durations are measured where the store has some. Without --from it begins with the pauses, and the counts for
    `max`, of the store; what runs or waits now is left out. Nothing is started or written.

    Example: chronex simulate --duration 10m
    """
    check_format(form)
    return run_simulate(SimulateOptions(file or config, since, until, duration or [], store, tz, form))


class SimulateOptions(NamedTuple):
    file: str | None
    since: str | None
    until: str | None
    durations: Sequence[str]
    store: str | None
    tz: str | None
    form: str


def run_simulate(options: SimulateOptions) -> int:
    """0 whatever is found: a simulation reports, and the reader judges; 2 when the job file has a mistake."""
    from random import Random

    from chronex.cli.job_file import load_or_report, print_unknown_parents
    from chronex.clock import wall_ms
    from chronex.views.folded_simulation import fold
    from chronex.views.simulation import as_data, simulate_runs, tally

    found = load_or_report(options.file)
    if found is None:
        return 2
    print_unknown_parents(found)
    zone = choose_zone(options.tz or found.settings.timezone).zone
    begin = wall_ms() if options.since is None else read_instant(options.since, zone)
    end = begin + 28 * DAY_MS if options.until is None else read_instant(options.until, zone, "--to")
    if not begin < end <= begin + _LONGEST_MS:
        raise UsageError("--to must be later than --from, by ten years at most")
    given, default = _given(options.durations, {job.id for job in found.jobs})
    measured = _measured(options.store, found.jobs, begin)
    is_of_now = options.since is None
    jobs = measured.start.jobs if is_of_now else found.jobs
    takes = {**measured.jobs, **given}
    slots, chance, groups = found.settings.max_concurrent_jobs, Random(0), found.groups  # noqa: S311
    most = None if options.until is not None else MOST_RUNS - 1  # more would be cut, in the order in which they end

    def duration_of(job: str) -> int:
        return takes.get(job, default)

    span = SimulatedSpan((), end, is_chosen=options.until is not None)
    counted = fold(jobs, (begin, end), duration_of, slots, chance, groups, zone, most)
    if counted is None:
        played = simulate_runs(jobs, begin, end, duration_of, slots, chance, groups)
        span = SimulatedSpan(played, end, is_chosen=options.until is not None)
        counted = tally(span, (job.id for job in found.jobs), zone)
    ways = _critical_paths(measured.tasks, found.jobs, takes, default)
    if options.form == "json":
        frame = {**timed("from", begin), **timed("to", span.end_ms), "timezone": zone.name, "durations_ms": takes}
        frame["of_store"] = {"is_used": is_of_now, **_of_store_json(measured.start)}
        paths = {name: _path_json(path) for name, path in ways.paths.items()}
        print_json({**frame, **as_data(counted), "critical_paths": paths, "longest_chain": _path_json(ways.chain)})
        return 0
    source = f"{len(takes)} duration{'' if len(takes) == 1 else 's'} known, {format_duration(default)} for the others"
    out(f"{time_text(begin, zone)} to {time_text(span.end_ms, zone)}, times in {zone.name}; {source}")
    if known := _of_store(measured.start):
        how = "what runs or waits now is not played" if is_of_now else "not played, because --from begins afresh"
        out(f"of the store: {known}; {how}")
    out()
    print_styled([*_lines(counted, zone), *_ways(ways)])
    return 0


class CriticalPaths(NamedTuple):
    """By the usual durations: the longest way through each job with several tasks, and through jobs that follow."""

    paths: dict[str, UsualPath]
    chain: UsualPath


def _critical_paths(
    measured: dict[str, dict[str, int]], jobs: Sequence[Job], takes: dict[str, int], default_ms: int
) -> CriticalPaths:
    from chronex.views.job_graph import longest_path, usual_path

    def path_of(job: Job) -> UsualPath:
        """Where no task has been measured, those of the path share what the job is played with."""
        takes_ms, tasks = takes.get(job.id, default_ms), measured.get(job.id, {})
        return usual_path(job, tasks, default_ms if tasks else takes_ms // max(len(usual_path(job, {}, 1).names), 1))

    paths = {job.id: path_of(job) for job in jobs if len(job.tasks) > 1}
    after = {job.id: job.after for job in jobs}
    chain = longest_path(list(after), lambda name: after[name], lambda name: takes.get(name, default_ms))
    return CriticalPaths(paths, chain)


def _path_json(path: UsualPath) -> dict[str, Any]:
    return {"names": list(path.names), "durations_ms": list(path.durations_ms), "total_ms": path.total_ms}


def _ways(found: CriticalPaths) -> Iterator[str]:
    for name, path in found.paths.items():
        if len(path.names) > 1:
            yield f"critical path of {terminal_safe(name)}: {_way(path)}"
    if len(found.chain.names) > 1:
        yield f"longest chain: {_way(found.chain)}"


def _way(path: UsualPath) -> str:
    taken = zip(path.names, path.durations_ms, strict=True)
    parts = (f"{terminal_safe(name)} {format_duration(ms)}" for name, ms in taken)
    return f"{' -> '.join(parts)}, {format_duration(path.total_ms)} in all"


class SimulatedSpan:
    """The simulated runs, and how far they reach. Without --to the simulation ends after `most` runs; with it, only a
    message says that it takes a while."""

    def __init__(self, played: Iterable[Played], end_ms: int, *, is_chosen: bool, most: int = MOST_RUNS) -> None:
        self.end_ms = end_ms
        self._played = played
        self._is_chosen = is_chosen
        self._most = most

    def __iter__(self) -> Iterator[Played]:
        for number, one in enumerate(self._played, 1):
            yield one
            if number == self._most and self._is_chosen:
                err(f"more than {self._most} runs: this takes a while; an earlier --to is quicker")
            elif number == self._most:
                self.end_ms = one.occurrence.nominal_ms
                err(f"{self._most} runs are played, no more of the four weeks; --to says how far to go")
                return


def _given(durations: Sequence[str], known: set[str]) -> tuple[dict[str, int], int]:
    """`JOB=5m` for one job, `5m` for all that are not known."""
    given, default = {}, _DEFAULT_DURATION_MS
    for text in durations:
        job, equals, value = text.rpartition("=")
        ms = parse_duration(value)
        if ms is None:
            raise UsageError(f"--duration: {terminal_safe(value)!r} is not a duration; write JOB=5m, or 5m for all")
        if equals and job not in known:
            raise UsageError(f"--duration: no job {terminal_safe(job)!r} in the file")
        if equals:
            given[job] = ms
        else:
            default = ms
    return given, default


def _of_store(start: SimulationStart) -> str:
    paused = f"paused {', '.join(map(terminal_safe, start.paused))}" if start.paused else ""
    used = f"some of `max` used by {', '.join(map(terminal_safe, start.partly_used))}" if start.partly_used else ""
    return ", ".join(words for words in (paused, used) if words)


def _of_store_json(start: SimulationStart) -> dict[str, Any]:
    return {"paused": list(start.paused), "max_used": list(start.partly_used)}


class Measured(NamedTuple):
    """How long runs took, by job; those of each task, of jobs with several; and what the store says of the jobs."""

    jobs: dict[str, int]
    tasks: dict[str, dict[str, int]]
    start: SimulationStart


def _measured(store: str | None, jobs: Sequence[Job], now_ms: int) -> Measured:
    """The median of each job's latest runs, where a store has some."""
    from chronex.storage.records import Reading
    from chronex.views.job_graph import usual_task_durations
    from chronex.views.simulation_start import SimulationStart, starting_now
    from chronex_store.opening import open_location

    location = store_location(store)
    if isinstance(location, Path) and not location.exists():
        return Measured({}, {}, SimulationStart(list(jobs)))

    def read(reading: Reading) -> Measured:
        tasks = {job.id: usual_task_durations(reading, job) for job in jobs if len(job.tasks) > 1}
        return Measured(_medians(reading, jobs), tasks, starting_now(reading, jobs, now_ms))

    with open_location(location, create=False) as opened:
        return opened.view(lambda tx: read(Reading(tx)))


def _medians(reading: Reading, jobs: Sequence[Job]) -> dict[str, int]:
    from statistics import median

    from chronex.model.states import OccurrenceState

    found = {}
    for job in jobs:
        times = [
            o.finished_ms - o.started_ms
            for o in reading.occurrences(job.id, limit=_RUNS_MEASURED)
            if o.state is OccurrenceState.COMPLETED and o.started_ms is not None and o.finished_ms is not None
        ]
        if times:
            found[job.id] = round(median(times))
    return found


# -- text -------------------------------------------------------------------------------------------------------


def _lines(found: SimulationTally, zone: Zone) -> Iterator[str]:
    yield from _density(found.hours)
    yield ""
    yield from _collisions(found, zone)
    yield from _delayed_or_skipped(found)


def _density(hours: Sequence[int]) -> Iterator[str]:
    """Levels by quantile of the hours that are not empty, with their bounds printed."""
    shades = _SHADES if wants_unicode() else _ASCII_SHADES
    levels = _levels(hours)
    yield "starts     " + "".join(f"{hour:02} " for hour in range(24))
    for day, name in enumerate(SHORT_WEEKDAYS):
        row = hours[day * 24 : day * 24 + 24]
        cells = "".join(shades[sum(value >= level for level in levels)] * 2 + " " for value in row)
        yield f"  {name}      {cells.rstrip()}".rstrip()
    legend = "  ".join(f"{shades[number] * 2} from {level}" for number, level in enumerate(levels, 1))
    yield f"  {legend}" if legend else "  nothing starts"


def _levels(hours: Sequence[int]) -> list[int]:
    values = sorted(value for value in hours if value)
    return sorted({values[len(values) * quarter // 4] for quarter in range(4)}) if values else []


def _collisions(found: SimulationTally, zone: Zone) -> Iterator[str]:
    from datetime import datetime

    collisions = found.collisions()
    yield f"at most {found.most_at_once} at once"
    if not collisions:
        yield "no two jobs start in the same minute"
        return
    minute, starts = collisions[0]
    wall = datetime.fromtimestamp(minute * 60, zone.tzinfo)
    same = sum(1 for _, count in found.minutes.items() if count == starts)
    others = f", and {same - 1} other minutes like it" if same > 1 else ""
    yield f"busiest minute: {wall:%a %d %b %Y %H:%M} with {starts} starts{others}"


def _delayed_or_skipped(found: SimulationTally) -> Iterator[str]:
    """Every job whose runs do not all start on time, the worst first."""
    troubled = [(name, job) for name, job in found.jobs.items() if job.skipped or job.queued or job.canceled]
    total = sum(job.completed for job in found.jobs.values())
    yield f"{total} runs of {len(found.jobs)} jobs; {len(troubled)} jobs with runs that are skipped, late or canceled"
    for name, job in sorted(troubled, key=lambda item: -(item[1].skipped + item[1].queued))[:_MOST_JOBS_SHOWN]:
        yield f"  {padded(terminal_safe(name), 24)} {_words(job)}"
    if len(troubled) > _MOST_JOBS_SHOWN:
        yield f"  … and {len(troubled) - _MOST_JOBS_SHOWN} more"


def _words(job: JobTally) -> str:
    parts = [f"{job.completed} run"]
    if job.skipped:
        why = ", ".join(f"{reason} {count}" for reason, count in job.reasons.most_common(3))
        parts.append(f"{job.skipped} skipped ({terminal_safe(why)})")
    if job.queued:
        parts.append(f"{job.queued} late, the longest by {format_duration(job.longest_wait_ms)}")
    if job.canceled:
        parts.append(f"{job.canceled} canceled for the next one")
    return "; ".join(parts)
