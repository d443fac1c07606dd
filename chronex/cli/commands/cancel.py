"""`chronex cancel`: stop what runs, withdraw what waits."""

from __future__ import annotations

from typing import Annotated

import typer

from chronex.cli.options import Form, ReasonText, StorePath, Wait, check_format
from chronex.cli.output import print_result


def cancel(
    run: Annotated[
        str,
        typer.Argument(
            help="The id of an occurrence, run or attempt, a beginning of it, or JOB@TIME.", metavar="RUN"
        ),
    ],
    reason: ReasonText = "",
    wait: Wait = False,
    store: StorePath = None,
    form: Form = "text",
) -> int:
    """Cancel an occurrence that runs or waits: TERM, then KILL after its grace period.

    Example: chronex cancel occ_1f3a9c2e
    """
    check_format(form)
    return run_cancel(run, reason, wait=wait, store=store, form=form)


def run_cancel(named: str, reason: str, *, wait: bool, store: str | None, form: str) -> int:
    """0: it is over, or its daemon was asked to stop it. An occurrence that had ended raises NotPossibleError."""
    from chronex.cli.record_output import occurrence_json
    from chronex.cli.store_session import open_session
    from chronex.engine import commands
    from chronex.model.states import is_final

    with open_session(store) as session:
        done = session.change(
            lambda records: commands.cancel(records, named, session.actor, reason), use_reserve=True
        )  # fmt: skip
        found = done.occurrence
        if wait and not done.is_over and session.has_daemon:
            found = session.follow(found, to_the_end=True)
        is_over = is_final(found.state)
        word = found.state.value if is_over else "stopping"
        if not is_over:
            session.warn_without_daemon("the next one stops it")
        print_result(
            form,
            lambda: {**occurrence_json(found), "stopping": not is_over},
            lambda: [f"{word:10} {found.job}  {found.id}"],
        )
        return 0
