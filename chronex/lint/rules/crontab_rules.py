"""The rules on crontabs: the columns of a line, the variables above it, and what cron makes of its text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chronex.expr.diagnostics import ERROR, INFO, SAME_MEANING, WARNING, Message, Rule
from chronex.lint.findings import Edit, Fix, LintFinding, finding
from chronex.lint.rules import crontab, system_crontab
from chronex.text.terminal import quoted

_PERCENT = re.compile(r"(?<!\\)%")
_LIKE_STRFTIME = re.compile(r"\bdate\b[^|;&]*\+[^|;&]*$")
_USER = re.compile(r"[a-z_][a-z0-9_.-]*\$?", re.IGNORECASE)
# Words that open a command and are no user's name.
_COMMANDS = {"cd", "test", "echo", "bash", "sh", "python", "python3", "php", "perl", "ruby", "node", "find", "rsync",
             "curl", "wget", "docker", "nice", "sudo", "env", "flock", "systemctl", "certbot"}  # fmt: skip

W134 = Rule(
    "W134",
    "percent sign in a crontab",
    WARNING,
    "cron ends a command at the first % that has no backslash, gives the rest to it as standard "
    "input, and turns every further % into a newline. `date +%F` never gets its format.",
    bad=crontab("17 3 * * * tar czf /backup/$(date +%F).tgz /srv\n"),
    good=crontab("17 3 * * * tar czf /backup/$(date +\\%F).tgz /srv\n"),
    messages={
        "": Message("cron ends the command at this %: the rest becomes its standard input", "write \\%"),
    },
)


def percent_signs(command: str, at: int) -> Iterator[LintFinding]:
    """% is a newline to cron, and all after the first one is standard input, which `date +%F` never means."""
    for match in _PERCENT.finditer(command):
        if _LIKE_STRFTIME.search(command[: match.start()]):
            start = at + match.start()
            fix = Fix("write \\%", (Edit(start, start + 1, "\\%"),))
            yield finding(W134, start, start + 1, fix=fix)


W135 = Rule(
    "W135",
    "no newline at the end of a crontab",
    WARNING,
    "cron reads lines that end with a newline. Without one the last entry is ignored, or the whole file is refused.",
    bad=crontab("17 3 * * * /usr/local/bin/backup"),
    good=crontab("17 3 * * * /usr/local/bin/backup\n"),
    messages={
        "": Message("the last line has no newline: cron ignores it, or refuses the whole file", fix_is=SAME_MEANING)
    },
)


def final_newline(text: str) -> Iterator[LintFinding]:
    last = text[text.rfind("\n") + 1 :]
    if not last.strip() or last.lstrip().startswith("#"):
        return
    end = len(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    yield finding(W135, end - len(last.rstrip()), end, fix=Fix("end the line", (Edit(end, end, newline),)))


W136 = Rule(
    "W136",
    "user or command column of a crontab",
    ERROR,
    "A system crontab (/etc/crontab, cron.d) has a user between schedule and command, a user's "
    "own crontab has none; and both need a command.",
    bad=system_crontab("17 3 * * * /usr/local/bin/backup\n"),
    good=system_crontab("17 3 * * * root /usr/local/bin/backup\n"),
    messages={
        "user in an own crontab": Message(
            "a user's own crontab has no user column: cron would run a command called 'root'"
        ),
        "no command": Message("there is no command after the schedule: cron refuses the line"),
        "no user": Message("the user and the command are missing after the schedule: cron refuses the line"),
        "not a user": Message("the sixth column is the user that runs the command, and {user} is not one"),
        "no command after the user": Message("{user} stands in the user's column, and no command follows it"),
    },
)


def own_crontab_columns(schedule: str, at: int, command: str, command_at: int) -> Iterator[LintFinding]:
    """W136 in a user's own crontab, which has no user column."""
    rest = command.removeprefix("root ").lstrip()
    if command.startswith("root ") and rest.startswith("/"):
        edit = Edit(command_at, command_at + len(command) - len(rest), "")
        fix = Fix("remove the user", (edit,))
        case = "user in an own crontab"
        yield finding(W136, command_at, command_at + 4, case, fix=fix, severity=WARNING)
    elif not command.strip() and _is_whole(schedule):
        yield finding(W136, at, at + len(schedule), "no command")


def system_crontab_columns(schedule: str, user: str, command: str, at: int) -> Iterator[LintFinding]:
    """W136 in a system crontab; `at` is the offset of the user's column."""
    if not user:
        if _is_whole(schedule):
            yield finding(W136, max(at - 1, 0), at, "no user")
    elif not is_user(user):
        fix = Fix("run it as root", (Edit(at, at, "root "),))
        yield finding(W136, at, at + len(user), "not a user", fix=fix, user=quoted(user))
    elif not command.strip():
        yield finding(W136, at, at + len(user), "no command after the user", user=quoted(user))


def is_user(word: str) -> bool:
    return _USER.fullmatch(word) is not None and word not in _COMMANDS


def _is_whole(schedule: str) -> bool:
    """Five fields or a nickname; anything shorter is reported as such, not as a line without a command."""
    return schedule.startswith("@") or len(schedule.split()) == 5


W138 = Rule(
    "W138",
    "zone that cron does not read",
    INFO,
    "TZ in a crontab is a variable for the commands; cron itself reads the times in the machine's "
    "zone. cronie has CRON_TZ for that, Debian's cron has nothing.",
    bad=crontab("TZ=Europe/Berlin\n17 3 * * * /usr/local/bin/backup\n"),
    good=crontab("CRON_TZ=Europe/Berlin\n17 3 * * * /usr/local/bin/backup\n"),
    messages={
        "": Message("TZ is for the commands only; cron reads the times in the machine's zone (cronie: CRON_TZ)"),
    },
)


def zone_for_commands_only(start: int, end: int) -> LintFinding:
    return finding(W138, start, end)


CRONTAB_RULES = (W134, W135, W136, W138)
