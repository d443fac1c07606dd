"""Files that are read line by line: crontabs, systemd timers, and bare expressions."""

from __future__ import annotations

import re
from pathlib import PurePath

from chronex.errors import UnknownZoneError
from chronex.lint.cron_grammar import wide_schedule
from chronex.lint.cron_programs import BCRON, BSD, BUSYBOX, CRONIE, DEBIAN, SUPERCRONIC, CronProgram, program_of_file
from chronex.lint.cron_variables import CronVariable, is_cut, read_variable
from chronex.lint.findings import Assumptions, FinderResult, ScheduleSite, ZoneNote
from chronex.lint.hosts import CHRONEX, CRON_HOSTS, POSIX, SYSTEMD
from chronex.lint.rules.crontab_rules import (
    file_as_cron_takes_it,
    file_in_utf16,
    is_user,
    is_utf16,
    long_command,
    month_for_monthly,
    no_variable,
    own_crontab_columns,
    percent_signs,
    system_crontab_columns,
    value_by_release,
    variable_inside,
    zone_for_commands_only,
    zone_that_is_not_read,
)
from chronex.lint.rules.refusals import (
    line_cut_off,
    line_ended_by_nul,
    return_for_a_schedule,
    sixth_column,
    star_for_a_command,
)
from chronex.lint.rules.zone_rules import name_in_crontab, zone_of_crontab
from chronex.lint.source_files import ARGUMENTS, Document, is_template
from chronex.timing.zones import load_zone

# -- crontab and cron.d -----------------------------------------------------------------------------------

_SCHEDULE = re.compile(r"[ \t]*(@[^ \t]+|[^ \t]+(?:[ \t]+[^ \t]+){0,4})")
_FIELD_LIKE = re.compile(
    r"(\*(?:/[0-9]+)?|[0-7](?:[-,/][0-7])*|(?:SUN|MON|TUE|WED|THU|FRI|SAT)(?:[-,][A-Z]{3})*)[ \t]"
)

_VIXIE = (DEBIAN, CRONIE, BSD)


def find_crontab(document: Document, assume: Assumptions, *, has_user: bool) -> FinderResult:
    """Lines of schedule, user (in system files) and command, under the variables above them."""
    program = assume.cron or program_of_file(document.path, document.text) or assume.machine_cron
    if is_utf16(document.text):
        return FinderResult([], [file_in_utf16(document, program)])
    return _CrontabReader(document, assume.zone, program, has_user).read()


class _CrontabReader:
    def __init__(self, document: Document, zone: ZoneNote, program: CronProgram, has_user: bool) -> None:
        self.document = document
        self.text = document.text
        self.zone = self.zone_of_machine = zone
        self.program = program
        self.host = CRON_HOSTS[program.key]
        self.has_user = has_user
        self.comment = ""
        self.line_end = ""  # carriage returns
        self.found = FinderResult([], [])

    def read(self) -> FinderResult:
        start = 0
        for line in self.text.split("\n"):
            self.line_end = line[len(line.rstrip("\r")) :]
            self._line(line.removesuffix(self.line_end), start)
            start += len(line) + 1
        self.found.findings.extend(file_as_cron_takes_it(self.document, self.program))
        return self.found

    def _line(self, line: str, start: int) -> None:
        stripped = line.strip(" \t")
        if not stripped or stripped.startswith("#"):
            self.comment = f"{self.comment} {stripped}" if stripped else ""
            if not stripped and self.line_end and self.program in _VIXIE:
                self.found.findings.append(return_for_a_schedule(start + len(line), self.program.title))
            return
        head, end = line, line.find("\0")
        if end >= 0 and self.program in _VIXIE:
            head = line[:end]
            line = self._ended_by_nul(line, end, start)
        variable = read_variable(head, self.program)
        if isinstance(variable, CronVariable):
            self._variable(variable, line, start)
        elif variable is not None:
            self.found.findings.append(no_variable(variable, start, self.program.title))
        else:
            self._entry(line, start)
        self.comment = ""

    def _ended_by_nul(self, line: str, end: int, start: int) -> str:
        """Where Vixie's crons end a variable or a command; among the fields of a schedule they go on."""
        if not isinstance(read_variable(line[:end], self.program), CronVariable):
            schedule = _SCHEDULE.match(line)
            end = line.find("\0", schedule.end()) if schedule else -1
        if end < 0:
            return line
        self.found.findings.append(line_ended_by_nul(start + end, self.program.title))
        return line[:end]

    def _variable(self, variable: CronVariable, line: str, start: int) -> None:
        name, value, place = variable.name, variable.value, (start + variable.start, start + variable.value_end)
        at = start + variable.value_start + (line[variable.value_start : variable.value_start + 1] in ("'", '"'))
        self.found.findings.extend(variable_inside(value, at))
        if is_cut(line, self.program):
            self.found.findings.append(line_cut_off(*place, self.program))
        if self.program is DEBIAN:
            self.found.findings.extend(value_by_release(variable, start))
        if name not in ("CRON_TZ", "TZ"):
            return
        if name == "CRON_TZ" and not self.program.reads_cron_tz:
            self.found.findings.append(zone_that_is_not_read(*place, self.program.title))
            return
        if name == "TZ":
            self.found.findings.append(zone_for_commands_only(*place))
            return
        if not value:
            self.zone = self.zone_of_machine
            return
        name = name_in_crontab(value, self.program)
        self.found.findings.extend(zone_of_crontab(value, name, at, self.program.title))
        try:
            self.zone = ZoneNote(load_zone(name).name, f"from CRON_TZ above it, which {self.program.title} reads")
        except UnknownZoneError:
            self.zone = ZoneNote("UTC", "CRON_TZ above it names no zone, which counts as UTC")

    def _entry(self, line: str, start: int) -> None:
        match = wide_schedule(line, self.program) or _SCHEDULE.match(line)
        if match is None or is_template(match[1]):
            return
        schedule = match[1]
        at = start + match.start(1)
        columns = line[match.end() :].lstrip(" \t")
        columns_at = start + len(line) - len(columns)
        if self._has_sixth_field(schedule, columns) and (extra := _FIELD_LIKE.match(columns)):
            self.found.findings.append(sixth_column(at, columns_at + extra.end(1)))
            return
        if columns.startswith("*") and self.program not in (BUSYBOX, SUPERCRONIC, BCRON):
            self.found.findings.append(star_for_a_command(columns_at, self.program.title))
            return
        if self.has_user:
            command = self._system_command(schedule, columns, columns_at)
        else:
            command = columns
            line_end = self.line_end if match.end() == len(line) else ""
            self.found.findings.extend(own_crontab_columns(schedule, at, columns, columns_at, self.program, line_end))
        self.found.findings.extend(
            long_command(command, start + len(line) - len(command), self.program, self.line_end)
        )
        site = ScheduleSite(schedule, at, at + len(schedule), at, self.host, self.zone, _name_of(command))
        self.found.sites.append(site)
        if self.program.splits_at_percent:
            self.found.findings.extend(percent_signs(command, start + len(line) - len(command)))
        self.found.findings.extend(month_for_monthly(site, f"{self.comment} {command}"))

    def _has_sixth_field(self, schedule: str, columns: str) -> bool:
        return self.program is not SUPERCRONIC and not schedule.startswith("@") and bool(columns)

    def _system_command(self, schedule: str, columns: str, at: int) -> str:
        """The command after the user's column; all of it where no user stands there."""
        user = columns.split(maxsplit=1)[0] if columns.strip() else ""
        command = columns[len(user) :].lstrip(" \t")
        self.found.findings.extend(system_crontab_columns(schedule, user, command, at))
        return command if is_user(user) else columns


