"""The lines around the tables: the two at the top, the keys at the bottom, and what an empty screen says."""

from __future__ import annotations

from collections.abc import Sequence

from chronex.jobfile.keymap import SCREENS
from chronex.model.reasons import TroubleCode
from chronex.model.records import Node
from chronex.text.durations import elapsed, largest_unit
from chronex.text.terminal import cell_safe, cell_width
from chronex.views.jobs import Situation, Summary
from chronex.views.nodes import SILENT_AFTER_MS, shown_name
from chronex_tui.model.display import STYLES, DisplaySettings, abbreviation, count, exact_clock_time
from chronex_tui.model.layout import Line, Span, crop, fit_line, line_width, spread, wrap
from chronex_tui.model.snapshot import Snapshot

_LONGEST_TROUBLE = 48
_COUNTED = (Situation.RUNNING, Situation.RETRYING, Situation.FAILED, Situation.QUEUED, Situation.PAUSED)


def top_line(
    snapshot: Snapshot,
    display: DisplaySettings,
    screen: str,
    cells: int,
    *,
    is_read_only: bool = False,
    is_alone: bool = False,
) -> Line:
    """The screens, the daemon and the time; `is_alone` where it has to name the zone of the times as well."""
    right = tuple(_alone(snapshot, display) if is_alone else _daemon_and_time(snapshot, display, cells))
    if is_read_only and cells >= 90:
        right = (("read-only  ", "dim"), *right)
    return spread(_tabs(screen, cells - line_width(right)), right, cells, display.glyphs.ellipsis)


def _daemon_and_time(snapshot: Snapshot, display: DisplaySettings, cells: int) -> list[Span]:
    zone = display.board_zone
    time = f"{exact_clock_time(display.now_ms, zone)} {abbreviation(display.now_ms, zone)} "
    if cells < 72:
        return [*daemon_words(snapshot, display, is_long=False)[:1], (" ", "")]
    if cells >= 90:
        return [*daemon_words(snapshot, display, is_long=cells >= 110), ("  ", ""), (time, "")]
    daemon = daemon_words(snapshot, display, is_long=False)
    if snapshot.is_daemon_alive and not _silent_nodes(snapshot, display.now_ms):
        del daemon[1:]  # its sign alone says that all is well
    elif daemon:
        time = f"{exact_clock_time(display.now_ms, zone)[:5]} "  # the words need the room; the next line has the zone
    return [*daemon, (" ", ""), (time, "")]


def _alone(snapshot: Snapshot, display: DisplaySettings) -> list[Span]:
    zone = "job zones" if display.times == "job" else abbreviation(display.now_ms, display.board_zone)
    return [*daemon_words(snapshot, display, is_long=False)[:1], (f" {zone} ", "dim")]


# Names of screens where there is no room for all of them in full.
_SHORT_NAMES = {"timeline": "Time", "density": "Dens"}
_INITIALS = {"groups": "Gp"}


def _tabs(screen: str, cells: int) -> Line:
    """The screens with their keys. With less room names become shorter, and only the open one keeps its name."""
    names = [name.capitalize() for name in SCREENS]
    short = [_SHORT_NAMES.get(name, name.capitalize()) for name in SCREENS]
    initials = [_INITIALS.get(name, name.capitalize()[:2]) for name in SCREENS]
    only = [name if other == screen else "" for name, other in zip(short, SCREENS, strict=True)]
    title = (" chronex ", "title")
    forms = [(title, names, " "), (title, short, " "), (None, short, " "), (None, short, ""), (None, initials, ""),
             (None, only, "")]  # fmt: skip
    for head, labels, gap in forms:
        spans = [] if head is None else [head]
        for number, (name, label) in enumerate(zip(SCREENS, labels, strict=True), 1):
            text = f" {number} {label}{gap}" if label else f" {number}"
            spans.append((text, "tab-here" if name == screen else "tab"))
        if line_width(tuple(spans)) <= cells:
            break
    return tuple(spans)


