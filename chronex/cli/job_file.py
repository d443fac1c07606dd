"""The job file, or those of a job directory, as commands read them: places absolute, mistakes on standard error."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import os
import shlex
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from chronex.cli.options import JOB_FILE, UsageError, is_named, is_open_already, job_file_path, read_file
from chronex.cli.output import err
from chronex.clock import wall_ms
from chronex.jobfile import JobFile, JobFileError, read_job_directory, read_job_file, read_triggers
from chronex.jobfile.entries import MAX_PROBLEMS
from chronex.jobfile.parsing import MAX_BYTES
from chronex.jobfile.reader import FileText
from chronex.model.job import Job, Task
from chronex.run.accounts import needs_root
from chronex.text.terminal import terminal_safe
from chronex.text.trusted_paths import trust_problem
from chronex.timing.job_schedule import absolute_schedule
from chronex.timing.zones import host_zone

# The files of a job directory: which they are, whether they may be read, and their texts.

# Without O_NONBLOCK, opening a named pipe would wait for its other end.
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_MOST_FILES = 1_000_000
# All texts of a directory are in memory together.
MOST_BYTES_TOGETHER = 64 * MAX_BYTES


class DirectoryProblem(Exception):  # noqa: N818  what is told of it is a problem, and it is caught by its caller
    """Why a directory, or a file in it, is not read."""

    def __init__(self, path: Path | str, message: str, advice: str) -> None:
        self.path, self.message, self.advice = path, message, advice
        super().__init__(message)


class DirectoryFile(NamedTuple):
    """`text` may be one byte longer than a job file may be, by which the reader sees that it is too long.

    Of a hundred thousand files paths as text take a tenth of the time that values of pathlib take.
    """

    path: str
    text: bytes


def is_job_file_name(name: str) -> bool:
    """Names that begin with a dot are those of editors and of files that are being written."""
    return name.endswith(".toml") and not name.startswith(".")


def file_names(directory: Path) -> list[str]:
    return sorted(_listed(directory))


def _listed(directory: Path) -> dict[str, bool]:
    """The names of its job files, and whether each is a link."""
    with os.scandir(directory) as entries:
        return {entry.name: entry.is_symlink() for entry in entries if is_job_file_name(entry.name)}


def read_directory(directory: Path) -> list[DirectoryFile]:
    """Its job files by name. DirectoryProblem where another user could have a say in them; OSError as reading."""
    _check_directory(directory)
    names = _listed(directory)
    if len(names) > _MOST_FILES:
        raise DirectoryProblem(directory, f"has more than {_MOST_FILES} job files", "join some of them")
    found: list[DirectoryFile] = []
    bytes_left = MOST_BYTES_TOGETHER
    for name in sorted(names):
        path = f"{directory}/{name}"
        found.append(DirectoryFile(path, _read(path, is_link=names[name])))
        bytes_left -= len(found[-1].text)
        if bytes_left < 0:
            most = MOST_BYTES_TOGETHER >> 20
            raise DirectoryProblem(directory, f"has more than {most} MiB of job files", "make two directories of it")
    return found


def _check_directory(directory: Path) -> None:
    """Who can add a file to it runs commands in the name of who applies it."""
    found, own = directory.stat(), os.geteuid()
    if own == 0 and (problem := trust_problem(str(directory), 0)) is not None:
        advice = "keep it where only root can write, such as /etc/chronex"
        raise DirectoryProblem(directory, f"is not read by root: {problem}, who could run commands as root", advice)
    if found.st_uid not in (own, 0):
        who = f"belongs to user {found.st_uid}, who could run commands as you ({own})"
        raise DirectoryProblem(directory, who, f"make it yours with: chown {own} {directory}")
    if found.st_mode & stat.S_IWOTH:
        who = "can be written by every user of this machine, who could run commands as you"
        raise DirectoryProblem(directory, who, f"run: chmod o-w {directory}")


def _read(path: str, *, is_link: bool) -> bytes:
    """The directory has been looked at, so a plain file in it needs a look at itself alone; a link leads anywhere."""
    own = os.geteuid()
    if is_link and own == 0 and (problem := trust_problem(path, 0)) is not None:
        raise DirectoryProblem(path, f"is not read by root: {problem}", "put the file itself into the directory")
    descriptor = os.open(path, _READ if is_link else _READ | os.O_NOFOLLOW)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise DirectoryProblem(path, "is not a regular file", "remove it, or give it another ending than .toml")
        if found.st_uid not in (own, 0):
            who = f"belongs to user {found.st_uid}, who could run commands as you ({own})"
            raise DirectoryProblem(path, who, f"make it yours with: chown {own} {path}")
        others = stat.S_IWOTH | (stat.S_IWGRP if own == 0 and found.st_gid != 0 else 0)
        if found.st_mode & others:
            who = "can be written by other users, who could run commands as you"
            raise DirectoryProblem(path, who, f"run: chmod go-w {path}")
        return _whole(descriptor, found.st_size)
    finally:
        os.close(descriptor)


def _whole(descriptor: int, size: int) -> bytes:
    """The text, up to one byte more than is read of a file."""
    parts: list[bytes] = []
    bytes_left = MAX_BYTES + 1
    while bytes_left > 0 and (part := os.read(descriptor, min(size + 1, bytes_left))):
        parts.append(part)
        bytes_left -= len(part)
    return b"".join(parts)


def load_job_file(path: Path) -> JobFile:
    """The job file or directory, every schedule and directory absolute; UsageError when it cannot be read, or is not
    safe."""
    with _without_collections():
        try:
            if path.is_dir():
                return read_files(path, [(file.path, file.text) for file in read_directory(path)])
            if (problem := unsafe_because(path)) is not None:
                raise UsageError(f"{terminal_safe(str(path))} {problem.message}; {problem.advice}")
            return read_text(path, read_file(path, MAX_BYTES + 1))
        except DirectoryProblem as problem:
            name = terminal_safe(str(problem.path))
            raise UsageError(f"{name} {problem.message}; {terminal_safe(problem.advice)}") from None
        except OSError as error:
            hint = "chronex init writes a starter" if isinstance(error, FileNotFoundError) else "name the job file"
            reason = (error.strerror or str(error)).lower()
            name = terminal_safe(str(error.filename or path) if path.is_dir() else str(path))
            raise UsageError(f"cannot read {name}: {reason}; {hint}") from None


def read_text(path: Path, data: bytes) -> JobFile:
    """The jobs of a text that stands, or is to stand, in this file. JobFileError with its mistakes."""
    zone, now = host_zone().zone.name, wall_ms()
    if path.suffix == ".json":
        found = read_triggers(data, str(path), zone, needs_tasks=True)
    else:
        found = read_job_file(data, str(path), zone, now)
    return _absolute_of(found, path, path.parent, now)


def read_files(directory: Path, files: Iterable[FileText]) -> JobFile:
    """The jobs of the texts of a directory. JobFileError with their mistakes."""
    now = wall_ms()
    found = read_job_directory(str(directory), files, host_zone().zone.name, now)
    return _absolute_of(found, directory, directory, now)


def _absolute_of(found: JobFile, path: Path, base: Path, now_ms: int) -> JobFile:
    jobs = tuple(_with_absolute_paths(absolute_schedule(job, now_ms), base) for job in found.jobs)
    source = str(path.resolve())  # the same wherever it is applied from
    return dataclasses.replace(found, jobs=tuple(replace(job, source=source) for job in jobs))


@contextlib.contextmanager
def _without_collections() -> Iterator[None]:
    """A hundred thousand jobs are a million values without cycles, and every search for cycles visits all of them."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class UnsafeFile(NamedTuple):
    message: str
    advice: str


