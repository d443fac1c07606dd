"""The [scheduler] table: what holds for the daemon and not for one job."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Any, NamedTuple

from msgspec import Struct

from chronex.jobfile.entries import Entry, Reader, read_table
from chronex.jobfile.group_tables import catch_up
from chronex.jobfile.notify_table import HeartbeatSettings, SmtpSettings, heartbeat, smtp
from chronex.jobfile.otlp_table import OtlpSettings, otlp
from chronex.jobfile.values import (
    duration,
    one_of,
    positive_duration,
    size,
    text,
    text_table,
    texts,
    whole_number,
    yes_or_no,
    zone,
)
from chronex.model.groups import CatchUpPace
from chronex.model.policies import StopMode
from chronex.text.durations import UNITS
from chronex.text.terminal import quoted

_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+):([0-9]{1,5})", re.ASCII)


MOST_SHARED = 1 << 20
UPDATE_POLICIES = ("immediate", "graceful", "windowed")


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class HistorySettings(Struct, frozen=True):
    """How much of each job's past is kept: what is younger, and of that the latest."""

    max_age_ms: int = 90 * UNITS["d"]
    max_count: int = 10_000
    max_events: int = 200_000


class LogSettings(Struct, frozen=True):
    """How much output is kept: per job by age and count of attempts, per attempt by bytes."""

    max_age_ms: int = 30 * UNITS["d"]
    max_count: int = 1_000
    max_bytes: int = 10 << 20
    # Where machines share the store: how much of each log everybody can see; 0 for nothing.
    shared_bytes: int = 64 << 10


class SchedulerSettings(Struct, frozen=True):
    """`timezone` is where schedules without a zone of their own are read; no `metrics`, no metrics server."""

    timezone: str = "UTC"
    max_concurrent_jobs: int = 50
    grace_ms: int = 30_000
    on_stop: str = StopMode.LEAVE.value
    # What this node says of itself, for the `node_labels` of jobs.
    labels: dict[str, str] = {}
    reaper_interval_ms: int = 60_000
    metrics: Address | None = None
    metrics_public: bool = False
    history: HistorySettings = HistorySettings()
    logs: LogSettings = LogSettings()
    # When an edit of a schedule takes effect, where the one who applies it does not say.
    update_policy: str = UPDATE_POLICIES[0]
    # Whether a job file that was saved is applied by itself.
    watch: bool = False
    # Names of calendars during which nothing starts; the jobs have their days.
    blackout: tuple[str, ...] = ()
    # How fast missed runs are made up for.
    catch_up: CatchUpPace = CatchUpPace()
    # Who takes the mail of notices, and what is asked again and again as long as this scheduler works.
    smtp: SmtpSettings | None = None
    heartbeat: HeartbeatSettings | None = None
    # The collector that is told of every run as a span.
    otlp: OtlpSettings | None = None


def _address(entry: Entry) -> Address:
    value = text(entry)
    match = _ADDRESS.fullmatch(value)
    if match is None or not 0 < int(match[2]) < 65_536:
        hint = f'write {entry.label} = "127.0.0.1:9464"'
        entry.refuse(f"{quoted(value)} is not an address and port", hint, "J022")
    return Address(match[1].strip("[]"), int(match[2]))


def _refuse_public(entry: Entry, given: dict[str, Any]) -> None:
    """Metrics show the names of jobs and their failures: other machines may read them only with metrics_public."""
    address = given.get("metrics")
    if address is not None and not is_loopback(address.host) and not given.get("metrics_public"):
        hint = 'write metrics = "127.0.0.1:9464", or add metrics_public = true'
        entry.child("metrics").report(f"{quoted(address.host)} can be reached by other machines", hint, "J024")


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _history(entry: Entry) -> HistorySettings:
    given = read_table(entry, HISTORY, entry.assignment('{ max_age = "90d" }'))
    return HistorySettings(**{_FIELDS.get(key, key): value for key, value in given.items()})


def _logs(entry: Entry) -> LogSettings:
    given = read_table(entry, LOGS, entry.assignment('{ max_age = "30d" }'))
    return LogSettings(**{_FIELDS.get(key, key): value for key, value in given.items()})


def shared_size(entry: Entry) -> int:
    """A size up to 1 MiB, because it lies in the database for every attempt; 0 for nothing at all."""
    if entry.value in (0, "0"):
        return 0
    found = size(entry)
    if found > MOST_SHARED:
        hint = f'write at most 1MiB, such as {entry.label} = "64KiB"; logs --whole fetches all of a log'
        entry.refuse(f"{entry.label} cannot be {quoted(str(entry.value)[:100])}", hint, "J014")
    return found


HISTORY: dict[str, Reader] = {
    "max_age": positive_duration,
    "max_count": whole_number(1, 10_000_000),
    "max_events": whole_number(1_000, 100_000_000),
}
LOGS: dict[str, Reader] = {
    "max_age": positive_duration,
    "max_count": whole_number(1, 1_000_000),
    "max_bytes": size,
    "shared": shared_size,
}
SCHEDULER: dict[str, Reader] = {
    "timezone": zone,
    "max_concurrent_jobs": whole_number(1, 10_000),
    "grace_period": duration,
    "reaper_interval": positive_duration,
    "metrics": _address,
    "metrics_public": yes_or_no,
    "history": _history,
    "logs": _logs,
    "update_policy": one_of(*UPDATE_POLICIES),
    "watch": yes_or_no,
    "on_stop": one_of(*StopMode),
    "labels": text_table,
    "blackout": texts,
    "catch_up": catch_up,
    "smtp": smtp,
    "heartbeat": heartbeat,
    "otlp": otlp,
}
_FIELDS = {
    "grace_period": "grace_ms",
    "reaper_interval": "reaper_interval_ms",
    "max_age": "max_age_ms",
    "shared": "shared_bytes",
}


def scheduler(entry: Entry) -> SchedulerSettings:
    given = read_table(entry, SCHEDULER, "[scheduler] and its keys below it")
    _refuse_public(entry, given)
    settings = {_FIELDS.get(key, key): value for key, value in given.items()}
    return SchedulerSettings(**{"timezone": entry.sheet.host_zone, **settings})
