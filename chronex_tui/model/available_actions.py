"""Which actions can be done now, and how the footer, the help screen and the command line show them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chronex.jobfile.keymap import ACTIONS, DashboardAction, key_clashes
from chronex.views.jobs import Row
from chronex.views.troubles import file_of_all
from chronex_tui.model.layout import Line, Span, fit, line_width, wrap

_KEY_NAMES = {"left": "←", "right": "→"}
_NO_OPTIONS = "-- "  # what follows is no option
_GROUPS = {"commands": "Commands", "view": "View", "screens": "Screens"}
_MOVES = (
    ("j k ↓ ↑", "move; ctrl+d, ctrl+u a page; g, G to the ends"),
    ("tab shift+tab", "next and previous panel"),
    ("esc", "clear the filter, close, go back; it never quits"),
    ("ctrl+p", "the palette, as :"),
)


@dataclass(frozen=True, slots=True)
class ActionContext:
    """What is selected, and what may be done to it."""

    screen: str
    job: str = ""
    run: str = ""  # the selected occurrence, as commands name it
    live_run: str = ""  # the occurrence that runs
    node: str = ""  # the id of the selected node
    is_draining: bool = False
    zone: str = "UTC"  # of the selected job
    schedule: str = ""  # of the selected job; empty where only a program can read it
    dialect: str = "chronex"
    store: str = ""  # the option that names the store, where it is not the default one
    is_read_only: bool = False
    is_live: bool = False  # the selected job or run has something running or waiting for a retry
    is_paused: bool = False
    filter: str = ""
    has_store: bool = True
    is_locked: bool = False  # read-only, and no key leaves that
    in_browser: bool = False
    actions: tuple[DashboardAction, ...] = ACTIONS  # with the keys that the user has chosen


class KeyClashError(Exception):
    """Two actions of one screen share a key."""


def check_keys(actions: Sequence[DashboardAction]) -> None:
    """Refuse a table in which one key has two actions on one screen, naming both."""
    for clash in key_clashes(actions):
        raise KeyClashError(str(clash))


def is_available(action: DashboardAction, context: ActionContext) -> bool:
    """Can the action be done here and now?"""
    if context.screen not in action.screens:
        return False
    if action.id == "write":
        return context.is_read_only and not context.is_locked
    if action.id == "edit" and context.in_browser:
        return False  # the editor would open where the server runs
    if action.writes and (context.is_read_only or not context.has_store):
        return False
    return {"": True, "job": bool(context.job), "live": context.is_live, "node": bool(context.node)}[action.needs]


def available(context: ActionContext) -> list[DashboardAction]:
    return [action for action in context.actions if is_available(action, context)]


def action_for(key: str, context: ActionContext) -> DashboardAction | None:
    return next((action for action in available(context) if action.key == key), None)


def actions_named(actions: Sequence[DashboardAction], text: str) -> list[DashboardAction]:
    """Those that the text can mean, the likeliest first: by the title, then by a word of the help text."""
    wanted = text.strip().lower()
    ranked = [(_rank(action, wanted), action) for action in actions]
    return [action for rank, action in sorted(ranked, key=lambda pair: pair[0]) if rank < _NO_RANK]


_NO_RANK = 9


def _rank(action: DashboardAction, wanted: str) -> int:
    title, words = action.title.lower(), action.help.lower()
    tests = (
        wanted in (title, action.key),
        title.startswith(wanted),
        any(word.startswith(wanted) for word in title.replace("/", " ").split()),
        wanted in title,
        f" {wanted}" in f" {words}",
        wanted in words,
    )
    return next((rank for rank, holds in enumerate(tests) if holds), _NO_RANK)


def key_text(action: DashboardAction) -> str:
    return _KEY_NAMES.get(action.key, action.key)


def footer_keys(context: ActionContext) -> list[tuple[str, str]]:
    """The keys and titles of the last line: the ranked actions that can be done, most useful first."""
    ranked = sorted((action for action in available(context) if action.rank), key=lambda action: action.rank)
    return [(key_text(action), _footer_title(action, context)) for action in ranked]


def _footer_title(action: DashboardAction, context: ActionContext) -> str:
    if action.id == "pause":
        return "resume" if context.is_paused else "pause"
    if action.id == "drain":
        return "undrain" if context.is_draining else "drain"
    return action.title


def shell_command(action: DashboardAction, context: ActionContext) -> str:
    """The same from any shell: it names the store. Names of jobs are safe by their pattern, other text is quoted."""
    needed = {"job": context.job, "live": context.live_run, "node": context.node, "": "nothing"}[action.needs]
    if not action.command or not needed or ("{schedule}" in action.command and not context.schedule):
        return ""
    filled = action.command.format(
        job=as_argument(context.job),
        run=as_argument(context.run) or as_option("--job", context.job),
        run_or_job=as_argument(context.run or context.job),
        live_run=as_argument(context.live_run),
        at=context.run.partition("@")[2],
        pause="resume" if context.is_paused else "pause",
        drain="undrain" if context.is_draining else "drain",
        node=context.node,
        schedule=quoted_for_shell(context.schedule),
        zone=context.zone,
        dialect="" if context.dialect == "chronex" else f"--dialect {context.dialect}",
        filter=quoted_for_shell(context.filter),
        graph_of=as_option("--job", context.job) if context.job else "",
    ).rstrip()
    return on_store(filled, context.store) if action.reads_store else filled


def as_argument(name: str) -> str:
    """A store that a program or an older version has written may have jobs whose names look like options."""
    return f"{_NO_OPTIONS}{name}" if name.startswith("-") else name


def as_option(option: str, value: str) -> str:
    return f"{option}={value}" if value.startswith("-") else f"{option} {value}"


def on_store(command: str, store: str) -> str:
    """The command with the option that names the store; where only arguments may follow, before them."""
    head, apart, arguments = command.partition(f" {_NO_OPTIONS}")
    return f"{head} {store}{apart}{arguments}" if store else command


def daemon_command(rows: Sequence[Row], store: str) -> str:
    """What starts a daemon on this store from any shell, with the job file where all jobs are of one."""
    file = file_of_all(row.job for row in rows)
    config = f" --config {shlex.quote(file)}" if file else ""
    return on_store(f"chronex run --headless{config}", store)


def quoted_for_shell(text: str) -> str:
    """The text as it stands between single quotes."""
    return text.replace("'", "'\\''")


def help_lines(context: ActionContext, cells: int) -> Iterator[Line]:
    """Every action of this screen with its sentence and its shell command."""
    for group, title in _GROUPS.items():
        yield ((title, "bold"),)
        for action in _of_screen(context):
            if action.group == group:
                yield from _action_help(action, context, cells)
        yield ()
    yield (("Everywhere", "bold"),)
    for keys, sentence in _MOVES:
        yield ((fit(keys, 16) + "  ", "key"), (sentence, ""))
    yield ()
    yield (("CAPITALS cannot be undone and always ask. Moving and viewing change nothing.", "dim"),)


def help_page(context: ActionContext, cells: int) -> list[Line]:
    """Every key of this screen with a word or two, in columns: one page of a small terminal."""
    lines: list[Line] = []
    titles = [_footer_title(one, context) for one in _of_screen(context) if one.group != "screens"]
    column = 7 + max(map(len, titles), default=0) + 1
    columns = max(cells // column, 1)
    for group, title in _GROUPS.items():
        actions = [one for one in _of_screen(context) if one.group == group]
        if not actions:
            continue
        lines.append(((title, "bold"),))
        if group == "screens":
            lines += _screens(actions, cells)
            continue
        rows = -(-len(actions) // columns)
        for row in range(rows):
            spans: list[Span] = []
            for action in actions[row::rows]:
                style = "key" if is_available(action, context) else "dim"
                spans += [
                    (f"{fit(key_text(action), 6)} ", style),
                    (fit(_footer_title(action, context), column - 8) + " ", ""),
                ]
            lines.append(tuple(spans))
    lines.append((("Everywhere", "bold"),))
    for keys, sentence in _MOVES[:-1]:
        pieces = wrap(sentence, max(cells - 16, 20))
        lines += [((fit(keys if not n else "", 15) + " ", "key"), (piece, "")) for n, piece in enumerate(pieces)]
    sentence = "CAPITALS that change something ask first. : explains, a has commands."
    return [*lines, *(((piece, "dim"),) for piece in wrap(sentence, max(cells, 20)))]


def _screens(actions: Sequence[DashboardAction], cells: int) -> list[Line]:
    """The screens side by side, as many as fit on a line."""
    lines: list[Line] = []
    spans: list[Span] = []
    for action in actions:
        pair: list[Span] = [(f"{key_text(action)} ", "key"), (f"{action.title} ", "")]
        if spans and line_width((*spans, *pair)) > cells:
            lines.append(tuple(spans))
            spans = []
        spans += pair
    return [*lines, tuple(spans)]


def _of_screen(context: ActionContext) -> list[DashboardAction]:
    """The actions of this screen; those that need a terminal or leave read-only mode only where they can be done."""
    return [
        action
        for action in context.actions
        if context.screen in action.screens and (action.id not in ("write", "edit") or is_available(action, context))
    ]


def _action_help(action: DashboardAction, context: ActionContext, cells: int) -> Iterator[Line]:
    style = "key" if is_available(action, context) else "dim"
    for number, piece in enumerate(wrap(action.help, max(cells - 9, 20))):
        yield ((fit(key_text(action) if number == 0 else "", 7) + "  ", style), (piece, ""))
    if command := shell_command(action, context):
        yield ((" " * 9, ""), (f"$ {command}", "dim"))
