"""Every act is an event with its actor."""

from __future__ import annotations

from typing import Any

from chronex.engine.commands.asker import Asker
from chronex.engine.journal import append
from chronex.engine.ledger import Ledger
from chronex.model.records import Event


def tell(
    ledger: Ledger,
    name: str,
    asker: Asker,
    job: str,
    nominal_ms: int | None = None,
    reason: str = "",
    *,
    task: str = "",
    data: dict[str, Any] | None = None,
) -> None:
    event = Event(
        name=name,
        at_ms=ledger.now_ms,
        job=job,
        nominal_ms=nominal_ms,
        task=task,
        reason=reason,
        actor=str(asker),
        data=data or {},
    )
    append(ledger.tx, event)
