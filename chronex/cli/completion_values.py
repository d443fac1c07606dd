"""What fits an option or an argument, by its placeholder: words that are known, or names of the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from chronex.storage.records import Reading

# The names that a store has: `chronex names KIND` prints them, and the completion scripts call it.
KINDS = ("jobs", "tags", "nodes")
_PLACEHOLDERS = {
    "jobs": ("JOB", "[JOB]", "JOB|RUN", "JOB|OCCURRENCE", "RUN", "RUN…", "OCCURRENCE"),
    "tags": ("TAG",),
    "nodes": ("NODE", "NODE]"),
}


def kind_of(placeholder: str) -> str:
    """What names of the store fit there; empty where none do. A run is named by its job first."""
    return next((kind for kind, found in _PLACEHOLDERS.items() if placeholder in found), "")


def known_words() -> Mapping[str, tuple[str, ...]]:
    """The words that fit a placeholder, as the commands themselves check them."""
    from chronex.cli.commands.tui import SCREENS, THEMES
    from chronex.expr.parser import DIALECTS
    from chronex.lint.findings import SEVERITIES
    from chronex.views.past_runs import STATES

    return {
        "SCREEN": SCREENS,
        "THEME": THEMES,
        "STATE": tuple(sorted(STATES)),
        "DIALECT": DIALECTS,
        "SEVERITY": SEVERITIES,
        "POLICY": ("immediate", "graceful", "windowed"),
        "SHELL": ("bash", "zsh", "fish"),
        "SOURCE": ("crontab", "systemd", "k8s"),
        "[ACTION": ("drain", "undrain", "forget"),
    }


def names_of(kind: str) -> Callable[[Reading], list[str]]:
    """How the names are read; each once, in order."""
    return {"jobs": _jobs, "tags": _tags, "nodes": _nodes}[kind]


_MOST = 10_000


def _jobs(reading: Reading) -> list[str]:
    return [job.shown_name for job in reading.jobs(limit=_MOST)]


def _tags(reading: Reading) -> list[str]:
    return sorted({tag for job in reading.jobs(limit=_MOST) for tag in job.tags})


def _nodes(reading: Reading) -> list[str]:
    return sorted(node.id for node in reading.nodes() if node.stopped_ms is None)
