"""`chronex events` on a store with a past: filters, order, JSON, following, and that it never writes."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from chronex.cli.commands import events as command
from chronex.cli.options import UsageError
from chronex.errors import UnknownJobError
from chronex.model.event import EVENTS, Event
from chronex.storage import journal
from chronex.text.instants import rfc3339
from chronex.views.journal_events import EventQuery, following, newest
from chronex_store import LmdbStore, MemoryStore
from tests.cli.past import Past
from tests.kit.forked import ChronexProcess
from tests.kit.waits import DEADLINE_S


def events(past: Past, form: str = "json", **more: Any) -> int:
    return command.events(**{"limit": 100, "store": str(past.place), "form": form, **more})


def shown(past: Past, printed: Callable[..., str], **more: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(printed(events, past, **more))
    return found


def test_every_event_is_one_line_in_the_order_of_the_journal(past: Past, printed: Callable[..., str]) -> None:
    rows = shown(past, printed)
    assert [row["number"] for row in rows] == list(range(1, len(rows) + 1))
    lines = printed(events, past, "text").splitlines()
    assert len(lines) == len(rows)
    for line, row in zip(lines, rows, strict=True):
        assert line.split()[:3] == [str(row["number"]), row["at"], row["name"]]
        assert row["name"] in EVENTS
    (failed,) = (line for line in lines if "OccurrenceFailed" in line and " hello " in line)
    assert failed.endswith(": main: exit code 3")
    assert "\x1b" not in "".join(lines)


@pytest.mark.parametrize(
    ("more", "names"),
    [
        ({"job": "hello", "kinds": ["OccurrenceFailed"]}, ["OccurrenceFailed"]),
        ({"job": "hello", "kinds": ["occurrencefailed", "JOBNEW"]}, ["JobNew", "OccurrenceFailed"]),
        ({"job": "hello", "kinds": ["occurrence[cf]*"]}, ["OccurrenceCompleted", "OccurrenceFailed"]),
        ({"job": "hello", "kinds": ["occurrence*"], "limit": 1}, ["OccurrenceStarted"]),
        ({"since": "1m"}, []),
        ({"until": "2020-01-01"}, []),
        ({"job": "yearly"}, ["JobNew"]),
    ],
)
def test_filters(past: Past, printed: Callable[..., str], more: dict[str, Any], names: list[str]) -> None:
    assert [row["name"] for row in shown(past, printed, **more)] == names


def test_a_span_has_its_begin_and_not_its_end(past: Past, printed: Callable[..., str]) -> None:
    minute = past.now - 60_000
    rows = shown(past, printed, since=rfc3339(minute), until=rfc3339(past.now))
    assert rows
    assert all(minute <= row["at_ms"] < past.now for row in rows)


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"kinds": ["OccurenceFailed"]}, "no event 'OccurenceFailed'; did you mean OccurrenceFailed?"),
        ({"kinds": ["%%%"]}, "chronex events --kinds"),
        ({"job": "helo"}, "did you mean hello?"),
        ({"since": "soon"}, "is not a time; write"),
        ({"until": "soon"}, "--until"),
        ({"until": "2020-01-01", "follow": True}, "--follow has no end"),
    ],
)
def test_what_events_does_not_understand(past: Past, more: dict[str, Any], sentence: str) -> None:
    with pytest.raises((UsageError, UnknownJobError)) as told:
        events(past, **more)
    assert sentence in str(told.value)


def test_the_kinds_are_listed(past: Past, printed: Callable[..., str]) -> None:
    assert json.loads(printed(events, past, names=True)) == EVENTS
    assert len(printed(events, past, "text", names=True).splitlines()) == len(EVENTS)


def test_following_shows_each_event_once_as_one_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    store = MemoryStore()
    paused = [Event(name="JobPaused", at_ms=number, job="a") for number in range(3)]
    store.update(lambda tx: journal.append(tx, *paused))
    command._follow(store, EventQuery("a"), 1, "json", rounds=2)
    assert [json.loads(line)["number"] for line in capsys.readouterr().out.splitlines()] == [2, 3]


def test_following_goes_on_behind_what_does_not_fit() -> None:
    store = MemoryStore()
    store.update(lambda tx: journal.append(tx, *[Event(name="JobPaused", at_ms=1, job="other")] * 1_500))
    found, last = store.view(lambda tx: following(tx, EventQuery("a"), 0))
    assert (found, last) == ([], 1_000), "a page at a time"
    assert store.view(lambda tx: newest(tx, EventQuery("a"), 5)) == []


def test_looking_never_writes_and_ends_on_an_interrupt_and_on_a_closed_pipe(past: Past) -> None:
    with LmdbStore.open(past.place) as store:
        head = store.view(journal.head)
    for end in (signal.SIGINT, None):
        process = ChronexProcess(
            ["events", "-n", "1", "--follow", "--store", str(past.place)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            assert process.stdout.readline().split()[0] == str(head)
            if end is None:
                process.stdout.close()
            else:
                process.send_signal(end)
            assert process.wait(DEADLINE_S) == 0
            assert process.stderr.read() == ""
        finally:
            process.kill()
            process.wait()
            process.stderr.close()
            process.stdout.close()
    with LmdbStore.open(past.place) as store:
        assert store.view(journal.head) == head