def daemon_words(snapshot: Snapshot, display: DisplaySettings, *, is_long: bool) -> list[Span]:
    if not snapshot.is_known or (snapshot.is_refused and not snapshot.rows):
        return []  # nothing is known of a daemon
    node = snapshot.summary.daemon if snapshot.summary is not None else None
    if node is None:
        return [(display.glyphs.down, "retry"), (" stopped" if not is_long else " daemon stopped", "retry")]
    if any(one.id == node.id for one in _silent_nodes(snapshot, display.now_ms)):
        return [(display.glyphs.unsure, "retry"), (" daemon silent" if is_long else " silent", "retry")]
    up = f" daemon up {largest_unit(display.now_ms - node.started_ms)}" if is_long else " daemon"
    return [(display.glyphs.up, "ok"), (up, "")]


def counts_line(
    snapshot: Snapshot,
    display: DisplaySettings,
    cells: int,
    filter_text: str,
    matched: int,
    frozen: str = "",
    problem: str = "",
) -> Line:
    """What runs, what failed, what waits; then the filter and how much of all it shows."""
    total = len(snapshot.rows)
    if snapshot.problem:
        style = "failed" if snapshot.rows else "dim"  # without jobs nothing is lost
        said = f" {cell_safe(snapshot.problem)}"
        if cell_width(said) > cells:  # what to do about it is left out rather than cut in the middle of a command
            said = said.partition("; ")[0]
        return fit_line(((said, style),), cells, display.glyphs.ellipsis)
    right: list[Span] = [(f"frozen {frozen}   ", "retry")] if frozen else []
    if problem:
        right.append((f"{cell_safe(problem)}   ", "failed"))
    elif filter_text:
        right.append((f"filter: {cell_safe(filter_text)}   ", "key"))
    jobs = f"{count(total, 'job')} "
    right.append((f"{matched:,} of {jobs}" if filter_text else jobs, "dim"))
    # The zone is always named, because times of several zones look alike; all else becomes shorter for it.
    zone = display.times_text
    long, short, city = f"times in {zone} (T)   ", f"{zone} (T)   ", f"{zone.rpartition('/')[2]} (T)   "
    every, words, signs = (_counts(snapshot.summary, display, detail) for detail in (2, 1, 0))
    every = [*every, *_waiting_notices(snapshot)]
    worded: list[tuple[list[Span], str]] = [(every, long), (words, long), (words, short), (words, city)]
    bare: list[tuple[list[Span], str]] = [(signs, short), (signs, city)]
    if trouble := worst_trouble(snapshot, display.now_ms):
        trouble_spans: list[Span] = [(trouble, "failed")]
        brief: list[Span] = [(trouble.partition(", ")[0], "failed")]
        named = [(counts + trouble_spans, label) for counts, label in worded]
        named += [(words + brief, label) for label in (short, city)]
        signed = [(signs + text, label) for text in (trouble_spans, brief) for label in (short, city)]
        # A job that failed stands in the table too; what is wrong with the daemon or the store stands nowhere else,
        # and is worth more than the words beside the signs.
        is_of_daemon = bool(_silent_nodes(snapshot, display.now_ms) or _of_store(snapshot))
        worded[:0] = [*named, *signed] if is_of_daemon else named
        bare[:0] = signed
    ways = worded + bare
    left, label = next((way for way in ways if line_width((*way[0], (way[1], ""), *right)) + 2 <= cells), ways[-1])
    right.insert(0, (label, "dim"))
    while len(right) > 1 and line_width((*left, *right)) > cells:
        widest = max(range(len(right) - 1), key=lambda number: line_width((right[number],)))
        text, style = right.pop(widest)
        free_cells = cells - line_width((*left, *right)) - 2
        if free_cells > 12:
            right.insert(widest, (crop(text.rstrip(), free_cells, display.glyphs.ellipsis) + "  ", style))
    return spread(tuple(left), tuple(right), cells, display.glyphs.ellipsis)


