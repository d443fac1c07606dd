"""`chronex.Engine` as a program uses it: decorators, definitions, a thread of its own, callbacks."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import chronex
from chronex import Engine, EngineEvent, InvalidJobError, TaskContext
from chronex.daemon import event_feed
from chronex.daemon.embedded import EmbeddedEngine
from chronex.errors import ChronexError, JobSourceError
from chronex.jobfile import JobFileError
from chronex.model import Job, OverlapPolicy, Task
from chronex.storage.ports import Store
from chronex.storage.records import Reading
from chronex_store import LmdbStore, MemoryStore
from tests.kit.waits import DEADLINE_S, until, until_async
from tests.verify.assertion import assert_verified

SOON = "@every 100ms {max:1}"
COMMAND = (Task(name="main", run=("true",)),)


def completed(engine: Engine, job: str) -> bool:
    return engine.row(job).job.progress.counters.completed > 0


def stored(store: Store) -> list[str]:
    return [job.id for job in store.view(lambda tx: Reading(tx).jobs())]


# -- declared jobs -----------------------------------------------------------------------------------------------------


async def test_decorated_functions_are_the_jobs_of_the_program() -> None:
    engine, seen = Engine(MemoryStore(), name="billing"), list[Any]()

    @engine.job(SOON, retry=3, overlap="queue")
    async def tidy() -> None:
        seen.append("tidy")

    @engine.job(SOON, name="mail-ann", args=["ann"], kwargs={"copies": 2}, metadata={"team": "data"})
    def mail(context: TaskContext, to: str, copies: int) -> None:
        seen.append((context.job, context.metadata["team"], to, copies))

    async with engine:
        await until_async(lambda: completed(engine, "tidy") and completed(engine, "mail-ann"), "both jobs")
        job = engine.row("tidy").job
        assert (job.retry.max, job.overlap, job.source) == (3, OverlapPolicy.QUEUE, "program billing")
    assert sorted(seen, key=str) == [("mail-ann", "data", "ann", 2), "tidy"]
    assert tidy.__name__ == "tidy", "the function is what it was"


async def test_hooks_may_be_functions() -> None:
    engine, seen = Engine(MemoryStore()), list[str]()

    def begins(report: dict[str, Any]) -> None:
        seen.append(report["hook"])

    async def ends(report: dict[str, Any]) -> None:
        seen.append(f"{report['hook']} {report['state']}")

    engine.job(SOON, name="tidy", on_start=begins, on_complete=ends)(lambda: seen.append("work"))
    async with engine:
        await until_async(lambda: len(seen) == 3, "the hooks")
    assert seen == ["on_start", "work", "on_complete completed"]


async def test_a_function_that_is_decorated_no_longer_is_no_job_any_more() -> None:
    store = MemoryStore()
    for names in (["a", "b"], ["b", "c"]):
        engine = Engine(store, name="billing")
        for name in names:
            engine.job("@daily", name=name)(print)
        async with engine:
            assert stored(store) == names


async def test_a_job_may_be_decorated_while_the_engine_runs() -> None:
    done = asyncio.Event()
    async with Engine(MemoryStore()) as engine:

        @engine.job(SOON)
        async def late() -> None:
            done.set()

        await asyncio.wait_for(done.wait(), DEADLINE_S)


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "a bad expression": ({"schedule": "99 * * * *"}, "job 'work': minute: value 99 out of range"),
    "an unknown zone": ({"timezone": "Mars"}, "job 'work': unknown time zone 'Mars'; use an IANA name"),
    "an unknown word": ({"overlap": "skp"}, "job 'work': overlap cannot be 'skp'; did you mean skip"),
    "bounded without bounds": ({"recovery": "bounded"}, "job 'work': bounded needs max_count or max_age; write"),
    "a timeout below zero": ({"timeout": "-5s"}, "job 'work', task 'main': timeout: '-5s' is not a duration"),
    "a key that is none": ({"retries": 3}, r"job 'work': unknown key 'retries'; did you mean retry\?"),
    "a name of two words": ({"name": "my work"}, "job 'my work': 'my work' is not a name; use letters"),
    "an argument that cannot be stored": ({"kwargs": {"a": object()}}, "the arguments of .* cannot be stored; give text"),
}  # fmt: skip


@pytest.mark.parametrize(("keys", "words"), BAD.values(), ids=BAD)
def test_a_decorator_teaches_what_a_job_file_would(keys: dict[str, Any], words: str) -> None:
    engine = Engine(MemoryStore())

    def work(a: object = None) -> None:
        """Nothing."""

    with pytest.raises(InvalidJobError, match=words):
        engine.job(**{"schedule": "@daily", **keys})(work)


async def test_a_job_that_is_declared_twice_is_refused() -> None:
    engine = Engine(MemoryStore())
    engine.job("@daily", name="tidy")(print)
    with pytest.raises(InvalidJobError, match="job 'tidy' is given twice; give it another name"):
        engine.job("@hourly", name="tidy")(print)
    with pytest.raises(InvalidJobError, match="job 'tidy' is given twice"):
        await engine.start([Job(id="tidy", schedule="@daily", tasks=COMMAND)])
    assert not engine.is_running


# -- trigger definitions -------------------------------------------------------------------------------------------------

DEFINITION = {
    "$schema": "https://example.com/trigger.json",
    "id": "health-check",
    "expression": f"TZ=UTC {SOON}",
    "enabled": True,
    "metadata": {"endpoint": "https://api.example.com/health", "delivery.mode": "webhook"},
}


@pytest.mark.parametrize("kind", ["value", "dict", "text", "path", "name of a file"])
async def test_a_handler_is_bound_to_a_trigger_definition(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "health.trigger.json"
    path.write_text(json.dumps(DEFINITION))
    given: Any = {
        "value": chronex.TriggerDefinition.from_dict(DEFINITION),
        "dict": DEFINITION,
        "text": json.dumps([DEFINITION]),
        "path": path,
        "name of a file": str(path),
    }[kind]
    engine, seen = Engine(MemoryStore()), list[str]()

    async def check(context: TaskContext) -> None:
        seen.append(f"{context.job}: {context.metadata['endpoint']} by {context.metadata['delivery.mode']}")

    definition = engine.register(given, check)
    assert (definition.id, definition.expression, definition.enabled) == ("health-check", f"TZ=UTC {SOON}", True)
    async with engine:
        await until_async(lambda: completed(engine, "health-check"), "the handler")
    assert seen == ["health-check: https://api.example.com/health by webhook"]


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        ({"id": "x"}, JobFileError, 'a trigger definition has no expression; write "expression"'),
        ({"id": "x", "expression": "99 * * * *"}, JobFileError, "minute: value 99 out of range"),
        (
            {"id": "x", "expression": "@daily", "run": ["true"]},
            ChronexError,
            "'x' says itself what to run; remove run",
        ),
        ({"id": "x", "expression": "@daily", "metadata": {"a": object()}}, ChronexError, "holds what JSON can hold"),
        ('{"id": ', JobFileError, "definition:1:"),
        (5, ChronexError, "a dict, JSON text or the path of a file, not int"),
        ("no/such.trigger.json", ChronexError, "cannot read 'no/such.trigger.json': no such file"),
    ],
)
def test_a_definition_that_is_wrong_is_refused(given: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        Engine(MemoryStore()).register(given, print)


def test_a_definition_is_a_value() -> None:
    made = chronex.TriggerDefinition("x", "@daily", metadata={"a": "b"}, keys={"retry": 3})
    assert made == chronex.TriggerDefinition.from_dict(made.to_dict())
    assert made.job(chronex.Call("f")).retry.max == 3


# -- on a thread of its own ----------------------------------------------------------------------------------------------


def test_a_program_without_a_loop_has_the_engine_on_a_thread(tmp_path: Path) -> None:
    engine, threads = Engine(tmp_path / "store", name="billing"), list[str]()

    @engine.job(SOON)
    async def tidy() -> None:
        threads.append(threading.current_thread().name)

    with engine:
        assert engine.is_running
        until(lambda: completed(engine, "tidy"), "the job")
        engine.add("more", "@daily", ["true"])
        assert engine.trigger("more").occurrence.manual
        until(lambda: completed(engine, "more"), "the job that was added")
        with pytest.raises(ChronexError, match="started already"):
            engine.open()
    assert threads == ["chronex engine"]
    assert repr(engine) == "<chronex.Engine of 'billing'>", "it runs no longer"
    with engine:  # it can be used again, and what was added is still there
        assert sorted(row.job.id for row in engine.rows()) == ["more", "tidy"]
    engine.close()
    with pytest.raises(ChronexError, match="not started; use it inside `with engine:`"):
        engine.history()


def test_what_goes_wrong_at_the_start_is_raised_where_it_was_asked_for() -> None:
    store = MemoryStore()
    with Engine(store, name="a") as first:
        first.job("@daily", name="tidy")(print)
        other = Engine(store, name="b")
        other.job("@daily", name="tidy")(print)
        with pytest.raises(JobSourceError, match="belongs to program a"):
            other.open()
        assert not other.is_running
        other.close()
        assert stored(store) == ["tidy"]


def test_closing_from_a_function_of_the_engine_is_refused_and_not_a_deadlock() -> None:
    engine, told = Engine(MemoryStore()), list[str]()

    @engine.job(SOON)
    async def closes() -> None:
        try:
            engine.close()
        except ChronexError as problem:
            told.append(str(problem))

    with engine:
        until(lambda: told, "the refusal")
    assert "would wait for itself" in told[0]


def test_an_engine_that_was_stopped_on_its_loop_can_be_closed_and_opened() -> None:
    engine = Engine(MemoryStore())

    @engine.job(SOON)
    async def stops() -> None:
        await engine.stop()

    with engine:
        engine.join(DEADLINE_S)
    assert "chronex engine" not in [thread.name for thread in threading.enumerate()]
    with engine:
        assert len(engine.history("stops", state="canceled")) == 1


def test_waiting_for_the_end_takes_no_longer_than_asked() -> None:
    engine = Engine(MemoryStore())
    with pytest.raises(ChronexError, match="not started; join it inside"):
        engine.join()  # a program that forgot to start it would end at once, without a word
    with engine:
        engine.join(timeout=0.01)
        assert engine.is_running
    engine.join()  # it has ended


def test_a_run_is_waited_for() -> None:
    engine, go = Engine(MemoryStore()), threading.Event()
    engine.job("@daily", name="tidy")(go.wait)
    with engine:
        asked = engine.trigger("tidy")
        with pytest.raises(TimeoutError, match="is still"):
            engine.wait_for(asked, timeout=0.01)
        go.set()
        assert engine.wait_for(asked.occurrence.id).is_good


async def test_a_loop_does_not_wait_for_itself() -> None:
    engine = Engine(MemoryStore())
    engine.job("@daily", name="tidy")(lambda: None)
    async with engine:
        asked = engine.trigger("tidy")
        with pytest.raises(ChronexError, match="the engine would wait for itself"):
            engine.wait_for(asked)
        assert (await asyncio.to_thread(engine.wait_for, asked)).is_good


OUTLIVES = """
import pathlib, sys, time
import chronex

