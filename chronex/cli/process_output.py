"""As whom a task runs, within what, and where its secrets come from: in words and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from chronex.model.job import Task
from chronex.model.process_settings import ResourceLimits
from chronex.text.sizes import size_text


def process_lines(task: Task) -> Iterator[str]:
    """Nothing for a task that runs as its scheduler does."""
    words = []
    if task.user is not None:
        words.append(f"as {task.user}" + ("" if task.group is None else f", group {task.group}"))
    elif task.group is not None:
        words.append(f"as group {task.group}")
    if task.umask is not None:
        words.append(f"umask {task.umask}")
    if task.nice is not None:
        words.append(f"nice {task.nice}")
    if words:
        yield ", ".join(words)
    if task.limits is not None:
        yield f"at most {', '.join(limit_words(task.limits))}"
    if task.env_file:
        yield f"variables from {', '.join(task.env_file)}"
    for name in task.secrets:
        source = task.secret_sources.get(name, "the daemon's environment")
        yield f"secret {name} from {source}"


def limit_words(limits: ResourceLimits) -> list[str]:
    words = []
    if limits.memory is not None:
        words.append(f"{size_text(limits.memory)} of memory")
    if limits.cpu is not None:
        words.append(f"{limits.cpu}% of a processor")
    if limits.tasks is not None:
        words.append(f"{limits.tasks} processes")
    if limits.open_files is not None:
        words.append(f"{limits.open_files} open files")
    return words


def process_json(task: Task) -> dict[str, Any]:
    return {
        "secret_sources": dict(task.secret_sources),
        "env_file": list(task.env_file),
        "user": task.user,
        "group": task.group,
        "umask": task.umask,
        "nice": task.nice,
        "limits": None if task.limits is None else msgspec.structs.asdict(task.limits),
    }
