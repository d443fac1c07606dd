"""dlq list, show, replay and drop."""

from __future__ import annotations

from typing import Any

from chronex.cli.acting import Desk, at_desk, confirmed, show
from chronex.cli.acts import occurrence_dict, told
from chronex.cli.arguments import UsageError
from chronex.cli.times import Zones, time_text, timed
from chronex.engine.commands import DeadLetter, dead_letter, dead_letters, drop_dead_letter, replay_dead_letter
from chronex.errors import UnknownJobError
from chronex.model.reasons import text_of
from chronex.model.records import Attempt, Run
from chronex.storage.records import Ledger, Reading
from chronex.text.suggestions import nearest
from chronex.timing.zones import Zone
from chronex.views.wording import column


def run_list(job: str | None, store: str | None, form: str) -> int:
    def work(desk: Desk) -> int:
        runs = desk.look(lambda reading: _chosen(reading, [], job))
        lines = _lines(desk, runs) or ["no dead letters"]
        show(form, [_row(run) for run in runs], *lines)
        return 0

    return at_desk(store, work)


def run_show(named: str, store: str | None, form: str) -> int:
    def work(desk: Desk) -> int:
        letter = desk.look(lambda reading: dead_letter(reading, named))
        show(form, _letter_dict(letter), *_letter_lines(letter, desk.zone_of(letter.run.job)))
        return 0

    return at_desk(store, work)


def run_replay(
    named: list[str], job: str | None, reason: str, as_of: str, yes: bool, store: str | None, form: str
) -> int:
    def work(desk: Desk) -> int:
        runs = desk.look(lambda reading: _chosen(reading, named, job))
        if not _agreed(desk, "replay", named, runs, yes, form):
            return 1
        why = reason or "dead letter"

        def all_of_them(ledger: Ledger) -> list[Any]:
            return [replay_dead_letter(ledger, run, desk.asker, why, as_of=as_of) for run in runs]

        done = [one.occurrence for one in desk.act(all_of_them)]
        show(form, [occurrence_dict(one) for one in done], *map(told, done))
        desk.warn_without_daemon("replays start with the next one")
        return 0

    return at_desk(store, work)


def run_drop(named: list[str], job: str | None, reason: str, yes: bool, store: str | None, form: str) -> int:
    def work(desk: Desk) -> int:
        runs = desk.look(lambda reading: _chosen(reading, named, job))
        if not _agreed(desk, "drop", named, runs, yes, form):
            return 1
        done = desk.act(
            lambda ledger: [drop_dead_letter(ledger, run, desk.asker, reason) for run in runs], essential=True
        )
        show(form, [_row(run) for run in done], *(f"dropped    {run.job}/{run.task}  {run.id}" for run in done))
        return 0

    return at_desk(store, work)


def _chosen(reading: Reading, named: list[str], job: str | None) -> list[Run]:
    """Those named; else all of the job, or all there are."""
    if named:
        return list({run.id: run for run in (dead_letter(reading, one).run for one in named)}.values())
    found = dead_letters(reading, job or "")
    if job is not None and not found and not _is_known(reading, job):
        raise UnknownJobError(job, nearest(job, (known.id for known in reading.jobs(limit=100_000))))
    return found


def _is_known(reading: Reading, job: str) -> bool:
    return any(known.id == job for known in reading.jobs(limit=100_000))


def _agreed(desk: Desk, act: str, named: list[str], runs: list[Run], yes: bool, form: str) -> bool:
    """Letters that were named one by one are meant; all of them are shown first."""
    if named:
        return True
    if not runs:
        show(form, [], "no dead letters")
        return False
    if form == "text":
        show(form, None, *_lines(desk, runs), f"{len(runs)} to {act}")
    return confirmed(f"{act} {len(runs)}?", is_sure=yes)


def _lines(desk: Desk, runs: list[Run]) -> list[str]:
    def lines(reading: Reading) -> list[str]:
        zones = Zones(reading)
        return [_line(run, zones.of(run.job)) for run in runs]

    return desk.look(lines)


def _line(run: Run, zone: Zone) -> str:
    died = column(run.finished_ms or run.created_ms, zone)
    return f"{died}  {f'{run.job}/{run.task}':24} {run.id}  {run.attempts} tried  {text_of(run.reason)}"


def _row(run: Run) -> dict[str, Any]:
    return {
        "id": run.id,
        "job": run.job,
        "task": run.task,
        **timed("nominal", run.nominal_ms),
        **timed("died", run.finished_ms),
        "attempts": run.attempts,
        "exit_code": run.exit_code,
        "state": run.state.value,
        "reason": text_of(run.reason),
    }


def _letter_dict(letter: DeadLetter) -> dict[str, Any]:
    occurrence = letter.occurrence
    return {
        **_row(letter.run),
        "occurrence": None if occurrence is None else occurrence.id,
        "version": None if occurrence is None else occurrence.version,
        "parameters": {} if occurrence is None else occurrence.parameters,
        "environment": list(letter.run.environment),
        "error": letter.run.error,
        "tries": [_try(attempt) for attempt in letter.attempts],
    }


def _try(attempt: Attempt) -> dict[str, Any]:
    return {
        "id": attempt.id,
        "number": attempt.number,
        "state": attempt.state.value,
        **timed("started", attempt.started_ms or attempt.created_ms),
        **timed("ended", attempt.finished_ms),
        "exit_code": attempt.exit_code,
        "signal": attempt.signal,
        "reason": text_of(attempt.reason),
        "log": attempt.log_path,
    }


def _letter_lines(letter: DeadLetter, zone: Zone) -> list[str]:
    run, occurrence = letter.run, letter.occurrence
    version = f", version {occurrence.version}" if occurrence is not None else ""
    lines = [
        f"{run.job}/{run.task} of {time_text(run.nominal_ms, zone)}{version}",
        f"  {run.id}",
        f"  {text_of(run.reason)}",
    ]
    for attempt in letter.attempts:
        when = column(attempt.started_ms or attempt.created_ms, zone)
        lines.append(f"  attempt {attempt.number}  {when}  {attempt.state.value}  {text_of(attempt.reason)}")
    if run.environment:
        lines.append(f"  was given {', '.join(run.environment)} (values are not kept)")
    return [*lines, f"  again: chronex dlq replay {run.id}"]


def check_named(named: list[str], job: str | None, everything: bool) -> None:
    """`dlq drop` alone is no wish: which ones must be said."""
    if sum((bool(named), job is not None, everything)) != 1:
        raise UsageError("say which: RUN ids, or --job JOB, or --all")
