"""The actions of the dashboard: one table of ids, keys, screens and help texts, and the `[tui.keys]` table.

The table is data only. The dashboard makes its keys, footer, menus, command palette and help from it and adds the
functions that carry the actions out; the job file may give an action another key. Both must agree on what actions
there are, so the table is below both of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from chronex.jobfile.entries import Entry, Reader

SCREENS = ("jobs", "runs", "timeline", "clock", "density", "nodes", "graph", "groups")
LIST_SCREENS = ("jobs", "runs", "timeline", "graph")
_KEY = re.compile(r"[!-+\--~]|space|enter|left|right|f(?:[1-9]|1[0-2])|ctrl\+[a-z]", re.ASCII)
_HINT = "write one character, space, left, right, f1 to f12, or ctrl+a to ctrl+z"
# Keys that move, open and leave on every screen, and those that a terminal cannot tell from tab, enter and backspace.
MOVING = frozenset({"j", "k", "g", "G", "h", "enter", *(f"ctrl+{letter}" for letter in "cdhijmpquz")})


@dataclass(frozen=True, slots=True)
class DashboardAction:
    """One thing that can be done in the dashboard."""

    id: str  # as [tui.keys] names it
    key: str
    title: str  # a word or two, for the footer and the command palette
    help: str  # one sentence
    command: str = ""  # the same from a shell; empty where no command does it
    reads_store: bool = True  # the command takes --store
    screens: tuple[str, ...] = SCREENS  # on which the key works
    needs: str = ""  # what must be selected: "job", "live" for a run that is not over, "node", or nothing
    writes: bool = False  # it changes the store, so read-only mode hides it
    asks: bool = False  # a dialog asks for confirmation before the store is changed
    rank: int = 0  # its place in the footer; 0 leaves it out
    group: str = "view"  # the heading of the help screen


ACTIONS: tuple[DashboardAction, ...] = (
    DashboardAction("screen-jobs", "1", "jobs",
        "Show all jobs: what runs, what failed, what comes next.",
        command="chronex list", group="screens"),
    DashboardAction("screen-runs", "2", "runs",
        "Show every run: running ones first, then history and dead letters.",
        command="chronex history", group="screens"),
    DashboardAction("screen-timeline", "3", "timeline",
        "Show runs over time, past and planned.",
        command="chronex tui --screen timeline", group="screens"),
    DashboardAction("screen-clock", "4", "clock",
        "Show what the next clock changes do to every job.",
        command="chronex tui --screen clock", group="screens"),
    DashboardAction("screen-density", "5", "density",
        "Show how many runs start in each hour of the week.",
        command="chronex tui --screen density", group="screens"),
    DashboardAction("screen-nodes", "6", "nodes",
        "Show the schedulers of the store: what each runs, who is late, who was fenced.",
        command="chronex nodes --all", group="screens"),
    DashboardAction("screen-graph", "7", "graph",
        "Show the tasks of a job as a graph, with the states of its newest run and the jobs before and after it.",
        command="chronex tui --screen graph {graph_of}", group="screens"),
    DashboardAction("screen-groups", "8", "groups",
        "Show the groups: who holds places, who waits for them, and what for.",
        command="chronex groups", group="screens"),
    DashboardAction("filter", "/", "filter",
        "Filter as you type: name, tag, state:failed, tz:Europe/*, -word. Enter keeps it, esc drops it.",
        command="chronex list --filter '{filter}'", screens=LIST_SCREENS, rank=1),
    DashboardAction("open", "enter", "open",
        "Open what is selected: a job's runs, a run's output.",
        screens=LIST_SCREENS, needs="job", rank=2),
    DashboardAction("menu", "a", "actions",
        "List everything that can be done to the selection.",
        screens=LIST_SCREENS, needs="job", rank=3),
    DashboardAction("trigger", "t", "trigger",
        "Run the job now, whatever its schedule says; its overlap policy still holds.",
        command="chronex trigger {job}", screens=LIST_SCREENS, needs="job", writes=True, asks=True, rank=4,
        group="commands"),
    DashboardAction("pause", "p", "pause/resume",
        "Pause the job, so that its runs are skipped, or resume it.",
        command="chronex {pause} {job}", screens=LIST_SCREENS, needs="job", writes=True, rank=5, group="commands"),
    DashboardAction("undo", "u", "undo",
        "Undo the last pause or resume.",
        screens=LIST_SCREENS, writes=True, group="commands"),
    DashboardAction("replay", "R", "replay",
        "Run a past run again at its scheduled time, or all dead letters of the job.",
        command="chronex replay --reason 'run again' {run}", screens=LIST_SCREENS, needs="job", writes=True,
        asks=True, rank=7, group="commands"),
    DashboardAction("cancel", "X", "cancel",
        "Cancel what runs now or waits for a retry.",
        command="chronex cancel {live_run}", screens=LIST_SCREENS, needs="live", writes=True, asks=True, rank=8,
        group="commands"),
    DashboardAction("drain", "D", "drain/undrain",
        "Let the node begin nothing more, or begin again; what runs there goes on.",
        command="chronex nodes {drain} {node}", screens=("nodes",), needs="node", writes=True, asks=True, rank=2,
        group="commands"),
    DashboardAction("mark", "space", "mark",
        "Mark the job; trigger, pause and cancel then act on all that are marked.",
        screens=("jobs",), needs="job", group="commands"),
    DashboardAction("log", "l", "log",
        "Show the output of the newest attempt; F follows it, / searches it.",
        command="chronex logs {run_or_job}", screens=LIST_SCREENS, needs="job", rank=6),
    DashboardAction("explain", "x", "explain",
        "Explain the schedule: what it means, when it runs, what clock changes do to it.",
        command="chronex explain '{schedule}' --tz {zone} {dialect}", reads_store=False,
        screens=LIST_SCREENS, needs="job", rank=9),
    DashboardAction("why", "w", "why",
        "Say why it ran, ran late, or did not run.",
        command="chronex why {job} {at}", screens=LIST_SCREENS, needs="job", rank=8),
    DashboardAction("edit", "e", "edit",
        "Open the job's definition in $VISUAL or $EDITOR, at its line.",
        screens=LIST_SCREENS, needs="job"),
    DashboardAction("try", "n", "try a schedule",
        "Try a schedule: its meaning, next runs and mistakes, as you type.",
        rank=12),
    DashboardAction("states", "f", "by state",
        "Show only jobs or runs in one state, chosen from a list with counts.",
        screens=("jobs", "runs")),
    DashboardAction("sort", "s", "sort", "Sort by state, name, next or last run.", screens=("jobs",)),
    DashboardAction("reverse", "S", "reverse", "Reverse the order.", screens=("jobs",)),
    DashboardAction("columns", "c", "columns",
        "Choose the columns of the table, for this session.",
        screens=("jobs",)),
    DashboardAction("dead", "d", "dead letters",
        "Show only runs that gave up after their last attempt.",
        command="chronex dlq list", screens=("runs",), rank=9),
    DashboardAction("zoom-in", "+", "zoom in", "See less time in more detail.", screens=("timeline",), rank=2),
    DashboardAction("zoom-out", "-", "zoom out", "See more time in less detail.", screens=("timeline",), rank=2),
    DashboardAction("earlier", "left", "earlier", "Move back in time.", screens=("timeline",), rank=1),
    DashboardAction("later", "right", "later", "Move forward in time.", screens=("timeline",), rank=1),
    DashboardAction("now", "0", "now", "Return to now.", screens=("timeline",), rank=3),
    DashboardAction("change-before", "[", "previous change",
        "Go to the clock change before this one.",
        screens=("clock",), rank=1),
    DashboardAction("change-after", "]", "next change",
        "Go to the clock change after this one.",
        screens=("clock",), rank=1),
    DashboardAction("policy", "space", "what if",
        "See the day under another clock-change policy; nothing is saved.",
        screens=("clock",), rank=2),
    DashboardAction("zone", "Z", "zone",
        "Choose the zone whose clock changes are shown.",
        screens=("clock",), rank=3),
    DashboardAction("past", "P", "past/coming week",
        "Count the past seven days instead of the coming ones.",
        screens=("density",), rank=1),
    DashboardAction("run-time", "D", "run time/starts",
        "Count minutes of run time instead of starts; what is to come takes as long as usual.",
        screens=("density",), rank=2),
    DashboardAction("busiest-minute", "H", "spread",
        "Suggest other minutes for the jobs of the busiest minute; nothing is changed.",
        screens=("density",), rank=3),
    DashboardAction("times", "T", "times", "Show times in each job's zone, in your own, or in UTC.", rank=10),
    DashboardAction("zoom", "z", "zoom panel",
        "Zoom the focused panel, or show all panels again.",
        rank=14),
    DashboardAction("copy", "y", "copy",
        "Copy a name, a schedule, an id or the shell command shown below.",
        rank=11),
    DashboardAction("freeze", "!", "freeze",
        "Freeze the display; press again to resume."),
    DashboardAction("theme", "C", "colours", "Next colour theme.", command="chronex tui --theme light"),
    DashboardAction("write", "W", "allow changes", "Allow changes where it was started with --read-only."),
    DashboardAction("palette", ":", "palette", "Find any action by its name.", rank=13),
    DashboardAction("help", "?", "keys", "Show what every key does here.", rank=98),
    DashboardAction("quit", "q", "quit", "Leave the dashboard.", rank=99),
)  # fmt: skip

BY_ID = {action.id: action for action in ACTIONS}


def with_keys(keys: Mapping[str, str]) -> tuple[DashboardAction, ...]:
    """The table with the keys that the user has chosen, by action id."""
    return tuple(replace(action, key=keys.get(action.id, action.key)) for action in ACTIONS)


class KeyClash(NamedTuple):
    """One key that has two actions on one screen."""

    key: str
    first: str
    second: str
    screen: str

    def __str__(self) -> str:
        return f"the key {self.key} stands for {self.first} and {self.second} on {self.screen}"


def key_clashes(actions: Sequence[DashboardAction]) -> Iterator[KeyClash]:
    """Every pair of actions that share a key, once, with the first screen on which they do."""
    reported: set[tuple[str, str]] = set()
    for screen in SCREENS:
        taken: dict[str, str] = {}
        for action in actions:
            if screen not in action.screens:
                continue
            other = taken.setdefault(action.key, action.id)
            if other != action.id and (other, action.id) not in reported:
                reported.add((other, action.id))
                yield KeyClash(action.key, other, action.id, screen)


# -- [tui.keys] -----------------------------------------------------------------------------------------------


# The dashboard needs the table above for its first frame, and what reads job files only where a file has keys.


def _key(entry: Entry) -> str:
    from chronex.jobfile.values import text
    from chronex.text.terminal import quoted

    value = text(entry)
    if not _KEY.fullmatch(value):
        entry.refuse(f"{entry.label} cannot be {quoted(value)}, which is not a key", _HINT, "J013")
    if value in MOVING and value != BY_ID[entry.label].key:
        entry.refuse(f"the key {value} already moves, opens or leaves", "choose another key", "J024")
    return value


def _keys(entry: Entry) -> dict[str, str]:
    from chronex.jobfile.entries import read_table

    given: dict[str, str] = read_table(entry, KEYS, '[tui.keys] and below it for example trigger = "t"')
    for clash in key_clashes(with_keys(given)):
        # The problem is marked at the action that the file names; the other one has its default key.
        position = entry.child(clash.second if clash.second in given else clash.first)
        position.report(str(clash), "give one of them another key", "J024")
    return given


KEYS: dict[str, Reader] = dict.fromkeys(BY_ID, _key)
TUI: dict[str, Reader] = {"keys": _keys}


def read_keymap(entry: Entry) -> dict[str, str]:
    """The keys that differ from the dashboard's own, by action id."""
    from chronex.jobfile.entries import read_table

    found: dict[str, str] = read_table(entry, TUI, "[tui.keys] and its keys below it").get("keys", {})
    return found
