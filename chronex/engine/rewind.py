"""The clock was set back: jobs look at their schedule from the new time on."""

from __future__ import annotations

from msgspec.structs import replace

from chronex.engine.custom import is_known
from chronex.engine.ledger import Ledger
from chronex.engine.planning import next_look
from chronex.engine.ports import Store, Transaction
from chronex.engine.schedule import schedule_of

_MOST_JOBS = 1_000_000


def rewind(store: Store, now_ms: int) -> int:
    """Cursors that lie ahead of now come back to now; how many did.

    A clock that stood a year ahead and is put right must not silence every job for a year. Nothing runs twice for
    it: an instant that has its record is never decided again.
    """

    def write(tx: Transaction) -> int:
        ledger = Ledger(tx, now_ms)
        ahead = [job for job in ledger.jobs(limit=_MOST_JOBS) if job.cursor_ms is not None and job.cursor_ms > now_ms]
        for job in ahead:
            if is_known(job.dialect, job.schedule):
                back = replace(job, cursor_ms=now_ms)
                ledger.put(replace(back, next_ms=next_look(back, schedule_of(back), now_ms)))
        return len(ahead)

    return store.update(write)
