"""Asks an address again and again as long as this scheduler works, so that somebody else hears its silence."""

from __future__ import annotations

from chronex.channels.delivery import DeliveryMeans, on_thread, resolved
from chronex.channels.web_request import Reply, ask
from chronex.daemon.loop import Daemon
from chronex.daemon.periodic_tasks import PeriodicTask
from chronex.jobfile.notify_table import HeartbeatSettings
from chronex.model.trouble_codes import TroubleCode
from chronex.run.request import NotStarted

_WITHIN_S = 10.0


def heartbeat_task(daemon: Daemon, settings: HeartbeatSettings) -> PeriodicTask:
    """One request at a time. A scheduler that can record nothing starts nothing either, and keeps silent."""
    means = DeliveryMeans(daemon.executor.run_context, daemon.node.host)

    async def beat() -> None:
        if not daemon.is_able_to_start:
            return
        answer = await on_thread(lambda: _asked(settings.url, means))
        if answer.problem:
            daemon.troubles.begin(TroubleCode.HEARTBEAT_FAILS, answer.problem)
        else:
            daemon.troubles.end(TroubleCode.HEARTBEAT_FAILS)

    return PeriodicTask("heartbeat address", settings.every_ms / 1000, beat)


def _asked(written: str, means: DeliveryMeans) -> Reply:
    url = resolved("heartbeat", written, means)
    return Reply(url.error) if isinstance(url, NotStarted) else ask("GET", url, within_s=_WITHIN_S)
