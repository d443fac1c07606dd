"""Readers of the policy tables, and what a more specific level makes of an inherited policy."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from chronex.jobfile.entries import Entry, Reader, read_table
from chronex.jobfile.task_environment import command
from chronex.jobfile.values import choice_of, duration, number, one_of, positive_duration, whole_number, yes_or_no
from chronex.model.policies import DstSetting, NotifyPolicy, RecoveryPolicy, RecoveryStrategy, RetryPolicy

UNLIMITED = "unlimited"
MAX_RETRIES = 1_000_000
MAX_BACKOFF = 1_000
MAX_RECOVERED = 1_000_000

Given = dict[str, Any]


def _retry_count(entry: Entry) -> int | None:
    if entry.value == UNLIMITED:
        return None
    if isinstance(entry.value, str):
        entry.refuse_type(f'a whole number or "{UNLIMITED}"', entry.assignment("3"))
    return whole_number(0, MAX_RETRIES)(entry)


RETRY: dict[str, Reader] = {
    "max": _retry_count,
    "interval": duration,
    "backoff": number(1, MAX_BACKOFF),
    "max_interval": positive_duration,
    "jitter": number(0, 1),
}
RECOVERY: dict[str, Reader] = {
    "strategy": choice_of(RecoveryStrategy),
    "max_count": whole_number(1, MAX_RECOVERED),
    "max_age": positive_duration,
}
DST: dict[str, Reader] = {
    "gap": one_of("end", "skip"),
    "overlap": one_of("first", "both", "by-kind"),
}
_FIELDS = {"interval": "interval_ms", "max_interval": "max_interval_ms", "max_age": "max_age_ms"}


def retry(entry: Entry) -> Given:
    """A table, or just the number of retries."""
    if isinstance(entry.value, int) and not isinstance(entry.value, bool):
        return {"max": _retry_count(entry)}
    if entry.value == UNLIMITED:
        return {"max": None}
    example = entry.assignment('{ max = 3, interval = "30s" }')
    if not isinstance(entry.value, dict):
        entry.refuse_type("a table or a number of retries", example)
    return _fields(read_table(entry, RETRY))


def merged_retry(base: RetryPolicy, given: Given, entry: Entry) -> RetryPolicy:
    """`base` with the given keys changed; `entry` is the retry that gave them."""
    merged = replace(base, **given)
    if merged.max_interval_ms is not None and merged.max_interval_ms < merged.interval_ms:
        message = "max_interval is shorter than interval, so every pause is max_interval"
        entry.warn(message, "make interval shorter or max_interval longer", "J101", entry.key_span)
    return merged


def recovery(entry: Entry) -> Given:
    """A table, or just the strategy."""
    if isinstance(entry.value, str):
        return {"strategy": choice_of(RecoveryStrategy)(entry)}
    if not isinstance(entry.value, dict):
        entry.refuse_type("a strategy or a table", entry.assignment('"execute_last"'))
    return _fields(read_table(entry, RECOVERY))


def merged_recovery(base: RecoveryPolicy, given: Given, entry: Entry) -> RecoveryPolicy:
    """A strategy that is named starts afresh; bounds alone tighten the inherited one."""
    merged = RecoveryPolicy(**given) if "strategy" in given else replace(base, **given)
    has_bounds = merged.max_count is not None or merged.max_age_ms is not None
    refused = isinstance(entry.value, dict) and len(given) < len(entry.value)  # a bound may be there, but bad
    if merged.strategy is RecoveryStrategy.BOUNDED and not has_bounds and not refused:
        hint = f'write {entry.label} = {{ strategy = "bounded", max_count = 10 }}, or with max_age = "1d"'
        entry.report("bounded needs max_count or max_age", hint, "J012")
    if merged.strategy is not RecoveryStrategy.BOUNDED and has_bounds:
        hint = 'write strategy = "bounded", or remove them'
        entry.report(f"max_count and max_age do not go with {merged.strategy}", hint, "J024")
    return merged


def dst(entry: Entry) -> Given:
    return read_table(entry, DST, entry.assignment('{ gap = "skip", overlap = "first" }'))


def dst_policy(given: Given, dialect: str) -> DstSetting:
    """What is not given is the dialect's own rule."""
    own = DstSetting(gap="skip", overlap="first") if dialect == "posix" else DstSetting()
    return replace(own, **given)


def _fields(given: Given) -> Given:
    return {_FIELDS.get(key, key): value for key, value in given.items()}


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
        entry.refuse_type("a table or a command", entry.assignment('{ run = ["notify-send", "chronex"] }'))
    return read_table(entry, NOTIFY)


def notify_policy(entry: Entry | None, given: dict[str, Any]) -> NotifyPolicy | None:
    """The policy of these keys; one without a command is refused where it is written."""
    if "run" in given:
        return NotifyPolicy(**given)
    if entry is not None and isinstance(entry.value, dict) and "run" not in entry.value:
        entry.report("notify needs a command", 'write notify = { run = ["notify-send", "chronex"] }', "J012")
    return None
