"""What a file cannot tell: the zone of its machine, the date, and who knows the job file's keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from chronex.lint.findings import ZoneNote


class FileProblem(NamedTuple):
    """What the reader of job files says about one; lines and columns count from 1."""

    code: str
    message: str
    line: int
    column: int
    end_column: int
    is_error: bool
    fix: str | None = None


# Given a file's text, its path and the host's zone. The engine owns the job file's rules and the linter may not
# import the engine, so the program hands this in.
JobFileReader = Callable[[str, str, str], Iterable[FileProblem]]


class Assumptions(NamedTuple):
    zone: ZoneNote
    reference_ms: int
    job_file: JobFileReader | None = None
    triggers: JobFileReader | None = None