def _name_of(command: str) -> str:
    words = command.split(maxsplit=3)
    return " ".join(words[:3])[:60]


# -- systemd timers ---------------------------------------------------------------------------------------

_UNIT_LINE = re.compile(r"(?:[^\n]*\\\r?\n)*[^\n]*(?:\n|$)")
_SECTION = re.compile(r"[ \t]*\[([^\]\n]*)\][ \t\r\n]*")
_ON_CALENDAR = re.compile(r"[ \t]*OnCalendar[ \t]*=[ \t]*")


def find_timer(document: Document, assume: Assumptions) -> FinderResult:
    """Every `OnCalendar=` of the `[Timer]` section."""
    found, section = FinderResult([], []), ""
    unit = PurePath(document.path).name
    for line in _UNIT_LINE.finditer(document.text):
        text = line[0]
        if text.lstrip(" \t").startswith(("#", ";")):
            continue  # a comment does not continue on the next line, whatever it ends with
        if (header := _SECTION.fullmatch(text)) is not None:
            section = header[1]
        elif section == "Timer" and (key := _ON_CALENDAR.match(text)):
            _event(text[key.end() :], line.start() + key.end(), unit, assume, found)
    return found


def _event(raw: str, start: int, unit: str, assume: Assumptions, found: FinderResult) -> None:
    value = raw.rstrip(" \t\r\n")
    if not value or is_template(value):
        return  # an empty value resets the list; what a template fills in is not there yet
    is_joined = "\\\n" in value or "\\\r\n" in value
    text = re.sub(r"\\\r?\n", " ", value)
    content = None if is_joined else start
    found.sites.append(ScheduleSite(text, start, start + len(value), content, SYSTEMD, assume.zone, unit))


# -- bare expressions -------------------------------------------------------------------------------------


def find_expressions(document: Document, assume: Assumptions, *, is_posix: bool) -> FinderResult:
    """One expression on each line: given as arguments, or on standard input, where # opens a comment."""
    host = POSIX if is_posix else CHRONEX
    found, start = FinderResult([], []), 0
    for line in document.text.split("\n"):
        text = line.rstrip("\r")
        is_comment = text.lstrip().startswith("#") and document.path != ARGUMENTS
        if (text.strip() and not is_comment) or document.path == ARGUMENTS:
            name = text.strip()[:60]
            found.sites.append(ScheduleSite(text, start, start + len(text), start, host, assume.zone, name))
        start += len(line) + 1
    return found
