"""Graphs, chains, matrices and parameters of functions in a program of one's own."""

from __future__ import annotations

import pytest

import chronex
from chronex.errors import JobChainError, NotPossibleError
from chronex.jobfile.program_jobs import InvalidJobError
from chronex.model.job import Call, Job, Task
from chronex.run.callables import TaskContext
from chronex_store import MemoryStore
from tests.kit.waits import until_async


async def test_a_function_that_follows_another_finds_what_that_returned() -> None:
    engine = chronex.Engine(MemoryStore())
    seen: list[tuple[str, str]] = []

    @engine.job("0 0 1 1 *", parameters={"level": {"type": "integer", "default": 1}})
    def etl(context: TaskContext) -> dict[str, int]:
        return {"rows": 12 * int(context.parameters["level"])}

    @engine.job(after="etl", matrix={"region": ["eu", "us"]})
    async def report(context: TaskContext) -> None:
        seen.append((context.matrix["region"], context.inputs["etl.main"]["rows"]))

    async with engine:
        with pytest.raises(NotPossibleError, match="is not a whole number"):
            engine.trigger("etl", parameters={"level": "many"})
        engine.trigger("etl", parameters={"level": "2"})
        await until_async(lambda: len(seen) == 2, "both combinations of the report")
    assert sorted(seen) == [("eu", "24"), ("us", "24")]


async def test_tasks_of_a_job_need_each_other() -> None:
    engine = chronex.Engine(MemoryStore())
    order: list[str] = []

    def extract() -> dict[str, int]:
        order.append("extract")
        return {"rows": 3}

    def load(context: TaskContext) -> None:
        order.append(f"load {context.inputs['extract']['rows']}")

    engine.add_call("extract", extract)
    engine.add_call("load", load)
    tasks = (
        Task(name="load", run=Call("load"), needs=("extract",)),
        Task(name="extract", run=Call("extract"), needs=()),
    )
    engine.declare(Job(id="etl", schedule="0 0 1 1 *", tasks=tasks))
    async with engine:
        engine.trigger("etl")
        await until_async(lambda: len(order) == 2, "both tasks")
    assert order == ["extract", "load 3"]


async def test_what_a_file_would_refuse_is_refused() -> None:
    engine = chronex.Engine(MemoryStore())
    with pytest.raises(InvalidJobError, match="has no schedule"):
        engine.job()(print)
    circle = (Task(name="a", run="true", needs=("b",)), Task(name="b", run="true", needs=("a",)))
    with pytest.raises(InvalidJobError, match="a -> b -> a"):
        engine.declare(Job(id="x", schedule="@daily", tasks=circle))
    async with engine:
        with pytest.raises(JobChainError, match="tidy follows nobody, and there is no such job"):
            engine.add("tidy", run="true", after="nobody")
