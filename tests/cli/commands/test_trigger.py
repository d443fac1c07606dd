"""trigger as it is typed: what is printed, and the exit code."""

from __future__ import annotations

import pytest

from chronex.cli.commands import trigger
from chronex.cli.commands.history import run_history
from chronex.cli.options import UsageError
from chronex.views.past_runs import HistoryQuery
from tests.cli.small_store import Capture, Place, run_trigger, said, triggered


def test_a_trigger_says_that_no_daemon_runs(place: Place, capsys: Capture) -> None:
    assert run_trigger("a", place.path, "text", "x=1", "y=") == 0
    spoken = capsys.readouterr()
    assert spoken.out.startswith("waiting    a  occ_")
    assert "no daemon runs on this store: it starts with the next one; start one with: chronex run" in spoken.err


def test_waiting_without_a_daemon_is_a_failure_not_a_hang(place: Place, capsys: Capture) -> None:
    assert trigger.trigger("a", wait=True, store=place.path, form="json") == 1
    answer = said(capsys)
    assert (answer["state"], answer["daemon"]) == ("pending", False)


def test_asking_again_with_the_same_key_is_safe(place: Place, capsys: Capture) -> None:
    for state in ("pending", "skipped"):
        assert run_trigger("a", place.path, "json", key="key", ttl="1h") == 0
        assert said(capsys)["state"] == state


def test_overlap_is_told_and_exits_1(place: Place, capsys: Capture) -> None:
    running = triggered(place, capsys, "running")
    assert run_trigger("a", place.path, "text") == 1
    assert f"an earlier occurrence still runs: {running}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("params", "key", "ttl", "says"),
    [
        (["nonsense"], "", None, "is not name=value"),
        (["a=1", "a=2"], "", None, "given twice"),
        (["a b=1"], "", None, "'a b' is not a name"),
        (["é=1"], "", None, "'é' is not a name"),
        (["a-b=1", "A_b=2"], "", None, "'a-b' and 'A_b' would both be CHRONEX_PARAM_A_B"),
        ([], "k", "soon", "is not a duration"),
        ([], "k", "30min", "did you mean 30m?"),
        ([], "k", "0s", "is no time at all"),
        ([], "", "1h", "--ttl needs --idempotency-key"),
    ],
)
def test_bad_usage_of_trigger(place: Place, params: list[str], key: str, ttl: str | None, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        run_trigger("a", place.path, "text", *params, key=key, ttl=ttl)
    assert says in str(refused.value)


def test_policies_of_one_run_are_stored_with_it_and_told(place: Place, capsys: Capture) -> None:
    asked = trigger.trigger(
        "a", only=["main"], timeout="90s", retry=2, on_failure="continue", store=place.path, form="json"
    )
    assert asked == 0
    identity = said(capsys)["id"]
    assert run_history(HistoryQuery("a", 1, frozenset(), None), place.path, "json") == 0
    (found,) = said(capsys)
    assert (found["id"], found["only"]) == (identity, ["main"])
    assert found["overrides"] == {"timeout_ms": 90_000, "retries": 2, "on_failure": "continue"}


@pytest.mark.parametrize(
    ("timeout", "on_failure", "says"), [("0s", None, "is no time at all"), (None, "explode", "fail_fast")]
)
def test_a_policy_that_is_none_is_refused(
    place: Place, timeout: str | None, on_failure: str | None, says: str
) -> None:
    with pytest.raises(UsageError) as refused:
        trigger.trigger("a", timeout=timeout, on_failure=on_failure, store=place.path)
    assert says in str(refused.value)
