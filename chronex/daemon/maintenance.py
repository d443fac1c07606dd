"""What a daemon does for its store beside scheduling: retention, notices, free space; the same in a program.

Several nodes may work on one store. The node that has worked the longest does it for all, with its own settings;
when it is gone, or gives no sign of life, the next one does. That saves work, and nothing depends on it: for a while
two may believe to be that node, so each step may be done twice, and a notice is claimed before it is sent.
"""

from __future__ import annotations

from collections.abc import Sequence

from platformdirs import user_state_path

from chronex.channels.notice_message import Sender
from chronex.daemon.channel_sender import ChannelSender
from chronex.daemon.log_sender import LogSender
from chronex.daemon.loop import HEARTBEAT_S, Daemon
from chronex.daemon.notify import Notifier
from chronex.daemon.periodic_tasks import PeriodicTask
from chronex.daemon.retention import MeasuredStore, Retention, free_space_task
from chronex.daemon.sign_of_life import heartbeat_task
from chronex.engine.membership import is_here
from chronex.jobfile import SchedulerSettings
from chronex.model.records import Node
from chronex.run import LogDirectory, is_alive
from chronex.storage.records import Reading

_SILENT_MS = round(3 * HEARTBEAT_S * 1000)


def add_maintenance(daemon: Daemon, logs: LogDirectory, settings: SchedulerSettings) -> None:
    """Give the daemon its periodic tasks of maintenance, and let changed settings reach them."""
    retention = Retention(daemon.store, logs, settings, daemon.clock, daemon.age_ms)
    channels = ChannelSender(daemon.store, daemon.executor.run_context, _sender(daemon), settings.smtp, daemon.faults)
    sender_id = daemon.node.id if daemon.registration.is_shared else ""
    notifier = Notifier(daemon.store, daemon.executor.run_context, sender_id, channels)
    tasks = [notifier.periodic_task(), retention.periodic_task()]
    if isinstance(daemon.store, MeasuredStore):
        tasks.append(free_space_task(daemon.store, daemon.journal))
    for task in tasks:
        daemon.periodic.add(_by_one_node(daemon, task))
    if daemon.registration.is_shared:
        sender = LogSender(daemon.store, logs, daemon.clock, daemon.node.host_id, settings.logs.shared_bytes)
        daemon.executor.excerpt_of = sender.excerpt_of
        daemon.periodic.add(sender.periodic_task())
        daemon.periodic.add(retention.own_logs_task())
    daemon.closers.append(channels.stop)
    daemon.settings_listeners += [retention.use, channels.use]
    if settings.heartbeat is not None:
        daemon.periodic.add(heartbeat_task(daemon, settings.heartbeat))


def _sender(daemon: Daemon) -> Sender:
    """This node, and its store as a command has to name it."""
    named = daemon.executor.run_context.environment.get("CHRONEX_STORE", "")
    usual = str(user_state_path("chronex", appauthor=False) / "store")
    node = daemon.node
    return Sender(node.host, node.id, node.host_id, "" if named == usual else named)


def _by_one_node(daemon: Daemon, task: PeriodicTask) -> PeriodicTask:
    async def do() -> None:
        now_ms = daemon.clock.wall_ms()
        nodes = daemon.registration.last_seen or await daemon.store.view_async(lambda tx: Reading(tx).nodes())
        if is_maintainer(nodes, daemon.node.id, now_ms):
            await task.do()

    return PeriodicTask(task.name, task.every_s, do)


def is_maintainer(nodes: Sequence[Node], node: str, now_ms: int) -> bool:
    """No other node works on the store that began before this one."""
    own = next((one for one in nodes if one.id == node), None)
    if own is None:
        return False
    return not any(
        (other.started_ms, other.id) < (own.started_ms, own.id)
        and other.stopped_ms is None
        and other.lost_ms is None
        and now_ms - other.seen_ms < (other.lease_ms or _SILENT_MS)
        and (not is_here(other, own) or is_alive(other.process))
        for other in nodes
    )
