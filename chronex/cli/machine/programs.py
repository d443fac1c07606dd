"""Which programs the jobs name, and which file each would be in the shell and in a job."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from chronex.model.records import Call, Job, Task


class Missing(NamedTuple):
    """Nobody would find it."""


class Moved(NamedTuple):
    """Another file than the shell's."""

    shell: str
    job: str


class Program(NamedTuple):
    name: str
    finding: Missing | Moved | None


# A word that begins a simple command and is no program: the shell's own.
_SHELLS_OWN = frozenset({
    ".", ":", "[", "alias", "bg", "break", "case", "cd", "command", "continue", "do", "done", "echo", "elif", "else",
    "esac", "eval", "exec", "exit", "export", "false", "fg", "fi", "for", "getopts", "hash", "if", "jobs", "kill",
    "local", "printf", "pwd", "read", "readonly", "return", "set", "shift", "source", "test", "then", "times", "trap",
    "true", "type", "ulimit", "umask", "unalias", "unset", "until", "wait", "while", "{", "}", "!", "function", "in",
    "select", "time",
})  # fmt: skip
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
_SEPARATORS = frozenset({";", "&", "&&", "|", "||", "(", ")", ";;", "|&"})


def programs_of(jobs: Sequence[Job], shell_path: str, job_path: str) -> Iterator[tuple[Job, Program]]:
    """Each program of each job once; a job's own PATH and directory count."""
    for job in jobs:
        seen: set[str] = set()
        for task in job.tasks:
            path = task.env.get("PATH", job_path)
            for name in _named(task):
                if name not in seen:
                    seen.add(name)
                    yield job, Program(name, _finding(name, shell_path, path, task.directory))


def _named(task: Task) -> list[str]:
    if isinstance(task.run, Call):  # a function of the program that uses the library
        return []
    return words_of(task.run) if isinstance(task.run, str) else list(task.run[:1])


def words_of(command: str) -> list[str]:
    """The programs that a shell command plainly names; what hides behind variables is not guessed."""
    lexer = shlex.shlex(command.replace("\n", ";"), posix=True, punctuation_chars=";&|()<>")
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        return []
    found: list[str] = []
    begins = True
    for word in words:
        if word in _SEPARATORS:
            begins = True
        elif begins and not _ASSIGNMENT.fullmatch(word):
            begins = word in ("then", "do", "else", "!", "{", "time", "if", "while", "until", "elif")
            if word not in _SHELLS_OWN and "$" not in word and "`" not in word:
                found.append(word)
    return found


def _finding(name: str, shell_path: str, job_path: str, directory: str | None) -> Missing | Moved | None:
    if "/" in name:
        place = os.path.join(directory or os.curdir, os.path.expanduser(name))
        return None if os.access(place, os.X_OK) else Missing()
    mine, theirs = shutil.which(name, path=shell_path), shutil.which(name, path=job_path)
    if theirs is None:
        return Missing()
    return Moved(mine, theirs) if mine is not None and os.path.realpath(mine) != os.path.realpath(theirs) else None
