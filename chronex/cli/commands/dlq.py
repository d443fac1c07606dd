"""`chronex dlq list|show|replay|drop`: dead letters, the runs that failed for good."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from chronex.cli.options import AsOf, Form, OfJob, ReasonText, StorePath, UsageError, Yes, check_format, choose
from chronex.cli.output import JobZones, hinted, print_lines, print_result, time_text, timed

if TYPE_CHECKING:
    from chronex.cli.store_session import StoreSession
    from chronex.engine.commands import DeadLetter
    from chronex.model.occurrence import Attempt, Run
    from chronex.storage.records import Reading
    from chronex.timing.zones import Zone

Runs = Annotated[list[str] | None, typer.Argument(help="Ids of dead letters.", metavar="RUN…")]
All = Annotated[bool, typer.Option("--all", help="Every one of them.")]
dlq = typer.Typer(
    help="Dead letters: runs that failed for good.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@dlq.command("list")
def dlq_list(job: OfJob = None, store: StorePath = None, form: Form = "text") -> int:
    """List them, newest first.

    Example: chronex dlq list
    """
    check_format(form)
    return run_list(job, store, form)


@dlq.command("show")
def dlq_show(
    run: Annotated[str, typer.Argument(help="The id of a dead letter, or a beginning of it.", metavar="RUN")],
    store: StorePath = None,
    form: Form = "text",
) -> int:
    """Show one with its attempts, its version, and the names of what it was given.

    Example: chronex dlq show run_12ab34cd
    """
    check_format(form)
    return run_show(run, store, form)


@dlq.command("replay")
def dlq_replay(
    runs: Runs = None,
    job: OfJob = None,
    everything: All = False,
    reason: ReasonText = "",
    as_of: AsOf = "then",
    yes: Yes = False,
    store: StorePath = None,
    form: Form = "text",
) -> int:
    """Run them again, with the tasks that their failure held up; they are dead letters no longer.

    Example: chronex dlq replay --job backup --yes
    """
    check_format(form)
    choose("--as-of", as_of, ("then", "now"))
    check_chosen(runs or [], job, everything)
    return run_replay(Chosen(runs or [], job, yes), reason, as_of, store, form)


@dlq.command("drop")
def dlq_drop(
    runs: Runs = None,
    job: OfJob = None,
    everything: All = False,
    reason: ReasonText = "",
    yes: Yes = False,
    store: StorePath = None,
    form: Form = "text",
) -> int:
    """Take them off the list for good; their history stays.

    Example: chronex dlq drop run_12ab34cd --reason "known"
    """
    check_format(form)
    check_chosen(runs or [], job, everything)
    return run_drop(Chosen(runs or [], job, yes), reason, store, form)


class Chosen(NamedTuple):
    """The dead letters that are meant: those of these ids; else all of the job; else all there are."""

    ids: list[str]
    job: str | None
    is_sure: bool = False


def check_chosen(ids: list[str], job: str | None, everything: bool) -> None:
    """`dlq drop` alone chooses nothing: one of the three ways to choose must be given."""
    if sum((bool(ids), job is not None, everything)) != 1:
        raise UsageError("say which: RUN ids, or --job JOB, or --all")


def run_list(job: str | None, store: str | None, form: str) -> int:
    from chronex.cli.store_session import open_session

    with open_session(store) as session:
        runs = session.read(lambda reading: _find(reading, Chosen([], job)))
        print_result(
            form, lambda: [_run_json(run) for run in runs], lambda: _lines(session, runs) or ["no dead letters"]
        )
        return 0


def run_show(named: str, store: str | None, form: str) -> int:
    from chronex.cli.store_session import open_session
    from chronex.engine.commands import dead_letter

    with open_session(store) as session:
        letter = session.read(lambda reading: dead_letter(reading, named))
        zone = session.zone_of(letter.run.job)
        print_result(form, lambda: _letter_json(letter), lambda: _letter_lines(letter, zone))
        return 0


def run_replay(chosen: Chosen, reason: str, as_of: str, store: str | None, form: str) -> int:
    from chronex.cli.record_output import occurrence_json, occurrence_line
    from chronex.cli.store_session import open_session
    from chronex.engine.commands import replay_dead_letter

    with open_session(store) as session:
        runs = session.read(lambda reading: _find(reading, chosen))
        if not _agreed(session, "replay", chosen, runs, form):
            return 1
        replayed = session.change(
            lambda records: [
                replay_dead_letter(records, run, session.actor, reason or "dead letter", as_of=as_of) for run in runs
            ]
        )
        done = [one.occurrence for one in replayed]
        print_result(form, lambda: [occurrence_json(one) for one in done], lambda: map(occurrence_line, done))
        session.warn_without_daemon("replays start with the next one")
        return 0


def run_drop(chosen: Chosen, reason: str, store: str | None, form: str) -> int:
    from chronex.cli.store_session import open_session
    from chronex.engine.commands import drop_dead_letter

    with open_session(store) as session:
        runs = session.read(lambda reading: _find(reading, chosen))
        if not _agreed(session, "drop", chosen, runs, form):
            return 1
        done = session.change(
            lambda records: [drop_dead_letter(records, run, session.actor, reason) for run in runs], use_reserve=True
        )
        print_result(
            form,
            lambda: [_run_json(run) for run in done],
            lambda: [f"dropped    {run.job}/{run.task}  {run.id}" for run in done],
        )
        return 0


def _find(reading: Reading, chosen: Chosen) -> list[Run]:
    from chronex.engine.commands import dead_letter, dead_letters
    from chronex.engine.commands.names import job_id_named
    from chronex.errors import UnknownJobError
    from chronex.text.suggestions import nearest

    if chosen.ids:
        return list({run.id: run for run in (dead_letter(reading, one).run for one in chosen.ids)}.values())
    found = dead_letters(reading, job_id_named(reading, chosen.job) if chosen.job else "")
    if chosen.job is not None and not found:
        known = [job.shown_name for job in reading.jobs(limit=100_000)]
        if chosen.job not in known:
            raise UnknownJobError(chosen.job, nearest(chosen.job, known))
    return found


def _agreed(session: StoreSession, command: str, chosen: Chosen, runs: list[Run], form: str) -> bool:
    """Dead letters that were named one by one need no question; all others are shown first."""
    from chronex.cli.store_session import confirmed

    if chosen.ids:
        return True
    if not runs:
        print_result(form, list, lambda: ["no dead letters"])
        return False
    if form == "text":
        print_lines([*_lines(session, runs), f"{len(runs)} to {command}"])
    return confirmed(f"{command} {len(runs)}?", is_sure=chosen.is_sure)


# -- text and JSON ------------------------------------------------------------------------------------------------


def _lines(session: StoreSession, runs: list[Run]) -> list[str]:
    def lines(reading: Reading) -> list[str]:
        zones = JobZones(reading)
        return [_line(run, zones.name_of(run.job), zones.of(run.job)) for run in runs]

    return session.read(lines)


def _line(run: Run, job: str, zone: Zone) -> str:
    from chronex.model.reasons import text_of
    from chronex.views.wording import column

    died = column(run.finished_ms or run.created_ms, zone)
    return f"{died}  {f'{job}/{run.task}':24} {run.id}  {run.attempts} tried  {text_of(run.reason)}"


def _run_json(run: Run) -> dict[str, Any]:
    from chronex.model.reasons import text_of

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


def _letter_json(letter: DeadLetter) -> dict[str, Any]:
    occurrence = letter.occurrence
    return {
        **_run_json(letter.run),
        "occurrence": None if occurrence is None else occurrence.id,
        "version": None if occurrence is None else occurrence.version,
        "parameters": {} if occurrence is None else occurrence.parameters,
        "environment": list(letter.run.environment),
        "error": letter.run.error,
        "tries": [_try_json(attempt) for attempt in letter.attempts],
    }


def _try_json(attempt: Attempt) -> dict[str, Any]:
    from chronex.model.reasons import text_of

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
    from chronex.model.reasons import text_of
    from chronex.views.wording import column

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
    return [*lines, hinted(f"  again: chronex dlq replay {run.id}")]
