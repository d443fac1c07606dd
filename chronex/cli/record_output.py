"""Records as commands print them, in text and JSON: the states of jobs, occurrences, attempts, outcomes and nodes."""

from __future__ import annotations

from typing import Any

import msgspec

from chronex.cli.output import timed, wants_unicode
from chronex.model.occurrence import Attempt, Occurrence
from chronex.model.reasons import text_of
from chronex.model.states import OccurrenceState
from chronex.views.jobs import GLYPHS, Outcome, Row, Situation
from chronex.views.nodes import NodeRow, Watch, concern_words

SITUATION_COLOURS = {
    Situation.RUNNING: ("cyan",),
    Situation.RETRYING: ("yellow",),
    Situation.QUEUED: ("yellow",),
    Situation.FAILED: ("red",),
    Situation.OK: ("green",),
    Situation.PAUSED: ("dim",),
    Situation.DISABLED: ("dim",),
}


def situation_text(situation: Situation) -> str:
    return f"{GLYPHS[situation]} {situation}" if wants_unicode() else situation.value


def state_text(row: Row, watch: Watch) -> str:
    """The situation; what was left running without a scheduler may have ended, and then nobody knows how."""
    left = watch.left_of(row.job.id)
    if row.situation is Situation.RUNNING and left and not any(one.is_alive for one in left):
        return "? unknown" if wants_unicode() else "unknown"
    return situation_text(row.situation)


def occurrence_line(occurrence: Occurrence) -> str:
    """`started  backup  occ_…  reason`."""
    word = {OccurrenceState.RUNNING: "started", OccurrenceState.PENDING: "waiting"}.get(
        occurrence.state, occurrence.state.value
    )
    return f"{word:10} {occurrence.job}  {occurrence.id}  {text_of(occurrence.reason)}"


def occurrence_json(occurrence: Occurrence) -> dict[str, Any]:
    return {
        "id": occurrence.id,
        "job": occurrence.job,
        **timed("nominal", occurrence.nominal_ms),
        **timed("scheduled", occurrence.scheduled_ms),
        "state": occurrence.state.value,
        "reason": text_of(occurrence.reason),
        "version": occurrence.version,
        "replay_of": occurrence.replay_of or None,
        "moved_by": occurrence.moved_by or None,
    }


def overrides_json(occurrence: Occurrence) -> dict[str, Any] | None:
    given = occurrence.overrides
    if given is None:
        return None
    strategy = None if given.on_failure is None else given.on_failure.value
    return {"timeout_ms": given.timeout_ms, "retries": given.retries, "on_failure": strategy}


def attempt_json(attempt: Attempt) -> dict[str, Any]:
    return {
        "id": attempt.id,
        "task": attempt.task,
        "number": attempt.number,
        "state": attempt.state.value,
        "reason": text_of(attempt.reason),
        **timed("started", attempt.started_ms),
        **timed("ended", attempt.finished_ms),
        "exit_code": attempt.exit_code,
        "signal": attempt.signal,
        "error": attempt.error,
        "log": attempt.log_path or None,
        "log_bytes": attempt.log_bytes,
        "log_dropped": attempt.log_dropped,
        "usage": None if attempt.usage is None else plain_values(attempt.usage),
        "leftovers": attempt.leftovers,
        "errno": attempt.errno,
        "values": dict(attempt.values),
        "values_problem": attempt.values_problem or None,
        "node": attempt.owner or None,
        "pid": None if attempt.process is None else attempt.process.pid,
    }


def node_json(row: NodeRow) -> dict[str, Any]:
    node = row.node
    return {
        "id": node.id,
        "state": row.state.value,
        "is_alive": row.is_alive,
        "name": row.name,
        "host": node.host,
        "pid": node.process.pid,
        "version": node.chronex,
        "tzdata": node.tzdata or None,
        "labels": node.labels,
        **timed("started", node.started_ms),
        **timed("heartbeat", node.seen_ms),
        "heartbeat_age_ms": row.silent_ms,
        **timed("stopped", node.stopped_ms),
        "slots": node.places,
        "running": row.running,
        "work": [
            {
                "job": one.job,
                "task": one.task,
                "attempt": one.number,
                **timed("nominal", one.nominal_ms),
                **timed("since", one.since_ms),
            }
            for one in row.work
        ],
        "clock_ahead_ms": node.clock_ahead_ms,
        "clock_within_ms": node.clock_within_ms,
        **timed("lost", node.lost_ms),
        **timed("refused", node.refused_ms),
        "concerns": [{"code": one.value, "words": concern_words(row, one)} for one in row.concerns],
        "program": node.program or None,
        "functions": None if node.functions is None else list(node.functions),
    }


def outcome_json(outcome: Outcome) -> dict[str, Any]:
    return {
        **timed("nominal", outcome.nominal_ms),
        "state": outcome.state.value,
        "reason": text_of(outcome.reason),
        **timed("started", outcome.started_ms),
        **timed("ended", outcome.finished_ms),
        "duration_ms": outcome.duration_ms,
        "recovery": outcome.recovery,
        "manual": outcome.manual,
        "errors": outcome.errors,
        "node": outcome.node or None,
    }


# A past occurrence by the state in which it ended: its mark, its mark in ASCII, its colour.
MARKS = {
    OccurrenceState.COMPLETED: ("●", "o", "green"),
    OccurrenceState.FAILED: ("✖", "x", "red"),
    OccurrenceState.FAILED_STALE: ("✖", "x", "red"),
    OccurrenceState.CANCELED: ("◼", "c", "yellow"),
    OccurrenceState.SKIPPED: ("·", "-", "dim"),
    OccurrenceState.MISSED: ("○", "m", "yellow"),
}


# -- a job in full, with the policies that hold after the cascade: text -------------------------------------------


def situation_json(row: Row) -> dict[str, Any]:
    """How a job is, as `list` and `show` tell it."""
    return {
        "id": row.job.id,
        "name": row.job.shown_name,
        "state": row.situation.value,
        "is_active": row.is_active,
        "is_enabled": row.is_enabled,
        "is_paused": row.is_paused,
        "is_running": row.is_running,
    }


def plain_values(policy: msgspec.Struct) -> dict[str, Any]:
    """Every field, also those with their default value, because the reader asks what holds."""
    fields = msgspec.structs.asdict(policy)
    return {key: value.value if hasattr(value, "value") else value for key, value in fields.items()}
