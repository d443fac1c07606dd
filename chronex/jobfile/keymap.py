"""The `[tui.keys]` table: which key of the dashboard does what, where someone wants another one."""

from __future__ import annotations

import re
from typing import NamedTuple

from chronex.jobfile.entries import Entry, Reader, read_table
from chronex.jobfile.values import text
from chronex.text.terminal import quoted

SCREENS = ("jobs", "runs", "timeline", "clock", "density")
_LISTS = ("jobs", "runs", "timeline")
_KEY = re.compile(r"[!-+\--~]|space|enter|left|right|f(?:[1-9]|1[0-2])|ctrl\+[a-z]", re.ASCII)
_HINT = "write one character, space, left, right, f1 to f12, or ctrl+a to ctrl+z"
# What moves, opens and leaves on every screen; and what terminals cannot tell from tab, enter and backspace.
MOVING = frozenset({"j", "k", "g", "G", "h", "enter", *(f"ctrl+{letter}" for letter in "cdhijmpquz")})


class Bound(NamedTuple):
    """The key that an action has by itself, and the screens on which it is one."""

    key: str
    screens: tuple[str, ...] = SCREENS


# The dashboard's registry says what they do; a test holds the two together.
ACTIONS: dict[str, Bound] = {
    "screen-jobs": Bound("1"),
    "screen-runs": Bound("2"),
    "screen-timeline": Bound("3"),
    "screen-clock": Bound("4"),
    "screen-density": Bound("5"),
    "filter": Bound("/", _LISTS),
    "open": Bound("enter", _LISTS),
    "menu": Bound("a", _LISTS),
    "trigger": Bound("t", _LISTS),
    "pause": Bound("p", _LISTS),
    "undo": Bound("u", _LISTS),
    "replay": Bound("R", _LISTS),
    "cancel": Bound("X", _LISTS),
    "mark": Bound("space", ("jobs",)),
    "log": Bound("l", _LISTS),
    "explain": Bound("x", _LISTS),
    "why": Bound("w", _LISTS),
    "edit": Bound("e", _LISTS),
    "try": Bound("n"),
    "states": Bound("f", ("jobs", "runs")),
    "sort": Bound("s", ("jobs",)),
    "reverse": Bound("S", ("jobs",)),
    "columns": Bound("c", ("jobs",)),
    "dead": Bound("d", ("runs",)),
    "zoom-in": Bound("+", ("timeline",)),
    "zoom-out": Bound("-", ("timeline",)),
    "earlier": Bound("left", ("timeline",)),
    "later": Bound("right", ("timeline",)),
    "now": Bound("0", ("timeline",)),
    "change-before": Bound("[", ("clock",)),
    "change-after": Bound("]", ("clock",)),
    "policy": Bound("space", ("clock",)),
    "zone": Bound("Z", ("clock",)),
    "past": Bound("P", ("density",)),
    "run-time": Bound("D", ("density",)),
    "crowd": Bound("H", ("density",)),
    "times": Bound("T"),
    "zoom": Bound("z"),
    "copy": Bound("y"),
    "freeze": Bound("!"),
    "theme": Bound("C"),
    "write": Bound("W"),
    "palette": Bound(":"),
    "help": Bound("?"),
    "quit": Bound("q"),
}


def _key(entry: Entry) -> str:
    value = text(entry)
    if not _KEY.fullmatch(value):
        entry.refuse(f"{entry.label} cannot be {quoted(value)}, which is not a key", _HINT, "J013")
    if value in MOVING and value != ACTIONS[entry.label].key:
        entry.refuse(f"the key {value} already moves, opens or leaves", "choose another key", "J024")
    return value


def _keys(entry: Entry) -> dict[str, str]:
    given: dict[str, str] = read_table(entry, KEYS, '[tui.keys] and below it for example trigger = "t"')
    _refuse_overlaps(entry, given)
    return given


def _refuse_overlaps(entry: Entry, given: dict[str, str]) -> None:
    """One key for two actions of one screen; of the two, that is marked which the file has."""
    told: set[tuple[str, str]] = set()
    for screen in SCREENS:
        taken: dict[str, str] = {}
        for name, bound in ACTIONS.items():
            if screen not in bound.screens:
                continue
            key = given.get(name, bound.key)
            other = taken.setdefault(key, name)
            if other != name and (other, name) not in told:
                told.add((other, name))
                place = entry.child(name if name in given else other)
                message = f"the key {key} stands for {other} and {name} on {screen}"
                place.report(message, "give one of them another key", "J024")


KEYS: dict[str, Reader] = dict.fromkeys(ACTIONS, _key)
TUI: dict[str, Reader] = {"keys": _keys}


def read_keymap(entry: Entry) -> dict[str, str]:
    """The keys that differ from the dashboard's own, by action."""
    found: dict[str, str] = read_table(entry, TUI, "[tui.keys] and its keys below it").get("keys", {})
    return found
