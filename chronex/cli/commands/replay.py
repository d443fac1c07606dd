"""`chronex replay`: one occurrence again, or those of a job in a range, shown before anything is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from chronex.cli.options import (
    AsOf,
    Form,
    OfJob,
    StorePath,
    UsageError,
    Yes,
    check_format,
    choose,
    choose_zone,
    read_instant,
)
from chronex.cli.output import print_lines, print_result

if TYPE_CHECKING:
    from chronex.cli.store_session import StoreSession
    from chronex.model.occurrence import Occurrence
    from chronex.storage.records import Reading


def replay(
    occurrence: Annotated[
        str | None, typer.Argument(help="Its id, a beginning of it, or JOB@TIME.", metavar="OCCURRENCE")
    ] = None,
    reason: Annotated[str, typer.Option(help="Why, for the journal; required.", metavar="TEXT")] = "",
    as_of: AsOf = "then",
    job: OfJob = None,
    since: Annotated[str | None, typer.Option("--from", help="From this ISO 8601 time on.", metavar="TIME")] = None,
    until: Annotated[str | None, typer.Option("--to", help="Before this ISO 8601 time.", metavar="TIME")] = None,
    state: Annotated[
        list[str] | None, typer.Option(help="Those that ended so (default: failed).", metavar="STATE")
    ] = None,
    task: Annotated[
        list[str] | None, typer.Option(help="Only this task of it; may be repeated.", metavar="TASK")
    ] = None,
    with_children: Annotated[
        bool, typer.Option("--with-children", help="The jobs that follow it run again too, once it has completed.")
    ] = False,
    yes: Yes = False,
    store: StorePath = None,
    form: Form = "text",
) -> int:
    """Run what has ended once more, at its old scheduled time; with --job and a range the list is shown first.

    Example: chronex replay --job backup --from 2027-01-01 --state failed,missed --reason "disk was full"
    """
    check_format(form)
    choose("--as-of", as_of, ("then", "now"))
    chosen = occurrence if job is None else PastFilter(job, since, until, states_of(state or []))
    if chosen is None or (occurrence is not None and job is not None):
        raise UsageError("say which: an OCCURRENCE, or --job with --from, --to and --state")
    how = HowToReplay(reason, as_of, tuple(task or ()), with_children)
    return run_replay(chosen, how, yes=yes, store=store, form=form)


class HowToReplay(NamedTuple):
    """Why, with which version of the job, and which tasks; none stands for all. And whether what follows runs too."""

    reason: str
    as_of: str = "then"
    tasks: tuple[str, ...] = ()
    with_children: bool = False


class PastFilter(NamedTuple):
    """Of one job, the occurrences whose nominal time lies in [from, to) and that ended in one of the states."""

    job: str
    since: str | None
    until: str | None
    states: tuple[str, ...]


def states_of(given: list[str]) -> tuple[str, ...]:
    """`--state failed --state missed,skipped`; failed where none is given."""
    from chronex.model.states import OccurrenceState, is_final

    known = [state.value for state in OccurrenceState if is_final(state)]
    states = [one.strip() for text in given for one in text.split(",")] or ["failed"]
    for state in states:
        if state not in known:
            raise UsageError(f"--state: {state!r} is none of {', '.join(known)}")
    return tuple(states)


def run_replay(chosen: str | PastFilter, how: HowToReplay, *, yes: bool, store: str | None, form: str) -> int:
    """`chosen` names one occurrence or filters those of a job. 0: done, or nothing to do; 1: not confirmed."""
    if not how.reason.strip():
        raise UsageError('--reason is required, for example --reason "the disk was full"')
    from chronex.cli.record_output import occurrence_json, occurrence_line
    from chronex.cli.store_session import open_session
    from chronex.engine import commands

    with open_session(store) as session:
        originals = session.read(lambda reading: _originals(reading, chosen))
        if isinstance(chosen, PastFilter) and not _agreed(session, originals, yes, form):
            return 1
        done = session.change(
            lambda records: [
                commands.replay(
                    records,
                    original,
                    session.actor,
                    how.reason,
                    as_of=how.as_of,
                    only=how.tasks,
                    with_children=how.with_children,
                )
                for original in originals
            ]
        )
        shown = [session.occurrence(one.occurrence) for one in done]
        if session.has_daemon and len(shown) == 1:
            shown = [session.follow(shown[0], to_the_end=False)]
        print_result(form, lambda: [occurrence_json(one) for one in shown], lambda: map(occurrence_line, shown))
        if shown and form == "text" and not how.with_children and not how.tasks:
            print_lines(_offer(session, shown[0].job))
        if shown:
            they = "they start" if len(shown) > 1 else "it starts"
            session.warn_without_daemon(f"{they} with the next one")
        return 0


def _offer(session: StoreSession, job: str) -> list[str]:
    """The jobs that follow it are not run again by themselves: who replays may want that, or not. One that has a
    schedule waits for it at its own times, and is no part of that."""
    children = session.read(
        lambda reading: [name for name in reading.children(job) if (child := reading.job(name)) and child.follows]
    )
    them = "those" if len(children) > 1 else "that"
    return [f"{', '.join(children)} would follow it: replay --with-children runs {them} too"] if children else []


def _originals(reading: Reading, chosen: str | PastFilter) -> list[Occurrence]:
    """Oldest first. The queue of a job has a limit; more replays at once would only be skipped."""
    from chronex.engine.admit import MOST_QUEUED
    from chronex.engine.commands import job_named, occurrence_named
    from chronex.views.past_runs import HistoryQuery, past_occurrences

    if isinstance(chosen, str):
        return [occurrence_named(reading, chosen)]
    job = job_named(reading, chosen.job)
    zone = choose_zone(job.timezone).zone
    since = read_instant(chosen.since, zone, "--from") if chosen.since else None
    until = read_instant(chosen.until, zone, "--to") if chosen.until else None
    query = HistoryQuery(job.id, MOST_QUEUED + 1, frozenset(chosen.states), since, until)
    found = list(past_occurrences(reading, query))
    if len(found) > MOST_QUEUED:
        raise UsageError(f"more than {MOST_QUEUED} occurrences are meant; narrow it with --from and --to")
    return found[::-1]


def _agreed(session: StoreSession, originals: list[Occurrence], yes: bool, form: str) -> bool:
    from chronex.cli.store_session import confirmed
    from chronex.model.reasons import text_of
    from chronex.views.wording import column

    if not originals:
        print_result(form, list, lambda: ["nothing to replay: no occurrence is meant by that"])
        return False
    if form == "text":
        zone = session.zone_of(originals[0].job)
        print_lines(
            f"{column(one.nominal_ms, zone)}  {one.state.value:12} {text_of(one.reason)}" for one in originals
        )
        print_lines([f"{len(originals)} to replay, the oldest first"])
    return confirmed(f"replay {len(originals)}?", is_sure=yes)
