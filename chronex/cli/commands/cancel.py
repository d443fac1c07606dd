"""`chronex cancel`: stop what runs, withdraw what waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from chronex.cli.options import Form, ReasonText, StorePath, Wait, check_format
from chronex.cli.output import print_result

if TYPE_CHECKING:
    from chronex.cli.store_session import StoreSession
    from chronex.engine.commands import Canceled
    from chronex.model.occurrence import Occurrence


def cancel(
    run: Annotated[
        str,
        typer.Argument(
            help="The id of an occurrence, run or attempt, a beginning of it, JOB@TIME; or a job: all of it.",
            metavar="RUN",
        ),
    ],
    reason: ReasonText = "",
    wait: Wait = False,
    store: StorePath = None,
    form: Form = "text",
) -> int:
    """Cancel an occurrence that runs or waits, or all of a job: TERM, then KILL after the grace period.

    Example: chronex cancel occ_1f3a9c2e
    """
    check_format(form)
    return run_cancel(run, reason, wait=wait, store=store, form=form)


def run_cancel(named: str, reason: str, *, wait: bool, store: str | None, form: str) -> int:
    """0: it is over, or its daemon was asked to stop it. An occurrence that had ended raises NotPossibleError."""
    from chronex.cli.store_session import open_session
    from chronex.engine import commands
    from chronex.engine.commands.names import is_id, is_job
    from chronex.model.states import is_final

    with open_session(store) as session:
        of_job = session.read(lambda reading: is_job(reading, named)) or not is_id(named)
        if of_job:
            done = session.change(
                lambda records: commands.cancel_job(records, named, session.actor, reason), use_reserve=True
            )
        else:
            one = session.change(
                lambda records: commands.cancel(records, named, session.actor, reason), use_reserve=True
            )
            done = [one]
        found = [_followed(session, one, wait=wait) for one in done]
        if not all(is_final(one.state) for one in found):
            session.warn_without_daemon("the next one stops it")
        print_result(
            form,
            lambda: [_json(one) for one in found] if of_job else _json(found[0]),
            lambda: [f"{_word(one):10} {one.job}  {one.id}" for one in found],
        )
        return 0


def _followed(session: StoreSession, done: Canceled, *, wait: bool) -> Occurrence:
    if wait and not done.is_over and session.has_daemon:
        return session.follow(done.occurrence, to_the_end=True)
    return done.occurrence


def _word(occurrence: Occurrence) -> str:
    from chronex.model.states import is_final

    return occurrence.state.value if is_final(occurrence.state) else "stopping"


def _json(occurrence: Occurrence) -> dict[str, Any]:
    from chronex.cli.record_output import occurrence_json
    from chronex.model.states import is_final

    return {**occurrence_json(occurrence), "stopping": not is_final(occurrence.state)}
