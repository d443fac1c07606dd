"""What the dashboard asks of the store, each inside one update and answered in one sentence.

The same functions of the engine stand behind the commands of the shell; the journal tells that it was the tui.
"""

from __future__ import annotations

from collections.abc import Sequence

from chronex.engine.commands import Answer, Asker, cancel, pause, replay, replay_dead_letter, resume, trigger
from chronex.engine.ledger import Ledger
from chronex.errors import NotPossibleError
from chronex.model.records import Occurrence
from chronex.model.states import RunState
from chronex_tui.model.snapshot import RunKey


def trigger_jobs(ledger: Ledger, names: Sequence[str], asker: Asker) -> str:
    found = [trigger(ledger, name, asker) for name in names]
    skipped = [one for one in found if one.answer is Answer.SKIPPED]
    if skipped:
        raise NotPossibleError(
            "; ".join(f"{one.occurrence.job} was not started: {one.reason}" for one in skipped[:3])
        )
    waiting = [one for one in found if one.answer is Answer.QUEUED]
    tail = f"; {waiting[0].occurrence.job} waits: {waiting[0].reason}" if waiting else ""
    return f"asked to run {_list(names)}{tail}"


def pause_jobs(ledger: Ledger, names: Sequence[str], asker: Asker) -> str:
    for name in names:
        pause(ledger, name, asker)
    return f"paused {_list(names)}; u takes it back"


def resume_jobs(ledger: Ledger, names: Sequence[str], asker: Asker) -> str:
    for name in names:
        resume(ledger, name, asker)
    return f"resumed {_list(names)}; u takes it back"


def cancel_runs(ledger: Ledger, keys: Sequence[RunKey], asker: Asker) -> str:
    found = [cancel(ledger, _occurrence(ledger, key), asker) for key in keys]
    ended = sum(1 for one in found if one.is_over)
    asked = len(found) - ended
    parts = [f"asked {asked} to stop" if asked else "", f"canceled {ended}" if ended else ""]
    return " and ".join(part for part in parts if part)


def replay_runs(ledger: Ledger, keys: Sequence[RunKey], asker: Asker) -> str:
    for key in keys:
        replay(ledger, _occurrence(ledger, key), asker, "")
    return f"asked to run {_list([key.job for key in keys])} again" if keys else ""


def replay_dead(ledger: Ledger, keys: Sequence[RunKey], asker: Asker) -> str:
    """Each dead run of these occurrences."""
    replayed = 0
    for key in keys:
        for run in ledger.runs(*key):
            if run.state is RunState.DLQ:
                replay_dead_letter(ledger, run, asker)
                replayed += 1
    return f"asked to replay {replayed} dead letter{'' if replayed == 1 else 's'}" if keys else ""


def _occurrence(ledger: Ledger, key: RunKey) -> Occurrence:
    found = ledger.occurrence(*key)
    if found is None:
        raise NotPossibleError(f"that run of {key.job} is gone")
    return found


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{len(names)} jobs"
