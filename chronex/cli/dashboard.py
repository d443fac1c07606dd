"""tui, and the dashboard half of run: what the options mean, and what the dashboard is given to work with."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from chronex.cli.arguments import UsageError, ZoneChoice, choose_zone, host_zone
from chronex.cli.expressions import choose
from chronex.cli.places import job_file_path, read_file, store_path
from chronex.cli.terminal import err, inert, out
from chronex.timing.zones import Zone, load_zone

if TYPE_CHECKING:
    from chronex_tui.app import Engine, Wishes
    from chronex_tui.launch import Picture
    from chronex_tui.live import Source
    from chronex_tui.model.snapshot import RunKey

SCREENS = ("jobs", "runs", "timeline", "clock", "density")
THEMES = ("dark", "light", "colorblind", "ansi", "mono")
# The text is no TOML: lint and apply say so; the dashboard shows a store.
_UNREADABLE = ("J001", "J002", "J003")
_MOST_BYTES = 1 << 20
_LEAST, _MOST = (20, 6), (400, 200)


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of `chronex tui` as they were given."""

    store: str | None = None
    screen: str = "jobs"
    job: str | None = None
    run: str | None = None
    log: bool = False
    tz: str | None = None
    date: str | None = None
    filter: str = ""
    size: str | None = None
    print: bool = False
    screenshot: str | None = None
    read_only: bool = False
    mouse: bool = True
    theme: str | None = None
    ascii: bool = False
    config: str | None = None  # the job file, whose [tui.keys] counts


def run_tui(asked: Asked) -> int:
    """Attach to a store, whether its engine runs, is stopped, or the store is not there yet."""
    from chronex_tui.live import StoreAt

    return show(asked, StoreAt(store_path(asked.store, os.environ)))


def is_wanted() -> bool:
    """Is there a terminal that a full-screen program can have?"""
    from chronex_tui.terminal import is_terminal

    return is_terminal(os.environ)


def run_with_dashboard(config: str | None, store: str | None) -> int:
    """`chronex run` at a terminal: the engine on a thread, the dashboard before it, and both end together."""
    from chronex.cli.jobs import run_daemon
    from chronex.daemon.engine_thread import EngineThread
    from chronex_store import LmdbStore
    from chronex_tui.live import SharedStore

    def beside(opened: LmdbStore, engine: EngineThread) -> int:
        code = show(Asked(config=config), SharedStore(opened, store_path(store, os.environ)), engine)
        if engine.is_alive:
            err("chronex: stopping; what runs has its grace period to end, Ctrl+C leaves at once")
        return code

    return run_daemon(config, store, once=False, duration=None, log_format="text", beside=beside)


def show(asked: Asked, source: Source, engine: Engine | None = None) -> int:
    """The dashboard on this store: as a session, or as one picture."""
    from chronex_tui.launch import NoTerminalError, run_dashboard, take_picture
    from chronex_tui.terminal import choose_glyphs, choose_theme

    choose("--screen", asked.screen, SCREENS)
    if asked.theme is not None:
        choose("--theme", asked.theme, THEMES)
    picture = _picture(asked)
    zone = _zone(asked)
    theme = choose_theme(asked.theme, os.environ)
    if picture is not None and asked.theme is None and picture.file is not None:
        theme = "dark"  # a picture is looked at elsewhere: this terminal's limits are not its own
    wishes = _wishes(asked, zone.zone, theme, source)
    glyphs = choose_glyphs({} if picture is not None else os.environ, ascii_only=asked.ascii)
    if picture is not None:
        text = take_picture(source, zone.zone, wishes, glyphs, picture, explain=explain_lines)
        if asked.print:
            out(text)
        return 0
    try:
        return run_dashboard(
            source, zone.zone, wishes, glyphs, mouse=asked.mouse, explain=explain_lines, engine=engine
        )
    except NoTerminalError as error:
        err(f"chronex: {error}")
        return 2


def _zone(asked: Asked) -> ZoneChoice:
    return host_zone() if asked.tz is None else choose_zone(asked.tz)


