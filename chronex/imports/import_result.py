"""The result of an import: jobs as tables of the job file, the file that is written from them, and the proof that
Chronex will fire them as their source does."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from random import Random
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import tomli_w

from chronex.engine.plan import due_time
from chronex.expr.diagnostics import WARNING
from chronex.imports.oracle import five_years
from chronex.jobfile import JobFile, JobFileError, read_job_file
from chronex.lint.findings import assumptions
from chronex.lint.linter import lint_document
from chronex.lint.source_files import open_document
from chronex.model.job import Job
from chronex.text.terminal import terminal_safe
from chronex.timing.dst import DstPolicy
from chronex.timing.job_schedule import options_of, schedule_of
from chronex.timing.zones import Zone

_NOT_IN_AN_ID = re.compile(r"[^A-Za-z0-9_]+")
_LONGEST_ID = 60
_WHY_DEFAULTS = {
    "crontab": "As cron does: runs may overlap, and what was missed is not made up. Chronex's own defaults\n"
    '# (overlap = "skip", recovery = "execute_last") are often the better choice.',
    "systemd": "As systemd does: a unit that is active is not started again.",
    "kubernetes": "As Kubernetes does; each job says its own concurrency below.",
    "machine": "What all jobs have in common; each says below what its own scheduler did.",
}
_WHY_CHANNELS = (
    "Whom cron sent what commands printed. Mail goes to the server of this machine, or to that of [scheduler.smtp];\n"
    "# `chronex notify test NAME` tries it."
)
# A schedule that stands alone, or one of a list.
_SCHEDULE_LINE = re.compile(r'( *)(?:schedule = )?"')
_DAY = 86_400
_MONTH = 30 * _DAY
_OFTEN = 60  # starts in an hour
_FIXED_DRAWS = Random(0)  # noqa: S311  jitter moves the start only, and scheduled times are compared
POLICIES = (
    DstPolicy("end", "by-kind"), DstPolicy("end", "first"), DstPolicy("end", "both"),
    DstPolicy("skip", "first"), DstPolicy("skip", "both"),
)  # fmt: skip
Instants = Callable[[int, int], Iterator[int]]


class Imported(NamedTuple):
    """One job. `source_instants` gives the UTC seconds in [start, end) at which the source fires, None where they
    cannot be computed, and then `times` says why. `notes` are worth knowing and change nothing, `differs` say what is
    carried over and not the same, `lost` what of the job is not carried over at all. `clock_note` is one more note
    where the zone has clock changes in the years that are compared."""

    id: str
    origin: str
    table: dict[str, Any]
    zone: Zone
    source_instants: Instants | None = None
    notes: tuple[str, ...] = ()
    differs: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    times: str = ""
    clock_note: str = ""


class Lost(NamedTuple):
    """Something of the source that has no equivalent."""

    origin: str
    text: str
    why: str


class Import(NamedTuple):
    source: str
    timezone: str
    defaults: dict[str, Any]
    jobs: list[Imported]
    lost: list[Lost]
    # What the source itself passes over or leaves to another, so that nothing of it is lost.
    passed: tuple[str, ...] = ()
    # Tables of [notify] by their names: who was sent mail.
    channels: Mapping[str, dict[str, Any]] = MappingProxyType({})

    def add(self, entry: Imported | Lost) -> None:
        if isinstance(entry, Imported):
            self.jobs.append(entry)
        else:
            self.lost.append(entry)


class JobNames:
    """Ids for jobs, made from what they run; each is given once."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def give(self, text: str, prefix: str = "") -> str:
        """`text`, before it `prefix` where another job has that name, and then a number."""
        stem = _NOT_IN_AN_ID.sub("-", text).strip("-")[:_LONGEST_ID] or "job"
        name, number = stem, 1
        if name.lower() in self._taken and prefix:
            name = stem = _NOT_IN_AN_ID.sub("-", f"{prefix}-{stem}").strip("-")[:_LONGEST_ID]
        while name.lower() in self._taken:
            number += 1
            name = f"{stem}-{number}"
        self._taken.add(name.lower())
        return name


# -- the job file that an import writes ----------------------------------------------------------------------------


def job_file_text(found: Import) -> str:
    return "\n".join(_parts(found))


