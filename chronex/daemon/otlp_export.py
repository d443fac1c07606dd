"""Tells a collector of every run, over OTLP: one request at a time, from a thread that nobody waits for.

The libraries are an extra (`chronex[otlp]`) and are loaded when [scheduler] otlp is set. A collector that refuses,
hangs or is away holds up nothing: what it has not taken is told again, under the same ids.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from chronex.channels.delivery import DeliveryMeans, on_thread, resolved
from chronex.daemon.log_handlers import log_event
from chronex.daemon.loop import Daemon
from chronex.daemon.maintenance import is_maintainer
from chronex.daemon.periodic_tasks import PeriodicTask
from chronex.daemon.registration import NodeTroubles
from chronex.daemon.run_spans import IsOwn, RunSpan, SpanBatch, read_spans
from chronex.errors import StoreError
from chronex.jobfile.otlp_table import OtlpSettings, with_path
from chronex.model.reasons import TroubleCode
from chronex.run.request import NotStarted
from chronex.run.spawn import RunContext
from chronex.storage import journal
from chronex.storage.ports import ReadTransaction, Store
from chronex.storage.records import Reading
from chronex.version import __version__

if TYPE_CHECKING:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan

log = logging.getLogger(__name__)
EVERY_S = 5.0
# The pauses after tries that failed; the last one holds for all others.
PAUSES_S = (5.0, 15.0, 60.0, 300.0)
WITHIN_S = 10.0
# A scheduler that leaves waits this long for its last spans to be taken.
LAST_SPANS_S = 2.0
NOT_INSTALLED = "the extra is not installed: pip install 'chronex[otlp]'"
_LIBRARY = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
Send = Callable[[Sequence[RunSpan]], str]
Whose = Callable[[Reading], IsOwn]


def of_everybody(_reading: Reading) -> IsOwn:
    return lambda _event: True


def of_node(daemon: Daemon) -> Whose:
    """On a shared store each node tells of what it wrote itself, and one of them of what no node wrote."""

    def whose(reading: Reading) -> IsOwn:
        is_first = is_maintainer(reading.nodes(), daemon.node.id, daemon.clock.wall_ms())
        return lambda event: event.data["node"] == daemon.node.id if event.data.get("node") else is_first

    return whose


def is_installed() -> bool:
    try:
        return find_spec(_LIBRARY) is not None
    except ModuleNotFoundError:
        return False


class SpanExport:
    """Follows the journal from where it stands now. `send` returns what went wrong, or nothing."""

    def __init__(
        self, store: Store, context: RunContext, troubles: NodeTroubles, send: Send, whose: Whose = of_everybody
    ) -> None:
        """`whose` says which events are this node's to tell."""
        self._store, self._clock, self._troubles = store, context.clock, troubles
        self._send, self._whose = send, whose
        self._store_name = context.environment.get("CHRONEX_STORE", "")
        self._seen = store.view(journal.head)
        self._under_way: asyncio.Future[str] | None = None
        self._failures = 0
        self._not_before_ms = 0

    async def do(self) -> None:
        """All that waits, a batch at a time; nothing while a thread still waits for the collector's last answer."""
        if self._under_way is not None or self._clock.monotonic_ms() < self._not_before_ms:
            return
        while True:
            batch = await self._store.view_async(self._read)
            if batch.dropped:
                fields = {"events": batch.dropped, "so": "the collector was away for too long"}
                log_event(log, "spans dropped", fields, logging.WARNING)
                self._seen += batch.dropped
            if batch.spans and not await self._is_taken(batch.spans):
                return
            self._seen = batch.seen
            if not batch.has_more:
                return

    async def finish(self) -> None:
        """One last try, whatever the pause."""
        self._not_before_ms = 0
        with contextlib.suppress(TimeoutError, StoreError):
            await asyncio.wait_for(self.do(), LAST_SPANS_S)

    def _read(self, tx: ReadTransaction) -> SpanBatch:
        return read_spans(Reading(tx), self._seen, self._store_name, self._whose(Reading(tx)))

    async def _is_taken(self, spans: list[RunSpan]) -> bool:
        self._under_way = asyncio.ensure_future(on_thread(lambda: self._send(spans)))
        self._under_way.add_done_callback(self._over)
        # Shielded: a task that is given up leaves the thread at its work, and no second one is begun beside it.
        problem = await asyncio.shield(self._under_way)
        if not problem:
            self._failures = 0
            self._troubles.end(TroubleCode.SPANS_FAIL)
            return True
        pause_s = PAUSES_S[min(self._failures, len(PAUSES_S) - 1)]
        self._failures += 1
        self._not_before_ms = self._clock.monotonic_ms() + round(pause_s * 1000)
        self._troubles.begin(TroubleCode.SPANS_FAIL, problem)
        return False

    def _over(self, done: asyncio.Future[str]) -> None:
        self._under_way = None
        if not done.cancelled():
            done.exception()  # it was told to whoever waited, or to nobody


