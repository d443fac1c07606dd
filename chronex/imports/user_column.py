"""Whether a crontab has a user column: by where it lies and, where that says nothing, by what its lines say.

A wrong guess turns a user into a program, or a program into a user, so where the lines leave it open nothing is
guessed: the caller asks.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable
from pathlib import PurePosixPath

_ENTRY = re.compile(r"\s*(?:@[A-Za-z]+|[^\s#@=]\S*(?:\s+\S+){4})\s+(\S+)(?:\s+(\S.*))?")
_VARIABLE = re.compile(r"""\s*(?:"[^"]*"|'[^']*'|[A-Za-z_][A-Za-z0-9_]*)\s*=""")
_ACCOUNT = re.compile(r"[a-z_][a-z0-9_-]{0,31}\$?", re.ASCII)
_BUILTINS = frozenset({
    "if", "test", "[", "[[", "cd", "exec", "command", "for", "while", "umask", "ulimit", "export", ".", "(", "{", "!",
    ":", "nice", "ionice", "flock", "timeout", "env", "sudo", "sleep", "echo", "run-parts",
})  # fmt: skip
# Accounts of every machine that are no programs of any.
_CERTAIN = frozenset({"root", "www-data", "nobody", "postgres", "mysql", "nagios", "munin", "logcheck", "irc"})
FindProgram = Callable[[str], object]


def by_place(path: str) -> bool | None:
    """True for the files of the system, False for those of users; None where the place says nothing."""
    place = PurePosixPath(path.replace("\\", "/"))
    folders = place.parts[:-1]
    if folders[-1:] == ("cron.d",) or (folders[-1:] == ("etc",) and place.name == "crontab"):
        return True
    if "spool" in folders or folders[-1:] in (("crontabs",), ("tabs",)):
        return False
    return None


def by_content(text: str, accounts: Iterable[str], find: FindProgram = shutil.which) -> bool | None:
    """Whether the word behind each schedule is a user; None where it could be either, or there is no entry."""
    known = {*accounts, *_CERTAIN}
    answers = [_is_user(word, rest, known, find) for word, rest in _behind_schedules(text)]
    if not answers or all(answer is None for answer in answers):
        return None
    if False in answers:  # one line without a user is enough: with the column it would be no command
        return None if True in answers else False
    return True


def _behind_schedules(text: str) -> Iterable[tuple[str, str]]:
    for line in text.splitlines():
        if line.lstrip().startswith("#") or _VARIABLE.match(line):
            continue
        if entry := _ENTRY.fullmatch(line):
            yield entry[1], entry[2] or ""


def _is_user(word: str, rest: str, known: set[str], find: FindProgram) -> bool | None:
    if not _ACCOUNT.fullmatch(word) or not rest:
        return False
    if word in _CERTAIN:
        return True
    first = rest.split(maxsplit=1)[0]
    begins_command = first.startswith(("/", "~", "$", "(", '"', "'", "./")) or first in _BUILTINS or "=" in first
    is_program = word in _BUILTINS or bool(find(word))
    if is_program:
        # `sync`, `mail` and `backup` are both; what follows a user is a command, what follows a program hardly ever.
        return None if word in known and begins_command else False
    if word in known:
        return True
    return True if begins_command or find(first) else None
