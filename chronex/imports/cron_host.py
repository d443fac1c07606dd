"""The machine on which cron runs commands: its accounts, whether it can send mail, and the variables that PAM gives
to every command, on Debian those of /etc/environment and /etc/default/locale."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from chronex.jobfile.notify_table import SENDMAIL
from chronex.lint.cron_programs import CronProgram

# As the accounts of Debian have it that have no home, and never will.
_NO_HOME = "/nonexistent"
_SETTINGS = "/etc/security/pam_env.conf"
_MOST_DEPTH = 8
_MOST_BYTES = 1 << 20
_NAME = re.compile(r"[A-Za-z0-9_]+")


class PamVariables(NamedTuple):
    """`files` are those that have any; `unread` is a file with rules that are not carried over, and may be empty."""

    values: dict[str, str]
    files: tuple[str, ...] = ()
    unread: str = ""


class CronHost(NamedTuple):
    """The machine on which cron runs the commands: where its accounts live, and whether it can send mail.

    `homes` are None for the accounts of this machine. `root` is None where directories cannot be looked for: a copy
    of somebody's /etc has no homes, and all of them would seem to be missing. `knows_accounts` is true where a user
    that is not found has no account: of a file from elsewhere nobody knows that. `etc` is None where nothing is known
    of what its sessions begin with.
    """

    homes: Mapping[str, str] | None = None
    root: Path | None = None
    sends_mail: bool = False
    knows_accounts: bool = False
    etc: Path | None = None

    @classmethod
    def of_tree(cls, root: Path, etc: Path) -> CronHost:
        """The machine whose files lie there; what they do not tell, this machine does."""
        sends_mail = any((root / path.lstrip("/")).exists() for path in SENDMAIL)
        homes = None if root == Path("/") else _homes_in(etc / "passwd")
        if homes is None:
            return cls(None, Path("/"), sends_mail, root == Path("/"), etc)
        return cls(homes, root if (root / "root").is_dir() else None, sends_mail, knows_accounts=True, etc=etc)

    def variables_for(self, program: CronProgram) -> PamVariables:
        if self.etc is None or not program.pam_service:
            return PamVariables({})
        return pam_variables(self.etc, program.pam_service)

    def home_of(self, user: str | None) -> str | None:
        """Of this process's own user where none is named; None where nobody knows the account."""
        if self.homes is not None:
            return self.homes.get(user or "root")
        try:
            return (pwd.getpwuid(os.getuid()) if user is None else pwd.getpwnam(user)).pw_dir
        except KeyError:
            return None

    def uid_of(self, user: str) -> int | None:
        """Only of an account of this machine: that is the one whose files are looked at."""
        try:
            return None if self.homes is not None else pwd.getpwnam(user).pw_uid
        except KeyError:
            return None

    def has_no_account(self, user: str | None) -> bool:
        """Whether it is certain that nobody is called so there."""
        return user is not None and self.knows_accounts and self.home_of(user) is None

    def lacks(self, directory: str) -> bool:
        """Whether it is certain that the directory is not there."""
        if directory == _NO_HOME or self.root is None:
            return directory == _NO_HOME
        return not (self.root / directory.lstrip("/")).is_dir()


def _homes_in(passwd: Path) -> dict[str, str] | None:
    try:
        lines = passwd.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return None
    return {parts[0]: parts[5] for parts in (line.split(":") for line in lines) if len(parts) > 6}


# -- PAM: the rules of pam_env (1.5.2) for a file are not those of a shell, nor those of `env_file` -----------------


def pam_variables(etc: Path, service: str) -> PamVariables:
    """What sessions of the service begin with, by the files below this /etc."""
    values: dict[str, str] = {}
    files: list[str] = []
    unread = ""
    for options in _pam_env_lines(etc, service, 0):
        given = dict(option.partition("=")[::2] for option in options)
        if _lines(etc, given.get("conffile", _SETTINGS)):
            unread = given.get("conffile", _SETTINGS)
        if given.get("readenv", "1") == "0":
            continue
        name = given.get("envfile", "/etc/environment")
        if found := dict(_variables(_lines(etc, name))):
            values |= found
            files.append(name)
    return PamVariables(values, tuple(dict.fromkeys(files)), unread)


def _pam_env_lines(etc: Path, service: str, depth: int) -> Iterator[list[str]]:
    """The options of each use of pam_env, in order; what a file includes stands in its place."""
    if depth > _MOST_DEPTH or "/" in service:
        return
    for line in _lines(etc, f"/etc/pam.d/{service}"):
        words = re.sub(r"\[[^\]]*\]", "[]", line).split()
        if words[0] == "@include" and len(words) > 1:
            yield from _pam_env_lines(etc, words[1], depth + 1)
        elif words[0].lstrip("-") not in ("session", "auth") or len(words) < 3:
            continue
        elif words[1] in ("include", "substack"):
            yield from _pam_env_lines(etc, words[2], depth + 1)
        elif Path(words[2]).name == "pam_env.so":
            yield words[3:]


def _lines(etc: Path, name: str) -> list[str]:
    """Those that say something; none of a file that cannot be read."""
    try:
        with (etc / name.removeprefix("/etc/")).open("rb") as file:
            text = file.read(_MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return []
    return [line for each in text.split("\n") if (line := each.lstrip(" \t")) and not line.startswith("#")]


def _variables(lines: list[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        name, is_set, value = line.removeprefix("export ").partition("#")[0].partition("=")
        if not is_set or not _NAME.fullmatch(name):
            continue
        if value[:1] in ("'", '"'):  # the quote at the begin goes, and one that is the very last character
            value = value[1:-1] if value[1:] and value[-1] in "'\"" else value[1:]
        yield name, value
