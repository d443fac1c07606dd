"""The rules on crontabs: the columns of a line, the variables above it, and what cron makes of its text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath

from chronex.expr.diagnostics import ERROR, INFO, SAME_MEANING, WARNING, Example, Message, Rule
from chronex.lint.cron_programs import BSD, DEBIAN, CronProgram
from chronex.lint.cron_variables import CronVariable, NoVariable
from chronex.lint.findings import Edit, Fix, LintFinding, ScheduleSite, finding
from chronex.lint.rules import crontab, system_crontab
from chronex.lint.source_files import Document
from chronex.text.terminal import quoted

_PERCENT = re.compile(r"(?<!\\)%")
# What stands before a % that belongs to a date: `date … +…`, or a word of any other program that begins with a +.
_LIKE_STRFTIME = re.compile(r"\bdate\b[^|;&]*\+[^|;&]*$|(?:^|\s)[\"']?\+[^\s|;&]*$")
_USER = re.compile(r"[a-z_][a-z0-9_.-]*\$?", re.IGNORECASE)
# Words that open a command and are no user's name.
_COMMANDS = {"cd", "test", "echo", "bash", "sh", "python", "python3", "php", "perl", "ruby", "node", "find", "rsync",
             "curl", "wget", "docker", "nice", "sudo", "env", "flock", "systemctl", "certbot"}  # fmt: skip

W134 = Rule(
    "W134",
    "percent sign in a crontab",
    WARNING,
    "cron ends a command at the first % that has no backslash, gives the rest to it as standard "
    "input, and turns every further % into a newline. `date +%F` never gets its format. BusyBox, supercronic and "
    "bcron take a % for a %, and nothing is said for them.",
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


E136 = Rule(
    "E136",
    "user or command column of a crontab",
    ERROR,
    "A system crontab (/etc/crontab, cron.d) has a user between schedule and command, a user's "
    "own crontab has none; and both need a command.",
    bad=system_crontab("17 3 * * * /usr/local/bin/backup\n"),
    good=system_crontab("17 3 * * * root /usr/local/bin/backup\n"),
    messages={
        "no command": Message("there is no command after the schedule: {host} refuses the line"),
        "empty command": Message("there is no command after the schedule: {host} takes the line and runs nothing"),
        "long command": Message("the command has {size} bytes: {host} takes {most} at most, and refuses the file"),
        "no user": Message("the user and the command are missing after the schedule: cron refuses the line"),
        "not a user": Message("the sixth column is the user that runs the command, and {user} is not one"),
        "no command after the user": Message("{user} stands in the user's column, and no command follows it"),
    },
)


W148 = Rule(
    "W148",
    "user in a user's own crontab",
    WARNING,
    "Only system crontabs (/etc/crontab, cron.d) have a column for the user. In a user's own crontab the word is the "
    "command, and there is hardly a command called root.",
    bad=crontab("17 3 * * * root /usr/local/bin/backup\n"),
    good=crontab("17 3 * * * /usr/local/bin/backup\n"),
    messages={"": Message("a user's own crontab has no user column: cron would run a command called 'root'")},
)


def own_crontab_columns(
    schedule: str, at: int, command: str, command_at: int, program: CronProgram, line_end: str
) -> Iterator[LintFinding]:
    """E136 and W148 in a user's own crontab, which has no user column.

    A carriage return that directly follows a nickname is a part of it.
    """
    rest = command.removeprefix("root ").lstrip()
    if command.startswith("root ") and rest.startswith("/"):
        edit = Edit(command_at, command_at + len(command) - len(rest), "")
        fix = Fix("remove the user", (edit,))
        yield finding(W148, command_at, command_at + 4, fix=fix)
    elif not command.strip() and _is_whole(schedule):
        is_taken = program in (DEBIAN, BSD) and not (line_end and schedule.startswith("@"))
        case = "empty command" if is_taken else "no command"
        yield finding(E136, at, at + len(schedule), case, host=program.title)


def long_command(command: str, at: int, program: CronProgram, line_end: str) -> Iterator[LintFinding]:
    """E136 for a command that is longer than the program has a place for; a carriage return belongs to it."""
    size = len((command + line_end).encode("utf-8", "surrogateescape"))
    if program.longest_line is not None and size > program.longest_line:
        most = program.longest_line
        yield finding(E136, at, at + len(command), "long command", size=size, most=most, host=program.title)


def system_crontab_columns(schedule: str, user: str, command: str, at: int) -> Iterator[LintFinding]:
    """E136 in a system crontab; `at` is the offset of the user's column."""
    if not user:
        if _is_whole(schedule):
            yield finding(E136, max(at - 1, 0), at, "no user")
    elif not is_user(user):
        fix = Fix("run it as root", (Edit(at, at, "root "),))
        yield finding(E136, at, at + len(user), "not a user", fix=fix, user=quoted(user))
    elif not command.strip():
        yield finding(E136, at, at + len(user), "no command after the user", user=quoted(user))


def is_user(word: str) -> bool:
    return _USER.fullmatch(word) is not None and word not in _COMMANDS


