"""trigger, pause, resume and cancel, as the command line tells them."""

from __future__ import annotations

from typing import Any

from chronex.cli.acting import Desk, at_desk, duration_of, parameters_of, show
from chronex.cli.arguments import UsageError
from chronex.cli.times import time_text, timed, zone_of
from chronex.engine.commands import Answer, Triggered, cancel, pause, resume, trigger
from chronex.model.ids import is_name
from chronex.model.reasons import ReasonCode, text_of
from chronex.model.records import Job, Occurrence
from chronex.model.states import OccurrenceState, is_final

# A daemon takes a trigger up within milliseconds; this long the answer waits for what it says.
_PATIENCE_MS = 2_000
_STEP_S = 1.0


def run_trigger(
    job: str, params: list[str], key: str, ttl: str | None, wait: bool, store: str | None, form: str
) -> int:
    """0: it runs, waits, or went well; 1: it was skipped or went wrong, or nobody is there to run it."""
    parameters, ttl_ms = parameters_of(params), duration_of("--ttl", ttl)
    if ttl is not None and not key:
        raise UsageError("--ttl needs --idempotency-key: it says how long that key lives")

    def work(desk: Desk) -> int:
        asked = desk.act(
            lambda ledger: trigger(ledger, job, desk.asker, parameters=parameters, idempotency_key=key, ttl_ms=ttl_ms)
        )
        is_live = desk.has_daemon
        found = follow(desk, asked.occurrence, to_the_end=wait) if is_live else asked.occurrence
        show(form, {**occurrence_dict(found), "daemon": is_live}, told(found))
        if not is_final(found.state):
            desk.warn_without_daemon("it starts with the next one")
        return _trigger_code(asked, found, wait=wait)

    return at_desk(store, work)


def _trigger_code(asked: Triggered, found: Occurrence, *, wait: bool) -> int:
    if asked.answer is Answer.SKIPPED and asked.reason.code is ReasonCode.IDEMPOTENT:
        return 0  # it was done already: asking again with the same key is safe
    if wait:
        return 0 if found.state is OccurrenceState.COMPLETED else 1
    is_bad = is_final(found.state) and found.state is not OccurrenceState.COMPLETED
    return 1 if is_bad else 0


def follow(desk: Desk, occurrence: Occurrence, *, to_the_end: bool) -> Occurrence:
    """The occurrence when it has ended, or when it is known what becomes of it; no longer than a daemon lives."""
    deadline_ms = desk.store.now() + _PATIENCE_MS
    while True:
        seen = desk.store.wait(-1, 0)
        has_daemon = desk.has_daemon  # asked first: what it did before it went is then seen
        occurrence = desk.occurrence(occurrence)
        is_known = not to_the_end and occurrence.state is not OccurrenceState.PENDING
        is_late = not to_the_end and desk.store.now() >= deadline_ms
        if is_final(occurrence.state) or is_known or is_late or not has_daemon:
            return occurrence
        desk.store.wait(seen, _STEP_S)


def told(occurrence: Occurrence) -> str:
    """`started  backup  occ_…  reason`."""
    word = {OccurrenceState.RUNNING: "started", OccurrenceState.PENDING: "waiting"}.get(
        occurrence.state, occurrence.state.value
    )
    return f"{word:10} {occurrence.job}  {occurrence.id}  {text_of(occurrence.reason)}"


def occurrence_dict(occurrence: Occurrence) -> dict[str, Any]:
    return {
        "id": occurrence.id,
        "job": occurrence.job,
        **timed("nominal", occurrence.nominal_ms),
        **timed("scheduled", occurrence.scheduled_ms),
        "state": occurrence.state.value,
        "reason": text_of(occurrence.reason),
        "version": occurrence.version,
        "replay_of": occurrence.replay_of or None,
    }


def run_pause(job: str, duration: str | None, store: str | None, form: str) -> int:
    length = duration_of("--for", duration)

    def work(desk: Desk) -> int:
        until = None if length is None else desk.store.now() + length
        paused = desk.act(lambda ledger: pause(ledger, job, desk.asker, until_ms=until))
        end = f"until {time_text(until, zone_of(paused))}" if until is not None else "until resumed"
        show(form, pause_dict(paused), f"paused {paused.id} {end}; what is due meanwhile is skipped")
        return 0

    return at_desk(store, work)


def run_resume(job: str, store: str | None, form: str) -> int:
    def work(desk: Desk) -> int:
        before = desk.look(lambda reading: reading.job(job)) if is_name(job) else None
        resumed = desk.act(lambda ledger: resume(ledger, job, desk.asker))
        was_paused = before is not None and before.paused
        show(form, pause_dict(resumed), f"resumed {resumed.id}" if was_paused else f"{resumed.id} was not paused")
        return 0

    return at_desk(store, work)


def pause_dict(job: Job) -> dict[str, Any]:
    until = job.paused_until_ms if job.paused else None
    return {"job": job.id, "paused": job.paused, **timed("until", until), "by": job.paused_by or None}


def run_cancel(named: str, reason: str, wait: bool, store: str | None, form: str) -> int:
    """0: it is over, or its daemon was asked to stop it; 1: it had ended already."""

    def work(desk: Desk) -> int:
        done = desk.act(lambda ledger: cancel(ledger, named, desk.asker, reason), essential=True)
        found = done.occurrence
        if wait and not done.is_over and desk.has_daemon:
            found = follow(desk, found, to_the_end=True)
        if is_final(found.state):
            line = f"{found.state.value:10} {found.job}  {found.id}"
        else:
            line = f"stopping   {found.job}  {found.id}"
            desk.warn_without_daemon("the next one stops it")
        show(form, {**occurrence_dict(found), "stopping": not is_final(found.state)}, line)
        return 0

    return at_desk(store, work)