def unsafe_because(path: Path) -> UnsafeFile | None:
    """Why this job file is not read: whoever can write it runs commands in the name of who applies it.

    A file of root is as safe as the machine. Members of its group are the owner's choice, as a umask of 002 makes it.
    For root nothing is: neither the file nor a directory or link on the way may be another's to change.
    """
    if is_open_already(path):
        return None
    found, name = path.stat(), shlex.quote(str(path))
    if found.st_uid not in (os.geteuid(), 0):
        return UnsafeFile(
            f"belongs to user {found.st_uid}, who could run commands as you ({os.geteuid()})",
            f"make it yours with: chown {os.geteuid()} {name}, or run Chronex as that user",
        )
    if found.st_mode & stat.S_IWOTH and stat.S_ISREG(found.st_mode):
        return UnsafeFile(
            "can be written by every user of this machine, who could run commands as you", f"run: chmod o-w {name}"
        )
    if os.geteuid() == 0 and stat.S_ISREG(found.st_mode) and (problem := trust_problem(str(path), 0)) is not None:
        return UnsafeFile(
            f"is not read by root: {problem}, and who can change it could run commands as root",
            "keep it where only root can write, such as /etc/chronex",
        )
    return None


def _with_absolute_paths(job: Job, base: Path) -> Job:
    """A relative path is relative to the job file, wherever a daemon is started later; ~ is the home of the user who
    applies the file."""
    if all(task.directory is None and not task.env_file and not task.secret_sources for task in job.tasks):
        return job
    return replace(job, tasks=tuple(_with_absolute_paths_of(task, base) for task in job.tasks))


