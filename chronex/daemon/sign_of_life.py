"""Signs of life: systemd and an address outside are told that this scheduler works, so that its silence is heard."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Mapping

from chronex.channels.delivery import DeliveryMeans, on_thread, resolved
from chronex.channels.web_request import Reply, ask
from chronex.daemon.loop import Daemon
from chronex.daemon.periodic_tasks import PeriodicTask
from chronex.jobfile.notify_table import HeartbeatSettings
from chronex.model.reasons import TroubleCode
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


# Tells systemd (Type=notify) that the daemon is ready, lives, and stops. Elsewhere nobody listens.

SOCKET_VARIABLE, WATCHDOG_VARIABLE, WATCHDOG_PID_VARIABLE = "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"

READY = "READY=1"
STOPPING = "STOPPING=1"
ALIVE = "WATCHDOG=1"
# It is not ready yet, and is not to be given up for the next minute.
STARTS_SLOWLY = "EXTEND_TIMEOUT_USEC=60000000"
# How often a manager is told that we live where it has no watchdog; it kills what stops for longer than it was told.
_STOPS_ON_S = 20.0


class ServiceNotify:
    """What the service manager asked to be told, by the environment it gave us."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._address = environ.get(SOCKET_VARIABLE, "")
        self.alive_every_s = (_watchdog_s(environ) / 3 or _STOPS_ON_S) if self._address else 0.0

    def send_alive(self, *, is_stopping: bool) -> None:
        """Also while it drains, or waits for what it cancels: a manager allows for little more than a minute."""
        longer = f"\n{STOPPING}\nEXTEND_TIMEOUT_USEC={round(3_000_000 * self.alive_every_s)}" if is_stopping else ""
        self.send(ALIVE + longer)

    def send(self, state: str) -> None:
        """One datagram. A manager that does not listen must not disturb the daemon."""
        if not self._address.startswith(("/", "@")):
            return
        address = "\0" + self._address[1:] if self._address[0] == "@" else self._address
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            out.setblocking(False)
            out.sendto(state.encode(), address)


def _watchdog_s(environ: Mapping[str, str]) -> float:
    """How long the manager waits for a sign of life before it kills the daemon; 0 where it does not."""
    if environ.get(WATCHDOG_PID_VARIABLE, str(os.getpid())) != str(os.getpid()):
        return 0.0
    try:
        return max(0.0, int(environ.get(WATCHDOG_VARIABLE, "0")) / 1_000_000)
    except ValueError:
        return 0.0