def _wishes(asked: Asked, zone: Zone, theme: str, source: Source) -> Wishes:
    from chronex_tui.app import Wishes

    run = _run_key(asked.run, source) if asked.run else None
    screen = "runs" if run is not None and asked.screen == "jobs" else asked.screen
    return Wishes(
        screen=screen,
        job=asked.job or (run.job if run else ""),
        run=run,
        log=asked.log,
        zone=zone.name if asked.tz is not None and screen == "clock" else "",
        since_ms=_since(asked.date, zone),
        filter=asked.filter,
        is_read_only=asked.read_only,
        theme=theme,
        keys=_own_keys(asked.config),
    )


def _own_keys(config: str | None) -> dict[str, str]:
    """The user's own keys. A job file that is not there or cannot be read keeps nobody from looking."""
    path = job_file_path(config, os.environ)
    try:
        data = read_file(path, _MOST_BYTES)
    except OSError:
        return {}
    if b"tui" not in data or path.suffix == ".json":
        return {}  # the reader is not loaded for nothing
    from chronex.jobfile import JobFileError, read_keys

    try:
        return read_keys(data, str(path))
    except JobFileError as error:
        if any(problem.code in _UNREADABLE for problem in error.problems):
            return {}
        raise UsageError(str(error)) from None


def _since(text: str | None, zone: Zone) -> int | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--date: {text!r} is not a day; write 2027-03-28") from None
    return round(moment.replace(tzinfo=moment.tzinfo or zone.tzinfo).timestamp() * 1000)


def _run_key(text: str, source: Source) -> RunKey:
    """An id, a beginning of one, or JOB@TIME, as `chronex history` prints them."""
    from chronex.engine.commands.names import find
    from chronex.storage.records import Reading
    from chronex_tui.model.snapshot import RunKey

    store = source.open()
    try:
        named = store.view(lambda tx: find(Reading(tx), text))
    finally:
        source.let_go(store)
    return RunKey(named.job, named.nominal_ms)


def _picture(asked: Asked) -> Picture | None:
    from chronex_tui.launch import Picture

    if not asked.print and asked.screenshot is None:
        if asked.size is not None:
            raise UsageError("--size is for pictures; use it with --print or --screenshot FILE")
        return None
    file = None if asked.screenshot is None else Path(asked.screenshot)
    if file is not None and file.suffix != ".svg":
        hint = f"use --screenshot {inert(str(file.parent / file.stem))}.svg, which every browser shows"
        raise UsageError(f"--screenshot: Chronex writes SVG, and {inert(file.name)!r} does not end in .svg; {hint}")
    return Picture(_size(asked.size), file)


def _size(text: str | None) -> tuple[int, int]:
    if text is None:
        found = shutil.get_terminal_size((120, 40))
        return (found.columns, found.lines)
    width, _, height = text.lower().partition("x")
    if not (width.isdecimal() and height.isdecimal()):
        raise UsageError(f"--size: {inert(text)!r} is not a size; write 120x40")
    size = (int(width), int(height))
    if not (_LEAST[0] <= size[0] <= _MOST[0] and _LEAST[1] <= size[1] <= _MOST[1]):
        raise UsageError(f"--size: {inert(text)} is out of range; 20x6 to 400x200")
    return size


def explain_lines(text: str, dialect: str, zone_name: str, since_ms: int) -> list[str]:
    """The same words as `chronex explain`, line by line; its mistakes with carets where it has any."""
    from chronex.cli.carets import caret_lines
    from chronex.cli.explain import explain
    from chronex.cli.explain_text import render
    from chronex.timing import parse, validate

    choice = ZoneChoice(load_zone(zone_name), "the job's")
    result = validate(text, dialect, choice.zone.tzinfo, since_ms)
    if not result.is_valid:
        return list(caret_lines(text, result.errors))
    expression = parse(text, dialect, choice.zone.tzinfo, reference_ms=since_ms)
    return list(render(explain(text, expression, result.warnings, choice, since_ms, 5, None, None)))