def with_accepted_warnings(text: str, zone: str, now_s: int) -> str:
    """The job file with a comment above each schedule that lint would warn about. The source did what lint warns of
    (a time in a gap, days in steps), the import keeps it, and the first `chronex lint` is to be clean; who changes
    the schedule is told by W142 that the comment has become needless."""
    document = open_document("chronex.toml", text)
    codes: dict[int, set[str]] = {}
    for each in lint_document(document, assumptions(zone, "of the import", now_s * 1000)).findings:
        if each.severity == WARNING:
            codes.setdefault(document.position(each.start)[0], set()).add(each.code)
    lines = []
    for number, line in enumerate(text.split("\n"), start=1):
        if number in codes and (found := _SCHEDULE_LINE.match(line)):
            lines.append(f"{found[1]}# chronex: ignore[{', '.join(sorted(codes[number]))}] as it ran before")
        lines.append(line)
    return "\n".join(lines)


# What stands in [defaults] where all jobs have it; `env` is looked at variable by variable.
_SHARED = ("overlap", "recovery", "user", "group", "directory", "umask", "dst", "leftovers", "notify")


def with_shared_defaults(found: Import) -> Import:
    """The same jobs, with what all of them have in [defaults] instead of in each: 37 lines of crontab are not 356 of
    TOML."""
    if len(found.jobs) < 2:
        return found
    tables = [job.table for job in found.jobs]
    shared = {key: tables[0][key] for key in _SHARED if all(table.get(key) == tables[0].get(key) for table in tables)
              and key in tables[0]}  # fmt: skip
    first: dict[str, str] = tables[0].get("env", {})
    env = {
        name: first[name] for name in first if all(each.get("env", {}).get(name) == first[name] for each in tables)
    }
    jobs = [job._replace(table=_without(job.table, shared, env)) for job in found.jobs]
    defaults = {**found.defaults, **shared, **({"env": {**found.defaults.get("env", {}), **env}} if env else {})}
    return found._replace(defaults=defaults, jobs=jobs)


def _without(table: dict[str, Any], shared: dict[str, Any], env: dict[str, str]) -> dict[str, Any]:
    kept = {key: value for key, value in table.items() if key not in shared}
    if env and "env" in kept:
        kept["env"] = {name: value for name, value in kept["env"].items() if name not in env}
    return {key: value for key, value in kept.items() if key != "env" or value}


def _parts(found: Import) -> Iterator[str]:
    yield f"# Imported from {found.source} by chronex import."
    for lost in found.lost:
        yield f"# NOT CARRIED OVER, {lost.origin}: {_one_line(lost.text)}"
        yield f"#   {_one_line(lost.why)}"
    yield ""
    yield tomli_w.dumps({"scheduler": {"timezone": found.timezone}})
    used = [job.table.get("notify", found.defaults.get("notify", {})).get("to", ()) for job in found.jobs]
    channels = {name: found.channels[name] for name in found.channels if any(name in names for names in used)}
    if channels:
        yield f"# {_WHY_CHANNELS}"
        yield tomli_w.dumps({"notify": channels}).removeprefix("[notify]\n")
    if found.defaults:
        yield f"# {_WHY_DEFAULTS[found.source]}"
        yield tomli_w.dumps({"defaults": found.defaults})
    for job in found.jobs:
        yield f"# {job.origin}"
        yield from (f"# {_one_line(note)}" for note in job.notes)
        yield from (f"# DIFFERS: {_one_line(text)}" for text in job.differs)
        yield from (f"# NOT CARRIED OVER: {_one_line(text)}" for text in job.lost)
        yield tomli_w.dumps({"jobs": {job.id: job.table}}).removeprefix("[jobs]\n")


def _one_line(text: str) -> str:
    """The text for a comment, which ends with its line and may hold no control characters in TOML."""
    return terminal_safe(text)


# -- the proof: five years of instants of the written file and of the source ----------------------------------


class Proven(NamedTuple):
    """A job of the import, how many of its instants were compared, which differ, and whether all were compared."""

    job: Imported
    compared: int
    differences: tuple[Difference, ...]
    is_whole: bool = True

    @property
    def verdict(self) -> Literal["same", "differs", "lost"]:
        """What became of the job: `lost` where a part of it is missing. Its times are a part of the answer only."""
        if self.job.lost:
            return "lost"
        return "differs" if self.job.differs or self.differences else "same"

    @property
    def has_proven_times(self) -> bool:
        return self.job.source_instants is not None and not self.differences


def prove(found: Import, now_s: int) -> tuple[Import, list[Proven]]:
    """The import with each job's clock-change rule chosen so that the fewest instants differ. What no job file can
    say is lost, and takes nothing with it."""
    proven, lost = list[Proven](), list[Lost]()
    for job in found.jobs:
        try:
            proven.append(_best(found, job, now_s))
        except JobFileError as error:
            lost.append(Lost(job.origin, job.id, f"no job file can say it: {error.problems[0].message}"))
    return found._replace(jobs=[each.job for each in proven], lost=[*found.lost, *lost]), proven