def _with_absolute_paths_of(task: Task, base: Path) -> Task:
    return replace(
        task,
        directory=None if task.directory is None else _absolute(task.directory, base),
        env_file=tuple(_absolute(path, base) for path in task.env_file),
        secret_sources={name: _absolute_source(source, base) for name, source in task.secret_sources.items()},
    )


def _absolute(path: str, base: Path) -> str:
    with contextlib.suppress(RuntimeError):  # that user has no known home: the text stays as it is
        return os.path.abspath(base / Path(path).expanduser())
    return path


def _absolute_source(source: str, base: Path) -> str:
    kind, _, path = source.partition(":")
    return f"file:{_absolute(path, base)}" if kind == "file" else source


def refuse_what_needs_root(found: JobFile) -> None:
    """A scheduler that is not root can run nothing as another user: that is said now, and not in the night."""
    if os.geteuid() == 0:
        return
    for job in found.jobs:
        for task in job.tasks:
            if (problem := needs_root(task.process_settings)) is not None:
                name = f"job {job.id!r}" if len(job.tasks) == 1 else f"job {job.id!r}, task {task.name!r}"
                raise UsageError(
                    f"{terminal_safe(name)}: {terminal_safe(problem)}, and this is user {os.geteuid()}; "
                    "apply it as root, for a scheduler that runs as root, or remove the key"
                )


def load_to_run(path: Path) -> JobFile:
    """The job file for a daemon of this process; UsageError also where it could not run what the file asks for."""
    found = load_job_file(path)
    refuse_what_needs_root(found)
    return found


def load_or_report(config: str | None) -> JobFile | None:
    """The job file; None when it has mistakes, after they were printed on standard error."""
    path = job_file_path(config)
    if not is_named(config) and not path.exists():
        raise UsageError(f"no job file: neither ./{JOB_FILE} nor {path} is there; chronex init writes a starter")
    try:
        return load_job_file(path)
    except JobFileError as error:
        for problem in error.problems:
            err(terminal_safe(str(problem)))
        return None


# "No job of this file is called so": where the store has it that is no mistake, and where not, the update is refused.
_KNOWN_BY_THE_STORE = "J104"


def print_unknown_parents(found: JobFile) -> None:
    """For who asks no store: of a job that follows one which the file does not have nothing can be said."""
    for warning in found.warnings:
        if warning.code == _KNOWN_BY_THE_STORE:
            err(terminal_safe(str(warning)))


def print_warnings(found: JobFile) -> None:
    """What an apply still has to say of a file without mistakes."""
    for warning in found.warnings:
        if warning.code != _KNOWN_BY_THE_STORE:
            err(terminal_safe(str(warning)))
    if len(found.warnings) >= MAX_PROBLEMS:
        err(f"these are the first {MAX_PROBLEMS} warnings; there may be more")
