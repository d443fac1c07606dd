"""Read the jobs, learn how long each takes, play, and tell."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from statistics import median

from chronex.cli.arguments import UsageError, choose_zone, read_instant
from chronex.cli.jobs import load_or_tell
from chronex.cli.places import store_path
from chronex.cli.simulation.picture import picture
from chronex.cli.simulation.tally import as_data, tally
from chronex.cli.terminal import err, inert, out
from chronex.cli.times import time_text, timed
from chronex.clock import wall_ms
from chronex.model.records import Job
from chronex.model.states import OccurrenceState
from chronex.storage.records import Reading
from chronex.text.durations import format_duration, parse_duration
from chronex.views.simulation import Played, rehearse

_DAY_MS = 86_400_000
_LONGEST_MS = 10 * 366 * _DAY_MS
_DEFAULT_MS = 1000
_LATEST = 20
# About ten seconds of playing: four weeks of a job that runs every second are more.
MOST_PLAYED = 1_000_000


def run_simulate(
    file: str | None, since: str | None, until: str | None, durations: Sequence[str], store: str | None,
    tz: str | None, form: str,
) -> int:  # fmt: skip
    """0 always: what was found is told, and judged by whoever asked."""
    found = load_or_tell(file)
    if found is None:
        return 2
    zone = choose_zone(tz or found.settings.timezone).zone
    begin = wall_ms() if since is None else read_instant(since, zone)
    end = begin + 28 * _DAY_MS if until is None else read_instant(until, zone, "--to")
    if not begin < end <= begin + _LONGEST_MS:
        raise UsageError("--to must be later than --from, by ten years at most")
    known = {job.id for job in found.jobs}
    given, default = _given(durations, known)
    takes = {**_measured(store_path(store, os.environ), found.jobs), **given}
    played = rehearse(
        found.jobs, begin, end, lambda job: takes.get(job, default), found.settings.max_concurrent_jobs, Random(0)  # noqa: S311
    )  # fmt: skip
    stretch = Stretch(played, end, is_chosen=until is not None)
    counted = tally(stretch, (job.id for job in found.jobs), zone)
    end = stretch.end_ms
    if form == "json":
        frame = {**timed("from", begin), **timed("to", end), "timezone": zone.name, "durations_ms": takes}
        out(json.dumps({**frame, **as_data(counted)}, indent=2))
        return 0
    source = f"{len(takes)} durations known, {format_duration(default)} for the others"
    out(f"{time_text(begin, zone)} to {time_text(end, zone)}, times in {zone.name}; {source}")
    out()
    for line in picture(counted, zone):
        out(line)
    return 0


class Stretch:
    """What is played, and how far it reaches: without --to no further than a person waits; with it, it is said."""

    def __init__(self, played: Iterable[Played], end_ms: int, *, is_chosen: bool, most: int = MOST_PLAYED) -> None:
        self.end_ms = end_ms
        self._played, self._is_chosen, self._most = played, is_chosen, most

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
    given, default = {}, _DEFAULT_MS
    for text in durations:
        job, equals, value = text.rpartition("=")
        ms = parse_duration(value)
        if ms is None:
            raise UsageError(f"--duration: {inert(value)!r} is not a duration; write JOB=5m, or 5m for all")
        if equals and job not in known:
            raise UsageError(f"--duration: no job {inert(job)!r} in the file")
        if equals:
            given[job] = ms
        else:
            default = ms
    return given, default


def _measured(store: Path, jobs: Sequence[Job]) -> dict[str, int]:
    """The median of each job's latest runs, where a store has some."""
    from chronex_store import LmdbStore

    if not store.exists():
        return {}
    with LmdbStore.open(store, create=False) as opened:
        return opened.view(lambda tx: _medians(Reading(tx), jobs))


def _medians(reading: Reading, jobs: Sequence[Job]) -> dict[str, int]:
    found = {}
    for job in jobs:
        times = [
            o.finished_ms - o.started_ms
            for o in reading.occurrences(job.id, limit=_LATEST)
            if o.state is OccurrenceState.COMPLETED and o.started_ms is not None and o.finished_ms is not None
        ]
        if times:
            found[job.id] = round(median(times))
    return found