def _best(found: Import, job: Imported, now_s: int) -> Proven:
    """Choose the rule by the days around clock changes, where it matters; then compare everything once."""
    if job.source_instants is None:
        as_chronex_reads(found._replace(jobs=[job]))
        return Proven(job, 0, ())
    start, end = five_years(now_s)
    transitions = [(change.at - _DAY, change.at + _DAY) for change in job.zone.changes(start, end)]
    if transitions and job.clock_note:
        job = job._replace(notes=(*job.notes, job.clock_note))
    chosen = _compare(found, job, transitions)
    for policy in POLICIES[1:]:
        if not chosen.differences:
            break
        other = _compare(found, job._replace(table={**job.table, "dst": policy._asdict()}), transitions)
        chosen = min(chosen, other, key=lambda each: len(each.differences))
    return _whole(found, chosen.job, transitions, start, end)


def _whole(found: Import, job: Imported, transitions: list[tuple[int, int]], start: int, end: int) -> Proven:
    """Compare five years month by month, so that the sets stay small. A job that fires every few seconds would take
    hours: of such a job, five days and the days around every clock change are compared."""
    assert job.source_instants is not None, "a job is compared only where the instants of its source are known"
    in_an_hour = sum(1 for _ in job.source_instants(start, start + 3600))
    if in_an_hour > _OFTEN:
        days = [(start, start + 5 * _DAY), *(span for span in transitions if span[0] > start + 5 * _DAY)]
        return _compare(found, job, days)._replace(is_whole=False)
    return _compare(found, job, [(at, min(at + _MONTH, end)) for at in range(start, end, _MONTH)])


def _compare(found: Import, job: Imported, spans: list[tuple[int, int]]) -> Proven:
    assert job.source_instants is not None, "a job is compared only where the instants of its source are known"
    read = as_chronex_reads(found._replace(jobs=[job])).jobs[0]
    listed: list[Difference] = []
    compared = 0
    for start, end in spans:
        source = set(job.source_instants(start, end))
        own = _seconds(read, start, end)
        compared += len(source | own)
        listed += differences(source, own, job.zone)
    return Proven(job, compared, tuple(listed))


def _seconds(job: Job, start: int, end: int) -> set[int]:
    """The seconds at which Chronex starts the job, without the instants that its constraints rule out."""
    anchored = job.progressed(anchor_ms=start * 1000)
    nominal = schedule_of(anchored).between(start * 1000 - 1, end * 1000 - 1)
    if job.spread is None:
        return {ms // 1000 for ms in nominal}
    options = options_of(job)
    return {ms // 1000 for ms in nominal if not due_time(job, options, ms, _FIXED_DRAWS).impossible}


def as_chronex_reads(found: Import) -> JobFile:
    """The written text read as a job file; a JobFileError here is a defect of the import."""
    return read_job_file(job_file_text(found).encode(), "imported.toml", found.timezone)


# -- differences between the source and Chronex ---------------------------------------------------------------


class Difference(NamedTuple):
    """One instant at which only one side fires: `who` is the source or Chronex."""

    second: int
    who: Literal["source", "chronex"]
    reason: str


def differences(source: set[int], own: set[int], zone: Zone) -> list[Difference]:
    """Every second where the two differ, in order."""
    return [
        Difference(second, "source" if second in source else "chronex", _reason(second, zone))
        for second in sorted(source ^ own)
    ]


def _reason(second: int, zone: Zone) -> str:
    near = zone.changes(second - _DAY, second + _DAY)
    if near:
        change = near[0]
        before, after = (_wall(change.at, offset) for offset in (change.before, change.after))
        return f"the clock goes from {before} to {after}"
    return "the fields are read differently"


def _wall(at: int, offset: int) -> str:
    return datetime.fromtimestamp(at + offset, UTC).strftime("%H:%M")


def difference_text(difference: Difference, zone: Zone) -> str:
    wall = datetime.fromtimestamp(difference.second, zone.tzinfo)
    only = "only the source fires" if difference.who == "source" else "only Chronex fires"
    return f"{wall:%a %d %b %Y %H:%M:%S %Z}: {only} ({difference.reason})"


def shortened(lines: list[str], most: int) -> Iterator[str]:
    yield from lines[:most]
    if len(lines) > most:
        yield f"… and {len(lines) - most} more"
