"""Plan an update: what changes in each job, when it takes effect, and which earlier versions are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import cached_property
from random import Random
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from chronex.engine.admit import window_over_ms
from chronex.engine.clock_steps import begun_at
from chronex.engine.plan import NO_CHANCE, due_time, next_plan_ms
from chronex.engine.update.calendar_changes import exclude_the_same, with_kept_calendars
from chronex.engine.update.job_chains import refuse_broken_chains
from chronex.engine.update.sources import JobSource, check_source, is_owned, no_position
from chronex.errors import CustomScheduleError, DamagedRecordError
from chronex.model.job import Counters, Job, JobProgress, JobVersion, check_new_name
from chronex.model.occurrence import Occurrence
from chronex.model.policies import RunOn, retry_pause
from chronex.model.reasons import ReasonCode
from chronex.model.states import OccurrenceState
from chronex.storage import keys
from chronex.storage.codec import decode
from chronex.storage.records import Reading, Records
from chronex.timing.job_schedule import options_of, schedule_of


class Change(StrEnum):
    """What an update does to a job. The values are part of event names and of JSON, so they keep their spelling."""

    NEW = "new"
    UNCHANGED = "preserved"
    CHANGED = "overridden"
    REMOVED = "orphaned"


class Policy(StrEnum):
    """When an edited schedule takes effect.

    immediate: now; what waits and is no longer wanted is withdrawn. graceful: the next occurrence of the old schedule
    still happens, and its period ends, before the new one begins. windowed: as immediate, for what lies within the
    window; what waits beyond it is left as it was.
    """

    IMMEDIATE = "immediate"
    GRACEFUL = "graceful"
    WINDOWED = "windowed"


class Changed(NamedTuple):
    job: str
    change: Change
    version: int = 0


# A job with other values of these has other nominal instants.
_DECIDES_INSTANTS = ("schedule", "dialect", "timezone", "dst", "cadence", "enabled")


def has_other_instants(old: Job, new: Job, now_ms: int) -> bool:
    if any(getattr(old, name) != getattr(new, name) for name in _DECIDES_INSTANTS):
        return True
    return not exclude_the_same(old.calendars, new.calendars, now_ms)


def definition_data(job: Job) -> dict[str, Any]:
    """What decides when the job is due and what may start: event data, so that the journal can be verified alone."""
    data: dict[str, Any] = {
        "version": job.version,
        "schedule": job.schedule,
        "timezone": job.timezone,
        "overlap": job.overlap.value,
        "recovery": job.recovery.strategy.value,
        "cadence": job.cadence.value,
    }
    if job.after:
        data["after"] = list(job.after)
    if job.dialect != "chronex":
        data["dialect"] = job.dialect
    if job.dst is not None:
        data["dst"] = [job.dst.gap, job.dst.overlap]
    if job.calendars is not None and job.calendars.moves_or_removes:
        data["calendars"] = msgspec.to_builtins(replace(job.calendars, blackout=()))
    if job.spread is not None:
        data["spread_ms"] = job.spread.duration_ms
    if job.progress.anchor_ms is not None:
        data["anchor_ms"] = job.progress.anchor_ms
    if job.progress.cursor_ms is not None:
        data["cursor_ms"] = job.progress.cursor_ms  # what is due later is decided by this definition
    if not job.enabled:
        data["enabled"] = False
    if job.run_on is RunOn.EACH and not job.target:
        data["run_on"] = job.run_on.value  # on a shared store the jobs of its nodes answer its instants
    retries = {job.retry_for(task) for task in job.tasks}
    if len(retries) == 1 and (retry := retries.pop()).max != 0 and retry.backoff == 1.0 and not retry.jitter:
        data["retry_ms"] = retry_pause(retry, 1)
    return data


DEFAULT_WINDOW_MS = 30 * 86_400_000
_MOST_WAITING = 1_000
_ALL_JOBS = 1_000_000


class JobChange(NamedTuple):
    """One job before and after the update, and what becomes of its occurrences that wait.

    `rewritten` wait on, under the new version. `withdrawn` will not happen. `added` is the last one of the old
    schedule. `restored` were withdrawn by an earlier edit and are wanted again, so their records are deleted and the
    next plan creates them anew. `skipped_span` is the first and the last instant of the old schedule that came before
    the edit and was not decided.
    """

    kind: Change
    old: Job | None
    job: Job | None
    rewritten: tuple[Occurrence, ...] = ()
    withdrawn: tuple[Occurrence, ...] = ()
    added: tuple[Occurrence, ...] = ()
    restored: tuple[Occurrence, ...] = ()
    skipped_span: tuple[int, int] | None = None

    @property
    def job_id(self) -> str:
        found = self.job or self.old
        assert found is not None, "a change is about a job"
        return found.id


class Losses(NamedTuple):
    """How many of the jobs that a source had an update removes."""

    removed: int
    had: int

    @property
    def are_most(self) -> bool:
        """More than half, and so also all: a file that was cut short looks just like that."""
        return self.removed * 2 > self.had


def losses_of(changes: Iterable[JobChange]) -> Losses:
    kinds = [change.kind for change in changes if change.old is not None]
    return Losses(kinds.count(Change.REMOVED), len(kinds))


Owns = Callable[[Job], bool]


def of_no_trigger_file(job: Job) -> bool:
    """A job file and a program own all jobs except those that were applied from trigger definitions."""
    return not job.source.endswith(".json")


class UpdateOptions(NamedTuple):
    """How the update takes effect. Of the jobs that are not wanted, those that the writer `owns` are removed.

    With a JobSource the jobs become those of that source.
    """

    policy: Policy = Policy.IMMEDIATE
    window_ms: int = DEFAULT_WINDOW_MS
    owns: Owns | JobSource = of_no_trigger_file


def plan_changes(reading: Reading, desired: Iterable[Job], now_ms: int, options: UpdateOptions) -> list[JobChange]:
    """One change for each wanted job, in their order, then one for each that is removed."""
    present = {job.id: job for job in reading.jobs(limit=_ALL_JOBS)}
    desired = _with_targets(desired, present)
    source = options.owns if isinstance(options.owns, JobSource) else None
    if source is not None:
        desired = [replace(job, source=source.name) for job in desired]
        for job in desired:
            check_source(present.get(job.id), source)
    known = {job.id for job in desired}
    before = dict(present)
    begun = BegunNow(reading, now_ms)
    changes = [_change(reading, present.pop(job.id, None), job, now_ms, options, begun) for job in desired]
    removed = [
        job
        for job in present.values()
        if (job.made_from in known if job.target else False) or _owns(options.owns, job)
    ]
    gone = {job.id for job in removed}
    kept = {name: job for name, job in present.items() if name not in gone}
    after = {**kept, **{job.id: job for job in desired}}
    if any(job.after for job in after.values()):
        refuse_broken_chains(before, after, no_position if source is None else source.position_of_parent)
    return changes + [removal(reading, job) for job in removed]


def _with_targets(desired: Iterable[Job], present: Mapping[str, Job]) -> list[Job]:
    """A job that runs on each node is wanted for every node that has it, in the same words."""
    made: dict[str, list[Job]] = {}
    for job in present.values():
        if job.target:
            made.setdefault(job.made_from, []).append(job)
    found: list[Job] = []
    for job in desired:
        found.append(job)
        if job.run_on is RunOn.EACH:
            found += [replace(job, id=one.id, target=one.target) for one in made.get(job.id, ())]
    return found


def _owns(owner: Owns | JobSource, job: Job) -> bool:
    return is_owned(job, owner.name) if isinstance(owner, JobSource) else owner(job)


class BegunNow:
    """The fields of a progress whose instants count from now, none of them decided before.

    What the store knows of clocks is read once for an update: 100,000 new jobs would read it as often.
    """

    def __init__(self, reading: Reading, now_ms: int) -> None:
        self._reading, self._now_ms = reading, now_ms

    @cached_property
    def fields(self) -> dict[str, Any]:
        return {**begun_at(self._reading.tx, self._now_ms), "decided_from_ms": None, "decided": ()}


def _change(
    reading: Reading, old: Job | None, new: Job, now_ms: int, options: UpdateOptions, begun: BegunNow
) -> JobChange:
    if old is None:
        job = _new(reading, new, now_ms, begun)
        return JobChange(Change.NEW, None, job, restored=_restored(reading, job, now_ms))
    if new.written and old.written == new.written:
        new = replace(new, schedule=old.schedule)  # `@once +20m` counts from when it was first applied
    new = with_kept_calendars(old, new, now_ms)
    if old.as_written() == new.as_written():
        # The definition is the same, so there is no new version; only whose job it is may be known better now.
        return JobChange(Change.UNCHANGED, old, replace(old, source=new.source or old.source))
    job = replace(
        new,
        progress=replace(old.progress, next_ms=None),
        version=last_version(reading, old.id, old.version) + 1,
        updated_ms=now_ms,
        updated_by=old.updated_by,
    )
    is_moved = has_other_instants(old, job, now_ms)
    if options.policy is Policy.GRACEFUL and old.enabled:
        if is_moved:
            return _graceful(reading, old, job, now_ms, begun)
        return _with_next_plan(JobChange(Change.CHANGED, old, job), now_ms)
    return _immediate(reading, old, job, now_ms, options, begun, is_moved=is_moved)


def _new(reading: Reading, new: Job, now_ms: int, begun: BegunNow) -> Job:
    """Its first version; one that was here before goes on counting, because old occurrences name their version."""
    version = last_version(reading, check_new_name(new.id), 0) + 1
    fields = {"cursor_ms": now_ms, "anchor_ms": now_ms, "created_ms": now_ms, **begun.fields}
    progress = replace(_progress_before(reading, new, version - 1), job=new.id, **fields)
    blank = replace(new, version=version, updated_ms=now_ms, progress=progress)
    return blank.progressed(next_ms=_next_plan_ms(blank, now_ms))


# What a job that goes missing from its file and comes back finds as it was.
_KEPT_PROGRESS = (
    "paused", "paused_until_ms", "paused_by", "paused_from_ms", "pauses", "counters", "fence", "last_run_ms",
    "last_success_ms", "boots",
)  # fmt: skip


def _progress_before(reading: Reading, new: Job, last: int) -> JobProgress:
    """The pause, the counters and the streak of the job that had this name, for as long as its versions are kept."""
    before = reading.job_version(new.id, last) if last else None
    kept = {} if before is None else {name: getattr(before.progress, name) for name in _KEPT_PROGRESS}
    return replace(new.progress, **{"counters": Counters(), **kept})


def _immediate(
    reading: Reading, old: Job, job: Job, now_ms: int, options: UpdateOptions, begun: BegunNow, *, is_moved: bool
) -> JobChange:
    skipped_span = None
    if is_moved:
        # The new schedule starts from now: an edit never fires instants of the past.
        skipped_span = _skipped_span(old, now_ms)
        is_new_text = (old.schedule, old.timezone) != (job.schedule, job.timezone)
        anchor_ms = now_ms if is_new_text else job.progress.anchor_ms
        job = job.progressed(cursor_ms=now_ms, anchor_ms=anchor_ms, **begun.fields)
    newest = reading.occurrences(job.id, limit=_MOST_WAITING)
    last_ms = now_ms + options.window_ms if options.policy is Policy.WINDOWED else None
    rewritten: list[Occurrence] = []
    withdrawn: list[Occurrence] = []
    for one in (*(o for o in newest if o.state is OccurrenceState.PENDING), *reading.waiting(job.id)):
        if one.replay_of or (last_ms is not None and one.nominal_ms > last_ms):
            continue
        waits = _under(job, one, is_moved=is_moved)
        (withdrawn if waits is None else rewritten).append(waits or one)
    restored = _restored(reading, job, now_ms) if is_moved else ()
    change = JobChange(Change.CHANGED, old, job, tuple(rewritten), tuple(withdrawn), (), restored, skipped_span)
    return _with_next_plan(change, now_ms)


def _under(job: Job, waiting: Occurrence, *, is_moved: bool) -> Occurrence | None:
    """The occurrence under the new version, where that wants it; queued ones are due already and stay, unless the job
    is switched off."""
    if waiting.state is OccurrenceState.QUEUED and not job.enabled and not waiting.manual:
        return None
    ours = replace(waiting, version=job.version)
    if waiting.waits_for and not set(waiting.waits_for) <= {*(job.after if job.schedule else ())}:
        if job.schedule and job.after:  # its parents are others: they are asked when this is written
            return replace(ours, waits_for=job.after, wait_until_ms=window_over_ms(waiting, options_of(job).window))
        return replace(ours, waits_for=(), wait_until_ms=None, released_ms=job.updated_ms)  # it is decided anew
    if waiting.state is OccurrenceState.QUEUED:
        return replace(ours, wait_until_ms=window_over_ms(waiting, options_of(job).window))
    if waiting.manual:
        return ours
    if is_moved and not _is_instant(job, waiting.nominal_ms):
        return None
    options = options_of(job)
    due = due_time(job, options, waiting.nominal_ms, NO_CHANCE)
    if due.impossible is not None and due.impossible.code is not ReasonCode.BLACKOUT:
        return None  # what a blackout bars waits for its time, and is recorded as skipped then
    jitter = min(waiting.jitter_ms, max((options.jitter or 0) - 1, 0))
    return replace(ours, due_ms=due.due_ms + jitter, jitter_ms=jitter, decision=due.decision)


def _is_instant(job: Job, nominal_ms: int) -> bool:
    try:
        return job.enabled and schedule_of(job).next(nominal_ms - 1) == nominal_ms
    except CustomScheduleError:
        return False


def _restored(reading: Reading, job: Job, now_ms: int, also_ms: int | None = None) -> tuple[Occurrence, ...]:
    """What an earlier edit, or the removal of the job, withdrew from the future and is wanted again."""
    newest = reading.occurrences(job.id, limit=_MOST_WAITING)
    return tuple(
        one
        for one in newest
        if one.state is OccurrenceState.CANCELED
        and one.nominal_ms > now_ms
        and one.reason.code in (ReasonCode.REPLACED, ReasonCode.JOB_REMOVED)
        and (one.nominal_ms == also_ms or _is_instant(job, one.nominal_ms))
    )


def _graceful(reading: Reading, old: Job, job: Job, now_ms: int, begun: BegunNow) -> JobChange:
    """The next occurrence of the old schedule happens and its period ends; from there on the new one counts."""
    skipped_span, cursor = _skipped_span(old, now_ms), old.progress.cursor_ms or now_ms
    added: tuple[Occurrence, ...] = ()
    first = _next(old, now_ms) if cursor <= now_ms else None
    if cursor <= now_ms:
        if first is None:
            cursor = now_ms
        else:
            second = _next(old, first)
            cursor = first if second is None else second - 1
            added = (_last_of(old, first, now_ms),)
    is_new_text = (old.schedule, old.timezone) != (job.schedule, job.timezone)
    anchor_ms = cursor if is_new_text else job.progress.anchor_ms
    job = job.progressed(cursor_ms=cursor, anchor_ms=anchor_ms, **begun.fields)
    restored = _restored(reading, job, now_ms, first)
    return _with_next_plan(
        JobChange(Change.CHANGED, old, job, added=added, restored=restored, skipped_span=skipped_span), now_ms
    )


def _last_of(old: Job, nominal_ms: int, now_ms: int) -> Occurrence:
    # Seeded with its name, so that a repeated apply and its preview give the same due time.
    chance = Random(f"{old.id}:{nominal_ms}")  # noqa: S311  spreading load, not guarding a secret
    due = due_time(old, options_of(old), nominal_ms, chance)
    return Occurrence(
        job=old.id,
        nominal_ms=nominal_ms,
        due_ms=due.due_ms,
        jitter_ms=due.jitter_ms,
        decision=due.decision,
        version=old.version,
        created_ms=now_ms,
    )


def removal(reading: Reading, job: Job) -> JobChange:
    """The job is removed and its history stays; occurrences that have not started are withdrawn."""
    newest = reading.occurrences(job.id, limit=_MOST_WAITING)
    waiting = (*(o for o in newest if o.state is OccurrenceState.PENDING), *reading.waiting(job.id))
    return JobChange(Change.REMOVED, job, None, withdrawn=waiting)


def _skipped_span(old: Job, now_ms: int) -> tuple[int, int] | None:
    """The first and the last instant before the edit that no scheduler decided."""
    if not old.enabled or old.progress.cursor_ms is None or old.progress.next_ms is None:
        return None
    first = _next(old, old.progress.cursor_ms)
    if first is None or first > now_ms:
        return None
    try:
        return first, schedule_of(old).previous(now_ms + 1) or first
    except CustomScheduleError:
        return first, first


def _next(job: Job, after_ms: int) -> int | None:
    try:
        return schedule_of(job).next(after_ms)
    except CustomScheduleError:
        return None


def _with_next_plan(change: JobChange, now_ms: int) -> JobChange:
    assert change.job is not None, "a job that stays"
    return change._replace(job=change.job.progressed(next_ms=_next_plan_ms(change.job, now_ms)))


def _next_plan_ms(job: Job, now_ms: int) -> int | None:
    try:
        return next_plan_ms(job, schedule_of(job), job.progress.cursor_ms or now_ms)
    except CustomScheduleError:
        return now_ms  # the program that registered the schedule plans it


MOST_VERSIONS = 50


def last_version(reading: Reading, job: str, at_least: int) -> int:
    """The highest number ever given to a version of the job that is still kept."""
    rows = reading.tx.scan(keys.within_job(keys.JOB_VERSION, job), None, 1, reverse=True)
    return max(at_least, _number(rows[0][0]) if rows else 0)


def kept_versions(reading: Reading, job: str) -> list[Job]:
    """The present version first, then the earlier ones that are kept; also of a job that was removed."""
    present = reading.job(job)
    earlier: list[Job] = [] if present is None else [present]
    for key, raw in reading.tx.scan(keys.within_job(keys.JOB_VERSION, job), None, reverse=True):
        try:
            record = decode(key, raw)
        except DamagedRecordError:
            continue
        if isinstance(record, JobVersion) and (present is None or record.job.version != present.version):
            earlier.append(record.job)
    return earlier


def prune_versions(records: Records, job: str) -> None:
    """Forget the oldest beyond the bound, but none that something that runs, waits, or may be replayed began with."""
    rows = records.tx.scan(keys.within_job(keys.JOB_VERSION, job))
    if len(rows) <= MOST_VERSIONS:
        return
    open_ones = [*records.active(job), *records.waiting(job)]
    recent = records.occurrences(job, limit=MOST_VERSIONS)
    used = {one.version for one in (*open_ones, *recent)}
    for run in records.dead_letters():
        occurrence = records.occurrence(run.job, run.nominal_ms) if run.job == job else None
        used |= {occurrence.version} if occurrence is not None else set()
    for key, _ in rows[: len(rows) - MOST_VERSIONS]:
        if _number(key) not in used:
            records.delete(key)


def _number(key: bytes) -> int:
    return int.from_bytes(key[-4:], "big")