def _is_whole(schedule: str) -> bool:
    """Five fields or a nickname; anything shorter is reported as such, not as a line without a command."""
    return schedule.startswith("@") or len(schedule.split()) == 5


W138 = Rule(
    "W138",
    "zone that cron does not read",
    WARNING,
    "TZ in a crontab is a variable for the commands; cron itself reads the times in the machine's zone. CRON_TZ is "
    "for cronie and supercronic: Debian's cron, BusyBox and the BSDs hand it to the commands like any other.",
    bad=crontab("CRON_TZ=Asia/Tokyo\n17 3 * * * /usr/local/bin/backup\n"),
    good=crontab("# 03:17 in the zone of the machine\n17 3 * * * /usr/local/bin/backup\n"),
    messages={
        "": Message("TZ is for the commands only; cron reads the times in the machine's zone (cronie: CRON_TZ)"),
        "not read": Message("{host} does not read CRON_TZ: the times below are those of the machine's zone"),
    },
)


def zone_for_commands_only(start: int, end: int) -> LintFinding:
    return finding(W138, start, end, severity=INFO)


def zone_that_is_not_read(start: int, end: int, host: str) -> LintFinding:
    return finding(W138, start, end, "not read", host=host)


E149 = Rule(
    "E149",
    "variable that cron cannot read",
    ERROR,
    "Nothing may follow the quote that closes a value, not even a comment: cron takes the line for a schedule then, "
    "and refuses it, Debian's cron with the whole file.",
    bad=crontab("MAILTO='ops@example.org' # the team\n17 3 * * * /usr/local/bin/backup\n"),
    good=crontab("# the team\nMAILTO='ops@example.org'\n17 3 * * * /usr/local/bin/backup\n"),
    messages={
        "open quote": Message("the quote of the value is not closed: {host} takes the line for a schedule"),
        "text after a quote": Message(
            "{host} takes the line for a schedule, because something follows the closing quote", "quote it as a whole"
        ),
        "long value": Message("the line is longer than {host} reads, so that the quote of the value is not closed"),
    },
)
W154 = Rule(
    "W154",
    "variable that not every Debian reads",
    WARNING,
    "Before Debian 13 its cron took `MAILTO=` for a schedule; an empty value in quotes is read by all. Since Debian "
    "13 an address in MAILTO and MAILFROM begins with a letter or digit and has no blanks and no other signs than "
    "`!%+,-./:=@_`. Where it is not read, the whole file is refused.",
    bad=crontab("MAILTO=ops@example.org, dev@example.org\n17 3 * * * /usr/local/bin/backup\n"),
    good=crontab("MAILTO=ops@example.org,dev@example.org\n17 3 * * * /usr/local/bin/backup\n"),
    messages={
        "empty": Message(
            "Debian's cron refuses the file before Debian 13: an empty value needs quotes",
            'write ""',
            fix_is=SAME_MEANING,
        ),
        "address": Message(
            "Debian's cron refuses the file since Debian 13, because {value} has unsafe characters in it"
        ),
        "blank": Message("Debian's cron refuses the file since Debian 13: no blanks between addresses"),
    },
)


def no_variable(found: NoVariable, at: int, host: str) -> LintFinding:
    return finding(E149, at + found.start, at + found.end, found.why, host=host)


def value_by_release(variable: CronVariable, at: int) -> Iterator[LintFinding]:
    """W154, for Debian's cron: what its releases do not read alike."""
    start, end = at + variable.start, at + variable.value_end
    if variable.is_bare_and_empty:
        yield finding(W154, start, end, "empty", fix=Fix('write ""', (Edit(end, end, '""'),)))
    elif variable.is_unsafe_address:
        without_blanks = variable._replace(value=variable.value.replace(", ", ","))
        case = "address" if without_blanks.is_unsafe_address else "blank"
        yield finding(W154, at + variable.value_start, end, case, value=quoted(variable.value))


# -- what a file is like as a whole, and what its words suggest ---------------------------------------------------

