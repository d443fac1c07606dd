"""`chronex tui`, and the dashboard of `chronex run`: the options, and what the dashboard needs."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chronex.cli.options import (
    STORE_VARIABLE,
    StorePath,
    UsageError,
    choose,
    choose_zone,
    job_file_path,
    read_file,
    store_location,
    store_path,
)
from chronex.cli.output import err, out, with_store_options
from chronex.text.terminal import terminal_safe

if TYPE_CHECKING:
    from chronex.timing.zones import Zone, ZoneChoice
    from chronex_tui.app import RunningEngine, StartOptions
    from chronex_tui.data import StoreSource
    from chronex_tui.launch import Picture
    from chronex_tui.model.snapshot import RunKey

SCREENS = ("jobs", "runs", "timeline", "clock", "density", "nodes", "graph", "groups")
THEMES = ("dark", "light", "colorblind", "ansi", "mono")
# The codes of a text that is no TOML: lint and apply report it; the dashboard only shows a store.
_UNREADABLE = ("J001", "J002", "J003")
_MOST_BYTES = 1 << 20
_LEAST_SIZE = (20, 6)
_MOST_SIZE = (400, 200)


def tui(
    store: StorePath = None,
    screen: Annotated[
        str,
        typer.Option(help="Open on jobs, runs, timeline, clock, density, nodes, graph or groups.", metavar="SCREEN"),
    ] = "jobs",
    job: Annotated[str | None, typer.Option(help="Select this job.", metavar="JOB")] = None,
    run: Annotated[str | None, typer.Option(help="Select this run: its id, or JOB@TIME.", metavar="RUN")] = None,
    log: Annotated[bool, typer.Option("--log", help="Open the output of the selected job or run.")] = False,
    tz: Annotated[
        str | None,
        typer.Option("--tz", help="Show times in this zone; on the clock screen, its changes.", metavar="ZONE"),
    ] = None,
    date: Annotated[str | None, typer.Option(help="Show clock changes from this day on.", metavar="DATE")] = None,
    filter_text: Annotated[
        str, typer.Option("--filter", help="Show only what matches, such as state:failed.", metavar="TEXT")
    ] = "",
    size: Annotated[
        str | None, typer.Option(help="Columns and rows of a picture, such as 120x40.", metavar="WxH")
    ] = None,
    print_: Annotated[bool, typer.Option("--print", help="Print one frame as text and exit.")] = False,
    screenshot: Annotated[
        str | None, typer.Option(help="Write one frame to an .svg file and exit.", metavar="FILE")
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Hide everything that changes something.")] = False,
    no_mouse: Annotated[
        bool, typer.Option("--no-mouse", help="Leave the mouse to the terminal, to select text with it.")
    ] = False,
    theme: Annotated[str | None, typer.Option(help="dark, light, colorblind, ansi or mono.", metavar="THEME")] = None,
    ascii_only: Annotated[bool, typer.Option("--ascii", help="Draw with ASCII characters only.")] = False,
    serve: Annotated[
        str | None,
        typer.Option(help="Serve it to a browser, read-only, such as on 127.0.0.1:8787.", metavar="HOST:PORT"),
    ] = None,
    allow_actions: Annotated[
        bool, typer.Option("--allow-actions", help="Let the browser trigger, pause, replay and cancel too.")
    ] = False,
) -> int:
    """Look at a store live: what runs, what failed and why, what comes next. Looking never changes anything.

    Example: chronex tui --screen clock
    """
    options = TuiOptions(
        store=store, screen=screen, job=job, run=run, log=log, tz=tz, date=date, filter=filter_text, size=size,
        print=print_, screenshot=screenshot, read_only=read_only, mouse=not no_mouse, theme=theme,
        ascii=ascii_only, allow_actions=allow_actions,
    )  # fmt: skip
    if serve is not None:
        return _serve(options, serve)
    if allow_actions:
        raise UsageError("--allow-actions is for the browser; use it with --serve HOST:PORT")
    return run_tui(options)


@dataclass(frozen=True, slots=True)
class TuiOptions:
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
    allow_actions: bool = False  # of a page in a browser


def run_tui(options: TuiOptions) -> int:
    """Attach to a store, whether its engine runs, is stopped, or the store is not there yet."""
    from chronex_tui.data import StoreAt

    return show_dashboard(options, StoreAt(store_location(options.store)))


def _serve(options: TuiOptions, address: str) -> int:
    """Options that are wrong are told here, not in every page."""
    from chronex.cli.browser_serving import serve_dashboard

    if options.print or options.screenshot is not None:
        raise UsageError("--serve shows pages, --print and --screenshot one picture; use one of them")
    _check_choices(options)
    location = store_location(options.store)
    store = str(location.absolute()) if isinstance(location, Path) else options.store
    return serve_dashboard(replace(options, store=store), address)


def browser_session(options: Annotated[str, typer.Argument()]) -> int:
    """What `chronex tui --serve` starts for each page: the dashboard, drawn into a pipe."""
    import msgspec

    from chronex_tui.data import StoreAt

    given = msgspec.json.decode(options, type=TuiOptions)
    return show_dashboard(given, StoreAt(store_location(given.store)), in_browser=True)


def can_show_dashboard() -> bool:
    """Is there a terminal that a full-screen program can have?"""
    from chronex_tui.launch import is_terminal

    return is_terminal(os.environ)


def run_with_dashboard(config: str | None, store: str | None) -> int:
    """`chronex run` at a terminal: the daemon, with the dashboard before it in a process of its own."""
    from chronex.cli.commands.run import run_daemon
    from chronex.cli.dashboard_process import DashboardProcess

    location = store_location(store)
    if isinstance(location, Path):
        foreground = DashboardProcess(location, config)
    else:
        named = store or os.environ[STORE_VARIABLE]
        foreground = DashboardProcess(None, config, {**os.environ, STORE_VARIABLE: named})
    return run_daemon(config, store, once=False, duration=None, log_format="text", foreground=foreground)


def dashboard(
    pipe: Annotated[int, typer.Argument()],
    store: Annotated[str, typer.Argument()],
    config: Annotated[str | None, typer.Argument()] = None,
) -> int:
    """What `chronex run` starts at a terminal: the dashboard of the daemon that has started this process."""
    from chronex.cli.dashboard_process import OF_ENVIRONMENT, DaemonProcess
    from chronex_tui.data import StoreAt

    daemon = DaemonProcess(pipe)
    location = store_location(None) if store == OF_ENVIRONMENT else Path(store)
    source = StoreAt(location)
    code = show_dashboard(TuiOptions(config=config), source, daemon)
    if not daemon.is_alive:
        err(f"chronex: the daemon has ended; start it again with: {_run_command(config, source)}")
        return 1
    return code


def _run_command(config: str | None, source: StoreSource) -> str:
    """What starts the same daemon from any directory."""
    import shlex

    path = job_file_path(config)
    file = f"--config {shlex.quote(str(path.absolute()))}" if path.exists() else ""
    return " ".join(part for part in ("chronex run", file, _store_option(source)) if part)


def _check_choices(options: TuiOptions) -> None:
    choose("--screen", options.screen, SCREENS)
    if options.theme is not None:
        choose("--theme", options.theme, THEMES)


def show_dashboard(
    options: TuiOptions, source: StoreSource, engine: RunningEngine | None = None, *, in_browser: bool = False
) -> int:
    """The dashboard on this store: as a session, or as one picture."""
    from chronex.cli.explain_text import explain_lines
    from chronex_tui.launch import NoTerminalError, choose_glyphs, choose_theme, run_dashboard, take_picture
    from chronex_tui.model.display import UNICODE

    _check_choices(options)
    picture = _picture(options)
    if picture is not None and options.job is not None:
        _check_job(options.job, source)
    zone = _zone(options)
    theme = choose_theme(options.theme, os.environ)
    if picture is not None and options.theme is None and picture.file is not None:
        theme = "dark"  # a picture is shown elsewhere, so the limits of this terminal do not matter
    requested = _dashboard_options(options, zone.zone, theme, source)
    if in_browser:
        may_write = options.allow_actions
        requested = replace(requested, in_browser=True, is_read_only=not may_write, is_locked=not may_write)
    glyphs = choose_glyphs({} if picture is not None else os.environ, ascii_only=options.ascii)
    is_elsewhere = in_browser or (picture is not None and picture.file is not None)
    if is_elsewhere and not options.ascii:
        glyphs = UNICODE  # whatever the locale here
    if picture is not None:
        _check_that_it_opens(source)
        text = take_picture(source, zone.zone, requested, glyphs, picture, explain=explain_lines)
        if options.print:
            out(text)
        return 0
    try:
        return run_dashboard(
            source, zone.zone, requested, glyphs, mouse=options.mouse, explain=explain_lines, engine=engine
        )
    except NoTerminalError as error:
        err(f"chronex: {error}")
        return 2


def _check_that_it_opens(source: StoreSource) -> None:
    """A picture is made for a program or a report: where the store cannot be opened it would show nothing true."""
    if not source.is_missing():
        source.release(source.open())


def _zone(options: TuiOptions) -> ZoneChoice:
    from chronex.timing.zones import host_zone

    return host_zone() if options.tz is None else choose_zone(options.tz)


def _dashboard_options(options: TuiOptions, zone: Zone, theme: str, source: StoreSource) -> StartOptions:
    from chronex_tui.app import StartOptions

    run = _run_key(options.run, source) if options.run else None
    screen = "runs" if run is not None and options.screen == "jobs" else options.screen
    return StartOptions(
        screen=screen,
        job=options.job or (run.job if run else ""),
        run=run,
        log=options.log,
        zone=zone.name if options.tz is not None and screen == "clock" else "",
        since_ms=_since(options.date, zone),
        filter=options.filter,
        is_read_only=options.read_only,
        theme=theme,
        keys=_own_keys(options.config),
        store_option=_store_option(source),
        hinted=lambda text: with_store_options(text, _store_option(source), ""),
    )


def _store_option(source: StoreSource) -> str:
    """What names this store in another shell, where CHRONEX_STORE and the directory are not the same."""
    import shlex

    if source.shown != str(source.path):
        return f"--store {shlex.quote(source.shown)}"
    path = source.path
    return "" if path.absolute() == store_path(None, {}) else f"--store {shlex.quote(str(path.absolute()))}"


def _own_keys(config: str | None) -> dict[str, str]:
    """The user's own keys. A job file that is missing or cannot be read does not stop the dashboard."""
    path = job_file_path(config)
    try:
        data = read_file(path, _MOST_BYTES)
    except OSError:
        return {}
    if b"tui" not in data or path.suffix == ".json":
        return {}  # no keys are set, so the reader is not loaded
    from chronex.jobfile import JobFileError, read_keys

    try:
        return read_keys(data, str(path))
    except JobFileError as error:
        if any(problem.code in _UNREADABLE for problem in error.problems):
            return {}
        raise UsageError(str(error)) from None


