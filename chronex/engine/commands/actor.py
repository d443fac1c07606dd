"""Who asked for it, through what, and from which machine: what the journal says of every act of a person."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from typing import Any, NamedTuple

from chronex.model.event import Event
from chronex.model.reasons import free_text
from chronex.storage.journal import append
from chronex.storage.records import Records


class Asker(NamedTuple):
    """`via` is cli, tui or api."""

    who: str
    via: str
    host: str

    def __str__(self) -> str:
        return f"{self.who}@{self.host} ({self.via})"

    @classmethod
    def of_this_process(cls, via: str) -> Asker:
        """The user of this process by the system's word, not by variables that anybody may set."""
        return cls(_user(), via, platform.node() or "unknown")


def _user() -> str:
    number = os.getuid() if hasattr(os, "getuid") else -1
    with suppress(ImportError, KeyError):
        import pwd

        return pwd.getpwuid(number).pw_name
    return f"uid {number}"


def tell(
    records: Records,
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
        at_ms=records.now_ms,
        job=job,
        nominal_ms=nominal_ms,
        task=task,
        reason=free_text(reason),
        actor=str(asker),
        data=data or {},
    )
    append(records.tx, event)
