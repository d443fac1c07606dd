"""history on a store with a past: ids, times, states and reasons."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from chronex.cli.commands import history as command
from chronex.cli.options import UsageError
from chronex.errors import UnknownJobError
from chronex.model.occurrence import Occurrence
from chronex.model.states import OccurrenceState
from chronex.storage.records import Reading, Records
from chronex.views.past_runs import HistoryQuery, past_occurrences
from chronex_store import MemoryStore
from tests.cli.past import Past


def history(past: Past, job: str | None = None, count: int = 20, form: str = "json", **more: Any) -> int:
    return command.history(job, count, more.get("states"), more.get("since"), str(past.place), form)


def test_history_holds_ids_times_fates_and_attempts(past: Past, printed: Callable[..., str]) -> None:
    rows = json.loads(printed(history, past, "hello"))
    assert [row["state"] for row in rows] == ["running", "failed", "completed"]
    row = rows[1]
    assert row["id"].startswith("occ_")
    assert row["reason"] == "main: exit code 3"
    assert row["nominal"] == row["due"] == row["started"]
    (attempt,) = row["attempts"]
    assert (attempt["task"], attempt["number"], attempt["state"], attempt["exit_code"]) == ("main", 1, "failed", 3)
    assert attempt["log"] == f"{attempt['id']}.log"
    assert (attempt["signal"], attempt["log_dropped"]) == (None, 0)


def test_history_is_filtered_by_state_and_age_and_bounded(past: Past, printed: Callable[..., str]) -> None:
    assert {row["state"] for row in json.loads(printed(history, past))} == {
        "running",
        "failed",
        "completed",
    }
    only = json.loads(printed(history, past, states=["completed"]))
    assert [row["job"] for row in only] == ["hello"]
    assert len(json.loads(printed(history, past, count=2))) == 2
    assert json.loads(printed(history, past, "hello", since="1m")) == []
    assert len(json.loads(printed(history, past, "hello", since="1d"))) == 3


def test_history_as_text_has_a_line_for_each_with_its_reason(past: Past, printed: Callable[..., str]) -> None:
    lines = printed(history, past, form="text").splitlines()
    assert sum("main: exit code 3" in line for line in lines) == 1
    assert any(" hello " in line and line[19:25] == "+00:00" for line in lines)
    assert all(line[19:25] == "+01:00" or line[19:25] == "+02:00" for line in lines if " flaky " in line)
    assert all(re.match(r"\S+ \S+ occ_[0-9a-f]{8} ", line) for line in lines), "what cancel and replay take"


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"states": ["complete"]}, "no state 'complete'; did you mean completed?"),
        ({"since": "next week"}, "is not a time; write"),
        ({"job": "helo"}, "no job 'helo'; did you mean hello?"),
    ],
)
def test_what_history_does_not_understand(past: Past, more: dict[str, Any], sentence: str) -> None:
    with pytest.raises((UsageError, UnknownJobError)) as told:
        history(past, more.pop("job", None), **more)
    assert sentence in str(told.value)


def test_on_a_narrow_terminal_a_reason_has_a_line_of_its_own(
    past: Past, printed: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("chronex.cli.commands.history.sys.stdout.isatty", lambda: True)
    lines = printed(history, past, form="text").splitlines()
    assert "    main: exit code 3" in lines
    assert all(len(line) <= 70 for line in lines)


def test_what_waits_is_found_by_its_state_over_all_jobs() -> None:
    queued = [
        Occurrence(job=job, nominal_ms=at, due_ms=at, state=OccurrenceState.QUEUED)
        for job, at in (("a", 1_000), ("b", 3_000), ("a", 2_000))
    ]
    store = MemoryStore()
    store.update(lambda tx: [Records(tx, 0).create(one) for one in queued])

    def found(query: HistoryQuery) -> list[tuple[str, int]]:
        return store.view(lambda tx: [(one.job, one.nominal_ms) for one in past_occurrences(Reading(tx), query)])

    waiting = frozenset({"queued"})
    assert found(HistoryQuery(None, 10, waiting)) == [("b", 3_000), ("a", 2_000), ("a", 1_000)]
    assert found(HistoryQuery(None, 10, waiting, since_ms=2_000, until_ms=3_000)) == [("a", 2_000)]
    assert found(HistoryQuery(None, 10)) == []
