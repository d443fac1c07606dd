"""The one registry of what can be done: keys, footer, menus, palette and help are made from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from chronex_tui.model.layout import Line, fit, wrap

ALL = ("jobs", "runs", "timeline", "clock", "density")
JOB_SCREENS = ("jobs", "runs", "timeline")


@dataclass(frozen=True, slots=True)
class Action:
    """`needs` is what must be selected; `shell` the same from a shell; `rank` its place in the footer, 0 for none."""

    id: str
    key: str
    label: str
    sentence: str
    shell: str = ""
    where: tuple[str, ...] = ALL
    needs: str = ""
    writes: bool = False
    asks: bool = False
    rank: int = 0
    group: str = "look"


@dataclass(frozen=True, slots=True)
class Context:
    """What is selected, and what may be done to it."""

    screen: str
    job: str = ""
    run: str = ""  # the selected occurrence, as commands name it
    live_run: str = ""  # the one that runs
    zone: str = "UTC"  # of the selected job
    is_read_only: bool = False
    is_live: bool = False  # the selected job or run has something running or waiting for a retry
    is_dead: bool = False  # the selected run, or one of the job's, lies in the dead letters
    is_paused: bool = False
    filter: str = ""
    has_store: bool = True
    actions: tuple[Action, ...] = ()  # the registry with the user's own keys; empty for its own


ACTIONS: tuple[Action, ...] = (
    Action("screen-jobs", "1", "jobs",
           "Show all jobs: what runs, what failed, what comes next.", "chronex list", group="screens"),
    Action("screen-runs", "2", "runs",
           "Show every run, the living ones first, then history and dead letters.",
           "chronex history", group="screens"),
    Action("screen-timeline", "3", "timeline",
           "Show runs over time, past and planned.", "chronex tui --screen timeline", group="screens"),
    Action("screen-clock", "4", "clock",
           "Show what the next clock changes do to every job.", "chronex tui --screen clock", group="screens"),
    Action("screen-density", "5", "density",
           "Show how many runs start in each hour of the week.", "chronex tui --screen density", group="screens"),
    Action("filter", "/", "filter",
           "Filter as you type: name, tag, state:failed, tz:Europe/*, -word. Enter keeps it, esc drops it.",
           "chronex list --filter '{filter}'", JOB_SCREENS, rank=1),
    Action("open", "enter", "open",
           "Open what is selected: a job's runs, a run's output.", "", JOB_SCREENS, "job", rank=2),
    Action("menu", "a", "actions",
           "List everything that can be done to the selection.", "", JOB_SCREENS, "job", rank=3),
    Action("trigger", "t", "trigger",
           "Run the job now, whatever its schedule says; its overlap policy still holds.",
           "chronex trigger {job}", JOB_SCREENS, "job", writes=True, asks=True, rank=4, group="act"),
    Action("pause", "p", "pause/resume",
           "Pause the job, so that its runs are skipped, or resume it.",
           "chronex {pause} {job}", JOB_SCREENS, "job", writes=True, rank=5, group="act"),
    Action("undo", "u", "undo", "Take back the last pause or resume.", "", JOB_SCREENS, writes=True, group="act"),
    Action("replay", "R", "replay",
           "Run a past run again at its scheduled time, or all dead letters of the job.",
           "chronex replay {run}", JOB_SCREENS, "job", writes=True, asks=True, rank=7, group="act"),
    Action("cancel", "X", "cancel",
           "Cancel what runs now or waits for a retry.",
           "chronex cancel {live_run}", JOB_SCREENS, "live", writes=True, asks=True, rank=8, group="act"),
    Action("mark", "space", "mark",
           "Mark the job; trigger, pause and cancel then act on all that are marked.",
           "", ("jobs",), "job", group="act"),
    Action("log", "l", "log",
           "Show the output of the newest attempt; F follows it, / searches it.",
           "chronex logs {job}", JOB_SCREENS, "job", rank=6),
    Action("explain", "x", "explain",
           "Explain the schedule: what it means, when it runs, what clock changes do to it.",
           "chronex explain '{schedule}' --tz {zone}", JOB_SCREENS, "job", rank=9),
    Action("why", "w", "why",
           "Tell the whole chain: why it ran, ran late, or did not run.",
           "chronex why {job} {at}", JOB_SCREENS, "job", rank=8),
    Action("edit", "e", "edit",
           "Open the job's definition in $VISUAL or $EDITOR, at its line.", "", JOB_SCREENS, "job"),
    Action("try_", "n", "try a schedule",
           "Try a schedule: its meaning, next runs and mistakes, as you type.", "chronex explain '…'", rank=12),
    Action("states", "f", "by state",
           "Show only jobs or runs in one state, chosen from a list with counts.", "", ("jobs", "runs")),
    Action("sort", "s", "sort", "Sort by state, name, next or last run.", "", ("jobs",)),
    Action("reverse", "S", "reverse", "Turn the order round.", "", ("jobs",)),
    Action("columns", "c", "columns", "Choose the columns of the table, for this session.", "", ("jobs",)),
    Action("dead", "d", "dead letters",
           "Show only runs that gave up after their last attempt.", "chronex dlq list", ("runs",), rank=9),
    Action("zoom-in", "+", "zoom in", "See less time in more detail.", "", ("timeline",), rank=2),
    Action("zoom-out", "-", "zoom out", "See more time in less detail.", "", ("timeline",), rank=2),
    Action("earlier", "left", "earlier", "Move back in time.", "", ("timeline",), rank=1),
    Action("later", "right", "later", "Move forward in time.", "", ("timeline",), rank=1),
    Action("now", "0", "now", "Return to now.", "", ("timeline",), rank=3),
    Action("change-before", "[", "previous change",
           "Go to the clock change before this one.", "", ("clock",), rank=1),
    Action("change-after", "]", "next change", "Go to the clock change after this one.", "", ("clock",), rank=1),
    Action("policy", "space", "what if",
           "See the day under another clock-change policy; nothing is saved.", "", ("clock",), rank=2),
    Action("zone", "Z", "zone", "Choose the zone whose clock changes are shown.", "", ("clock",), rank=3),
    Action("past", "P", "past/coming week",
           "Count the past seven days instead of the coming ones.", "", ("density",), rank=1),
    Action("run-time", "D", "run time/starts",
           "Count minutes of run time instead of starts; what is to come takes as long as usual.",
           "", ("density",), rank=2),
    Action("crowd", "H", "spread",
           "Suggest other minutes for the jobs of the busiest minute; nothing is changed.", "", ("density",), rank=3),
    Action("times", "T", "times", "Tell times in each job's zone, in your own, or in UTC.", "", rank=10),
    Action("zoom", "z", "zoom panel", "Give the whole screen to the focused panel, or take it back.", "", rank=14),
    Action("copy", "y", "copy", "Copy a name, a schedule, an id or the shell command shown below.", "", rank=11),
    Action("freeze", "!", "freeze",
           "Hold the picture still; the store is followed again when you press it once more.", ""),
    Action("theme", "C", "colours", "Go through the colour themes.", "chronex tui --theme light"),
    Action("write", "W", "allow changes", "Leave read-only mode.", ""),
    Action("palette", ":", "palette", "Find any action by its name.", "", rank=13),
    Action("help", "?", "keys", "Show what every key does here.", "chronex tui --help", rank=98),
    Action("quit", "q", "quit", "Leave the dashboard.", "", rank=99),
)  # fmt: skip

BY_ID = {action.id: action for action in ACTIONS}
KEY_NAMES = {"space": "space", "left": "←", "right": "→", "enter": "enter"}


class KeyClashError(Exception):
    """Two actions of one screen share a key."""


def with_keys(keys: Mapping[str, str]) -> tuple[Action, ...]:
    """The registry with other keys for some actions, as [tui.keys] of the job file has them."""
    return tuple(replace(action, key=keys.get(name_of(action), action.key)) for action in ACTIONS)


def name_of(action: Action) -> str:
    """As a job file calls it."""
    return action.id.rstrip("_")


def check_keys(actions: Sequence[Action] = ACTIONS) -> None:
    """Refuse a registry in which a key means two things at once, naming both."""
    for screen in ALL:
        taken: dict[str, Action] = {}
        for action in actions:
            if screen in action.where and (other := taken.setdefault(action.key, action)) is not action:
                raise KeyClashError(f"the key {action.key} stands for {other.id} and {action.id} on {screen}")


def is_available(action: Action, context: Context) -> bool:
    """Can it be done here and now?"""
    if context.screen not in action.where:
        return False
    if action.id == "write":
        return context.is_read_only
    if action.writes and (context.is_read_only or not context.has_store):
        return False
    return {"": True, "job": bool(context.job), "live": context.is_live}[action.needs]


def available(context: Context) -> list[Action]:
    return [action for action in context.actions or ACTIONS if is_available(action, context)]


def action_for(key: str, context: Context) -> Action | None:
    return next((action for action in available(context) if action.key == key), None)


def key_text(action: Action) -> str:
    return KEY_NAMES.get(action.key, action.key)


def footer_keys(context: Context) -> list[tuple[str, str]]:
    """For the last line: the ranked actions that can be done, best first."""
    ranked = sorted((action for action in available(context) if action.rank), key=lambda action: action.rank)
    return [(key_text(action), _label(action, context)) for action in ranked]


def _label(action: Action, context: Context) -> str:
    if action.id == "pause":
        return "resume" if context.is_paused else "pause"
    return action.label


def shell_command(action: Action, context: Context, schedule: str = "") -> str:
    """The same from a shell. Names are safe by their pattern; a schedule is quoted."""
    if not action.shell or (action.needs and not context.job):
        return ""
    quoted = schedule.replace("'", "'\\''")
    filled = action.shell.format(
        job=context.job,
        run=context.run or f"--job {context.job}",
        live_run=context.live_run,
        at=context.run.partition("@")[2],
        pause="resume" if context.is_paused else "pause",
        schedule=quoted,
        zone=context.zone,
        filter=context.filter.replace("'", "'\\''"),
    )
    return filled.rstrip()


def help_lines(context: Context, cells: int, schedule: str = "") -> Iterator[Line]:
    """Every action of this screen with its sentence and its shell command."""
    titles = {"act": "Act", "look": "Look", "screens": "Screens"}
    for group, title in titles.items():
        yield ((title, "bold"),)
        for action in context.actions or ACTIONS:
            if action.group != group or context.screen not in action.where:
                continue
            style = "key" if is_available(action, context) else "dim"
            for number, piece in enumerate(wrap(action.sentence, max(cells - 9, 20))):
                yield ((fit(key_text(action) if number == 0 else "", 7) + "  ", style), (piece, ""))
            if command := shell_command(action, context, schedule):
                yield ((" " * 9, ""), (f"$ {command}", "dim"))
        yield ()
    yield (("Everywhere", "bold"),)
    for keys, sentence in MOVES:
        yield ((fit(keys, 16) + "  ", "key"), (sentence, ""))
    yield ()
    yield (("CAPITALS cannot be taken back and always ask. Looking never changes anything.", "dim"),)


MOVES = (
    ("j k ↓ ↑", "move; ctrl+d and ctrl+u by pages, g and G to the ends"),
    ("tab, shift+tab", "the next and the previous panel"),
    ("esc", "clear the filter, close, go back; it never quits"),
    ("ctrl+p", "the palette, as :"),
)
