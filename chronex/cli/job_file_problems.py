"""The engine's reader of job files, as the linter asks for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from chronex.lint.assumptions import FileProblem

_MEANT = re.compile(r"did you mean (\S+)\?$")
_TEXT_VALUES = ("J013", "J015", "J016")


def job_file_problems(text: str, path: str, host_zone: str) -> Iterator[FileProblem]:
    from chronex.jobfile import read_job_file

    yield from _problems(read_job_file, text, path, host_zone)


def trigger_problems(text: str, path: str, host_zone: str) -> Iterator[FileProblem]:
    from chronex.jobfile import read_triggers

    yield from _problems(read_triggers, text, path, host_zone)


def _problems(read: Callable[..., object], text: str, path: str, host_zone: str) -> Iterator[FileProblem]:
    from chronex.jobfile import JobFile, JobFileError

    try:
        found = read(text, path, host_zone)
    except JobFileError as error:
        found, problems = None, error.problems
    else:
        problems = ()
    warnings = found.warnings if isinstance(found, JobFile) else ()
    for is_error, listed in ((True, problems), (False, warnings)):
        for p in listed:
            hint = f"; {p.hint}" if p.hint else ""
            fix = _fix(p.code, p.hint)
            yield FileProblem(p.code, p.message + hint, p.line, p.column, p.end_column, is_error, fix)


def _fix(code: str, hint: str) -> str | None:
    """What was probably meant, as it would stand there: a key bare, a text in quotes."""
    meant = _MEANT.search(hint)
    if meant is None:
        return None
    if code == "J010":
        return meant[1]
    return f'"{meant[1]}"' if code in _TEXT_VALUES else None
