"""What changed, in which way an update takes effect, and what two versions of a job are compared by."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from random import Random
from typing import Any, NamedTuple

from msgspec.structs import replace

from chronex.engine.place import NO_CHANCE, place
from chronex.engine.plan import next_look
from chronex.errors import CustomScheduleError, DamagedRecordError
from chronex.model.definition import Job, JobVersion
from chronex.model.occurrence import Occurrence
from chronex.model.progress import Counters
from chronex.model.reasons import ReasonCode
from chronex.model.states import OccurrenceState
from chronex.storage import keys
from chronex.storage.codec import decode
from chronex.storage.records import Reading, Records
from chronex.timing.job_schedule import options_of, schedule_of


class Change(StrEnum):
    NEW = "new"
    PRESERVED = "preserved"
    OVERRIDDEN = "overridden"
    ORPHANED = "orphaned"


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


def has_other_instants(old: Job, new: Job) -> bool:
    return any(getattr(old, name) != getattr(new, name) for name in _DECIDES_INSTANTS)


def told_of(job: Job) -> dict[str, Any]:
    """What decides when the job is due and what may start, so that the journal can be judged by itself."""
    data: dict[str, Any] = {
        "version": job.version,
        "schedule": job.schedule,
        "timezone": job.timezone,
        "overlap": job.overlap.value,
        "recovery": job.recovery.strategy.value,
        "cadence": job.cadence.value,
    }
    if job.dialect != "chronex":
        data["dialect"] = job.dialect
    if job.dst is not None:
        data["dst"] = [job.dst.gap, job.dst.overlap]
    if job.spread is not None:
        data["spread_ms"] = job.spread.duration_ms
    if job.progress.anchor_ms is not None:
        data["anchor_ms"] = job.progress.anchor_ms
    if job.progress.cursor_ms is not None:
        data["cursor_ms"] = job.progress.cursor_ms  # what is due later is decided by this definition
    if not job.enabled:
        data["enabled"] = False
    retries = {job.retry_for(task) for task in job.tasks}
    if len(retries) == 1 and (retry := retries.pop()).max != 0 and retry.backoff == 1.0 and not retry.jitter:
        data["retry_ms"] = min(retry.interval_ms, retry.max_interval_ms or retry.interval_ms)
    return data


DEFAULT_WINDOW_MS = 30 * 86_400_000
_MOST_WAITING = 1_000
_ALL_JOBS = 1_000_000


class Step(NamedTuple):
    """What becomes of one job: its record before and after, and of the occurrences that wait.

    `rewritten` wait on, under the new version. `withdrawn` will not happen. `added` is the last one of the old
    schedule. `revived` were withdrawn by an earlier edit and are wanted again, so their records make room. `passed`
    are the first and last instant that the old schedule had before the edit and nobody decided.
    """

    change: Change
    old: Job | None
    job: Job | None
    rewritten: tuple[Occurrence, ...] = ()
    withdrawn: tuple[Occurrence, ...] = ()
    added: tuple[Occurrence, ...] = ()
    revived: tuple[Occurrence, ...] = ()
    passed: tuple[int, int] | None = None

    @property
    def job_id(self) -> str:
        found = self.job or self.old
        assert found is not None, "a step is about a job"
        return found.id


Owns = Callable[[Job], bool]


def of_no_trigger_file(job: Job) -> bool:
    """A job file and a program own all jobs, but for those that somebody applied from trigger definitions."""
    return not job.source.endswith(".json")


class Way(NamedTuple):
    """How to take effect. Of the jobs that are not wanted, those that the writer `owns` go."""

    policy: Policy = Policy.IMMEDIATE
    window_ms: int = DEFAULT_WINDOW_MS
    owns: Owns = of_no_trigger_file


def plan_steps(reading: Reading, wanted: Iterable[Job], now_ms: int, way: Way) -> list[Step]:
    """One step for each wanted job, in their order, then one for each that goes."""
    present = {job.id: job for job in reading.jobs(limit=_ALL_JOBS)}
    steps = [_step(reading, present.pop(job.id, None), job, now_ms, way) for job in wanted]
    return steps + [_orphaned(reading, job) for job in present.values() if way.owns(job)]


def _step(reading: Reading, old: Job | None, new: Job, now_ms: int, way: Way) -> Step:
    if old is None:
        job = _new(reading, new, now_ms)
        return Step(Change.NEW, None, job, revived=_revived(reading, job, now_ms))
    if new.written and old.written == new.written:
        new = replace(new, schedule=old.schedule)  # `@once +20m` counts from when it was first applied
    if old.as_written() == new.as_written():
        return Step(Change.PRESERVED, old, old)
    job = replace(
        new,
        progress=replace(old.progress, next_ms=None),
        version=last_version(reading, old.id, old.version) + 1,
        updated_ms=now_ms,
        updated_by=old.updated_by,
    )
    is_moved = has_other_instants(old, job)
    if way.policy is Policy.GRACEFUL and old.enabled:
        return (
            _graceful(reading, old, job, now_ms) if is_moved else _looked(Step(Change.OVERRIDDEN, old, job), now_ms)
        )
    return _at_once(reading, old, job, now_ms, way, is_moved=is_moved)


def _new(reading: Reading, new: Job, now_ms: int) -> Job:
    """Its first version; one that was here before goes on counting, because old occurrences name their version."""
    version = last_version(reading, new.id, 0) + 1
    begun = {"cursor_ms": now_ms, "anchor_ms": now_ms, "created_ms": now_ms}
    progress = replace(new.progress, job=new.id, counters=Counters(), **begun)
    blank = replace(new, version=version, updated_ms=now_ms, progress=progress)
    return blank.progressed(next_ms=_next_look(blank, now_ms))


def _at_once(reading: Reading, old: Job, job: Job, now_ms: int, way: Way, *, is_moved: bool) -> Step:
    passed = None
    if is_moved:
        # What the new schedule would have done in the past is nobody's wish: an edit never fires at once.
        passed = _passed(old, now_ms)
        is_new_text = (old.schedule, old.timezone) != (job.schedule, job.timezone)
        job = job.progressed(cursor_ms=now_ms, anchor_ms=now_ms if is_new_text else job.progress.anchor_ms)
    newest = reading.occurrences(job.id, limit=_MOST_WAITING)
    last_ms = now_ms + way.window_ms if way.policy is Policy.WINDOWED else None
    rewritten: list[Occurrence] = []
    withdrawn: list[Occurrence] = []
    for one in (*(o for o in newest if o.state is OccurrenceState.PENDING), *reading.queued(job.id)):
        if one.replay_of or (last_ms is not None and one.nominal_ms > last_ms):
            continue
        waits = _under(job, one, is_moved=is_moved)
        (withdrawn if waits is None else rewritten).append(waits or one)
    revived = _revived(reading, job, now_ms) if is_moved else ()
    step = Step(Change.OVERRIDDEN, old, job, tuple(rewritten), tuple(withdrawn), (), revived, passed)
    return _looked(step, now_ms)


def _under(job: Job, waiting: Occurrence, *, is_moved: bool) -> Occurrence | None:
    """The occurrence under the new version, where that wants it; queued ones are due already and stay."""
    ours = replace(waiting, version=job.version)
    if waiting.manual or waiting.state is OccurrenceState.QUEUED:
        return ours
    if is_moved and not _is_instant(job, waiting.nominal_ms):
        return None
    options = options_of(job)
    placed = place(job, options, waiting.nominal_ms, NO_CHANCE)
    if placed.impossible:
        return None
    jitter = min(waiting.jitter_ms, max((options.jitter or 0) - 1, 0))
    return replace(ours, due_ms=placed.due_ms + jitter, jitter_ms=jitter, decision=placed.decision)


def _is_instant(job: Job, nominal_ms: int) -> bool:
    try:
        return job.enabled and schedule_of(job).next(nominal_ms - 1) == nominal_ms
    except CustomScheduleError:
        return False


def _revived(reading: Reading, job: Job, now_ms: int, also_ms: int | None = None) -> tuple[Occurrence, ...]:
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


def _graceful(reading: Reading, old: Job, job: Job, now_ms: int) -> Step:
    """The next occurrence of the old schedule happens and its period ends; from there on the new one counts."""
    passed, cursor = _passed(old, now_ms), old.progress.cursor_ms or now_ms
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
    job = job.progressed(cursor_ms=cursor, anchor_ms=cursor if is_new_text else job.progress.anchor_ms)
    revived = _revived(reading, job, now_ms, first)
    return _looked(Step(Change.OVERRIDDEN, old, job, added=added, revived=revived, passed=passed), now_ms)


def _last_of(old: Job, nominal_ms: int, now_ms: int) -> Occurrence:
    # Drawn from its name, so that an apply that is repeated, or shown first, says the same.
    chance = Random(f"{old.id}:{nominal_ms}")  # noqa: S311  spreading load, not guarding a secret
    placed = place(old, options_of(old), nominal_ms, chance)
    return Occurrence(
        job=old.id,
        nominal_ms=nominal_ms,
        due_ms=placed.due_ms,
        jitter_ms=placed.jitter_ms,
        decision=placed.decision,
        version=old.version,
        created_ms=now_ms,
    )


def _orphaned(reading: Reading, job: Job) -> Step:
    """The job goes; its history stays; what has not started will not."""
    newest = reading.occurrences(job.id, limit=_MOST_WAITING)
    waiting = (*(o for o in newest if o.state is OccurrenceState.PENDING), *reading.queued(job.id))
    return Step(Change.ORPHANED, job, None, withdrawn=waiting)


def _passed(old: Job, now_ms: int) -> tuple[int, int] | None:
    """Instants that fell before the edit while nobody was there to decide them."""
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


def _looked(step: Step, now_ms: int) -> Step:
    assert step.job is not None, "a job that stays"
    return step._replace(job=step.job.progressed(next_ms=_next_look(step.job, now_ms)))


def _next_look(job: Job, now_ms: int) -> int | None:
    try:
        return next_look(job, schedule_of(job), job.progress.cursor_ms or now_ms)
    except CustomScheduleError:
        return now_ms  # the program that brings the schedule finds out


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
    open_ones = [*records.active(job), *records.queued(job)]
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
