"""What fits an option or an argument, by its placeholder: words that are known, or names of the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from chronex.storage.records import Reading

# What is too long for a script or only in the store: `chronex names KIND` prints it, and the scripts call that.
KINDS = ("jobs", "tags", "nodes", "zones", "rules")
_PLACEHOLDERS = {
    "jobs": ("JOB", "[JOB]", "JOB|RUN", "[JOB|RUN]", "JOB|OCCURRENCE", "RUN", "RUN…", "OCCURRENCE"),
    "tags": ("TAG",),
    "nodes": ("NODE", "NODE]"),
    "zones": ("ZONE",),
    "rules": ("CODE", "CODE,…"),
}
_PATHS = ("FILE", "DIR", "PATH…", "PATH|EXPR…", "STORE", "FROM", "TO", "COMMAND…")


def kind_of(placeholder: str) -> str:
    """What names fit there; empty where none do. A run is named by its job first."""
    return next((kind for kind, found in _PLACEHOLDERS.items() if placeholder in found), "")


def is_path(placeholder: str) -> bool:
    return placeholder in _PATHS


def known_words() -> Mapping[str, tuple[str, ...]]:
    """The words that fit a placeholder, or one option of one command, as the commands themselves check them."""
    from chronex.cli.commands.tui import SCREENS, THEMES
    from chronex.cli.options import TEXT_OR_JSON
    from chronex.expr.parser import DIALECTS
    from chronex.imports.equivalents import TARGETS
    from chronex.lint.cron_programs import CRON_PROGRAMS
    from chronex.lint.findings import SEVERITIES
    from chronex.lint.formats import WRITERS
    from chronex.lint.source_files import KINDS as FILE_KINDS
    from chronex.model.calendars import OnExcluded
    from chronex.views.past_runs import STATES

    return {
        "FORMAT": TEXT_OR_JSON,
        "lint --format": ("text", *WRITERS),
        "list --format": (*TEXT_OR_JSON, "names"),
        "lint --as": FILE_KINDS,
        "import --as": ("system", "user"),
        "explain --as": TARGETS,
        "CRON": tuple(CRON_PROGRAMS),
        "WORD": tuple(OnExcluded),
        "WHEN": ("then", "now"),
        "WHICH": ("missing", "failed", "all"),
        "STRATEGY": ("fail_fast", "continue", "retry_on_failure"),
        "MODE": ("after", "around", "before"),
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


def names_without_store(kind: str) -> tuple[str, ...] | None:
    """The names of a kind that every machine has; None for those that are in the store."""
    if kind == "zones":
        from chronex.timing.zones import zone_names

        return zone_names()
    if kind == "rules":
        from chronex.lint.rules import rules

        return tuple(rules())
    return None


def names_of(kind: str) -> Callable[[Reading], list[str]]:
    """How the names are read in a store; each once, in order."""
    return {"jobs": _jobs, "tags": _tags, "nodes": _nodes}[kind]


_MOST = 10_000


def _jobs(reading: Reading) -> list[str]:
    return [job.shown_name for job in reading.jobs(limit=_MOST)]


def _tags(reading: Reading) -> list[str]:
    return sorted({tag for job in reading.jobs(limit=_MOST) for tag in job.tags})


def _nodes(reading: Reading) -> list[str]:
    return sorted(node.id for node in reading.nodes() if node.stopped_ms is None)
