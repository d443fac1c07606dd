"""A job file that a command edits: its text before and after, and the jobs of its source with that text.

The source is a file, or a directory of which one file is edited. Nothing is written before the new text was read as a
whole and says what was meant; when the store then refuses, the old text comes back.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from chronex.cli.job_file import (
    DirectoryProblem,
    file_names,
    load_job_file,
    read_directory,
    read_files,
    read_text,
    unsafe_because,
)
from chronex.cli.options import UsageError, job_file_path, read_file
from chronex.engine.update.sources import AT
from chronex.jobfile import JobFile
from chronex.jobfile.parsing import MAX_BYTES
from chronex.jobfile.positions import scan_toml
from chronex.model.job import Job
from chronex.text.files import make_private_directories, replace_file, write_private_file
from chronex.text.terminal import terminal_safe


class EditedFile(NamedTuple):
    """`old` is None for a file that is not there yet."""

    source: Path
    file: Path
    old: bytes | None

    @property
    def text(self) -> str:
        try:
            return (self.old or b"").decode("utf-8")
        except UnicodeDecodeError:
            raise UsageError(f"{terminal_safe(str(self.file))} is not UTF-8; chronex lint says where") from None

    def jobs_with(self, new: bytes | None) -> JobFile:
        """The source as it would be with this text in the file's place. JobFileError with its mistakes."""
        if self.source == self.file:
            return read_text(self.source, new or b"")
        others = [(str(one.path), one.text) for one in _directory(self.source) if one.path != self.file]
        return read_files(self.source, [*others, *([(str(self.file), new)] if new is not None else [])])

    @contextmanager
    def written(self, new: bytes | None) -> Iterator[None]:
        """The new text is in place; an error inside puts the old one back."""
        put_text(self.file, new)
        try:
            yield
        except BaseException:
            put_text(self.file, self.old)
            raise


def put_text(file: Path, text: bytes | None) -> None:
    try:
        if text is None:
            file.unlink(missing_ok=True)
        elif file.exists():
            replace_file(file.resolve(), text)  # a link stays one
        else:
            make_private_directories(file.parent)
            write_private_file(file, text, replace=False)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"cannot write {terminal_safe(str(file))}: {reason}; nothing was changed") from None


def file_for_new_job(config: str | None, name: str) -> EditedFile:
    """The job file, or a new file of the job's name in the job directory."""
    source = job_file_path(config)
    if source.is_dir():
        file = source / f"{name}.toml"
        return EditedFile(source, file, _read(file) if os.path.lexists(file) else None)
    return EditedFile(source, source, _read(source) if os.path.lexists(source) else None)


def file_of_job(job: Job | None, config: str | None, name: str) -> EditedFile:
    """The file in which a job stands: the one it was applied from, else the job file. UsageError without one."""
    if job is not None and not job.source.startswith("/"):
        whose = "chronex at" if job.source == AT else job.source or "no file"
        raise UsageError(f"the job {name!r} belongs to {whose}, and stands in no job file")
    source = Path(job.source) if job is not None else job_file_path(config)
    if not source.is_dir():
        return EditedFile(source, source, _read(source))
    for file_name in file_names(source):
        text = _read(source / file_name)
        if name in _names(text):
            return EditedFile(source, source / file_name, text)
    raise UsageError(f"no file of {terminal_safe(str(source))} has a job {name!r}; chronex list names the jobs")


def _names(text: bytes) -> set[str]:
    jobs = scan_toml(text.decode("utf-8", "replace")).root.children.get("jobs")
    return {str(name) for name in jobs.children} if jobs is not None else set()


def _read(path: Path) -> bytes:
    try:
        if (problem := unsafe_because(path)) is not None:
            raise UsageError(f"{terminal_safe(str(path))} {problem.message}; {problem.advice}")
        return read_file(path, MAX_BYTES + 1)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"cannot read {terminal_safe(str(path))}: {reason}; name the job file: --config") from None


def _directory(path: Path) -> list[_File]:
    try:
        return [_File(Path(one.path), one.text) for one in read_directory(path)]
    except DirectoryProblem as problem:
        name = terminal_safe(str(problem.path))
        raise UsageError(f"{name} {problem.message}; {terminal_safe(problem.advice)}") from None


class _File(NamedTuple):
    path: Path
    text: bytes


def jobs_before(edited: EditedFile) -> tuple[Job, ...]:
    """The jobs of the source as it is; none where there is no file yet. JobFileError with its mistakes."""
    if edited.old is None and edited.source == edited.file:
        return ()
    return load_job_file(edited.source).jobs


def only_difference(before: tuple[Job, ...], after: tuple[Job, ...]) -> set[str] | None:
    """The names that one side has and the other has not; None where another job changed, which no edit may do."""
    old, new = {job.id: job for job in before}, {job.id: job for job in after}
    if any(old[name] != new[name] for name in old.keys() & new.keys() if not old[name].written):
        return None
    return set(old.keys() ^ new.keys())
