"""The functions of a program: what they are given, and where they run."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable
from typing import Any

import pytest

from chronex.errors import ChronexError
from chronex.model import AttemptState
from chronex.run import AttemptResult, Cancellation, Hooks, RunContext
from chronex.run.callables import TaskContext, run_callable
from chronex.run.functions import Calls, ExecutorKind, check_arguments, registered
from tests.kit.waits import DEADLINE_S, until_async
from tests.run.requests import output, request

SEEN: list[Any] = []


def with_context(context: TaskContext, *more: Any, **named: Any) -> None:
    SEEN.append((context.job, more, named))


def with_another_name(ctx: Any, word: str) -> None:
    SEEN.append((ctx.job, word))


def by_its_type(what: TaskContext) -> None:
    SEEN.append(what.job)


def without(*more: Any, **named: Any) -> None:
    SEEN.append((more, named))


async def asynchronous(word: str = "") -> None:
    SEEN.append(("async", word))


class WithCall:
    def __call__(self, word: str) -> None:
        SEEN.append(("object", word))


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "seen"),
    [
        (with_context, (), {}, ("backup", (), {})),
        (with_context, ("a", 1), {"b": 2}, ("backup", ("a", 1), {"b": 2})),
        (with_another_name, ("a",), {}, ("backup", "a")),
        (by_its_type, (), {}, "backup"),
        (without, (), {}, ((), {})),
        (without, ("a",), {"b": 2}, (("a",), {"b": 2})),
        (asynchronous, ("a",), {}, ("async", "a")),
        (functools.partial(asynchronous, "bound"), (), {}, ("async", "bound")),
        (WithCall(), ("a",), {}, ("object", "a")),
    ],
)
async def test_a_function_is_given_the_context_where_it_asks_for_it_and_then_its_arguments(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], seen: Any, run_context: RunContext
) -> None:
    SEEN.clear()
    check_arguments(function, args, kwargs)
    call = registered(function, by_name=True).call
    result = await run_callable(request(args=args, kwargs=kwargs), call, Hooks(), run_context)
    assert (result.state, result.error) == (AttemptState.SUCCESS, "")
    assert [seen] == SEEN


@pytest.mark.parametrize(
    ("function", "executor", "kind"),
    [
        (without, None, ExecutorKind.THREAD),
        (asynchronous, None, ExecutorKind.ASYNC),
        (asynchronous, "thread", ExecutorKind.THREAD),
        (without, "process", ExecutorKind.PROCESS),
    ],
)
def test_where_it_runs(function: Callable[..., Any], executor: str | None, kind: ExecutorKind) -> None:
    assert registered(function, executor).kind is kind


async def test_an_async_function_in_a_thread_has_a_loop_of_its_own_and_is_canceled(run_context: RunContext) -> None:
    began, ended = threading.Event(), list[str]()

    async def blocks(context: TaskContext) -> None:
        context.log(str(threading.current_thread() is threading.main_thread()))
        began.set()
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append(context.cancellation.reason)

    cancellation = Cancellation()
    asked = request(grace_ms=round(DEADLINE_S * 1000))
    call = registered(blocks, "thread").call
    work = asyncio.create_task(run_callable(asked, call, Hooks(cancellation=cancellation), run_context))
    await until_async(began.is_set, "the start of the thread")
    cancellation.request("by bob")
    result: AttemptResult = await work
    assert (result.state, result.error, ended) == (AttemptState.CANCELED, "by bob", ["by bob"])
    assert output(run_context, result).startswith(b"False\n")


def test_one_name_means_one_function() -> None:
    calls = Calls({"f": without})
    calls.add("f", without)
    with pytest.raises(ChronexError, match="another function is registered as 'f'"):
        calls.add("f", asynchronous)
    with pytest.raises(ChronexError, match=r"without\(\) has the executor thread already; give it one executor"):
        calls.add("f", registered(without, "process"))
    given: Any = "no function"
    with pytest.raises(ChronexError, match="cannot be called; give a function"):
        calls.add("g", given)
