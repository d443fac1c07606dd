"""As whom a task runs, within what, where its secrets come from, and what its runs took: in words and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from chronex.engine.usual import RunUsage, Usual, UsualBand
from chronex.model.job import Job, Task
from chronex.model.policies import ResourceLimits, refused_beyond
from chronex.text.durations import brief_duration
from chronex.text.sizes import rough_size, size_text


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


# What runs took, and what they usually take: in words and as JSON.

# What holds the limits of a command, by what its attempt recorded.
HELD_BY = {
    "cgroup": "held by a control group",
    "cgroup, process": "held by a control group, and process by process",
    "process": "held process by process, because no control group is delegated to the scheduler; cpu is not held",
}


def memory_text(kib: int) -> str:
    return rough_size(kib * 1024)


def usage_text(usage: RunUsage) -> str:
    """`cpu 1.2s, memory 118MiB, read 4.0MiB, written 1.0MiB`; what is nothing is left out."""
    words = [f"cpu {brief_duration(usage.cpu_ms)}"]
    if usage.peak_kib is not None:
        words.append(f"memory {memory_text(usage.peak_kib)}")
    if usage.read_bytes:
        words.append(f"read {rough_size(usage.read_bytes)}")
    if usage.written_bytes:
        words.append(f"written {rough_size(usage.written_bytes)}")
    return ", ".join(words)


def refused_memory(job: Job, last: RunUsage | None) -> Iterator[str]:
    """What a process may not have, where no control group holds the limit, beside what the last run had: a program
    that is refused memory fails in its own way, and nothing else tells why."""
    limits = [task.limits.memory for task in job.tasks if task.limits is not None and task.limits.memory is not None]
    if last is None or "process" not in last.limits_by or not limits:
        return
    refused = size_text(refused_beyond(min(limits)))
    peak = "its peak is not known" if last.peak_kib is None else f"it had {memory_text(last.peak_kib)} at its peak"
    yield f"           a process is refused memory beyond {refused}; {peak}"


def usual_lines(usual: Usual) -> Iterator[str]:
    """The median, and within what 19 of 20 runs stayed."""
    bands: list[tuple[str, UsualBand | None, Callable[[int], str]]] = [
        ("", usual.duration_ms, brief_duration),
        ("cpu ", usual.cpu_ms, brief_duration),
        ("memory ", usual.peak_kib, memory_text),
        ("read ", usual.read_bytes, rough_size),
        ("written ", usual.written_bytes, rough_size),
    ]
    words = [
        f"{what}{text(band.median)} (95% within {text(band.p95)})"
        for what, band, text in bands
        if band is not None and band.p95
    ]
    if words:
        yield ", ".join(words)
    yield f"of the last {usual.runs} that completed"


def usage_json(usage: RunUsage | None) -> dict[str, Any] | None:
    return None if usage is None else {**usage._asdict(), "limits_by": usage.limits_by or None}


def usual_json(usual: Usual | None) -> dict[str, Any] | None:
    if usual is None:
        return None
    fields = usual._asdict()
    return {name: band._asdict() if isinstance(band, UsualBand) else band for name, band in fields.items()}
