"""crontab and cron.d: lines of schedule, user (in system files) and command, under the variables above them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chronex.errors import UnknownZoneError
from chronex.expr.diagnostics import ERROR, WARNING
from chronex.lint.assumptions import Assumptions
from chronex.lint.document import Document, is_template
from chronex.lint.findings import INFO, Edit, Finding, Fix, Found, Place, ZoneNote
from chronex.lint.hosts import CRONTAB
from chronex.lint.zones import zone_findings
from chronex.text.terminal import quoted
from chronex.timing.zones import load_zone

_VARIABLE = re.compile(r"""[ \t]*("[^"\n]*"|'[^'\n]*'|[A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*(.*?)[ \t]*$""")
_SCHEDULE = re.compile(r"[ \t]*(@[^ \t]+|[^ \t]+(?:[ \t]+[^ \t]+){0,4})")
_USER = re.compile(r"[a-z_][a-z0-9_.-]*\$?", re.IGNORECASE)
_FIELD_LIKE = re.compile(
    r"(\*(?:/[0-9]+)?|[0-7](?:[-,/][0-7])*|(?:SUN|MON|TUE|WED|THU|FRI|SAT)(?:[-,][A-Z]{3})*)[ \t]"
)
_PERCENT = re.compile(r"(?<!\\)%")
_LIKE_STRFTIME = re.compile(r"\bdate\b[^|;&]*\+[^|;&]*$")
# Words that open a command and are no user's name.
_COMMANDS = {"cd", "test", "echo", "bash", "sh", "python", "python3", "php", "perl", "ruby", "node", "find", "rsync",
             "curl", "wget", "docker", "nice", "sudo", "env", "flock", "systemctl", "certbot"}  # fmt: skip


def find_crontab(document: Document, assume: Assumptions, *, has_user: bool) -> Found:
    reader = _Reader(document, assume, has_user)
    reader.run()
    return Found(reader.places, reader.findings)


class _Reader:
    def __init__(self, document: Document, assume: Assumptions, has_user: bool) -> None:
        self.text, self.has_user = document.text, has_user
        self.zone = assume.zone
        self.places: list[Place] = []
        self.findings: list[Finding] = []

    def run(self) -> None:
        start = 0
        for line in self.text.split("\n"):
            self._line(line.rstrip("\r"), start)
            start += len(line) + 1
        self._final_newline()

    def _line(self, line: str, start: int) -> None:
        stripped = line.strip(" \t")
        if not stripped or stripped.startswith("#"):
            return
        variable = _VARIABLE.match(line)
        if variable is not None:
            self._variable(variable, start)
        else:
            self._entry(line, start)

    def _variable(self, match: re.Match[str], start: int) -> None:
        name, value = match[1].strip("\"'"), match[2]
        if name not in ("CRON_TZ", "TZ"):
            return
        at = start + match.start(2)
        if value[:1] in ("'", '"'):
            value, at = value.strip(value[0]), at + 1
        if name == "TZ":
            message = "TZ is for the commands only; cron reads the times in the machine's zone (cronie: CRON_TZ)"
            key = start + match.start(1)
            self.findings.append(Finding("W138", INFO, message, key, start + match.end(2)))
            return
        self.findings.extend(zone_findings(value, at, at + len(value)))
        try:
            self.zone = ZoneNote(load_zone(value).name, "from CRON_TZ above it (cronie; other crons ignore it)")
        except UnknownZoneError:
            return

    def _entry(self, line: str, start: int) -> None:
        match = _SCHEDULE.match(line)
        if match is None:
            return
        schedule, rest = match[1], line[match.end() :]
        if is_template(schedule):
            return
        at = start + match.start(1)
        command = rest.lstrip(" \t")
        command_at = start + len(line) - len(command)
        if (extra := _FIELD_LIKE.match(command)) and not schedule.startswith("@"):
            end = command_at + extra.end(1)
            message = "6 fields, but cron reads 5: it has no seconds, and takes the sixth for a command or a user"
            self.findings.append(Finding("W130", ERROR, message, at, end))
            return
        if self.has_user:
            command, command_at = self._user(schedule, command, command_at, start + len(line))
        elif command.startswith("root ") and command[5:].lstrip().startswith("/"):
            message = "a user's own crontab has no user column: cron would run a command called 'root'"
            edit = Edit(command_at, command_at + len(command) - len(command[5:].lstrip()), "")
            fix = Fix("remove the user", (edit,), is_safe=False)
            self.findings.append(Finding("W136", WARNING, message, command_at, command_at + 4, fix))
        elif not command.strip() and self._is_whole(schedule):
            message = "there is no command after the schedule: cron refuses the line"
            self.findings.append(Finding("W136", ERROR, message, at, at + len(schedule)))
        name = _name_of(command)
        self.places.append(Place(schedule, at, at + len(schedule), at, CRONTAB, self.zone, name))
        self.findings.extend(_percents(command, command_at))

    def _user(self, schedule: str, rest: str, at: int, end: int) -> tuple[str, int]:
        """The command after the user column."""
        user = rest.split(maxsplit=1)[0] if rest.strip() else ""
        command = rest[len(user) :]
        command_at = end - len(command.lstrip(" \t"))
        if not user:
            if not self._is_whole(schedule):
                return "", at
            message = "the user and the command are missing after the schedule: cron refuses the line"
            self.findings.append(Finding("W136", ERROR, message, max(at - 1, 0), at))
            return "", at
        if not _USER.fullmatch(user) or user in _COMMANDS:
            message = f"the sixth column is the user that runs the command, and {quoted(user)} is not one"
            fix = Fix("run it as root", (Edit(at, at, "root "),), is_safe=False)
            self.findings.append(Finding("W136", ERROR, message, at, at + len(user), fix))
            return rest, at
        if not command.strip():
            message = f"{quoted(user)} stands in the user's column, and no command follows it"
            self.findings.append(Finding("W136", ERROR, message, at, at + len(user)))
        return command.lstrip(" \t"), command_at

    @staticmethod
    def _is_whole(schedule: str) -> bool:
        """Five fields or a nickname; anything shorter is told as such, not as a line without a command."""
        return schedule.startswith("@") or len(schedule.split()) == 5

    def _final_newline(self) -> None:
        last = self.text[self.text.rfind("\n") + 1 :]
        if not last.strip() or last.lstrip().startswith("#"):
            return
        end = len(self.text)
        message = "the last line has no newline: cron ignores it, or refuses the whole file"
        newline = "\r\n" if "\r\n" in self.text else "\n"
        fix = Fix("end the line", (Edit(end, end, newline),))
        self.findings.append(Finding("W135", WARNING, message, end - len(last.rstrip()), end, fix))


def _name_of(command: str) -> str:
    words = command.split(maxsplit=3)
    return " ".join(words[:3])[:60]


def _percents(command: str, at: int) -> Iterator[Finding]:
    """% is a newline to cron, and all after the first one is standard input. In `date +%F` nobody means that."""
    for match in _PERCENT.finditer(command):
        if not _LIKE_STRFTIME.search(command[: match.start()]):
            continue
        start = at + match.start()
        message = "cron ends the command at this %: the rest becomes its standard input; write \\%"
        fix = Fix("write \\%", (Edit(start, start + 1, "\\%"),))
        yield Finding("W134", WARNING, message, start, start + 1, fix)
