"""Signs: state is always a sign and a word, never a colour alone. A second set needs no more than ASCII."""

from __future__ import annotations

from dataclasses import dataclass

from chronex.model.states import AttemptState, OccurrenceState, RunState
from chronex.views.jobs import GLYPHS, Situation

_S, _O = Situation, OccurrenceState


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One set of signs."""

    situation: dict[Situation, str]
    clock: str
    up: str
    down: str
    mark: str
    ellipsis: str
    dot: str
    arrow: str
    now: str
    planned: str
    bar: str
    short: str
    overlap: str
    gap: str
    plain: str
    second: str
    unused: str
    unsure: str
    runs: str
    ramp: tuple[str, str, str, str, str, str]
    sparks: str
    rule: str
    border: str
    keys: str


UNICODE = Glyphs(
    situation=GLYPHS,
    clock="◷",
    up="●",
    down="○",
    mark="▸",
    ellipsis="…",
    dot="·",
    arrow="→",
    now="│",
    planned="┆",
    bar="█",
    short="▪",
    overlap="!",
    gap="╳",
    plain="█",
    second="▒",
    unused="·",
    unsure="?",
    runs="▲",
    ramp=("  ", "··", "░░", "▒▒", "▓▓", "██"),
    sparks="▁▂▃▄▅▆▇█",
    rule="─",
    border="round",
    keys="│",
)
ASCII = Glyphs(
    situation={
        _S.RUNNING: ">",
        _S.RETRYING: "~",
        _S.QUEUED: "%",
        _S.DISABLED: "-",
        _S.PAUSED: "=",
        _S.FAILED: "x",
        _S.DONE: "#",
        _S.OK: "*",
        _S.WAITING: "o",
    },
    clock="!",
    up="*",
    down="o",
    mark="+",
    ellipsis="~",
    dot=".",
    arrow=">",
    now="|",
    planned=":",
    bar="#",
    short="#",
    overlap="!",
    gap="x",
    plain="#",
    second="=",
    unused=".",
    unsure="?",
    runs="^",
    ramp=("  ", "..", "--", "==", "%%", "##"),
    sparks=".:-=+*#@",
    rule="-",
    border="ascii",
    keys="|",
)

# The style of a state, by the word that stands beside it.
STYLES: dict[str, str] = {
    "running": "running",
    "claimed": "running",
    "retrying": "retry",
    "retry": "retry",
    "queued": "retry",
    "pending": "dim",
    "scheduled": "dim",
    "disabled": "dim",
    "paused": "paused",
    "failed": "failed",
    "failed_stale": "failed",
    "timeout": "failed",
    "crashed": "failed",
    "dlq": "failed",
    "missed": "retry",
    "skipped": "paused",
    "canceled": "paused",
    "done": "dim",
    "ok": "ok",
    "completed": "ok",
    "success": "ok",
    "waiting": "dim",
}

_SIGN_OF: dict[str, Situation] = {
    _O.PENDING: _S.WAITING,
    _O.QUEUED: _S.QUEUED,
    _O.RUNNING: _S.RUNNING,
    _O.COMPLETED: _S.OK,
    _O.FAILED: _S.FAILED,
    _O.FAILED_STALE: _S.FAILED,
    _O.CANCELED: _S.DONE,
    _O.SKIPPED: _S.PAUSED,
    _O.MISSED: _S.DISABLED,
    RunState.SCHEDULED: _S.WAITING,
    RunState.CLAIMED: _S.RUNNING,
    RunState.RETRY: _S.RETRYING,
    RunState.SUCCESS: _S.OK,
    RunState.DLQ: _S.FAILED,
    AttemptState.TIMEOUT: _S.FAILED,
    AttemptState.CRASHED: _S.FAILED,
    "retrying": _S.RETRYING,
}
WORDS: dict[str, str] = {
    _O.COMPLETED: "ok",
    _O.FAILED_STALE: "stale",
    RunState.SUCCESS: "ok",
    RunState.RETRY: "retrying",
    RunState.DLQ: "gave up",
}


def sign(state: str, glyphs: Glyphs) -> str:
    """The sign of a state of an occurrence, a run or an attempt."""
    return glyphs.situation[_SIGN_OF.get(state, _S.WAITING)]


def word(state: str) -> str:
    return WORDS.get(state, state)
