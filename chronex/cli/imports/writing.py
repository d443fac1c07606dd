"""The job file that an import writes."""

from __future__ import annotations

from collections.abc import Iterator

import tomli_w

from chronex.cli.imports.imported import Import

_WHY_DEFAULTS = {
    "crontab": "As cron does: runs may overlap, and what was missed is not made up. Chronex's own defaults\n"
    '# (overlap = "skip", recovery = "execute_last") are often the better choice.',
    "systemd": "As systemd does: a unit that is active is not started again.",
    "kubernetes": "As Kubernetes does; each job says its own concurrency below.",
}


def job_file(found: Import) -> str:
    return "\n".join(_parts(found))


def _parts(found: Import) -> Iterator[str]:
    yield f"# Imported from {found.source} by chronex import."
    for lost in found.lost:
        yield f"# NOT CARRIED OVER, {lost.origin}: {_one_line(lost.text)}"
        yield f"#   {_one_line(lost.why)}"
    yield ""
    yield tomli_w.dumps({"scheduler": {"timezone": found.timezone}})
    if found.defaults:
        yield f"# {_WHY_DEFAULTS[found.source]}"
        yield tomli_w.dumps({"defaults": found.defaults})
    for job in found.jobs:
        yield f"# {job.origin}"
        yield from (f"# {_one_line(note)}" for note in job.notes)
        yield tomli_w.dumps({"jobs": {job.id: job.table}}).removeprefix("[jobs]\n")


def _one_line(text: str) -> str:
    """A comment ends with its line, and holds no control characters: TOML refuses them."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
