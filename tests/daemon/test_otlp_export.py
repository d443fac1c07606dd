"""Runs as spans: what is told of them, and that no collector can harm the schedule. The collector is a real server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

import chronex
from chronex.channels.delivery import DeliveryMeans
from chronex.daemon import otlp_export, run_spans
from chronex.daemon.otlp_export import NOT_INSTALLED, OtlpSender, SpanExport
from chronex.daemon.registration import NodeTroubles
from chronex.daemon.run_spans import Attributes, RunSpan, read_spans
from chronex.engine.orders import Launch
from chronex.jobfile import SchedulerSettings
from chronex.jobfile.otlp_table import OtlpSettings
from chronex.model.job import Job, Task
from chronex.model.occurrence import attempt_id, occurrence_id, run_id
from chronex.model.policies import RetryPolicy
from chronex.run import LogDirectory, RunContext
from chronex.run.environment import span_id, trace_id
from chronex.storage.records import Reading
from chronex.testing import HOUR, MINUTE, SimulatedMachine
from chronex.testing.machine import ProcessOutcome
from tests.daemon.machine import Machine
from tests.kit.machine import START
from tests.kit.servers import Behaviour, WebRequest, WebServer, http_answer, refusing_port, web_server
from tests.kit.waits import until, until_async

STORE = "/srv/store"
JOB = Job(
    id="job",
    schedule="0 * * * *",
    tasks=(Task(name="main", run=("true",)),),
    retry=RetryPolicy(1, 10_000, jitter=0.0),
)


def fails_first(launch: Launch) -> ProcessOutcome:
    return ProcessOutcome(2_000, exit_code=7 if launch.attempt.number == 1 else 0)


def spans_at_one(seen: int = 0) -> list[RunSpan]:
    """A run at 01:00 that fails with 7 after two seconds, and succeeds at its second try ten seconds later."""
    machine = SimulatedMachine([JOB], outcome=fails_first)
    machine.run_until(START + HOUR + MINUTE)
    return machine.store.view(lambda tx: read_spans(Reading(tx), seen, STORE, lambda _event: True)).spans


def test_an_occurrence_is_a_span_and_each_of_its_attempts_one_below_it() -> None:
    one_o_clock = START + HOUR
    occurrence = occurrence_id("job", one_o_clock)
    first, second = (attempt_id(run_id(occurrence, "main"), number) for number in (1, 2))
    common: Attributes = {
        "chronex.job": "job",
        "chronex.occurrence": occurrence,
        "chronex.scheduled_time": "2027-01-01T01:00:00Z",
        "chronex.version": 1,
    }
    trace, parent = trace_id(occurrence, STORE), span_id(occurrence, STORE)
    of_first: Attributes = {
        "chronex.task": "main",
        "chronex.attempt": 1,
        "chronex.attempt_id": first,
        "chronex.state": "failed",
    }
    of_second: Attributes = {
        **of_first,
        "chronex.attempt": 2,
        "chronex.attempt_id": second,
        "chronex.state": "success",
    }
    found = spans_at_one()
    assert found == [
        RunSpan(
            "job main", trace, span_id(first, STORE), parent, one_o_clock, one_o_clock + 2_000, "exit code 7",
            {**common, **of_first, "process.exit.code": 7},
        ),
        RunSpan(
            "job main", trace, span_id(second, STORE), parent, one_o_clock + 12_000, one_o_clock + 14_000, "",
            {**common, **of_second, "process.exit.code": 0},
        ),
        RunSpan("job", trace, parent, None, one_o_clock, one_o_clock + 14_000, "", {**common, "chronex.state": "completed"}),
    ]  # fmt: skip
    assert found == spans_at_one(), "told again, it has the same ids"


def test_of_a_long_silence_only_the_newer_events_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_spans, "MOST_BEHIND", 4)
    machine = SimulatedMachine([JOB])
    machine.run_until(START + 5 * HOUR + MINUTE)
    batch = machine.store.view(lambda tx: read_spans(Reading(tx), 0, STORE, lambda _event: True))
    assert batch.dropped == batch.seen - 4
    assert [span.started_ms for span in batch.spans] == [START + 5 * HOUR] * 2


# -- a collector --------------------------------------------------------------------------------------------------


class Exporting:
    """The export of a simulated machine to a server, driven step by step."""

    def __init__(self, machine: SimulatedMachine, directory: Path, settings: OtlpSettings) -> None:
        found = RunContext.of_this_process(LogDirectory(directory / "logs"), environment={"CHRONEX_STORE": STORE})
        fields = {name: getattr(found, name) for name in found.__dataclass_fields__}
        self.machine, self.context = machine, RunContext(**{**fields, "clock": machine.clock})
        self.troubles = NodeTroubles(machine.clock, lambda: None)
        self.sender = OtlpSender(settings, DeliveryMeans(self.context, "db1"), "node-1")
        self.export = SpanExport(machine.store, self.context, self.troubles, self.sender.send)

    def send(self) -> None:
        asyncio.run(asyncio.wait_for(self.export.do(), 60))

    @property
    def problems(self) -> list[str]:
        return [one.detail for one in self.troubles.found]


@pytest.fixture
def exporting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(otlp_export, "WITHIN_S", 60.0)  # a busy machine is no bad collector
    made: list[Exporting] = []

    def make(url: str, **headers: str) -> Exporting:
        made.append(Exporting(SimulatedMachine([JOB]), tmp_path, OtlpSettings(url, headers)))
        return made[-1]

    yield make
    for one in made:
        one.sender.close()


def decoded(request: WebRequest) -> list[Any]:
    sent = ExportTraceServiceRequest.FromString(request.body)
    return [span for resource in sent.resource_spans for scope in resource.scope_spans for span in scope.spans]


def starts(server: WebServer) -> list[tuple[str, int]]:
    """Name and hour of every span that came."""
    return [
        (span.name, (span.start_time_unix_nano // 1_000_000 - START) // HOUR)
        for request in server.requests
        for span in decoded(request)
    ]


TWO_HOURS = [("job main", 1), ("job", 1), ("job main", 2), ("job", 2)]


def test_a_collector_is_sent_what_the_standard_says(exporting: Any, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("Bearer s3cret\n")
    token.chmod(0o600)
    with web_server() as server:
        one = exporting(server.url, Authorization=f"file:{token}")
        one.machine.outcome = fails_first
        one.machine.run_until(START + HOUR + MINUTE)
        one.send()
        (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/v1/traces")
    assert request.headers["content-type"] == "application/x-protobuf"
    assert request.headers["authorization"] == "Bearer s3cret"
    sent = ExportTraceServiceRequest.FromString(request.body).resource_spans[0]
    names = {pair.key: pair.value.string_value for pair in sent.resource.attributes}
    assert (names["service.name"], names["host.name"], names["service.instance.id"]) == ("chronex", "db1", "node-1")
    first, second, whole = decoded(request)
    occurrence = occurrence_id("job", START + HOUR)
    assert {span.trace_id.hex() for span in (first, second, whole)} == {f"{trace_id(occurrence, STORE):032x}"}
    assert first.parent_span_id == second.parent_span_id == whole.span_id
    assert (whole.parent_span_id, whole.name) == (b"", "job")
    assert [(span.status.code, span.status.message) for span in (first, second)] == [(2, "exit code 7"), (1, "")]
    assert (first.end_time_unix_nano - first.start_time_unix_nano) == 2 * 10**9
    assert one.problems == []


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (Behaviour(http_answer(500)), "500"),
        (Behaviour(http_answer(401)), "401"),
        (Behaviour(hangs=True), ""),
        (Behaviour(breaks_off=True), ""),
        (Behaviour(b"no HTTP at all\r\n\r\n"), ""),
    ],
    ids=["500", "401", "hangs", "breaks off", "speaks something else"],
)
def test_what_a_collector_has_not_taken_it_is_told_again(
    exporting: Any, bad: Behaviour, says: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with web_server(bad) as server:
        one = exporting(server.url)
        one.machine.run_until(START + HOUR + MINUTE)
        with monkeypatch.context() as impatient:
            # Whether it answers in time or not, it does not take them.
            impatient.setattr(otlp_export, "WITHIN_S", 0.3 if not says else 60.0)
            one.send()
        assert len(one.problems) == 1
        assert says in one.problems[0]
        asked = server.connections
        one.send()
        assert server.connections == asked, "there is a pause before the next try"
        server.behaviours[:] = [Behaviour()]
        server.requests.clear()
        one.machine.run_until(START + 2 * HOUR + MINUTE)
        one.send()
        assert starts(server) == TWO_HOURS
        assert one.problems == []
    assert capfd.readouterr() == ("", ""), "the library prints nothing"


def test_a_collector_that_is_not_there_is_no_trouble_of_the_schedule(
    exporting: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp_export, "WITHIN_S", 0.3)  # the library tries again for so long
    one = exporting(f"http://127.0.0.1:{refusing_port()}")
    one.machine.run_until(START + HOUR + MINUTE)
    one.send()
    assert len(one.problems) == 1


def test_while_a_collector_drips_nothing_else_is_begun(exporting: Any) -> None:
    """The time limit of the library begins anew with every byte, so this thread stays; it stays alone."""
    with web_server(Behaviour(drips=True)) as server:
        one = exporting(server.url)
        one.machine.run_until(START + HOUR + MINUTE)

        async def ask_often() -> None:
            first = asyncio.create_task(one.export.do())
            await until_async(lambda: server.connections == 1, "the first request")
            await one.export.do()  # returns at once, because one is under way
            assert not first.done()
            first.cancel()
            await asyncio.wait([first])
            await one.export.do()  # its thread is still there, though nobody waits for it

        asyncio.run(ask_often())
        assert server.connections == 1


def test_a_secret_that_cannot_be_read_is_told(exporting: Any, tmp_path: Path) -> None:
    one = exporting("http://127.0.0.1:9", Authorization=f"file:{tmp_path}/nowhere")
    one.machine.run_until(START + HOUR + MINUTE)
    one.send()
    assert "nowhere" in one.problems[0]


# -- a daemon -----------------------------------------------------------------------------------------------------


def test_a_command_has_the_ids_of_the_span_that_is_told_of_it(machine: Machine) -> None:
    with web_server() as server:
        machine.write(
            f'[scheduler]\notlp = "{server.url}"\n[jobs.a]\nschedule = "@every 1h"\nrun = "echo $TRACEPARENT > seen"\n'
            f'directory = "{machine.directory}"\n'
        )
        daemon = machine.start()
        daemon.until_logged("SchedulerStarted")
        assert machine.chronex("trigger", "a", "--wait").returncode == 0
        # A daemon that stops waits for two seconds, in which a busy machine may not have loaded the library.
        until(lambda: "a" in (name for name, _ in starts(server)), "the span of the run")
        assert daemon.stopped() == 0
        spans = {span.name: span for request in server.requests for span in decoded(request)}
    _, trace, span, flags = (machine.directory / "seen").read_text().strip().split("-")
    assert (spans["a main"].trace_id.hex(), spans["a main"].span_id.hex(), flags) == (trace, span, "01")
    assert spans["a"].trace_id.hex() == trace


def test_without_the_extra_it_is_said_what_to_install_and_nothing_is_sampled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp_export, "is_installed", lambda: False)
    seen = tmp_path / "seen"
    job = Job(
        id="a",
        schedule="@yearly",
        tasks=(Task(name="main", run=f"echo $TRACEPARENT > {seen}.part && mv {seen}.part {seen}"),),
    )
    settings = SchedulerSettings(otlp=OtlpSettings("http://127.0.0.1:4318"))
    with chronex.Engine(tmp_path / "store", settings=settings) as engine:
        engine.add(job)
        engine.trigger("a")
        until(seen.exists, "what the command has seen")
        troubles = engine.store.view(lambda tx: [one for node in Reading(tx).nodes() for one in node.troubles])
    assert [one.detail for one in troubles] == [NOT_INSTALLED]
    assert seen.read_text().strip().endswith("-00")