def worst_trouble(snapshot: Snapshot, now_ms: int) -> str:
    """The one thing that needs a person first; empty where nothing does."""
    found = _silent_node(snapshot, now_ms) or _of_store(snapshot) or _failing_job(snapshot) or _late_job(snapshot)
    return f"worst: {found}" if found else ""


def _of_store(snapshot: Snapshot) -> str:
    """What is wrong with the store or its schedulers; that none runs has a line of its own."""
    found = [one for one in snapshot.troubles if one.code is not TroubleCode.NO_SCHEDULER]
    return cell_safe(found[0].words)[:_LONGEST_TROUBLE] if found else ""


def _silent_node(snapshot: Snapshot, now_ms: int) -> str:
    for node in _silent_nodes(snapshot, now_ms):
        return f"{cell_safe(shown_name(node))} silent for {largest_unit(now_ms - node.seen_ms)}"
    return ""


def _silent_nodes(snapshot: Snapshot, now_ms: int) -> list[Node]:
    """Schedulers whose process is there and gives no sign of life: a snapshot stays as old as the last commit."""
    listed = snapshot.summary.nodes if snapshot.summary is not None else ()
    living = [one.node for one in listed if one.is_alive and one.node.stopped_ms is None]
    return [node for node in living if now_ms - node.seen_ms > SILENT_AFTER_MS]


def _failing_job(snapshot: Snapshot) -> str:
    """The job that has failed most often in a row."""
    failing = [row for row in snapshot.rows if row.situation is Situation.FAILED]
    if not failing:
        return ""
    worst = max(failing, key=lambda row: row.job.progress.counters.failures_in_a_row)
    in_a_row = worst.job.progress.counters.failures_in_a_row
    often = f" {in_a_row} times in a row" if in_a_row > 1 else ""
    return f"{cell_safe(worst.job.shown_name)}, failed{often}"


def _late_job(snapshot: Snapshot) -> str:
    """The job that has been late for longest."""
    late = [row for row in snapshot.rows if row.job.progress.late_ms is not None and row.job.enabled]
    if not late:
        return ""
    worst = min(late, key=lambda row: row.job.progress.late_ms or 0)
    return f"{cell_safe(worst.job.shown_name)} is late"


def _counts(summary: Summary | None, display: DisplaySettings, detail: int) -> list[Span]:
    """0: signs alone; 1: with words; 2: with the dead letters too."""
    found: list[Span] = [(" ", "")]
    for situation in _COUNTED:
        found += _count(summary, situation, display, ("", "  ", "   ")[detail])
    if summary is not None and summary.dead_letters and detail > 1:
        found.append((f"{count(summary.dead_letters, 'dead letter')}   ", "failed"))
    return found


def _waiting_notices(snapshot: Snapshot) -> list[Span]:
    return [(f"{count(snapshot.notices, 'notice')} waiting   ", "retry")] if snapshot.notices else []


def _count(summary: Summary | None, situation: Situation, display: DisplaySettings, gap: str) -> list[Span]:
    """The sign and the number, and the word where a gap is to follow it."""
    number = summary.counts.get(situation, 0) if summary is not None else 0
    if not number and situation in (Situation.QUEUED, Situation.PAUSED):
        return []
    style = STYLES[situation] if number else "dim"
    sign = display.sign_of_job(situation) if number else display.glyphs.situation[situation]
    text = f"{sign} {number:,} "
    words = display.state_word(situation) if number else situation
    return [(text, style), (f"{words}{gap}" if gap else "  ", style if number else "dim")]


def stopped_line(command: str, copy_key: str, cells: int) -> Line:
    """That nothing will start, and the whole command that starts a daemon, or the key that copies it."""
    ways = [
        (" The daemon is stopped: nothing will start until it runs again.", command),
        (" The daemon is stopped:", command),
        (" The daemon is stopped: nothing will start.", f"{copy_key} copies the command that starts it"),
        (" The daemon is stopped.", f"{copy_key} copies how to start it"),
        (" Daemon stopped.", f"{copy_key} copies how"),
        (" Daemon stopped", ""),
    ]
    fits = (way for way in ways if cell_width(f"{way[0]} {way[1]} ") <= cells)
    text, then = next(fits, ways[-1])
    free_cells = cells - cell_width(f"{text}{then} ")
    return ((f"{text}{' ' * free_cells}{then} ", "bar"),)  # in one piece, so that the bar has no hole