E143 = Rule(
    "E143",
    "byte order mark in a crontab",
    ERROR,
    "cron reads bytes: an invisible mark at the beginning of the file belongs to its first line. A schedule or a "
    "comment is refused then, and with it the whole file by `crontab`; a variable gets another name. Save it as "
    "UTF-8 without a mark. Of a file in UTF-16 every second byte is a NUL, and no line of it is read.",
    bad=crontab("\ufeff17 3 * * * /usr/local/bin/backup\n"),
    good=crontab("17 3 * * * /usr/local/bin/backup\n"),
    messages={
        "": Message("the file begins with a byte order mark, which {host} takes for a part of its first line"),
        "UTF-16": Message("the file is written in UTF-16, and {host} reads no line of it", "save it as UTF-8"),
    },
)
W144 = Rule(
    "W144",
    "carriage returns in a crontab",
    WARNING,
    "cron ends a line at the line feed. The carriage return before it, which editors on Windows write, becomes the "
    "last character of the command or of the variable's value.",
    bad=crontab("17 3 * * * /usr/local/bin/backup\r\n"),
    good=crontab("17 3 * * * /usr/local/bin/backup\n"),
    messages={
        "": Message(
            "lines end with a carriage return, which {host} hands to the command", "save it with Unix line ends"
        )
    },
)
W145 = Rule(
    "W145",
    "name that cron skips",
    WARNING,
    "Debian's cron reads the files of cron.d whose names have letters, digits, _ and - only; a dot is enough to be "
    "skipped without a word. cronie skips names that begin with . or # or end with ~, and what rpm left.",
    bad=Example("17 3 * * * root /usr/local/bin/backup\n", "cron.d/backup.job"),
    good=Example("17 3 * * * root /usr/local/bin/backup\n", "cron.d/backup-job"),
    messages={"": Message("{host} skips files of cron.d with such a name: {name} is never read", "write {meant}")},
)
W146 = Rule(
    "W146",
    "variable in the value of a variable",
    WARNING,
    "cron does not expand anything in a value: `PATH=$PATH:/opt/bin` is a path of two directories, one of which is "
    "called $PATH, and no command is found any more.",
    bad=crontab("PATH=$PATH:/opt/bin\n17 3 * * * backup\n"),
    good=crontab("PATH=/usr/local/bin:/usr/bin:/bin:/opt/bin\n17 3 * * * backup\n"),
    messages={"": Message("cron does not expand {value}: these characters are the value", "write it out")},
)
W147 = Rule(
    "W147",
    "every day of one month for once a month",
    WARNING,
    "`0 0 * 1 *` is every day of January. Once a month is `0 0 1 * *`: the day comes before the month.",
    bad=crontab("0 3 * 1 * /usr/local/bin/report --monthly\n"),
    good=crontab("0 3 1 * * /usr/local/bin/report --monthly\n"),
    messages={"": Message("every day of one month, though the line says monthly", "once a month is {meant}")},
)
_EXPANDED = re.compile(r"\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[^}\n]*\}|\([^)\n]*\))|`[^`\n]*`")
# Findings on a file stand at its first line that is no comment, so that a comment above it can ignore them.
_FIRST_CONTENT = re.compile(r"^[ \t]*([^#\s][^\r\n]*)", re.MULTILINE)
_CARRIAGE_RETURN = re.compile(r"^[ \t]*([^#\s][^\r\n]*)\r\n", re.MULTILINE)
_MONTHLY = re.compile(r"\bmonthly\b", re.IGNORECASE)


def is_utf16(text: str) -> bool:
    """Whether bytes that were read as UTF-8 are UTF-16, with its mark or told by a NUL beside each character."""
    if text[:2] in ("\udcff\udcfe", "\udcfe\udcff"):
        return True
    first, second = set(text[0:32:2]), set(text[1:32:2])
    return len(text) >= 4 and (first == {"\0"}) is not (second == {"\0"})


def file_in_utf16(document: Document, program: CronProgram) -> LintFinding:
    return finding(E143, 0, document.lines.end_of_line(1), "UTF-16", host=program.title)


def file_as_cron_takes_it(document: Document, program: CronProgram) -> Iterator[LintFinding]:
    """What holds for the whole file: its name, its first bytes, its line ends, its last line."""
    text, path = document.text, PurePath(document.path.replace("\\", "/"))
    first = _FIRST_CONTENT.search(text)
    start, end = first.span(1) if first else (0, 0)
    if document.has_mark:
        yield finding(E143, start, end, host=program.title)
    if program.keeps_carriage_returns and (returns := _CARRIAGE_RETURN.search(text)):
        yield finding(W144, *returns.span(1), host=program.title)
    is_in_cron_d = path.parent.name == "cron.d" and document.kind == "cron.d"
    if is_in_cron_d and program.skipped_names is not None and program.skipped_names.fullmatch(path.name):
        meant = re.sub(r"[^A-Za-z0-9_-]+", "-", path.stem).strip("-") or "backup"
        yield finding(W145, start, end, host=program.title, name=quoted(path.name), meant=meant)
    if program.needs_final_newline:
        yield from final_newline(text)


def variable_inside(value: str, at: int) -> Iterator[LintFinding]:
    """W146: what a shell would expand in the value of a variable."""
    if (match := _EXPANDED.search(value)) is not None:
        yield finding(W146, at + match.start(), at + match.end(), value=quoted(match[0]))


def month_for_monthly(site: ScheduleSite, words: str) -> Iterator[LintFinding]:
    """W147: day and month changed places, where the comment above the line or its command says what was meant."""
    fields = site.text.split()
    if len(fields) != 5 or not _MONTHLY.search(words) or not fields[3].isdigit():
        return
    if fields[2] == "*" and fields[4] == "*":
        meant = f"{fields[0]} {fields[1]} {fields[3]} * *"
        yield finding(W147, site.start, site.end, site=site, meant=meant)


CRONTAB_RULES = (W134, W135, E136, W148, W138, E149, W154, E143, W144, W145, W146, W147)
