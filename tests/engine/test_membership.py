"""Who lives, who is only silent, and who is gone, when several machines share a store."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from chronex.engine.membership import (
    LEASE_MS,
    LONGEST_GAP_MS,
    SLACK_MS,
    STEADY_MS,
    TAKEOVER_MS,
    Liveness,
    awake_since,
    is_any_silent,
    liveness_of,
    refuse_lost,
    renewed,
    seems_alive,
)
from chronex.errors import FencedError
from chronex.model.occurrence import ProcessIdentity
from chronex.model.records import Node
from chronex.storage.records import Records
from chronex_store import MemoryStore

NOW = 10_000_000
GIVEN_UP = LEASE_MS + SLACK_MS


def node(name: str, host: str = "a", seen: int = NOW, **more: object) -> Node:
    base = Node(
        id=name, process=ProcessIdentity(1, host, 1), host_id=host, lease_ms=LEASE_MS, seen_ms=seen, steady_since_ms=1
    )
    return replace(base, **more)


OBSERVER = node("observer", "here")


@pytest.mark.parametrize(
    ("other", "observer", "wanted"),
    [
        pytest.param(node("n"), OBSERVER, Liveness.LIVES, id="heard just now"),
        pytest.param(node("n", seen=NOW - GIVEN_UP), OBSERVER, Liveness.LIVES, id="its word holds to the end"),
        pytest.param(node("n", seen=NOW - GIVEN_UP - 1), OBSERVER, Liveness.LOST, id="silent for longer"),
        pytest.param(node("n", seen=NOW - TAKEOVER_MS), OBSERVER, Liveness.LOST, id="its work is still its own"),
        pytest.param(node("n", seen=NOW - TAKEOVER_MS - 1), OBSERVER, Liveness.GONE, id="its work is taken over"),
        pytest.param(node("n", lost_ms=NOW), OBSERVER, Liveness.LOST, id="given up once, given up"),
        pytest.param(
            node("n", stopped_ms=NOW), OBSERVER, Liveness.LOST, id="it has left, and commands may run there"
        ),
        pytest.param(
            node("n", seen=NOW - TAKEOVER_MS - 1, stopped_ms=NOW), OBSERVER, Liveness.GONE, id="it left long ago"
        ),
        pytest.param(
            node("n", "here", stopped_ms=NOW), OBSERVER, Liveness.GONE, id="here its successor takes up at once"
        ),
        pytest.param(node("n", "here"), OBSERVER, Liveness.GONE, id="on the same machine its process tells"),
        pytest.param(node("n", lease_ms=0), OBSERVER, Liveness.GONE, id="a store of one machine: its process tells"),
        pytest.param(node("n", seen=0), None, Liveness.GONE, id="an observer without a record sees processes alone"),
        pytest.param(
            node("n", seen=NOW - 20 * TAKEOVER_MS),
            replace(OBSERVER, steady_since_ms=NOW - STEADY_MS + 1),
            Liveness.LIVES,
            id="who was silent itself judges nobody",
        ),
        pytest.param(
            node("n", seen=NOW - GIVEN_UP - 1),
            replace(OBSERVER, seen_ms=NOW - LONGEST_GAP_MS - 1),
            Liveness.LIVES,
            id="nor does who has not given a new word since",
        ),
    ],
)
def test_how_a_node_stands(other: Node, observer: Node | None, wanted: Liveness) -> None:
    assert liveness_of(other, observer, NOW, lambda _process: False) is wanted


def test_a_process_of_the_same_machine_is_believed_before_any_word() -> None:
    silent = node("n", "here", seen=NOW - 20 * TAKEOVER_MS)
    assert liveness_of(silent, OBSERVER, NOW, lambda _process: True) is Liveness.LIVES


@pytest.mark.parametrize(
    ("gap", "steady_since"),
    [(LONGEST_GAP_MS, 1), (LONGEST_GAP_MS + 1, NOW)],
    ids=["heard without a gap", "after a gap it begins anew"],
)
def test_a_gap_in_its_words_makes_a_node_careful(gap: int, steady_since: int) -> None:
    assert renewed(node("n", seen=NOW - gap), NOW).steady_since_ms == steady_since


def test_a_word_never_goes_back() -> None:
    assert renewed(node("n", seen=NOW + 5), NOW).seen_ms == NOW + 5


@pytest.mark.parametrize(
    ("found", "is_refused"),
    [
        (node("n"), False),
        (node("n", epoch=1), True),
        (node("n", lost_ms=NOW), True),
        (None, False),
    ],
    ids=["as it registered", "another epoch", "lost", "not registered yet"],
)
def test_a_node_that_was_given_up_may_change_nothing(found: Node | None, is_refused: bool) -> None:
    store = MemoryStore()
    if found is not None:
        store.update(lambda tx: Records(tx, NOW).put(found))
    if not is_refused:
        store.update(lambda tx: refuse_lost(Records(tx, NOW), "n", 0))
        return
    with pytest.raises(FencedError):
        store.update(lambda tx: refuse_lost(Records(tx, NOW), "n", 0))


@pytest.mark.parametrize(
    ("other", "wanted"),
    [
        (node("n"), False),
        (node("n", seen=NOW - GIVEN_UP - 1), True),
        (node("n", seen=NOW - GIVEN_UP - 1, lost_ms=NOW), False),
        (node("n", seen=NOW - TAKEOVER_MS - 1, lost_ms=NOW), True),
        (node("n", seen=NOW - TAKEOVER_MS - 1, stopped_ms=NOW), False),
        (node("n", "here", seen=NOW - GIVEN_UP - 1), False),
    ],
    ids=["heard", "silent", "silence is noted", "to be taken over", "taken over", "of this machine"],
)
def test_a_look_costs_nothing_where_nothing_changed(other: Node, wanted: bool) -> None:
    assert is_any_silent([other, OBSERVER], OBSERVER, NOW) is wanted


@pytest.mark.parametrize(
    ("others", "wanted"),
    [
        ([], 500),
        ([node("n", awake_since_ms=100)], 100),
        ([node("n", awake_since_ms=900)], 500),
        ([node("n", awake_since_ms=100, seen=NOW - LEASE_MS - 1)], 500),
        ([node("n", awake_since_ms=100, lost_ms=NOW)], 500),
        ([node("n", awake_since_ms=100, stopped_ms=NOW)], 500),
    ],
    ids=[
        "alone",
        "another was awake before",
        "a younger one",
        "a silent one counts no more",
        "a lost one",
        "one that left",
    ],
)
def test_an_instant_that_another_node_saw_was_not_missed(others: list[Node], wanted: int) -> None:
    assert awake_since(others, 500, NOW) == wanted


@pytest.mark.parametrize(
    ("one", "process_lives", "wanted"),
    [
        (node("n"), False, True),
        (node("n", seen=NOW - GIVEN_UP - 1), True, False),
        (node("n", lost_ms=NOW), True, False),
        (node("n", stopped_ms=NOW), True, False),
        (node("n", lease_ms=0, seen=0), True, True),
        (node("n", lease_ms=0), False, False),
    ],
)
def test_who_only_looks_goes_by_the_word(one: Node, process_lives: bool, wanted: bool) -> None:
    assert seems_alive(one, NOW, lambda _process: process_lives) is wanted


@pytest.mark.parametrize(
    ("seen_ms", "told_ms", "is_steady"),
    [
        (NOW - 3_000, NOW, True),
        (NOW + 2_000, NOW + 2_000, True),  # two readings of one clock may cross
        (NOW + 3_600_000, NOW, False),  # the clock of the database was set back
        (NOW - 3_600_000, NOW, False),
    ],
)
def test_a_word_never_lies_ahead_of_a_clock_that_was_set_back(seen_ms: int, told_ms: int, is_steady: bool) -> None:
    """Else a node that dies now would count as living for as long as the clock was set back."""
    node = Node(
        id="node-1", process=ProcessIdentity(1, "boot", 1), lease_ms=LEASE_MS, seen_ms=seen_ms,
        steady_since_ms=NOW - 60_000,
    )  # fmt: skip
    told = renewed(node, NOW)
    assert told.seen_ms == told_ms
    assert (told.steady_since_ms == NOW - 60_000) is is_steady
