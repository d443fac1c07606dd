"""What the dashboard asks of the store, each inside one update and answered in one sentence.

The same functions of the engine stand behind the commands of the shell; the journal tells that it was the tui.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from chronex.engine.commands import Answer, Asker, cancel, pause, replay, replay_dead_letter, resume, trigger
from chronex.errors import NotPossibleError
from chronex.model.reasons import text_of
from chronex.model.records import Occurrence
from chronex.model.states import RunState
from chronex.storage.records import Ledger
from chronex_tui.model.snapshot import RunItem, RunKey


class Told(NamedTuple):
    """One sentence on what came of a wish."""

    text: str
    is_refused: bool = False


def trigger_jobs(ledger: Ledger, names: Sequence[str], asker: Asker) -> Told:
    """A trigger that the overlap policy skips is on record too, so it is told, not undone."""
    found = [trigger(ledger, name, asker) for name in names]
    told = [
        f"{one.occurrence.job} was not started: {text_of(one.reason)}"
        for one in found
        if one.answer is Answer.SKIPPED
    ]
    if told:
        return Told("; ".join(told[:3]), is_refused=True)
    waiting = [one for one in found if one.answer is Answer.QUEUED]
    tail = f"; {waiting[0].occurrence.job} waits: {text_of(waiting[0].reason)}" if waiting else ""
    return Told(f"asked to run {_list(names)}{tail}")


def pause_jobs(ledger: Ledger, names: Sequence[str], asker: Asker) -> Told:
    for name in names:
        pause(ledger, name, asker)
    return Told(f"paused {_list(names)}; u takes it back")


def resume_jobs(ledger: Ledger, names: Sequence[str], asker: Asker) -> Told:
    for name in names:
        resume(ledger, name, asker)
    return Told(f"resumed {_list(names)}; u takes it back")


def cancel_runs(ledger: Ledger, keys: Sequence[RunKey], asker: Asker) -> Told:
    found = [cancel(ledger, _occurrence(ledger, key), asker) for key in keys]
    ended = sum(1 for one in found if one.is_over)
    asked = len(found) - ended
    parts = [f"asked {asked} to stop" if asked else "", f"canceled {ended}" if ended else ""]
    return Told(" and ".join(part for part in parts if part))


def replay_items(ledger: Ledger, items: Sequence[RunItem], asker: Asker) -> Told:
    """Dead letters by their dead runs, other occurrences as a whole."""
    for item in items:
        if item.is_dead:
            for run in ledger.runs(*item.key):
                if run.state is RunState.DLQ:
                    replay_dead_letter(ledger, run, asker)
        else:
            replay(ledger, _occurrence(ledger, item.key), asker, "")
    return Told(f"asked to run {_list(sorted({item.key.job for item in items}))} again")


def _occurrence(ledger: Ledger, key: RunKey) -> Occurrence:
    found = ledger.occurrence(*key)
    if found is None:
        raise NotPossibleError(f"that run of {key.job} is gone")
    return found


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{len(names)} jobs"
