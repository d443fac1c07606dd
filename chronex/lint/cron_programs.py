"""The crons: what each one takes and leaves out, and which one will read a file.

What is said of Debian's cron, cronie and BusyBox was seen from the programs themselves (3.0pl1-162, 1.7.2, 1.35.0 and
1.38.0), and so for bcron (0.11), also which values it reads and when it would run next; what is said of the BSDs and
of supercronic comes from their documents and sources.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple

_NICKNAMES = frozenset({
    "@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly", "@reboot",
})  # fmt: skip


class CronProgram(NamedTuple):
    """`skipped_names`: files of cron.d with such a name are passed over without a word."""

    key: str
    title: str
    nicknames: frozenset[str] = _NICKNAMES
    reads_cron_tz: bool = False
    keeps_carriage_returns: bool = True
    needs_final_newline: bool = True
    skipped_names: re.Pattern[str] | None = None
    splits_at_percent: bool = True  # of a command: what follows a % is its standard input
    halves_backslashes: bool = False  # of a command: two of them are one to the shell
    mails_account: bool = False  # what a command prints is sent to its account where no MAILTO is set
    runs_without_home: bool = False  # a command whose home does not exist, in another directory
    ignores_faulty_files: bool = False  # one line that it cannot read, and no line of the file is run
    follows_the_clock: bool = False  # also for fixed times: not made up for after a gap, repeated in an overlap
    longest_line: int | None = None  # in bytes: a longer command is refused, of a longer variable the rest left out
    keeps: frozenset[str] = frozenset()  # of USER and LOGNAME: what a crontab sets, where others put the account
    pam_service: str = ""  # whose variables its commands begin with
    clock_rule_is_known: bool = True  # False: what it does on the days on which the clock is set was never seen


DEBIAN = CronProgram(
    "debian",
    "Debian's cron",
    skipped_names=re.compile(r"(?![A-Za-z0-9_-]+$).*", re.DOTALL),
    halves_backslashes=True,
    mails_account=True,
    runs_without_home=True,
    ignores_faulty_files=True,
    longest_line=998,
    keeps=frozenset({"USER"}),
    pam_service="cron",
)
CRONIE = CronProgram(
    "cronie",
    "cronie",
    reads_cron_tz=True,
    mails_account=True,
    pam_service="crond",
    skipped_names=re.compile(r"[.#].*|.*~|.*\.(?:rpmsave|rpmorig|rpmnew)", re.DOTALL),
)
BSD = CronProgram("bsd", "BSD cron", nicknames=_NICKNAMES | {"@every_minute", "@every_second"}, mails_account=True)
BUSYBOX = CronProgram(
    "busybox", "BusyBox crond", needs_final_newline=False, splits_at_percent=False, follows_the_clock=True
)
SUPERCRONIC = CronProgram(
    "supercronic",
    "supercronic",
    nicknames=_NICKNAMES - {"@midnight", "@reboot"},
    reads_cron_tz=True,
    keeps_carriage_returns=False,
    needs_final_newline=False,
    splits_at_percent=False,
    follows_the_clock=True,
    keeps=frozenset({"USER", "LOGNAME"}),
    clock_rule_is_known=False,
)
BCRON = CronProgram(
    "bcron",
    "bcron",
    nicknames=frozenset(),
    needs_final_newline=False,
    splits_at_percent=False,
    clock_rule_is_known=False,
)
CRON_PROGRAMS: Mapping[str, CronProgram] = {
    program.key: program for program in (DEBIAN, CRONIE, BSD, BUSYBOX, SUPERCRONIC, BCRON)
}

# -- which one --------------------------------------------------------------------------------------------------

_CRONIE_SETTING = re.compile(r"^[ \t]*(?:RANDOM_DELAY|START_HOURS_RANGE|MAILFROM)[ \t]*=", re.MULTILINE)
_EVERY_MINUTE = re.compile(r"^[ \t]*@every_(?:minute|second)[ \t]", re.MULTILINE)
_DISTRIBUTIONS = {
    "debian": DEBIAN, "ubuntu": DEBIAN, "alpine": BUSYBOX, "openwrt": BUSYBOX, "fedora": CRONIE, "rhel": CRONIE,
    "centos": CRONIE, "suse": CRONIE, "opensuse": CRONIE, "arch": CRONIE, "gentoo": CRONIE, "amzn": CRONIE,
}  # fmt: skip


def program_of_file(path: str, text: str) -> CronProgram | None:
    """The program that a file was written for, where its place or its settings tell."""
    folders = PurePosixPath(path.replace("\\", "/")).parts[:-1]
    if folders[-2:] == ("etc", "crontabs"):
        return BUSYBOX  # Alpine and OpenWrt
    if folders[-2:] in (("cron", "tabs"), ("lib", "cron")):
        return BSD
    if "supercronic" in path.lower():
        return SUPERCRONIC
    if _EVERY_MINUTE.search(text):
        return BSD
    return CRONIE if _CRONIE_SETTING.search(text) else None


def program_of_machine(root: Path = Path("/"), platform: str = sys.platform) -> CronProgram:
    """The cron of this machine, or the one that its distribution brings; Debian's where nothing tells.

    CHRONEX_CRON says it where the guess is wrong: crontabs of this machine that are for another one.
    """
    if (said := CRON_PROGRAMS.get(os.environ.get("CHRONEX_CRON", ""))) is not None:
        return said
    if platform == "darwin" or "bsd" in platform:
        return BSD
    for place, program in (
        ("usr/bin/cronnext", CRONIE),
        ("etc/sysconfig/crond", CRONIE),
        ("usr/sbin/bcron-sched", BCRON),
    ):
        if (root / place).exists():
            return program
    for name in _distribution(root):
        if name in _DISTRIBUTIONS:
            return _DISTRIBUTIONS[name]
    return DEBIAN


def _distribution(root: Path) -> list[str]:
    """ID and ID_LIKE of os-release, the nearest name first."""
    try:
        lines = (root / "etc/os-release").read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    settings = dict(line.split("=", 1) for line in lines if "=" in line)
    words = f"{settings.get('ID', '')} {settings.get('ID_LIKE', '')}"
    return words.replace('"', "").replace("'", "").lower().split()
