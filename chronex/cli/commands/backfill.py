"""`chronex backfill`: run a span of a job's past, so many at once, and go on where it stopped when asked again."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from chronex.cli.options import (
    Form,
    JobName,
    ReasonText,
    StorePath,
    UsageError,
    check_format,
    choose,
    choose_zone,
    read_instant,
)
from chronex.cli.output import err, out, print_json, print_lines, timed
from chronex.text.terminal import terminal_safe

if TYPE_CHECKING:
    from chronex.cli.store_session import StoreSession
    from chronex.engine.commands.backfill import BackfillPlan
    from chronex.model.occurrence import Occurrence
    from chronex.storage.records import Records

_POLL_S = 2.0
_SCOPES = ("missing", "failed", "all")
_MOST_AT_ONCE = 100


def backfill(
    job: JobName,
    since: Annotated[str, typer.Option("--from", help="From this ISO 8601 time on.", metavar="TIME")],
    until: Annotated[str, typer.Option("--to", help="Before this ISO 8601 time.", metavar="TIME")],
    only: Annotated[str, typer.Option(help="missing, failed or all.", metavar="WHICH")] = "missing",
    at_once: Annotated[
        int, typer.Option("--at-once", help="How many at a time.", metavar="N", min=1, max=_MOST_AT_ONCE)
    ] = 1,
    newest_first: Annotated[bool, typer.Option("--newest-first", help="Begin with the newest.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what would run, and change nothing.")] = False,
    reason: ReasonText = "backfill",
    store: StorePath = None,
    form: Form = "text",
) -> int:
    """Run the times of a span that a job never ran, also before it existed. Ctrl-C cancels; ask again to go on.

    Example: chronex backfill report --from 2027-01-01 --to 2027-02-01 --dry-run
    """
    check_format(form)
    choose("--only", only, _SCOPES)
    span = BackfillRequest(job, since, until, only, at_once, newest_first, reason)
    return run_backfill(span, store, form, dry_run=dry_run)


class BackfillRequest(NamedTuple):
    job: str
    since: str
    until: str
    only: str = "missing"
    at_once: int = 1
    newest_first: bool = False
    reason: str = "backfill"


@dataclass
class _Progress:
    """What has ended so far, and what is open."""

    waiting: list[int]
    open: list[Occurrence] = field(default_factory=list)
    ended: list[Occurrence] = field(default_factory=list)

    def count(self, state: str) -> int:
        return sum(one.state.value == state for one in self.ended)

    @property
    def line(self) -> str:
        total = len(self.waiting) + len(self.open) + len(self.ended)
        bad = len(self.ended) - self.count("completed")
        return f"{len(self.ended)} of {total} done{f', {bad} not completed' if bad else ''}"


def run_backfill(asked: BackfillRequest, store: str | None, form: str, *, dry_run: bool) -> int:
    """0: all completed, or nothing to do, or a dry run; 1: some did not complete, or it was broken off."""
    from chronex.cli.store_session import open_session

    with open_session(store) as session:
        plan = _plan(session, asked)
        _warn_of_overlap(plan, asked)
        if dry_run or not plan.instants:
            _print_plan(plan, form)
            return 0
        if not session.has_daemon:
            session.warn_without_daemon("nothing would be run")
            return 1
        instants = sorted(plan.instants, reverse=asked.newest_first)
        progress = _Progress(list(instants))
        is_done = _play(session, asked, progress)
        _print_end(plan, progress, form, is_done=is_done)
        return 0 if is_done and progress.count("completed") == len(plan.instants) else 1


def _warn_of_overlap(plan: BackfillPlan, asked: BackfillRequest) -> None:
    """Whoever asks for several at once is told where the job itself lets none run beside another."""
    from chronex.model.policies import OverlapPolicy

    overlap = plan.job.overlap
    if asked.at_once > 1 and len(plan.instants) > 1 and overlap is not OverlapPolicy.ALLOW:
        err(
            f"{plan.job.id} never runs beside itself (overlap = {overlap.value!r}), so its runs come one by one; "
            'for several at once it needs overlap = "allow"'
        )


def _plan(session: StoreSession, asked: BackfillRequest) -> BackfillPlan:
    from chronex.engine.commands.backfill import BackfillScope, plan_backfill
    from chronex.engine.commands.names import job_named

    zone = choose_zone(session.read(lambda reading: job_named(reading, asked.job)).timezone).zone
    begin, end = read_instant(asked.since, zone, "--from"), read_instant(asked.until, zone, "--to")
    if begin > end:
        raise UsageError("--to is before --from: a backfill has the times from --from on that come before --to")
    scope, now_ms = BackfillScope(asked.only), session.store.now()
    return session.read(lambda reading: plan_backfill(reading, asked.job, begin, end, scope, now_ms))


def _play(session: StoreSession, asked: BackfillRequest, progress: _Progress) -> bool:
    """Keep so many open until all have ended; False where Ctrl-C or the end of the daemon broke it off."""
    from chronex.cli.store_session import noting_ctrl_c

    with noting_ctrl_c() as stop:
        while progress.waiting or progress.open:
            seen = session.store.wait(-1, 0)
            has_daemon = session.has_daemon  # read first, so that what a daemon did before it ended is seen below
            if stop.is_set():
                _cancel(session, progress)
                return False
            _step(session, asked, progress)
            _show(progress.line)
            if not has_daemon:
                return False
            if progress.open:
                session.store.wait(seen, _POLL_S)
    return True


def _step(session: StoreSession, asked: BackfillRequest, progress: _Progress) -> None:
    from chronex.engine.commands.backfill import fill, still_open

    progress.open, ended = session.read(lambda reading: still_open(reading, progress.open))
    progress.ended += ended
    count = asked.at_once - len(progress.open)
    begun, progress.waiting = progress.waiting[:count], progress.waiting[count:]

    def begin(records: Records) -> list[Occurrence]:
        return [fill(records, asked.job, one, session.actor, asked.reason).occurrence for one in begun]

    if begun:
        progress.open += session.change(begin)


def _cancel(session: StoreSession, progress: _Progress) -> None:
    """All that this backfill has open, in one transaction."""
    from chronex.engine.commands import cancel
    from chronex.engine.commands.backfill import still_open

    progress.open, ended = session.read(lambda reading: still_open(reading, progress.open))
    progress.ended += ended
    session.change(
        lambda records: [cancel(records, one, session.actor, "backfill canceled") for one in progress.open],
        use_reserve=True,
    )


def _show(line: str) -> None:
    """One line that is written over, for people only."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{line}")
        sys.stderr.flush()


