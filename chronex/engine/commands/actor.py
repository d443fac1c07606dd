"""Who gave a command, through what, and on which machine: the journal records it with every command."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from typing import Any, NamedTuple

from chronex.model.event import Event
from chronex.model.reasons import free_text
from chronex.storage.journal import append
from chronex.storage.records import Records


class Actor(NamedTuple):
    """`via` is cli, tui or api."""

    who: str
    via: str
    host: str

    def __str__(self) -> str:
        return f"{self.who}@{self.host} ({self.via})"

    @classmethod
    def of_this_process(cls, via: str) -> Actor:
        """The user of this process as the system knows it; environment variables can be set to anything."""
        return cls(_user(), via, platform.node() or "unknown")


def _user() -> str:
    number = os.getuid() if hasattr(os, "getuid") else -1
    with suppress(ImportError, KeyError):
        import pwd

        return pwd.getpwuid(number).pw_name
    return f"uid {number}"


def record_command(
    records: Records,
    name: str,
    actor: Actor,
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
        actor=str(actor),
        data=data or {},
    )
    append(records.tx, event)
