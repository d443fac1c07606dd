"""Sends notices: hands each one to the `notify` command of its job, at least once, within bounds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from chronex.clock import Clock
from chronex.daemon.channel_sender import ChannelSender
from chronex.daemon.periodic_tasks import PeriodicTask
from chronex.engine import notices
from chronex.engine.usual import slow_run
from chronex.model.job import Job
from chronex.model.occurrence import occurrence_id
from chronex.model.reasons import text_of
from chronex.model.records import Notice
from chronex.run.environment import instant_text
from chronex.run.hooks import send_to_command
from chronex.run.spawn import RunContext
from chronex.storage import scopes
from chronex.storage.ports import ReadTransaction, Store
from chronex.storage.records import Reading, Records

EVERY_S = 2.0
LATE_EVERY_MS = 30_000
AT_ONCE = 4
LONGEST_S = 20.0
LONGEST_REASON = 2_000
_JOBS_AT_ONCE = 1_000
NoteFn = Callable[[Records, str], bool]


class Notifier:
    """Finds late jobs, slow runs and long ones every LATE_EVERY_MS, and sends the notices that wait."""

    def __init__(
        self, store: Store, run_context: RunContext, node: str = "", channels: ChannelSender | None = None
    ) -> None:
        """`node` is who sends, where others work on the store too: it claims a notice before it sends it."""
        self._node = node
        self._store = store
        self._channels = channels
        self._run_context = run_context
        self._clock: Clock = run_context.clock
        self._next_late_check_ms = 0
        self._none_at: int | None = None  # the change counter of the store with which no notice waited

    def periodic_task(self) -> PeriodicTask:
        return PeriodicTask("notify", EVERY_S, self.do)

    async def do(self) -> None:
        if self._clock.monotonic_ms() >= self._next_late_check_ms:
            self._next_late_check_ms = self._clock.monotonic_ms() + LATE_EVERY_MS
            await asyncio.to_thread(self.find_late)
        if self._channels is not None:
            await self._channels.start_due()
        now_ms, counter = self._clock.wall_ms(), self._store.wait(-1, 0)
        if counter == self._none_at:
            return
        found = await asyncio.to_thread(self._store.view, lambda tx: self._due(Reading(tx), now_ms, counter))
        if self._node and found:
            found = await self._store.update_async(lambda tx: self._claimed(Records(tx, now_ms)))
        await asyncio.gather(*(self._send(notice, job) for notice, job in found))

    def find_late(self) -> None:
        """Every job with an expectation, a page of jobs per snapshot; only one that is late costs a write."""
        after: str | None = None
        now_ms = self._clock.wall_ms()
        while True:

            def page(tx: ReadTransaction, after: str | None = after) -> tuple[list[tuple[NoteFn, str]], str | None]:
                reading = Reading(tx)
                jobs = reading.expecting(after, _JOBS_AT_ONCE)
                late = [
                    (notices.note_late, job.id) for job in jobs if notices.overdue(reading, job, now_ms) is not None
                ]
                slow = [(notices.note_slow, job.id) for job in jobs if slow_run(reading, job, now_ms) is not None]
                long = [(notices.note_long, job.id) for job in jobs if notices.long_run(reading, job, now_ms)]
                return [*late, *slow, *long], jobs[-1].id if jobs else None

            found, after = self._store.view(page)
            for note, name in found:
                self._note(note, name, now_ms)
            if after is None:
                return

    def _note(self, note: NoteFn, name: str, now_ms: int) -> None:
        self._store.update(lambda tx: note(Records(tx, now_ms), name), scope=scopes.of_jobs(name))

    def _due(self, reading: Reading, now_ms: int, counter: int) -> list[tuple[Notice, Job | None]]:
        self._none_at = None if reading.count_notices(1) else counter
        return [(notice, reading.job(notice.job)) for notice in notices.waiting(reading, now_ms, AT_ONCE)]

    def _claimed(self, records: Records) -> list[tuple[Notice, Job | None]]:
        return [(notice, records.job(notice.job)) for notice in notices.claim(records, self._node, AT_ONCE)]

    async def _send(self, notice: Notice, job: Job | None) -> None:
        if job is None or job.notify is None or job.notify.run is None:
            await self._record_result(notice, "the job has no notify command any more")
            return
        report = report_of(notice)
        variables = {
            "CHRONEX_NOTICE": notice.kind,
            "CHRONEX_JOB": notice.job,
            "CHRONEX_OCCURRENCE": report["occurrence"] or "",
            "CHRONEX_SCHEDULED_TIME": report["nominal"] or "",
            **self._run_context.environment,
        }
        message = msgspec.json.encode(report) + b"\n"
        problem = await send_to_command(job.notify.run, message, variables, self._run_context, LONGEST_S)
        await self._record_result(notice, problem)

    async def _record_result(self, notice: Notice, problem: str) -> None:
        after_try = notices.after_try(notice, problem, self._clock.wall_ms())
        await self._store.update_async(after_try, scope=scopes.of_jobs(notice.job))


def report_of(notice: Notice) -> dict[str, Any]:
    """What the command reads on its standard input, as JSON (docs/operating.md)."""
    nominal = notice.nominal_ms
    return {
        "delivery": f"{notice.job}/{notice.at_ms}/{notice.kind}",
        "kind": notice.kind,
        "job": notice.job,
        "at": instant_text(notice.at_ms),
        "nominal": None if nominal is None else instant_text(nominal),
        "occurrence": None if nominal is None else occurrence_id(notice.job, nominal),
        "reason": text_of(notice.reason)[:LONGEST_REASON],
        "failures_in_a_row": notice.failures,
        "try": notice.tries + 1,
    }
