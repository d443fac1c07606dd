"""Sends what waits in the outbox of channels: each channel by itself and in order, beside the schedule."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from msgspec.structs import replace

from chronex.channels.delivery import DeliveryMeans, deliver
from chronex.channels.notice_message import Composed, NoticeMessage, Sender, compose, last_lines
from chronex.channels.web_request import Reply
from chronex.clock import Clock
from chronex.daemon.fault_log import Faults
from chronex.daemon.log_handlers import log_event
from chronex.engine import outbox
from chronex.errors import ChronexError, StoreError
from chronex.failpoints import fail_point
from chronex.jobfile import SchedulerSettings
from chronex.jobfile.notify_table import SmtpSettings
from chronex.model.channels import Channel, ChannelKind
from chronex.model.job import Job
from chronex.model.records import Notice
from chronex.run import LogDirectory
from chronex.run.attempt_log import DEFAULT_LIMIT, tail_of
from chronex.run.spawn import RunContext
from chronex.storage.ports import ReadTransaction, Store, Transaction
from chronex.storage.records import Reading
from chronex.storage.scopes import of_channel

log = logging.getLogger(__name__)

AT_ONCE = 4
# A delivery has 20 s of its own; a name that cannot be looked up may take longer, and then its thread is left alone.
LONGEST_S = 28.0
# How much of the end of a log is read.
_TAIL_BYTES = 16_000
MOST_IN_A_ROW = 50
_MOST_REMEMBERED = 1_000


class ChannelSender:
    """Starts a delivery for every channel that has something to send. AT_ONCE at a time, one for a channel."""

    def __init__(
        self,
        store: Store,
        run_context: RunContext,
        sender: Sender,
        smtp: SmtpSettings | None = None,
        faults: Faults | None = None,
    ) -> None:
        self._store, self._context, self._sender = store, run_context, sender
        self._faults = faults or Faults()
        self._clock: Clock = run_context.clock
        self.smtp = smtp
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._turns: dict[str, None] = {}  # channels in the order in which they had their last turn
        self._none_at: int | None = None  # the change counter of the store with which no notice waited

    def use(self, settings: SchedulerSettings) -> None:
        """The job file has changed the settings."""
        self.smtp = settings.smtp

    async def start_due(self) -> None:
        """Begin with what is due; does not wait for it."""
        free = AT_ONCE - len(self._busy)
        if free <= 0:
            return
        now_ms, counter = self._clock.wall_ms(), self._store.wait(-1, 0)
        if counter == self._none_at:
            return
        due, is_any_left = await self._store.view_async(
            lambda tx: outbox.channels_due(Reading(tx), self._sender.node, now_ms, _gone(tx))
        )
        self._none_at = None if is_any_left else counter
        turns = {name: number for number, name in enumerate(self._turns)}
        # By their names alone those in front, which always have something new, would leave the last ones no turn.
        due.sort(key=lambda name: turns.get(name, -1))
        for channel in [name for name in due if name not in self._busy][:free]:
            self._begin(channel, self._drain(channel))

    def _begin(self, channel: str, work: Coroutine[Any, Any, None]) -> None:
        self._turns.pop(channel, None)
        self._turns[channel] = None
        if len(self._turns) > _MOST_REMEMBERED:
            del self._turns[next(iter(self._turns))]
        task = self._faults.watched(work, f"the deliveries to {channel}")
        self._busy[channel] = task
        task.add_done_callback(lambda _done: self._busy.pop(channel, None))

    async def all_sent(self) -> None:
        """Until what was begun has ended."""
        while self._busy:
            await asyncio.wait(list(self._busy.values()))

    async def stop(self) -> None:
        """Leave what is under way: it is sent again by the next one, unless it was recorded."""
        tasks = list(self._busy.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _drain(self, channel: str) -> None:
        """One notice after the other, until none is left or one could not be delivered."""
        try:
            for _ in range(MOST_IN_A_ROW):
                notice = await self._claim(channel)
                if notice is None or not await self._send(notice):
                    return
        except StoreError as error:
            # What was delivered and not recorded is delivered again: at least once.
            log_event(log, "delivery not recorded", {"channel": channel, "reason": str(error)}, logging.WARNING)

    async def _claim(self, channel: str) -> Notice | None:
        now_ms, node = self._clock.wall_ms(), self._sender.node

        def write(tx: Transaction) -> Notice | None:
            return outbox.claim(channel, node, now_ms, _gone(tx))(tx)

        return await self._store.update_async(write, scope=of_channel(channel))

    async def _send(self, notice: Notice) -> bool:
        """True where the channel has taken it."""
        found, job = await self._store.view_async(lambda tx: _found(Reading(tx), notice, self._sender))
        channel = _channel_of(job, notice.channel)
        if channel is None:
            problem = "no job that is stored names this channel any more"
            await self._refused(notice, Reply(problem, is_final=True), outbox.KEPT_MS)
            return False
        message = await asyncio.to_thread(_with_output, found, self._context.logs)
        answer = await self._try(channel, message)
        fail_point("notice delivered")
        if answer.problem:
            await self._refused(notice, answer, outbox.kept_ms(channel.kind))
            return False
        is_journaled = channel.kind is not ChannelKind.HEALTHCHECKS  # two pings for every run would fill the journal
        delivered = outbox.delivered(notice, self._clock.wall_ms(), is_journaled=is_journaled)
        await self._store.update_async(delivered, scope=of_channel(notice.channel))
        return True

    async def _try(self, channel: Channel, message: NoticeMessage) -> Reply:
        means = DeliveryMeans(self._context, self._sender.host, self.smtp)
        try:
            return await asyncio.wait_for(deliver(channel, message, means), LONGEST_S)
        except TimeoutError:
            return Reply(f"no answer within {LONGEST_S:g} s")
        except Exception as error:
            # A mistake of ours in one message must not stop the others, nor the schedule.
            return Reply(f"it could not be sent: {type(error).__name__}: {error}", is_final=True)

    async def _refused(self, notice: Notice, answer: Reply, keep_ms: int) -> None:
        now_ms = self._clock.wall_ms()
        update = outbox.refused(notice, answer.problem, now_ms, is_final=answer.is_final, keep_ms=keep_ms)
        is_over = await self._store.update_async(update, scope=of_channel(notice.channel))
        fields = {"channel": notice.channel, "job": notice.job, "kind": notice.kind, "reason": answer.problem}
        log_event(log, "notice given up" if is_over else "notice not delivered", fields, logging.WARNING)


def _gone(tx: ReadTransaction) -> Callable[[str], bool]:
    """Whether a node has left in good order; one that died is waited for, for as long as its claim holds."""

    def is_gone(node: str) -> bool:
        found = Reading(tx).node(node)
        return found is None or found.stopped_ms is not None or found.lost_ms is not None

    return is_gone


def _found(reading: Reading, notice: Notice, sender: Sender) -> tuple[Composed, Job | None]:
    """The message, and the job with the channel: as it is now, else as it was when the notice was written."""
    job = reading.job(notice.job)
    if _channel_of(job, notice.channel) is None and notice.nominal_ms is not None:
        occurrence = reading.occurrence(notice.job, notice.nominal_ms)
        job = None if occurrence is None else reading.version_run(occurrence)
    return compose(reading, notice, sender), job


def _channel_of(job: Job | None, name: str) -> Channel | None:
    return None if job is None or job.notify is None else job.notify.channel(name)


def _with_output(found: Composed, logs: LogDirectory) -> NoticeMessage:
    """The message with the last lines of its log, where that can be read."""
    if not found.log:
        return found.message
    try:
        data = tail_of(logs, found.log, found.log_limit or DEFAULT_LIMIT, _TAIL_BYTES, is_over=found.is_over)
    except (OSError, ChronexError):
        return found.message
    return replace(found.message, output=last_lines(data))