def _since(text: str | None, zone: Zone) -> int | None:
    from datetime import datetime

    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--date: {text!r} is not a day; write 2027-03-28") from None
    return round(moment.replace(tzinfo=moment.tzinfo or zone.tzinfo).timestamp() * 1000)


def _check_job(name: str, source: StoreSource) -> None:
    """A picture of another job than the one that was named would be a lie; a session says it in a notice."""
    from chronex.engine.commands.names import job_named
    from chronex.storage.records import Reading

    store = source.open()
    try:
        store.view(lambda tx: job_named(Reading(tx), name))
    finally:
        source.release(store)


def _run_key(text: str, source: StoreSource) -> RunKey:
    """An id, a beginning of one, or JOB@TIME, as `chronex history` prints them."""
    from chronex.engine.commands.names import find
    from chronex.storage.records import Reading
    from chronex_tui.model.snapshot import RunKey

    store = source.open()
    try:
        named = store.view(lambda tx: find(Reading(tx), text))
    finally:
        source.release(store)
    return RunKey(named.job, named.nominal_ms)


def _picture(options: TuiOptions) -> Picture | None:
    from chronex_tui.launch import Picture

    if not options.print and options.screenshot is None:
        if options.size is not None:
            raise UsageError("--size is for pictures; use it with --print or --screenshot FILE")
        return None
    file = None if options.screenshot is None else Path(options.screenshot)
    if file is not None and file.suffix != ".svg":
        name = terminal_safe(file.name)
        hint = f"use --screenshot {terminal_safe(str(file.parent / file.stem))}.svg, which every browser shows"
        raise UsageError(f"--screenshot: Chronex writes SVG, and {name!r} does not end in .svg; {hint}")
    return Picture(_size(options.size), file)


def _size(text: str | None) -> tuple[int, int]:
    if text is None:
        found = shutil.get_terminal_size((120, 40))
        return (found.columns, found.lines)
    width, _, height = text.lower().partition("x")
    if not (width.isdecimal() and height.isdecimal()):
        raise UsageError(f"--size: {terminal_safe(text)!r} is not a size; write 120x40")
    size = (int(width), int(height))
    if not (_LEAST_SIZE[0] <= size[0] <= _MOST_SIZE[0] and _LEAST_SIZE[1] <= size[1] <= _MOST_SIZE[1]):
        raise UsageError(f"--size: {terminal_safe(text)} is out of range; 20x6 to 400x200")
    return size
