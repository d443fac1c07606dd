"""What lets a running daemon be watched from outside, for as long as it runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from chronex.daemon.loop import Daemon
from chronex.daemon.metrics_server import Metrics, MetricsServer
from chronex.jobfile import SchedulerSettings


@asynccontextmanager
async def watched(daemon: Daemon, settings: SchedulerSettings) -> AsyncIterator[None]:
    """Metrics where an address is given. One that cannot be had is told, and is no reason not to run."""
    if settings.metrics is None:
        yield
        return
    metrics = Metrics(daemon.store, daemon.clock)
    server = MetricsServer(metrics)
    try:
        await server.open(settings.metrics.host, settings.metrics.port)
    except OSError as error:
        reason = error.strerror or str(error)
        daemon.journal("MetricsUnavailable", {"address": str(settings.metrics), "reason": reason})
    else:
        daemon.chores.add(metrics.chore())
        daemon.tell("metrics served", {"address": str(settings.metrics)})
    try:
        yield
    finally:
        await server.close()
