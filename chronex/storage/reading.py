"""The typed reads of one snapshot: records by their keys, and the questions that are asked of the indexes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar, cast

from msgspec.structs import replace

from chronex.errors import DamagedRecordError
from chronex.model.groups import Group
from chronex.model.job import TARGET_APART, Job, JobProgress, JobVersion
from chronex.model.occurrence import Attempt, Occurrence, Run
from chronex.model.records import Idempotency, Node, Quarantined, Record, TaskState
from chronex.model.states import OccurrenceState
from chronex.storage import keys
from chronex.storage.codec import decode
from chronex.storage.ports import SCAN_LIMIT, ClaimedDue, KeyCounts, OwnerCounts, ReadTransaction
from chronex.storage.scopes import HELD_ELSEWHERE_MS

R = TypeVar("R", bound=Record)

# A scan without an end, for what is bounded by the pools of the nodes.
EVERYTHING = 1_000_000_000
_UNREAD = object()
_FALLING_DUE = (JobProgress, Occurrence, Run)


class RecordCache:
    """What one update has read or changed: a known record is not read again, a changed one is written once."""

    __slots__ = ("changed", "due", "empty", "has_quarantine", "jobs", "known")

    def __init__(self) -> None:
        # None stands for a key under which there is nothing. `Any`, because the key says of which type a record is.
        self.known: dict[bytes, Any] = {}
        self.changed: dict[bytes, Record] = {}
        # Entries of the index of what is due that are to come (True) or to go.
        self.due: dict[bytes, bool] = {}
        # By the tags of indexes: whether nothing at all stands there, as far as that was asked.
        self.empty: dict[bytes, bool] = {}
        # Jobs, each joined of the two records in `known`, as they are now.
        self.jobs: dict[str, Job] = {}
        # Whether anything is quarantined at all; None before that was asked.
        self.has_quarantine: bool | None = None

    def keep(self, key: bytes, record: Record) -> None:
        """What is under `key` from now on."""
        self.known[key] = record
        if isinstance(record, JobProgress):
            self.jobs.pop(record.job, None)
        elif isinstance(record, Job):
            self.jobs.pop(record.id, None)

    def remove(self, key: bytes) -> None:
        """Nothing is under `key` from now on."""
        self.known[key] = None
        self.jobs.clear()


class Reading:
    """Typed reads of one snapshot. Damaged records are left out and listed in `damaged`.

    Where there is a `cache`, it is asked first, and keeps what was read.
    """

    def __init__(self, tx: ReadTransaction, cache: RecordCache | None = None) -> None:
        self.tx = tx
        self.cache = cache
        self.damaged: list[DamagedRecordError] = []

    def job(self, job: str) -> Job | None:
        """The definition of a job with its progress; None where either of the two is not there."""
        cache = self.cache
        if cache is not None and (known := cache.jobs.get(job)) is not None:
            return known
        definition = self.get(keys.job_key(job), Job)
        progress = self.get(keys.job_progress_key(job), JobProgress)
        if definition is None or progress is None:
            return None
        joined = replace(definition, progress=progress)
        if cache is not None:
            cache.jobs[job] = joined
        return joined

    def job_progress(self, job: str) -> JobProgress | None:
        """How far a job has come, for those who do not ask for its definition."""
        return self.get(keys.job_progress_key(job), JobProgress)

    def job_version(self, job: str, version: int) -> Job | None:
        found = self.get(keys.job_version_key(job, version), JobVersion)
        return found.job if found else None

    def version_run(self, occurrence: Occurrence) -> Job | None:
        """The job as it was when the occurrence was decided, with the overrides of the occurrence.

        A job that was removed is still known by its version.
        """
        job = self.job(occurrence.job)
        if job is None or job.version != occurrence.version:
            job = self.job_version(occurrence.job, occurrence.version) or job
        return job if job is None or occurrence.overrides is None else job.overridden(occurrence.overrides)

    def occurrence(self, job: str, nominal_ms: int) -> Occurrence | None:
        return self.get(keys.occurrence_key(job, nominal_ms), Occurrence)

    def run(self, job: str, nominal_ms: int, task: str) -> Run | None:
        return self.get(keys.run_key(job, nominal_ms, task), Run)

    def attempt(self, job: str, nominal_ms: int, task: str, number: int) -> Attempt | None:
        return self.get(keys.attempt_key(job, nominal_ms, task, number), Attempt)

    def node(self, node: str) -> Node | None:
        return self.get(keys.node_key(node), Node)

    def task_state(self, job: str, task: str, name: str) -> TaskState | None:
        return self.get(keys.task_state_key(job, task, name), TaskState)

    def idempotency(self, text: str, now_ms: int) -> Idempotency | None:
        """The record of a key that is still alive."""
        found = self.get(keys.idempotency_key(text), Idempotency)
        return found if found and found.key == text and found.expires_ms > now_ms else None

    def jobs(self, after: str | None = None, limit: int = SCAN_LIMIT) -> list[Job]:
        """Jobs by name, each with its progress."""
        start = keys.job_key(after) if after is not None else None
        definitions = self.scan(keys.JOB, Job, start, limit)
        start = keys.job_progress_key(after) if after is not None else None
        progress = {one.job: one for one in self.scan(keys.JOB_PROGRESS, JobProgress, start, limit)}
        return [replace(job, progress=found) for job in definitions if (found := progress.get(job.id)) is not None]

    def targets(self, job: str) -> list[Job]:
        """The jobs that were made from this one, each for one node, by the names of the nodes."""
        if TARGET_APART in job:
            return []
        made = self.scan(keys.within_targets(job), Job)
        return [found for one in made if (found := self.job(one.id)) is not None]

    def occurrences(self, job: str, before_ms: int | None = None, limit: int = SCAN_LIMIT) -> list[Occurrence]:
        """The history of a job, newest first."""
        after = keys.occurrence_key(job, before_ms) if before_ms is not None else None
        return self.scan(keys.within_job(keys.OCCURRENCE, job), Occurrence, after, limit, reverse=True)

    def runs(self, job: str, nominal_ms: int) -> list[Run]:
        return self.scan(keys.within_occurrence(keys.RUN, job, nominal_ms), Run)

    def attempts(self, job: str, nominal_ms: int, task: str | None = None) -> list[Attempt]:
        prefix = keys.within_occurrence(keys.ATTEMPT, job, nominal_ms)
        if task is not None:
            prefix = keys.attempt_key(job, nominal_ms, task, 0)[:-4]
        return self.scan(prefix, Attempt)

    def has_staged_state(self, attempt: Attempt) -> bool:
        """Has it changed its task's state?"""
        staged = keys.within_staged_state(attempt.job, attempt.nominal_ms, attempt.task, attempt.number)
        return bool(self.tx.scan(staged, None, 1))

    def nodes(self) -> list[Node]:
        return self.scan(keys.NODE, Node)

    def group(self, name: str) -> Group | None:
        return self.get(keys.group_key(name), Group)

    def groups(self) -> list[Group]:
        """Every group, by name."""
        return self.scan(keys.GROUP, Group)

    def has_groups(self) -> bool:
        """By a key alone; for a store of one machine."""
        return bool(self.tx.scan(keys.GROUP, None, 1))

    def holders(self, group: str, limit: int = SCAN_LIMIT) -> list[Occurrence]:
        """Those that run and take places of the group."""
        rows = self.tx.scan(keys.within_holding(group), None, limit)
        return [record for key, _ in rows if isinstance(record := self._indexed(key), Occurrence)]

    def lines(self) -> Iterator[str]:
        """The lines in which somebody stands, by the keys alone."""
        place: bytes | None = None
        while rows := self.tx.scan(keys.LINE, place, 1):
            name = keys.line_of(rows[0][0])
            yield name
            place = keys.within_line(name) + b"\xff" * 9

    def in_line(self, name: str, limit: int = SCAN_LIMIT, after: bytes | None = None) -> list[Occurrence]:
        """Those who stand in the line, the first one first."""
        rows = self.tx.scan(keys.within_line(name), after, limit)
        return [record for key, _ in rows if isinstance(record := self._indexed(key), Occurrence)]

    def first_in_line(self, name: str) -> int | None:
        """The place of the first one, by its key alone."""
        rows = self.tx.scan(keys.within_line(name), None, 1)
        return keys.instant_of(rows[0][0][len(keys.within_line(name)) - 1 :]) if rows else None

    def count_in_line(self, name: str, limit: int) -> int:
        """How many stand in the line, counted by their keys up to `limit`."""
        return len(self.tx.scan(keys.within_line(name), None, limit))

    def due(self, until_ms: int, limit: int = SCAN_LIMIT) -> list[JobProgress | Occurrence | Run]:
        """What the engine must decide by `until_ms`, the earliest first."""
        self._write_changed()
        later = keys.timed(keys.DUE, until_ms + 1, b"")
        due = [key for key, _ in self.tx.scan(keys.DUE, None, limit) if key < later]
        self.tx.expect({keys.job_of(keys.record_of(key)) for key in due})
        found = [self._indexed(key) for key in due]
        return [record for record in found if isinstance(record, _FALLING_DUE)]

    def next_due_after(self, ms: int) -> int | None:
        """When something falls due later than `ms`."""
        self._write_changed()
        rows = self.tx.scan(keys.DUE, keys.timed(keys.DUE, ms + 1, b""), 1)
        own_ms = keys.instant_of(rows[0][0]) if rows else None
        elsewhere_ms = self.tx.next_due_elsewhere() if isinstance(self.tx, ClaimedDue) else None
        if elsewhere_ms is None:
            return own_ms
        # What another node holds is decided there, unless it died with it.
        elsewhere_ms = max(elsewhere_ms, ms + HELD_ELSEWHERE_MS)
        return elsewhere_ms if own_ms is None else min(own_ms, elsewhere_ms)

    def has_claimed_most(self) -> bool:
        """Whether more may be due than this update has claimed, where machines share the store."""
        return isinstance(self.tx, ClaimedDue) and self.tx.has_claimed_most()

    def queued_jobs(self, after: str = "") -> Iterator[str]:
        """Jobs with a queue, by the keys of their queued occurrences alone: those after `after`, then the others.

        Those that stand in line are not among them: they have their turn by the line.
        """
        prefix = keys.QUEUED + keys.OCCURRENCE
        start = prefix + after.encode("ascii") + b"\0" + b"\xff" * 9
        for begin, stop in ((start, None), (None, start)):
            place = begin
            while rows := self.tx.scan(prefix, place, 1):
                if stop is not None and rows[0][0] > stop:
                    break
                name = rows[0][0][len(prefix) :].partition(b"\0")[0]
                yield name.decode("ascii")
                place = prefix + name + b"\0" + b"\xff" * 9

    def queued_before(self, occurrence: Occurrence, limit: int) -> int:
        """How many queued occurrences of its job come before this one, counted by their keys up to `limit`.

        One that comes only now finds all of them before it: a spread may bring a later instant first, and parents may
        let an earlier one go when a later one is due.
        """
        queued = self._queued_keys(occurrence.job, limit)
        if occurrence.state is not OccurrenceState.QUEUED or occurrence.released_ms is not None:
            return len(queued)
        own = keys.occurrence_key(occurrence.job, occurrence.nominal_ms)
        return sum(key < own for key in queued)

    def _queued_keys(self, job: str | None, limit: int) -> list[bytes]:
        """The keys of queued occurrences, in line or not, in their order."""
        found: list[bytes] = []
        for tag in (keys.QUEUED, keys.IN_LINE):
            if self._is_empty(tag):
                continue
            prefix = tag + keys.OCCURRENCE if job is None else keys.within_job(tag + keys.OCCURRENCE, job)
            found += [key[1:] for key, _ in self.tx.scan(prefix, None, limit)]
        return sorted(found)[:limit]

    def _is_empty(self, index: bytes) -> bool:
        """Whether nothing at all stands in this index, read once for all the decisions of an update: in most stores
        nobody waits and no job follows another one.

        Where machines share the store it is not asked, because the rows of the jobs in question are near already, and
        those of all other jobs belong to others.
        """
        if self.cache is None:
            return False
        known = self.cache.empty.get(index)
        if known is None:
            known = not isinstance(self.tx, OwnerCounts) and not self.tx.scan(index, None, 1)
            self.cache.empty[index] = known
        return known

    def count_queued(self, job: str, limit: int) -> int:
        """How many occurrences of the job wait, counted by their keys up to `limit`."""
        return len(self._queued_keys(job, limit))

    def count_active(self, limit: int, owner: str | None = None) -> int:
        """How many occurrences run, of all jobs, counted by their keys up to `limit`; or those of one node."""
        if owner is not None and isinstance(self.tx, OwnerCounts):
            return self.tx.count_running(owner)
        if owner is not None:
            return sum(1 for one in self.active(limit=EVERYTHING) if one.owner == owner)
        prefix = keys.ACTIVE + keys.OCCURRENCE
        if isinstance(self.tx, KeyCounts):
            return self.tx.count_keys(prefix, limit)
        return len(self.tx.scan(prefix, None, limit))

    def count_notices(self, limit: int) -> int:
        """How many notices wait, counted up to `limit`: a bound, which machines that share the store may overstep."""
        if isinstance(self.tx, OwnerCounts):
            return self.tx.count_rows(keys.NOTICE, limit)
        return len(self.tx.scan(keys.NOTICE, None, limit))

    def is_active(self, job: str) -> bool:
        """Does an occurrence of the job run? Asked of the store, never of memory."""
        return bool(self.tx.scan(keys.within_job(keys.ACTIVE + keys.OCCURRENCE, job), None, 1))

    def next_due_ms(self) -> int | None:
        """When the next thing is due, for how long to sleep."""
        self._write_changed()
        rows = self.tx.scan(keys.DUE, None, 1)
        return keys.instant_of(rows[0][0]) if rows else None

    def active(self, job: str | None = None, limit: int = SCAN_LIMIT) -> list[Occurrence]:
        """Running occurrences, of one job or of all: the persistent question of every overlap policy."""
        return self._listed(keys.ACTIVE + keys.OCCURRENCE, job, Occurrence, limit)

    def active_runs(self, job: str | None = None, limit: int = SCAN_LIMIT) -> list[Run]:
        return self._listed(keys.ACTIVE + keys.RUN, job, Run, limit)

    def active_attempts(self, job: str | None = None, limit: int = SCAN_LIMIT) -> list[Attempt]:
        return self._listed(keys.ACTIVE + keys.ATTEMPT, job, Attempt, limit)

    def queued(self, job: str | None = None, limit: int = SCAN_LIMIT) -> list[Occurrence]:
        """Occurrences that wait for an earlier one of their job, or stand in line, the oldest of a job first."""
        found = [*self._listed(keys.QUEUED + keys.OCCURRENCE, job, Occurrence, limit)]
        found += self._listed(keys.IN_LINE + keys.OCCURRENCE, job, Occurrence, limit)
        return sorted(found, key=lambda one: (one.job, one.nominal_ms))[:limit]

    def parked(self, job: str | None = None, limit: int = SCAN_LIMIT) -> list[Occurrence]:
        """Occurrences that wait for the jobs that they are after, the oldest first."""
        return self._listed(keys.PARKED + keys.OCCURRENCE, job, Occurrence, limit)

    def count_parked(self, job: str, limit: int) -> int:
        return len(self.tx.scan(keys.within_job(keys.PARKED + keys.OCCURRENCE, job), None, limit))

    def waiting(self, job: str | None = None, limit: int = SCAN_LIMIT) -> list[Occurrence]:
        """All that are queued: for their turn, and for the jobs that they are after."""
        return [*self.queued(job, limit), *self.parked(job, limit)]

    def has_followers(self, parent: str) -> bool:
        """Does a job follow this one, or an occurrence wait for it?"""
        return not self._is_empty(keys.FOLLOWING) and bool(self.tx.scan(keys.following(parent), None, 1))

    def followers(self, parent: str) -> list[Job | Occurrence]:
        """The jobs that are after this one, and occurrences that wait for it; nearly always none."""
        rows = self.tx.scan(keys.following(parent), None, EVERYTHING)
        found = [self._indexed(key) for key, _ in rows]
        return [record for record in found if isinstance(record, Job | Occurrence)]

    def waiting_on(self, parent: str) -> list[Occurrence]:
        """The occurrences that wait for this job."""
        rows = self.tx.scan(keys.following(parent) + keys.OCCURRENCE, None, EVERYTHING)
        return [record for key, _ in rows if isinstance(record := self._indexed(key), Occurrence)]

    def children(self, parent: str) -> list[str]:
        """The names of the jobs that are after this one."""
        rows = self.tx.scan(keys.following(parent) + keys.JOB, None, EVERYTHING)
        return [keys.job_of(keys.record_of(key)) for key, _ in rows]

    def expecting(self, after: str | None = None, limit: int = SCAN_LIMIT) -> list[Job]:
        """Jobs that must complete within a time, by name."""
        start = keys.EXPECTING + keys.job_key(after) if after is not None else None
        rows = self.tx.scan(keys.EXPECTING, start, limit)
        found = [record for key, _ in rows if isinstance(record := self._indexed(key), Job)]
        return [job for definition in found if (job := self.job(definition.id)) is not None]

    def dead_letters(self, limit: int = SCAN_LIMIT) -> list[Run]:
        rows = self.tx.scan(keys.DEAD_LETTER, None, limit)
        return [record for key, _ in rows if isinstance(record := self._indexed(key), Run)]

    def finished(self, limit: int = SCAN_LIMIT, after: bytes | None = None) -> list[Occurrence]:
        """What ended last, of all jobs, newest first."""
        rows = self.tx.scan(keys.FINISHED, after, limit, reverse=True)
        return [record for key, _ in rows if isinstance(record := self._indexed(key), Occurrence)]

    def quarantined(self, limit: int = SCAN_LIMIT) -> list[tuple[bytes, Quarantined]]:
        return [
            (key[1:], cast("Quarantined", decode(key, raw)))
            for key, raw in self.tx.scan(keys.QUARANTINE, None, limit)
        ]

    def get(self, key: bytes, kind: type[R]) -> R | None:
        cache = self.cache
        if cache is not None:
            known: Any = cache.known.get(key, _UNREAD)
            if known is not _UNREAD:
                kept: R | None = known
                return kept
        raw = self.tx.get(key)
        if raw is not None:
            return cast("R | None", self._decode(key, raw))
        if cache is not None:
            cache.known[key] = None
        return None

    def scan(
        self,
        prefix: bytes,
        kind: type[R],
        after: bytes | None = None,
        limit: int = SCAN_LIMIT,
        reverse: bool = False,
    ) -> list[R]:
        self._write_changed()
        rows = self.tx.scan(prefix, after, limit, reverse)
        return cast("list[R]", [record for key, raw in rows if (record := self._decode(key, raw)) is not None])

    def _write_changed(self) -> None:
        """A scan reads rows: those that wait to be written must be there. Nothing waits where nothing is written."""

    def _listed(self, index: bytes, job: str | None, kind: type[R], limit: int) -> list[R]:
        prefix = index if job is None else keys.within_job(index, job)
        rows = self.tx.scan(prefix, None, limit)
        if job is None:
            self.tx.expect({keys.job_of(keys.record_of(key)) for key, _ in rows})
        return [record for key, _ in rows if isinstance(record := self._indexed(key), kind)]

    def _indexed(self, index_key: bytes) -> Record | None:
        """The record that an index entry stands for."""
        key = keys.record_of(index_key)
        known: Record | None = self.cache.known.get(key) if self.cache is not None else None
        if known is not None:
            return known
        raw = self.tx.get(key)
        found = None if raw is None else self._decode(key, raw)
        if found is None:
            if raw is None:
                self.damaged.append(DamagedRecordError(index_key, "the index stands for no record"))
            self._on_stray_index(index_key)
        return found

    def check(self, key: bytes, raw: bytes) -> bool:
        """Whether a row is what was once written there; one that is not is listed in `damaged`."""
        return key[:1] in keys.INDEXES or self._decode(key, raw) is not None

    def _decode(self, key: bytes, raw: bytes) -> Record | None:
        cache = self.cache
        found: Record | None = None if cache is None else cache.known.get(key)
        if found is not None:
            return found
        try:
            found = decode(key, raw)
        except DamagedRecordError as error:
            self.damaged.append(error)
            self._on_damage(key, raw, error)
            found = None
        if cache is not None:
            cache.known[key] = found
        return found

    def _on_damage(self, key: bytes, raw: bytes, error: DamagedRecordError) -> None:
        """A reader only lists it."""

    def _on_stray_index(self, index_key: bytes) -> None:
        """A reader leaves it."""


def pages(tx: ReadTransaction, prefix: bytes, size: int = SCAN_LIMIT) -> Iterator[list[tuple[bytes, bytes]]]:
    """Every row under `prefix`, page by page, inside one transaction."""
    after: bytes | None = None
    while rows := tx.scan(prefix, after, size):
        yield rows
        after = rows[-1][0]