def frozen_for(since_ms: int, now_ms: int) -> str:
    return elapsed(now_ms - since_ms)


def key_line(keys: Sequence[tuple[str, str]], cells: int) -> Line:
    """As many keys as fit, the most useful first; the last two always stay."""
    spans: list[Span] = [(" ", "")]
    tail = [span for key, label in keys[-2:] for span in ((key, "key"), (f" {label}  ", "dim"))]
    free_cells = cells - line_width(tuple(tail)) - 1
    for key, label in keys[:-2]:
        pair: list[Span] = [(key, "key"), (f" {label}  ", "dim")]
        if line_width((*spans, *pair)) > free_cells:
            break
        spans += pair
    return fit_line((*spans, *tail), cells, "")


def no_jobs(snapshot: Snapshot, store_option: str, cells: int) -> list[Line]:
    """What a new user sees first: how to begin, and where the store is."""
    if not snapshot.is_known:
        return [(("reading the store", "dim"),)]
    if snapshot.is_refused:
        return _refused(snapshot, store_option, cells)
    there = "no jobs in it yet" if snapshot.is_there and not snapshot.problem else "not made yet"
    daemon = "running" if snapshot.is_daemon_alive else "not running; jobs start only while it runs"
    store = f" {store_option}" if store_option else ""
    lines: list[Line] = [
        (),
        (("No jobs yet. Three ways to begin:", "bold"),),
        (),
        (("  chronex init             ", "key"), ("write a commented chronex.toml to start from", "")),
        (("  chronex import crontab   ", "key"), ("bring over the lines of your crontab", "")),
        (("  n                        ", "key"), ("try a schedule here: next runs as you type", "")),
        (),
        (("Then put the jobs into the store, and run them:", ""),),
        ((f"  chronex apply{store}", "key"),),
        ((f"  chronex run{store}", "key"),),
        (),
        (("  store   ", "label"), (f"{there}: ", ""), (cell_safe(snapshot.store_path), "dim")),
        (("  daemon  ", "label"), (daemon, "" if snapshot.is_daemon_alive else "retry")),
        (),
        (("Opening this screen changes nothing.", "dim"),),
    ]
    return lines if cells else []


def _refused(snapshot: Snapshot, store_option: str, cells: int) -> list[Line]:
    """There is a store, and what is in it is not known: nothing may be said of jobs."""
    problem = wrap(cell_safe(snapshot.problem), max(cells - 2, 10))
    doctor = wrap(f"chronex doctor {store_option}".strip(), max(cells - 2, 10))
    return [
        (),
        (("The store cannot be opened.", "failed"),),
        (),
        *(((f"  {piece}", ""),) for piece in problem),
        (),
        (("This looks for the cause; the dashboard tries again by itself:", "dim"),),
        *(((f"  {piece}", "key"),) for piece in doctor),
    ]


def no_match(text: str, jobs: int) -> list[Line]:
    return [
        (),
        ((f"0 of {jobs:,} jobs match ", ""), (cell_safe(text), "key")),
        (),
        (("esc", "key"), (" clears the filter", "dim")),
    ]


def no_runs(filter_text: str, *, only_dead: bool, cells: int) -> list[Line]:
    if filter_text:
        return [
            (),
            (("No run matches ", ""), (cell_safe(filter_text), "key")),
            (),
            (("esc", "key"), (" clears the filter", "dim")),
        ]
    if only_dead:
        return [
            (),
            (("No dead letters: nothing has given up.", "ok"),),
            (),
            (("d", "key"), (" shows all runs", "dim")),
        ]
    return [
        (),
        (("No run yet.", "bold"),),
        (),
        (("Runs appear here as they start, each with its attempts and output.", ""),),
        (("t", "key"), (" on the Jobs screen runs a job now.", "dim")),
    ]
