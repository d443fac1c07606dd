"""The notify table: who is told of failures, of runs that are late, and of what is well again."""

from __future__ import annotations

from typing import Any

from chronex.jobfile.commands import command
from chronex.jobfile.entries import Entry, Reader, read_table
from chronex.jobfile.values import whole_number, yes_or_no
from chronex.model.policies import NotifyPolicy

NOTIFY: dict[str, Reader] = {
    "run": command,
    "after_failures": whole_number(1, 1_000),
    "on_recovery": yes_or_no,
}


def notify(entry: Entry) -> dict[str, Any]:
    """A table, or just the command."""
    if isinstance(entry.value, str | list):
        return {"run": command(entry)}
    if not isinstance(entry.value, dict):
        entry.refuse_type("a table or a command", f'{entry.label} = {{ run = ["notify-send", "chronex"] }}')
    return read_table(entry, NOTIFY)


def notify_policy(entry: Entry | None, given: dict[str, Any]) -> NotifyPolicy | None:
    """The policy of these keys; one without a command is refused where it is written."""
    if "run" in given:
        return NotifyPolicy(**given)
    if entry is not None and isinstance(entry.value, dict) and "run" not in entry.value:
        entry.report("notify needs a command", 'write notify = { run = ["notify-send", "chronex"] }', "J012")
    return None
