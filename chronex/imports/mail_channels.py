"""MAILTO of a crontab as channels: who was sent what commands printed is sent it again, and told of failures."""

from __future__ import annotations

import re
from typing import Any

from chronex.imports.import_result import JobNames
from chronex.jobfile.notify_table import MOST_ADDRESSES, is_mail_address

# What cron sends a mail for, and what it never told: a command that fails and prints nothing.
_EVENTS = ("output", "failed")
NOTE = "mail has the last lines of the output, where cron sent all; a failure is told even where nothing was printed"


class MailChannels:
    """The channels of an import, one for each list of addresses."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[str, Any]] = {}
        self._names: dict[tuple[str, ...], str] = {}
        self._taken = JobNames()

    def notify(self, written: str) -> dict[str, Any] | None:
        """What stands in a job below `MAILTO=written`; None where no mail can be sent to that."""
        addresses = tuple(dict.fromkeys(word for word in re.split(r"[,\s]+", written) if word))
        if not 0 < len(addresses) <= MOST_ADDRESSES or not all(map(is_mail_address, addresses)):
            return None
        if addresses not in self._names:
            name = self._names[addresses] = self._taken.give(addresses[0].partition("@")[0])
            self.tables[name] = {"mail": addresses[0] if len(addresses) == 1 else list(addresses)}
        return {"to": [self._names[addresses]], "on": list(_EVENTS)}
