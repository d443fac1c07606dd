"""The two lines at the top: where one is, who works, and how things stand."""

from __future__ import annotations

from collections.abc import Sequence

from chronex.views.jobs import Situation, Summary
from chronex_tui.model.cells import Line, Span, crop, fit_line, line_width, shown, spread
from chronex_tui.model.glyphs import STYLES
from chronex_tui.model.look import Look
from chronex_tui.model.snapshot import Snapshot
from chronex_tui.model.wording import abbreviation, away, count, elapsed, exact_clock

SCREENS = ("jobs", "runs", "timeline", "clock", "density")
_COUNTED = (Situation.RUNNING, Situation.RETRYING, Situation.FAILED, Situation.QUEUED, Situation.PAUSED)


def top_line(snapshot: Snapshot, look: Look, screen: str, cells: int, *, is_read_only: bool = False) -> Line:
    tabs: list[Span] = [(" chronex ", "title")] if cells >= 60 else []
    for number, name in enumerate(SCREENS, 1):
        text = f" {number} {name.capitalize()} " if cells >= 72 else f" {number} {name.capitalize()[:2]} "
        tabs.append((text, "tab-here" if name == screen else "tab"))
    zone = look.board_zone
    time = f"{exact_clock(look.now_ms, zone)} {abbreviation(look.now_ms, zone)} "
    gap = "  " if cells >= 90 else " "
    right: list[Span] = [*daemon_words(snapshot, look, is_long=cells >= 110), (gap, ""), (time, "")]
    if is_read_only and cells >= 90:
        right.insert(0, ("read-only  ", "dim"))
    if cells < 72:
        right = [*daemon_words(snapshot, look, is_long=False)[:1], (" ", "")]
    return spread(tuple(tabs), tuple(right), cells, look.glyphs.ellipsis)


def daemon_words(snapshot: Snapshot, look: Look, *, is_long: bool) -> list[Span]:
    node = snapshot.summary.daemon if snapshot.summary is not None else None
    if node is None:
        return [(look.glyphs.down, "retry"), (" stopped" if not is_long else " daemon stopped", "retry")]
    up = f" daemon up {away(look.now_ms - node.started_ms)}" if is_long else " daemon"
    return [(look.glyphs.up, "ok"), (up, "")]


def counts_line(
    snapshot: Snapshot, look: Look, cells: int, filter_text: str, matched: int, frozen: str = "", problem: str = ""
) -> Line:
    """What runs, what failed, what waits; then the filter and how much of all it shows."""
    total = len(snapshot.rows)
    if snapshot.trouble:
        style = "failed" if snapshot.rows else "dim"  # before there is anything to lose, it is no trouble yet
        return fit_line(((f" {shown(snapshot.trouble)}", style),), cells, look.glyphs.ellipsis)
    right: list[Span] = [(f"frozen {frozen}   ", "retry")] if frozen else []
    if problem:
        right.append((f"{shown(problem)}   ", "failed"))
    elif filter_text:
        right.append((f"filter: {shown(filter_text)}   ", "key"))
    right.append((f"{matched:,} of {total:,} jobs " if filter_text else f"{total:,} jobs ", "dim"))
    left = _counts(snapshot.summary, look, is_long=True)
    if line_width((*left, *right)) > cells:
        left = _counts(snapshot.summary, look, is_long=False)
    times = (f"times in {look.times_text} (T)   ", "dim")
    if line_width((*left, times, *right)) <= cells:
        right.insert(0, times)
    while len(right) > 1 and line_width((*left, *right)) > cells:
        text, style = right.pop(0)
        room = cells - line_width((*left, *right)) - 2
        if room > 12:
            right.insert(0, (crop(text.rstrip(), room, look.glyphs.ellipsis) + "  ", style))
    return spread(tuple(left), tuple(right), cells, look.glyphs.ellipsis)


def _counts(summary: Summary | None, look: Look, *, is_long: bool) -> list[Span]:
    found: list[Span] = [(" ", "")]
    for situation in _COUNTED:
        found += _count(summary, situation, look, is_long=is_long)
    if summary is not None and summary.dead_letters and is_long:
        found.append((f"{count(summary.dead_letters, 'dead letter')}   ", "failed"))
    return found


def _count(summary: Summary | None, situation: Situation, look: Look, *, is_long: bool) -> list[Span]:
    number = summary.counts.get(situation, 0) if summary is not None else 0
    if not number and situation in (Situation.QUEUED, Situation.PAUSED):
        return []
    style = STYLES[situation] if number else "dim"
    text = f"{look.glyphs.situation[situation]} {number:,} "
    return [(text, style), (f"{situation}   " if is_long else "  ", style if number else "dim")]


def frozen_for(since_ms: int, now_ms: int) -> str:
    return elapsed(now_ms - since_ms)


def key_line(keys: Sequence[tuple[str, str]], cells: int) -> Line:
    """As many keys as fit, the most useful first; the last two always stay."""
    spans: list[Span] = [(" ", "")]
    tail = [span for key, label in keys[-2:] for span in ((key, "key"), (f" {label}  ", "dim"))]
    room = cells - line_width(tuple(tail)) - 1
    for key, label in keys[:-2]:
        pair: list[Span] = [(key, "key"), (f" {label}  ", "dim")]
        if line_width((*spans, *pair)) > room:
            break
        spans += pair
    return fit_line((*spans, *tail), cells, "")
