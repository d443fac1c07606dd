"""Task state: small values that a task keeps between its runs.

What an attempt changes is staged under the attempt. It becomes the task's state in the transaction that records the
attempt's success, and is dropped in the one that records any other end. So a run that is tried again, or crashed
half-way, finds the state as the last success left it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from chronex.errors import DamagedRecordError, TaskStateError
from chronex.model.occurrence import Attempt
from chronex.model.records import TaskState
from chronex.model.states import AttemptState
from chronex.storage import keys
from chronex.storage.codec import decode, encode
from chronex.storage.ports import ReadTransaction
from chronex.storage.records import Reading, Records

MAX_VALUE_BYTES = 16 * 1024
MAX_NAMES = 256

Changes = Mapping[str, str | None]


def check_state(name: str, value: str | None = None) -> None:
    """TaskStateError for a name or a value that the store would not take."""
    try:
        raw, size = name.encode(), 0 if value is None else len(value.encode())
    except UnicodeEncodeError:
        raise TaskStateError("a state's name and value must be text that can be written as UTF-8") from None
    if not 0 < len(raw) <= keys.MAX_STATE_NAME or not name.isprintable():
        raise TaskStateError(f"a state's name is 1 to {keys.MAX_STATE_NAME} bytes of printable text")
    if size > MAX_VALUE_BYTES:
        raise TaskStateError(f"the state {name!r} has {size} bytes; at most {MAX_VALUE_BYTES} are kept")


def task_state(tx: ReadTransaction, job: str, task: str) -> dict[str, str]:
    """The values that the task keeps, by name."""
    found = _values(tx, keys.within_task_state(job, task))
    return {name: state.value for name, state in found.items()}


def staged_state(tx: ReadTransaction, attempt: Attempt) -> dict[str, str | None]:
    """What the attempt has changed so far; None for what it removed."""
    found = _values(tx, _prefix(attempt))
    return {name: None if state.is_removed else state.value for name, state in found.items()}


def seen_by(tx: ReadTransaction, attempt: Attempt) -> dict[str, str]:
    """The task's state as the attempt sees it: its own changes first."""
    merged = {**task_state(tx, attempt.job, attempt.task), **staged_state(tx, attempt)}
    return {name: value for name, value in merged.items() if value is not None}


def running_attempt(reading: Reading, attempt_id: str) -> Attempt | None:
    """The attempt of this id while it runs: what CHRONEX_ATTEMPT names."""
    return next((one for one in reading.active_attempts(limit=1_000_000) if one.id == attempt_id), None)


def stage(records: Records, attempt: Attempt, changes: Changes) -> None:
    """Stage changes of the task's state, for when this attempt succeeds. TaskStateError where it has ended."""
    found = records.attempt(attempt.job, attempt.nominal_ms, attempt.task, attempt.number)
    if found is None or found.state is not AttemptState.RUNNING:
        raise TaskStateError(f"{attempt.id} is over: its state can no longer be changed")
    for name, value in changes.items():
        check_state(name, value)
    if len({*staged_state(records.tx, attempt), *changes}) > MAX_NAMES:
        raise TaskStateError(f"one attempt can change at most {MAX_NAMES} names of its task's state")
    for name, value in changes.items():
        key = _prefix(attempt) + name.encode()
        state = TaskState(value=value or "", updated_ms=records.now_ms, is_removed=value is None)
        records.tx.put(key, encode(key, state))


def keep_or_drop(records: Records, attempt: Attempt, changes: Changes | None = None) -> None:
    """The attempt has ended: keep what it staged, then `changes`, where it succeeded; drop the rest."""
    wanted = staged_state(records.tx, attempt)
    if wanted:
        drop(records, attempt)
    if attempt.state is AttemptState.SUCCESS:
        for name, value in {**wanted, **(changes or {})}.items():
            put_state(records, attempt.job, attempt.task, name, value)


def drop(records: Records, attempt: Attempt) -> None:
    """Forget what the attempt has staged."""
    for key, _ in records.tx.scan(_prefix(attempt)):
        records.tx.delete(key)


def put_state(records: Records, job: str, task: str, name: str, value: str | None) -> None:
    """Change a task's state at once; None removes it."""
    key = keys.task_state_key(job, task, name)
    if value is None:
        records.tx.delete(key)
    else:
        records.tx.put(key, encode(key, TaskState(value=value, updated_ms=records.now_ms)))


def _prefix(attempt: Attempt) -> bytes:
    return keys.within_staged_state(attempt.job, attempt.nominal_ms, attempt.task, attempt.number)


def _values(tx: ReadTransaction, prefix: bytes) -> dict[str, TaskState]:
    """Damaged values are left out; `doctor` names them."""
    found: dict[str, TaskState] = {}
    for key, raw in tx.scan(prefix):
        try:
            found[key[len(prefix) :].decode()] = cast("TaskState", decode(key, raw))
        except (DamagedRecordError, UnicodeDecodeError):
            continue
    return found