# -- the library --------------------------------------------------------------------------------------------------


class _LastWords(logging.Handler):
    """What the library says of a failure: it returns no more than that there was one. Nothing of it is printed."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.words = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.words = " ".join(record.getMessage().split())[:300]


class OtlpSender:
    """Hands spans to the exporter of the OpenTelemetry project, which reads the usual OTEL_ variables too."""

    def __init__(self, settings: OtlpSettings, means: DeliveryMeans, node: str) -> None:
        self._settings, self._means, self._node = settings, means, node
        self._words = _LastWords()
        logger = logging.getLogger("opentelemetry")
        logger.addHandler(self._words)
        self._exporter: OTLPSpanExporter | None = None
        self._resource: Resource | None = None

    def close(self) -> None:
        logging.getLogger("opentelemetry").removeHandler(self._words)

    def send(self, spans: Sequence[RunSpan]) -> str:
        """Blocks for WITHIN_S at most, but for a collector that answers byte by byte. Never raises."""
        try:
            return self._send(spans)
        except Exception as error:
            # Whatever a library does with an address or an answer, it is no trouble of the schedule.
            self._exporter = None
            return f"{type(error).__name__}: {error}"[:300]

    def _send(self, spans: Sequence[RunSpan]) -> str:
        from opentelemetry.sdk.trace.export import SpanExportResult

        exporter = self._exporter or self._made()
        if isinstance(exporter, NotStarted):
            return exporter.error
        self._exporter, self._words.words = exporter, ""
        if exporter.export([self._as_span(span) for span in spans]) is SpanExportResult.SUCCESS:
            return ""
        self._exporter = None  # its address and headers are read anew: somebody may be putting them right
        return self._words.words or "the collector did not take them"

    def _made(self) -> OTLPSpanExporter | NotStarted:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource

        service = os.environ.get("OTEL_SERVICE_NAME") or "chronex"
        names = {"service.name": service, "service.version": __version__, "service.instance.id": self._node}
        self._resource = Resource.create({**names, "host.name": self._means.host})
        url = resolved("otlp", self._settings.url, self._means)
        if isinstance(url, NotStarted):
            return url
        headers: dict[str, str] = {}
        for name, source in self._settings.headers.items():
            value = resolved(f"otlp header {name}", source, self._means)
            if isinstance(value, NotStarted):
                return value
            headers[name] = value
        return OTLPSpanExporter(endpoint=with_path(url), headers=headers, timeout=WITHIN_S)

    def _as_span(self, span: RunSpan) -> ReadableSpan:
        from opentelemetry.sdk.trace import ReadableSpan
        from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags

        def context(number: int) -> SpanContext:
            return SpanContext(span.trace_id, number, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))

        return ReadableSpan(
            span.name,
            context(span.span_id),
            None if span.parent_id is None else context(span.parent_id),
            self._resource,
            span.attributes,
            status=Status(StatusCode.ERROR, span.problem) if span.problem else Status(StatusCode.OK),
            start_time=span.started_ms * 1_000_000,
            end_time=span.ended_ms * 1_000_000,
        )


@asynccontextmanager
async def export_spans(daemon: Daemon, settings: OtlpSettings) -> AsyncIterator[None]:
    """Tell the collector while the daemon works."""
    if not is_installed():
        log_event(log, "spans are not told", {"reason": NOT_INSTALLED}, logging.WARNING)
        daemon.troubles.begin(TroubleCode.SPANS_FAIL, NOT_INSTALLED)
        yield
        return
    means = DeliveryMeans(daemon.executor.run_context, daemon.node.host)
    sender = OtlpSender(settings, means, daemon.node.id)
    whose = of_node(daemon) if daemon.registration.is_shared else of_everybody
    export = SpanExport(daemon.store, daemon.executor.run_context, daemon.troubles, sender.send, whose)
    daemon.executor.is_traced = True
    daemon.periodic.add(PeriodicTask("spans", EVERY_S, export.do))
    try:
        yield
    finally:
        await export.finish()
        sender.close()