def _print_plan(plan: BackfillPlan, form: str) -> None:
    from chronex.timing.zones import load_zone
    from chronex.views.wording import column

    if form == "json":
        print_json(_json(plan, ()))
        return
    zone = load_zone(plan.job.timezone)
    print_lines(f"{column(instant, zone)}  would run" for instant in plan.instants)
    out(f"{len(plan.instants)} to run, {plan.left_out} left out: done already, or open")
    if plan.is_cut:
        out("what is to come runs at its time, and is no part of a backfill")


def _print_end(plan: BackfillPlan, progress: _Progress, form: str, *, is_done: bool) -> None:
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    if form == "json":
        print_json(_json(plan, progress.ended))
    else:
        out(terminal_safe(f"{plan.job.shown_name}: {progress.line}"))
    if not is_done:
        left = len(plan.instants) - len(progress.ended)
        err(f"broken off with {left} left; the same command goes on where it stopped")


def _json(plan: BackfillPlan, ended: Sequence[Occurrence]) -> dict[str, Any]:
    return {
        "job": plan.job.id,
        "planned": [timed("scheduled", instant) for instant in plan.instants],
        "left_out": plan.left_out,
        "ended": [{"id": one.id, **timed("scheduled", one.scheduled_ms), "state": one.state.value} for one in ended],
    }