here = pathlib.Path(sys.argv[1])
engine = chronex.Engine(here / "store", name="billing")

@engine.job("@every 100ms {max:1}", executor="process", on_crash="fail", args=[str(here)])
def crunch(context, place):
    path = pathlib.Path(place)
    with open(path / "seen", "a") as seen:
        seen.write("begin ")
    while not (path / "go").exists():
        time.sleep(0.01)
    with open(path / "seen", "a") as seen:
        seen.write("end ")

if __name__ == "__main__":
    with engine:
        while not engine.history("crunch", state="failed"):
            time.sleep(0.01)
            if "taken over" in sys.argv and not (here / "go").exists() and engine.history("crunch", state="running"):
                (here / "go").touch()
        print(engine.history("crunch", state="failed")[0].reason)
"""


def test_a_function_in_a_process_outlives_its_engine_and_is_watched_to_its_end(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(OUTLIVES)
    command = [sys.executable, str(script), str(tmp_path)]
    (left := tmp_path / "left").mkdir()
    with subprocess.Popen(command, env={**os.environ, "TMPDIR": str(left)}) as first:
        until((tmp_path / "seen").exists, "the function to begin")
        first.kill()
    assert first.wait() == -9
    second = subprocess.run([*command, "taken over"], capture_output=True, text=True, check=False)
    assert second.returncode == 0, second.stderr
    assert second.stdout == "main: ended, and its exit code is not known: whoever watched it had died\n"
    assert list(left.iterdir()) == []
    assert (tmp_path / "seen").read_text() == "begin end "
    with LmdbStore.open(tmp_path / "store") as store:
        assert_verified(store)


# -- events ----------------------------------------------------------------------------------------------------------------


async def test_callbacks_get_the_events_of_the_journal_in_their_order() -> None:
    engine, seen, awaited = Engine(MemoryStore()), list[EngineEvent](), list[str]()
    engine.on("*", seen.append)

    async def note(event: EngineEvent) -> None:
        await asyncio.sleep(0)
        awaited.append(f"{event.job} {event.name} {threading.current_thread() is threading.main_thread()}")

    engine.on(["OccurrenceStarted", "OccurrenceCompleted"], note, job="tidy")
    for name in ("tidy", "other"):
        engine.job(SOON, name=name)(lambda: None)
    async with engine:
        await until_async(lambda: completed(engine, "tidy") and completed(engine, "other"), "both jobs")
    assert awaited == ["tidy OccurrenceStarted True", "tidy OccurrenceCompleted True"]
    numbers = [event.number for event in seen]
    assert numbers == sorted(numbers)
    (ended,) = [one for one in seen if (one.job, one.name) == ("tidy", "OccurrenceCompleted")]
    assert ended.scheduled is not None
    assert ended.scheduled <= ended.at
    assert (ended.reason, ended.attempt, ended.occurrence[:4]) == ("", None, "occ_")
    assert seen[-1].name == "SchedulerStopped", "also what happened while it stopped"


async def test_a_callback_that_raises_or_hangs_harms_nobody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(event_feed, "LAST_EVENTS_S", 0.05)
    engine, seen, hangs = Engine(MemoryStore()), list[str](), threading.Event()

    def raises(event: EngineEvent) -> None:
        raise ValueError(event.name)

    engine.on("OccurrenceCompleted", raises)
    stuck = engine.on("*", lambda event: hangs.wait())
    stuck.most_waiting = 2
    engine.on("OccurrenceCompleted", lambda event: seen.append(event.job))
    engine.job("@every 20ms {max:4}", name="tidy", overlap="queue")(lambda: None)
    async with engine:
        await until_async(lambda: len(seen) == 4, "the callback beside them")
        await until_async(lambda: stuck.dropped, "more events than may wait")
    hangs.set()
    assert "a callback failed" in caplog.text
    assert "a callback is too slow; events are dropped" in caplog.text


async def test_a_subscription_begins_when_it_is_made_and_ends_when_it_is_canceled() -> None:
    engine, early, late = Engine(MemoryStore()), list[str](), list[str]()
    async with engine:
        engine.add(Job(id="first", schedule="@daily", tasks=COMMAND))
        subscription = await asyncio.to_thread(engine.on, "JobNew", lambda event: early.append(event.job))
        engine.add(Job(id="second", schedule="@daily", tasks=COMMAND))
        await until_async(lambda: early == ["second"], "the second job alone")
        subscription.cancel()
        engine.on("JobNew", lambda event: late.append(event.job))
        engine.add(Job(id="third", schedule="@daily", tasks=COMMAND))
        await until_async(lambda: late == ["third"], "the third job")
    assert early == ["second"]


def test_an_event_that_is_none_is_taught() -> None:
    with pytest.raises(ChronexError, match=r"no event 'OcurrenceFailed'; did you mean OccurrenceFailed\?"):
        Engine(MemoryStore()).on("OcurrenceFailed", print)


def test_only_a_function_is_decorated_and_only_a_store_is_worked_on() -> None:
    given: Any = "make tidy"
    with pytest.raises(ChronexError, match="'make tidy' cannot be called; give a function"):
        Engine(MemoryStore()).job("@daily", name="tidy")(given)
    given = None
    with pytest.raises(ChronexError, match="a postgresql:// address or an open store, not NoneType"):
        Engine(given)


def test_the_engine_has_its_old_name_too() -> None:
    assert chronex.Engine is EmbeddedEngine
    assert repr(Engine(MemoryStore(), name="billing")) == "<chronex.Engine of 'billing'>"
