"""Python callables: context, outcome, timeouts, state, and that nothing they raise escapes."""

from __future__ import annotations

import asyncio
import functools
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from chronex.model import AttemptState
from chronex.run import AttemptResult, Cancellation, EndReason, Hooks, RunContext, Started
from chronex.run.callables import TaskContext, run_callable
from tests.kit.waits import DEADLINE_S, until_async
from tests.run.requests import output, request


async def call(run_context: RunContext, target: Any, **changes: Any) -> AttemptResult:
    return await run_callable(request(**changes), target, Hooks(), run_context)


async def test_a_callable_gets_the_whole_context(run_context: RunContext) -> None:
    seen: list[TaskContext] = []
    asked = request(metadata={"m": "1"}, parameters={"p": "2"}, last_run_ms=1000, number=4, idempotency_key="k")
    started: list[Started] = []

    async def note(begun: Started) -> None:
        started.append(begun)

    result = await run_callable(asked, seen.append, Hooks(started=note), run_context)
    assert result.state is AttemptState.SUCCESS
    context = seen[0]
    assert (context.job, context.task, context.occurrence_id) == ("backup", "dump", "occ_1")
    assert (context.attempt_id, context.attempt, context.idempotency_key) == (asked.attempt_id, 4, "k")
    assert context.scheduled == datetime(2026, 3, 1, 3, tzinfo=UTC)
    assert context.last_run == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert context.actual.timestamp() * 1000 == pytest.approx(result.started_ms)
    assert (context.metadata, context.parameters, context.span_start) == ({"m": "1"}, {"p": "2"}, None)
    assert [begun.process for begun in started] == [None]


class AsyncObject:
    async def __call__(self, context: TaskContext) -> None:
        context.log(f"async object on {threading.current_thread() is threading.main_thread()}")


class SyncObject:
    def __call__(self, context: TaskContext) -> None:
        context.log(f"sync object on {threading.current_thread() is threading.main_thread()}")


async def coroutine(context: TaskContext, extra: str = "") -> None:
    await asyncio.sleep(0)
    context.log(f"coroutine{extra} on {threading.current_thread() is threading.main_thread()}")


def function(context: TaskContext, extra: str = "") -> None:
    context.log(f"function{extra} on {threading.current_thread() is threading.main_thread()}")


@pytest.mark.parametrize(
    ("target", "written"),
    [
        (function, b"function on False\n"),
        (coroutine, b"coroutine on True\n"),
        (functools.partial(function, extra="!"), b"function! on False\n"),
        (functools.partial(coroutine, extra="!"), b"coroutine! on True\n"),
        (AsyncObject(), b"async object on True\n"),
        (SyncObject(), b"sync object on False\n"),
        (lambda context: coroutine(context, "?"), b"coroutine? on True\n"),
    ],
)
async def test_async_runs_on_the_loop_and_the_rest_in_a_thread(
    run_context: RunContext, target: Any, written: bytes
) -> None:
    result = await call(run_context, target)
    assert (result.state, result.error) == (AttemptState.SUCCESS, "")
    assert output(run_context, result) == written


async def test_a_name_is_resolved(run_context: RunContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_tasks.py").write_text("class Group:\n  @staticmethod\n  def run(context): context.log('found')\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert output(run_context, await call(run_context, "my_tasks:Group.run")) == b"found\n"
    sys.modules.pop("my_tasks")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("no_such_module:run", "ModuleNotFoundError"),
        ("os:no_such_function", "AttributeError"),
        ("os:sep", "is not callable"),
        ("os", "AttributeError"),
        ("", "ValueError"),
    ],
)
async def test_a_name_that_cannot_be_resolved_is_a_result(run_context: RunContext, target: str, message: str) -> None:
    result = await call(run_context, target)
    assert (result.state, result.reason, result.retryable) == (AttemptState.FAILED, EndReason.NOT_STARTED, False)
    assert message in result.error


