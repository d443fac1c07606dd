"""How people name things: a job by its name, also a declarative task whose job has an id that was made from the name;
an occurrence by its id, a beginning of it, or JOB@TIME."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from fnmatch import fnmatchcase
from typing import NamedTuple

from chronex.errors import AmbiguousIdError, NotPossibleError, UnknownIdError, UnknownJobError
from chronex.model.job import Job, is_name, task_job_id
from chronex.model.occurrence import Occurrence, attempt_id, occurrence_id, run_id
from chronex.model.states import OccurrenceState
from chronex.storage import keys
from chronex.storage.records import Reading, pages
from chronex.text.suggestions import nearest

# A search by id reads this many records of each kind, the newest first; ids of older ones need JOB@TIME.
MOST_SEARCHED = 100_000
_LEAST_TYPED = 4
_WILD = re.compile(r"[*?\[]")
_FULL = {"occ_": 40, "run_": 40, "attempt_": 44}


class Named(NamedTuple):
    """Where the thing is; `task` is empty for an occurrence as a whole."""

    job: str
    nominal_ms: int
    task: str = ""


def job_named(reading: Reading, name: str) -> Job:
    """The job of that name; UnknownJobError with the nearest name otherwise."""
    found = job_id_named(reading, name)
    job = reading.job(found) if is_name(found) else None
    if job is None:
        raise UnknownJobError(name, nearest(name, (known.shown_name for known in reading.jobs(limit=MOST_SEARCHED))))
    return job


def jobs_selected(reading: Reading, name: str = "", tag: str = "", *, every: bool = False) -> list[Job]:
    """All jobs, those with a tag, those whose name fits a pattern such as `etl-*`, or the one of that name.

    NotPossibleError where a pattern or a tag fits none, and UnknownJobError for a name that is none.
    """
    if not every and not tag and not _WILD.search(name):
        return [job_named(reading, name)]
    found = [job for job in reading.jobs(limit=MOST_SEARCHED) if _fits(job, name, tag)]
    if not found:
        what = f"has the tag {tag!r}" if tag else f"fits {name!r}" if name else "is there"
        known = dict.fromkeys(one for job in reading.jobs(limit=MOST_SEARCHED) for one in job.tags) if tag else ()
        meant = nearest(tag, known) if tag else None
        raise NotPossibleError(f"no job {what}" + (f"; did you mean {meant}?" if meant else ""))
    return found


def _fits(job: Job, name: str, tag: str) -> bool:
    return (not tag or tag in job.tags) and (not name or fnmatchcase(job.shown_name, name))


def open_occurrences(reading: Reading, job: Job) -> list[Occurrence]:
    """What of the job runs, waits for its turn, or was asked for by hand and waits for a scheduler."""
    found = [*reading.active(job.id, limit=MOST_SEARCHED), *reading.waiting(job.id, limit=MOST_SEARCHED)]
    asked = [one for one in reading.occurrences(job.id) if one.manual and one.state is OccurrenceState.PENDING]
    return list({one.id: one for one in (*found, *asked)}.values())


def is_job(reading: Reading, text: str) -> bool:
    """Does this name a job, and not an occurrence by its id or time?"""
    return "@" not in text and is_name(text) and reading.job(job_id_named(reading, text)) is not None


def is_id(text: str) -> bool:
    """Is this written as an occurrence, a run or an attempt is named: by an id, or by JOB@TIME?"""
    return "@" in text or text.startswith(tuple(_FULL))


def job_id_named(reading: Reading, name: str) -> str:
    """The id of the job of that name, also of one that was removed and has a history; else the name itself."""
    for found in (name, _made_id(name)):
        if is_name(found) and (reading.job(found) is not None or reading.occurrences(found, limit=1)):
            return found
    return name


def _made_id(name: str) -> str:
    try:
        return task_job_id(name)
    except UnicodeEncodeError:  # bytes of a command line that are no text
        return ""


def occurrence_named(reading: Reading, text: str) -> Occurrence:
    """The occurrence that an id (of itself, of a run or an attempt in it), a beginning of one, or JOB@TIME names."""
    found = find(reading, text)
    occurrence = reading.occurrence(found.job, found.nominal_ms)
    if occurrence is None:
        raise UnknownIdError(text)
    return occurrence


def find(reading: Reading, text: str) -> Named:
    if "@" in text:
        return _by_time(reading, text)
    kind = next((kind for kind in _FULL if text.startswith(kind)), None)
    if kind is None or len(text) < len(kind) + _LEAST_TYPED:
        raise UnknownIdError(text, _hint(reading, text))
    found: dict[str, Named] = {}
    for identity, named in _identities(reading, kind):
        if identity.startswith(text):
            found[identity] = named
            if len(text) >= _FULL[kind] or len(found) > 1:
                break
    if not found:
        raise UnknownIdError(text)
    if len(found) > 1:
        raise AmbiguousIdError(text, list(found))
    return next(iter(found.values()))


NOTHING_OPEN = (
    "it is a job, of which nothing is open; name one of its runs by an id of `chronex history`, or as JOB@TIME"
)


def _hint(reading: Reading, text: str) -> str:
    """A person who writes the name of a job means one of its occurrences that run or wait."""
    if is_name(text) and reading.job(text) is not None:
        found = [*reading.active(text, limit=3), *reading.waiting(text, limit=3)]
        shown = ", ".join(f"{occurrence.id} ({occurrence.state})" for occurrence in found[:3])
        return f"it is a job, of which these are open: {shown}" if shown else NOTHING_OPEN
    return f"write at least {_LEAST_TYPED} characters after occ_, run_ or attempt_, or JOB@TIME"


def _by_time(reading: Reading, text: str) -> Named:
    """`backup@2027-01-01T03:00:00Z`: for people, and for what is older than any search goes back."""
    written, _, stamp = text.rpartition("@")
    name = job_id_named(reading, written)
    job_was_known = bool(reading.occurrences(name, limit=1)) if is_name(name) else False
    if not job_was_known:
        job_named(reading, written)
    try:
        moment = datetime.fromisoformat(stamp)
    except ValueError:
        raise UnknownIdError(text, "write the time as 2027-01-01T03:00:00Z") from None
    if moment.tzinfo is None:
        raise UnknownIdError(text, f"say which zone: {stamp}Z for UTC, or with its offset")
    return Named(name, round(moment.timestamp() * 1000))


def _identities(reading: Reading, kind: str) -> Iterator[tuple[str, Named]]:
    """Ids by the keys of the records alone: what runs, waits and is planned; then what ended, newest first."""
    if kind == "occ_":
        for job, nominal_ms in _firings(reading):
            yield occurrence_id(job, nominal_ms), Named(job, nominal_ms)
        return
    tag = keys.RUN if kind == "run_" else keys.ATTEMPT
    for job, nominal_ms in _firings(reading):
        for key, _ in reading.tx.scan(keys.within_occurrence(tag, job, nominal_ms)):
            rest = key[len(job) + 10 :]
            task = rest.partition(b"\0")[0].decode("ascii")
            run = run_id(occurrence_id(job, nominal_ms), task)
            number = int.from_bytes(rest[-4:], "big")
            yield (run if kind == "run_" else attempt_id(run, number)), Named(job, nominal_ms, task)


def _firings(reading: Reading) -> Iterator[tuple[str, int]]:
    for occurrence in (*reading.active(limit=MOST_SEARCHED), *reading.waiting(limit=MOST_SEARCHED)):
        yield occurrence.job, occurrence.nominal_ms
    for page in pages(reading.tx, keys.DUE):
        for key, _ in page:
            record = keys.record_of(key)
            if record[:1] == keys.OCCURRENCE:
                yield keys.firing_of(record)
    after: bytes | None = None
    for _ in range(MOST_SEARCHED // 1000):
        rows = reading.tx.scan(keys.FINISHED, after, 1000, reverse=True)
        for key, _ in rows:
            yield keys.firing_of(keys.record_of(key))
        if len(rows) < 1000:
            return
        after = rows[-1][0]
