"""Records as several commands print them: occurrences, attempts and outcomes."""

from __future__ import annotations

from typing import Any

from chronex.cli.output import wants_unicode
from chronex.cli.times import timed
from chronex.model.occurrence import Attempt, Occurrence
from chronex.model.reasons import text_of
from chronex.model.states import OccurrenceState
from chronex.views.jobs import GLYPHS, Outcome, Situation

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
    }


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
        "leftovers": attempt.leftovers,
        "errno": attempt.errno,
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
    }