class NoMessageError(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (ValueError("bad\nvalue"), "ValueError: bad value"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (StopIteration("x"), "StopIteration: x"),
        (asyncio.CancelledError(), "CancelledError"),
        (NoMessageError(), "NoMessageError: (its message could not be read)"),
        (ValueError("x" * 10_000), "ValueError: " + "x" * 500),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_what_it_raises_is_a_result(
    run_context: RunContext, problem: BaseException, message: str, is_async: bool
) -> None:
    def sync(context: TaskContext) -> None:
        context.state.set("k", "v")
        raise problem

    async def async_(context: TaskContext) -> None:
        raise problem

    result = await call(run_context, async_ if is_async else sync)
    assert (result.state, result.reason, result.retryable) == (AttemptState.FAILED, EndReason.EXCEPTION, True)
    expected = message if not (is_async and isinstance(problem, StopIteration)) else "RuntimeError"
    assert result.error.startswith(expected)
    assert result.state_changes == {}
    assert b"Traceback (most recent call last)" in output(run_context, result)


async def test_state_is_buffered_until_the_success(run_context: RunContext) -> None:
    def work(context: TaskContext) -> None:
        state = context.state
        assert (state.get("seen"), state.get("none"), state.get("none", "x")) == ("1", None, "x")
        state.set("seen", "2")
        state.set("new", "n")
        assert (state.get("seen"), state.get("old", "gone")) == ("2", "o")
        with pytest.raises(TypeError, match="must be text, not int"):
            state.set("number", 1)  # type: ignore[arg-type]

    result = await run_callable(request(), work, Hooks(), run_context, {"seen": "1", "old": "o"})
    assert result.error == ""
    assert result.state_changes == {"seen": "2", "new": "n"}


async def test_an_async_callable_is_cancelled_at_its_timeout(run_context: RunContext) -> None:
    cleaned: list[bool] = []

    async def hang(context: TaskContext) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            cleaned.append(context.cancellation.requested)

    result = await call(run_context, hang, timeout_ms=50)
    assert (result.state, result.error, cleaned) == (AttemptState.TIMEOUT, "still running after 0.05 s", [True])


async def test_an_async_callable_that_will_not_stop_is_left_behind(run_context: RunContext) -> None:
    release = asyncio.Event()

    async def stubborn(context: TaskContext) -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                context.log("no")

    result = await call(run_context, stubborn, timeout_ms=20, grace_ms=50)
    assert (result.state, result.error) == (AttemptState.TIMEOUT, "still running after 0.02 s; it still runs")
    release.set()
    await asyncio.sleep(0)


async def test_a_thread_is_told_to_stop_and_given_the_grace(run_context: RunContext) -> None:
    def polite(context: TaskContext) -> None:
        began.set()
        assert context.cancellation.wait(DEADLINE_S)
        context.log(f"stopping: {context.cancellation.reason}")

    began, cancellation = threading.Event(), Cancellation()
    asked = request(grace_ms=DEADLINE_S * 1000)
    call = asyncio.create_task(run_callable(asked, polite, Hooks(cancellation=cancellation), run_context))
    await until_async(began.is_set, "the start of the thread")
    cancellation.request("by bob")
    result = await call
    assert (result.state, result.error) == (AttemptState.CANCELED, "by bob")
    assert output(run_context, result) == b"stopping: by bob\n"


async def test_a_thread_that_will_not_stop_is_left_behind_and_writes_to_nobody(run_context: RunContext) -> None:
    release = threading.Event()

    def deaf(context: TaskContext) -> None:
        release.wait()
        context.log("too late")
        ended.set()

    ended = threading.Event()
    result = await call(run_context, deaf, timeout_ms=50, grace_ms=50)
    assert (result.state, result.error) == (AttemptState.TIMEOUT, "still running after 0.05 s; it still runs")
    release.set()
    await until_async(ended.is_set, "the end of the thread")
    assert output(run_context, result) == b""


async def test_a_callable_that_is_cancelled_already_is_not_called(run_context: RunContext) -> None:
    cancellation = Cancellation()
    cancellation.request()
    called: list[TaskContext] = []
    result = await run_callable(request(), called.append, Hooks(cancellation=cancellation), run_context)
    assert (result.state, called) == (AttemptState.CANCELED, [])


async def test_a_callables_log_is_bounded(run_context: RunContext) -> None:
    def chatty(context: TaskContext) -> None:
        for i in range(1000):
            context.log(f"line {i}")

    result = await call(run_context, chatty, log_limit=1000)
    assert result.log.size < 1200
    assert result.log.dropped > 7000


async def test_a_thousand_callables_start_at_once(run_context: RunContext) -> None:
    results = await asyncio.gather(*(call(run_context, function) for _ in range(300)))
    assert {result.state for result in results} == {AttemptState.SUCCESS}
