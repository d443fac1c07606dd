"""cancel: what waits ends at once; what runs is stopped by the daemon that runs it, or by the next one."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from chronex.engine.commands.actor import Asker, tell
from chronex.engine.commands.names import occurrence_named
from chronex.engine.lifecycle import Progress
from chronex.errors import NotPossibleError
from chronex.model.event import Event
from chronex.model.occurrence import Occurrence
from chronex.model.reasons import Reason, ReasonCode
from chronex.model.states import is_final
from chronex.storage.journal import append
from chronex.storage.records import Records


class Canceled(NamedTuple):
    """`is_over`: nothing ran, so it has ended; else its owner was asked to stop it."""

    occurrence: Occurrence
    is_over: bool
    reason: Reason


def cancel(records: Records, run_or_occurrence_id: str | Occurrence, asker: Asker, reason: str = "") -> Canceled:
    """Cancel an occurrence as a whole; the id of a run or an attempt names the occurrence it belongs to."""
    named = run_or_occurrence_id
    found = named if isinstance(named, Occurrence) else occurrence_named(records, named)
    found = records.occurrence(found.job, found.nominal_ms) or found
    if is_final(found.state):
        raise NotPossibleError(f"{found.id} has ended already: {found.state}")
    canceled = Reason(ReasonCode.CANCELED, reason, str(asker))
    tell(records, "CancelRequested", asker, found.job, found.nominal_ms, reason)
    events: list[Event] = []
    progress = Progress(records, "", Random(0), [], events)  # noqa: S311  nothing is drawn
    is_over = progress.cancel(found, canceled)
    append(records.tx, *events)
    return Canceled(records.occurrence(found.job, found.nominal_ms) or found, is_over, canceled)
