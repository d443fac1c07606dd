"""What an empty screen says: how to begin, where things are, and that looking changes nothing."""

from __future__ import annotations

from chronex_tui.model.cells import Line, shown
from chronex_tui.model.look import Look
from chronex_tui.model.snapshot import Snapshot


def no_jobs(snapshot: Snapshot, look: Look, cells: int) -> list[Line]:
    """The first thing a new user sees."""
    there = "no jobs in it yet" if snapshot.is_there and not snapshot.trouble else "not made yet"
    daemon = "running" if snapshot.daemon_lives else "not running; jobs start only while it runs"
    lines: list[Line] = [
        (),
        (("No jobs yet. Three ways to begin:", "bold"),),
        (),
        (("  chronex init     ", "key"), ("write a commented chronex.toml to start from", "")),
        (("  chronex import   ", "key"), ("bring over the lines of a crontab", "")),
        (("  n                ", "key"), ("try a schedule here: next runs as you type", "")),
        (),
        (("Then ", ""), ("chronex apply", "key"), (" puts the jobs into the store, and ", ""), ("chronex run", "key"),
         (" runs them.", "")),
        (),
        (("  store   ", "label"), (f"{there}: ", ""), (shown(snapshot.place), "dim")),
        (("  daemon  ", "label"), (daemon, "" if snapshot.daemon_lives else "retry")),
        (),
        (("Nothing is changed by looking at this screen.", "dim"),),
    ]  # fmt: skip
    return [tuple((text, style) for text, style in line) for line in lines] if cells else []


def no_match(text: str, jobs: int) -> list[Line]:
    return [
        (),
        ((f"0 of {jobs:,} jobs match ", ""), (shown(text), "key")),
        (),
        (("esc", "key"), (" clears the filter", "dim")),
    ]


def no_runs(filter_text: str, *, only_dead: bool, cells: int) -> list[Line]:
    if filter_text:
        return [
            (),
            (("No run matches ", ""), (shown(filter_text), "key")),
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
