"""All checks of the machine, in one list."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from chronex.cli.machine.programs import Missing, Moved, programs_of
from chronex.daemon.wakeups import is_synchronized
from chronex.errors import UnknownZoneError
from chronex.model.records import Job, Node
from chronex.run import is_alive
from chronex.timing.zones import load_zone, zone_version


class Verdict(StrEnum):
    FINE = "fine"
    NOTE = "note"
    WRONG = "wrong"


class Check(NamedTuple):
    """`topic` is what was looked at; `advice` what to do where something is to be done."""

    topic: str
    verdict: Verdict
    message: str
    advice: str = ""


class Found(NamedTuple):
    """What the store says: the jobs, and the daemon that runs them, if one does."""

    jobs: tuple[Job, ...]
    node: Node | None


def examine(found: Found, environ: Mapping[str, str], service: str) -> list[Check]:
    """`service` is what the service manager says of us, in a sentence."""
    return [
        *_zones(found.jobs),
        _clock(),
        *_daemon(found.node, service),
        *_environment(found, environ),
    ]


def _zones(jobs: Sequence[Job]) -> Iterator[Check]:
    version, source = zone_version()
    yield Check("zone data", Verdict.FINE, f"version {version}, {source}")
    for name in sorted({job.timezone for job in jobs}):
        try:
            load_zone(name)
        except UnknownZoneError:
            users = ", ".join(job.id for job in jobs if job.timezone == name)
            yield Check("zone data", Verdict.WRONG, f"zone {name} is unknown here (used by {users})",
                        "update the zone data or name another zone")  # fmt: skip


def _clock() -> Check:
    synchronized = is_synchronized()
    if synchronized is None:
        return Check("clock", Verdict.NOTE, "the system does not say whether its clock is synchronized")
    if synchronized:
        return Check("clock", Verdict.FINE, "synchronized")
    return Check("clock", Verdict.NOTE, "not synchronized: due times follow a clock that nobody corrects",
                 "turn on time synchronization, such as: timedatectl set-ntp true")  # fmt: skip


def _daemon(node: Node | None, service: str) -> Iterator[Check]:
    yield Check("service", Verdict.FINE if service.startswith("running") else Verdict.NOTE, service)
    if node is None:
        yield Check("daemon", Verdict.NOTE, "no daemon has run on this store", "start one: chronex run")
    elif is_alive(node.process):
        yield Check("daemon", Verdict.FINE, f"runs as process {node.process.pid}")
    else:
        yield Check("daemon", Verdict.NOTE, "none runs now; nothing will start", "start one: chronex run")


def _environment(found: Found, environ: Mapping[str, str]) -> Iterator[Check]:
    """The PATH that jobs get against the one of this shell, then every program that a job names."""
    theirs, source = _path_of_jobs(found.node, environ)
    yield from _paths(environ.get("PATH", os.defpath), theirs, source)
    count = 0
    for job, program in programs_of(found.jobs, environ.get("PATH", os.defpath), theirs):
        count += 1
        where = f"job {job.id}: {program.name}"
        match program.finding:
            case Missing():
                yield Check("programs", Verdict.WRONG, f"{where} is not found in the PATH of jobs ({theirs})",
                            "name it by its full path, or set PATH in the job's env")  # fmt: skip
            case Moved(shell, job_path):
                yield Check("programs", Verdict.NOTE, f"{where} is {job_path} for jobs, but {shell} in this shell",
                            "name it by its full path if that matters")  # fmt: skip
    yield Check("programs", Verdict.FINE, f"{count} programs of {len(found.jobs)} jobs looked for")


def _path_of_jobs(node: Node | None, environ: Mapping[str, str]) -> tuple[str, str]:
    """The running daemon's own PATH, where it can be read; else that of this shell."""
    if node is not None and is_alive(node.process):
        try:
            raw = Path(f"/proc/{node.process.pid}/environ").read_bytes()
        except OSError:
            raw = b""
        for line in raw.split(b"\0"):
            if line.startswith(b"PATH="):
                return os.fsdecode(line[5:]), "the running daemon's"
    return environ.get("PATH", os.defpath), "this shell's; no daemon runs"


def _paths(shell: str, theirs: str, source: str) -> Iterator[Check]:
    lost = [directory for directory in shell.split(":") if directory and directory not in theirs.split(":")]
    if lost:
        yield Check("environment", Verdict.NOTE, f"jobs lack {', '.join(lost)} of this shell's PATH ({source})",
                    "chronex service install again takes over the PATH of this shell")  # fmt: skip
    else:
        yield Check("environment", Verdict.FINE, f"jobs see every directory of this shell's PATH ({source})")
