"""Import of crontabs and cron.d files: every line becomes a job, or is listed as lost."""

from __future__ import annotations

import os
import pwd
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from chronex.errors import UnknownZoneError
from chronex.expr.fields import FIVE_FIELDS, FieldSpec, read_field
from chronex.imports.command_names import name_of_command
from chronex.imports.cron_host import CronHost, PamVariables
from chronex.imports.import_result import Import, Imported, JobNames, Lost
from chronex.imports.oracle import CronPattern, instants, pattern_of, rules_of
from chronex.jobfile.notify_table import MOST_ADDRESSES, is_mail_address
from chronex.lint.cron_grammar import CronField, CronReading, CronRefusal, read_schedule, wide_schedule
from chronex.lint.cron_programs import DEBIAN, CronProgram
from chronex.lint.cron_variables import CronVariable, read_variable
from chronex.lint.rules.zone_rules import name_in_crontab
from chronex.timing.zones import Zone, load_zone, utc_zone

# MAILTO of a crontab as channels: who was sent what commands printed is sent it again, and told of failures.

# What cron sends a mail for, and what it never told: a command that fails and prints nothing.
_EVENTS = ("output", "failed")
NOTE = "mail has the last lines of the output, where cron sent all; a failure is told even where nothing was printed"


class MailChannels:
    """The channels of an import, one for each list of addresses."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[str, Any]] = {}
        self._names: dict[tuple[str, ...], str] = {}
        self._taken = JobNames()

    def notify(self, written: str) -> dict[str, Any] | None:
        """What stands in a job below `MAILTO=written`; None where no mail can be sent to that."""
        addresses = tuple(dict.fromkeys(word for word in re.split(r"[,\s]+", written) if word))
        if not 0 < len(addresses) <= MOST_ADDRESSES or not all(map(is_mail_address, addresses)):
            return None
        if addresses not in self._names:
            name = self._names[addresses] = self._taken.give(addresses[0].partition("@")[0])
            self.tables[name] = {"mail": addresses[0] if len(addresses) == 1 else list(addresses)}
        return {"to": [self._names[addresses]], "on": list(_EVENTS)}


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# A blank of Unicode is none to cron: it is a part of the word that it stands in.
_SCHEDULE = re.compile(r"[ \t]*(@[A-Za-z_]+|[^ \t]+(?:[ \t]+[^ \t]+){4})(?:[ \t]+(.*))?", re.DOTALL)
_STDIN = "CRON_STDIN"
# Feeds the text to what cron itself would start: the shell, with the command as one argument.
_FEED = f'printf %s "${_STDIN}" | "$0" -c "$1"'
# The policies of cron itself, so that the import changes nothing: runs overlap, and missed ones are not caught up.
DEFAULTS: dict[str, Any] = {"overlap": "allow", "recovery": "mark_missed"}
# What cron gives to every command that its crontab does not give otherwise.
_PATH, _SHELL = "/usr/bin:/bin", "/bin/sh"
_ROOT = "/"
_NO_TEXT = "it has bytes that are no UTF-8, and a job file can hold no others"
NO_ADDRESS = "that is no mail address; what commands print is kept by chronex logs, and notify tells of failures"
# `1,15W`, of which Chronex does not know whether the W is for both, and `fridayL`.
_OTHER_DAYS = "Chronex does not read days written like this; give each a line of its own, with short names"
_CLOCK_NOTE = "what {} does on days on which the clock is set is not known; there its times may be others"
# Variables that configure cron itself and are not passed to the commands, with what to do instead.
_CRON_SETTINGS = {
    "MAILFROM": "say from whom mail comes with from in [scheduler.smtp]",
    "CONTENT_TYPE": "has no equivalent",
    "CONTENT_TRANSFER_ENCODING": "has no equivalent",
    "RANDOM_DELAY": "has no equivalent; see jitter and spread",
    "START_HOURS_RANGE": "has no equivalent",
}
# Who it is, only cron says: a crontab cannot set these.
_OF_THE_SYSTEM = ("LOGNAME", "USER")
# What cron puts in the place of what PAM says, whether a crontab sets it or not.
_OF_CRON = ("HOME", "PATH", "SHELL")


class CrontabFile(NamedTuple):
    """How a crontab is read. `owner` is whose crontab it is, where it has no user column, and None for one's own;
    `label` tells its lines from those of other files; `host` is None where nothing is known of the machine."""

    has_user: bool = False
    owner: str | None = None
    program: CronProgram = DEBIAN
    label: str = ""
    stem: str = ""
    host: CronHost | None = None

    def line(self, number: int) -> str:
        return f"{self.label}, line {number}" if self.label else f"line {number}"


class _Context(NamedTuple):
    """What the lines above an entry have set: variables, the zone, and the comment directly above it."""

    env: dict[str, str]
    zone: Zone
    file: CrontabFile
    zone_of_machine: Zone
    zone_is_own: bool = False
    comment: tuple[str, ...] = ()
    # What MAILTO makes of `notify`; None where nobody is sent mail.
    notify: dict[str, Any] | None = None
    # No MAILTO so far: the account of each job is sent its mail.
    mails_account: bool = False
    pam: PamVariables = PamVariables({})


def read_crontab(
    text: str, zone: Zone, file: CrontabFile, names: JobNames | None = None, mail: MailChannels | None = None
) -> Import:
    """The program that `file` names reads it now: its grammar and its zone hold."""
    mail = mail or MailChannels()
    found = Import("crontab", zone.name, {}, [], [], channels=mail.tables)
    mails_account = file.program.mails_account and file.host is not None and file.host.sends_mail
    pam = file.host.variables_for(file.program) if file.host is not None else PamVariables({})
    names, context = names or JobNames(), _Context({}, zone, file, zone, mails_account=mails_account, pam=pam)
    faults, by_release = list[str](), list[str]()
    for number, line in enumerate(lines_of(text), 1):
        origin, stripped = file.line(number), line.strip()
        variable = read_variable(line, file.program)
        if file.program.ignores_faulty_files and _is_fault(line, file):
            faults.append(f"line {number}")
        if _has_other_bytes(line) and not stripped.startswith("#"):
            found.lost.append(Lost(origin, plain_text(stripped), _NO_TEXT))
            context = context._replace(comment=())
        elif not stripped:
            context = context._replace(comment=())
        elif stripped.startswith("#"):
            context = context._replace(comment=(*context.comment, plain_text(stripped.lstrip("# ").rstrip())))
        elif isinstance(variable, CronVariable):
            if file.program is DEBIAN and variable.is_bare_and_empty:
                by_release.append(f"line {number} (before Debian 13)")
            elif file.program is DEBIAN and variable.is_unsafe_address:
                by_release.append(f"line {number} (since Debian 13)")
            if variable.name == "MAILTO":
                context = _with_mail(context, variable.value.strip(), origin, found.lost, mail)
            else:
                context = _with_variable(context, variable.name, variable.value, origin, found.lost)
        else:
            found.add(_entry(line, origin, context, names, mail))
            context = context._replace(comment=())
    if file.program.ignores_faulty_files and _is_cut_off(text):
        faults.append("the missing end of its last line")
    faults += by_release
    return as_ignored(found, faults[0], file.program) if faults else found


def lines_of(text: str) -> list[str]:
    """As cron has them: a form feed or a separator of Unicode ends no line."""
    return text.removesuffix("\n").split("\n") if text else []


def _has_other_bytes(text: str) -> bool:
    return any("\udc80" <= char <= "\udcff" for char in text)


def plain_text(text: str) -> str:
    """With a mark in place of each byte that is no UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _is_fault(line: str, file: CrontabFile) -> bool:
    """Whether Debian's cron can make nothing of the line, as 3.0pl1-162 was seen to do."""
    if not line.strip(" \t") or line.lstrip(" \t").startswith("#"):
        return False
    if isinstance(read_variable(line, file.program), CronVariable):
        return False
    found, most = _split(line, file), file.program.longest_line
    if found is None or (most is not None and len(found.command.encode("utf-8", "surrogateescape")) > most):
        return True
    if file.host is not None and file.host.has_no_account(found.user):
        return True
    is_nickname = found.schedule in file.program.nicknames
    return not is_nickname and isinstance(read_schedule(found.schedule, file.program), CronRefusal)


def _is_cut_off(text: str) -> bool:
    """Whether the last line has no end and is more than blanks or a comment, of which cron wants none."""
    last = text[text.rfind("\n") + 1 :].strip(" \t")
    return bool(last) and not last.startswith("#")


def as_ignored(found: Import, fault: str, program: CronProgram) -> Import:
    """What never ran is not the same as what will run."""
    text = f"{program.title} ignores the whole file because of {fault}, so this has not run; here it will"
    return found._replace(jobs=[job._replace(differs=(*job.differs, text)) for job in found.jobs])


def _with_mail(context: _Context, value: str, origin: str, lost: list[Lost], mail: MailChannels) -> _Context:
    """Whom the jobs below tell; nobody where it is empty."""
    notify = mail.notify(value) if value else None
    if value and notify is None:
        lost.append(Lost(origin, f"MAILTO={value}", NO_ADDRESS))
    return context._replace(comment=(), notify=notify, mails_account=False)


def _with_variable(context: _Context, name: str, value: str, origin: str, lost: list[Lost]) -> _Context:
    """The context for the lines below a variable; a few variables are settings of cron itself."""
    context = context._replace(comment=())
    program = context.file.program
    if program is DEBIAN:
        value = value.rstrip()  # quotes keep no blanks at the end, whatever its manual says: seen with 3.0pl1-162
    if name == "CRON_TZ" and not program.reads_cron_tz:
        lost.append(
            Lost(origin, f"CRON_TZ={value}", f"{program.title} does not read it; the times are the machine's")
        )
        return context
    if name == "CRON_TZ" and not value:
        return context._replace(zone=context.zone_of_machine, zone_is_own=False)
    if name == "CRON_TZ":
        try:
            return context._replace(zone=load_zone(name_in_crontab(value, program)), zone_is_own=True)
        except UnknownZoneError:
            lost.append(Lost(origin, f"CRON_TZ={value}", "no zone has this name; the times below it are read in UTC"))
            return context._replace(zone=utc_zone(), zone_is_own=True)
    if name in _CRON_SETTINGS:
        if value:
            lost.append(Lost(origin, f"{name}={value}", _CRON_SETTINGS[name]))
        return context
    if not _NAME.fullmatch(name) or name.startswith("CHRONEX_"):
        lost.append(Lost(origin, f"{name}={value}", "a job cannot have a variable of this name"))
        return context
    return context._replace(env={**context.env, name: value})


class _Line(NamedTuple):
    schedule: str
    command: str
    user: str | None


def _split(line: str, file: CrontabFile) -> _Line | None:
    columns = _columns(line, file.program)
    if columns is None:
        return None
    schedule, command = columns
    # Blanks at its end may be those of its standard input.
    command, user = command.removesuffix("\r"), file.owner
    if file.has_user:
        user, command = (*re.split(r"[ \t]+", command, maxsplit=1), "", "")[:2]
    return _Line(re.sub(r"[ \t]+", " ", schedule), command, user) if command.strip(" \t") else None


def _columns(line: str, program: CronProgram) -> tuple[str, str] | None:
    """The schedule, and what stands behind it. Second 0 and every year are left out: five columns mean them too."""
    if (wide := wide_schedule(line, program)) is not None:
        words = wide[1].split()
        is_plain = words[-1] in ("*", "?") and (len(words) == 6 or words[0] in ("0", "00"))
        return " ".join(words[-6:-1] if is_plain else words), line[wide.end() :].lstrip(" \t")
    match = _SCHEDULE.fullmatch(line)
    return None if match is None else (match[1], match[2] or "")


def _entry(line: str, origin: str, context: _Context, names: JobNames, mail: MailChannels) -> Imported | Lost:
    found = _split(line, context.file)
    if found is None:
        return Lost(origin, line.strip(), "no schedule and command can be read from it")
    if context.mails_account:
        context = context._replace(notify=mail.notify(found.user or _own_name()))
    if found.schedule == "@reboot" and "@reboot" in context.file.program.nicknames:
        return _at_boot(line, found, origin, context, names)
    program = context.file.program
    reading = read_schedule(found.schedule, program)
    rules = rules_of(program)
    pattern = pattern_of(found.schedule, rules)
    if isinstance(reading, CronRefusal) or pattern is None:
        return Lost(origin, line.strip(), _why_not(reading, program))
    written = [(spec, _field_as_read(spec, field)) for spec, field in _specified(reading) if field.day_rules]
    if any(read_field(spec, text) is None for spec, text in written):
        return Lost(origin, line.strip(), _OTHER_DAYS)
    schedule, notes = _as_read(found.schedule, reading), [*_notes(found, context)]
    if found.schedule != schedule:
        notes.append(f"{program.title} reads {found.schedule} as {schedule}")
    table = _table(schedule, found, context)
    if _needs_both(schedule, pattern):
        table |= _both_days(schedule, pattern, table["schedule"])
        notes.append("cron wants both day fields to hold here; days with one of them are recorded as skipped")
    return Imported(
        id=_name(found, context.file, names),
        origin=origin,
        table=table,
        zone=context.zone,
        source_instants=lambda start, end: instants(pattern, rules, context.zone, start, end),
        notes=tuple(notes),
        differs=_differs(line, found, context),
        clock_note="" if program.clock_rule_is_known else _CLOCK_NOTE.format(program.title),
    )


def _at_boot(line: str, found: _Line, origin: str, context: _Context, names: JobNames) -> Imported:
    table = _table("@start", found, context)
    name = _name(found, context.file, names)
    notes, differs = tuple(_notes(found, context)), _differs(line, found, context)
    times = "once for each boot, as cron does it"
    return Imported(name, origin, table, context.zone, notes=notes, differs=differs, times=times)


def _differs(line: str, found: _Line, context: _Context) -> tuple[str, ...]:
    return tuple(_differences(line, found, context))


def _differences(line: str, found: _Line, context: _Context) -> Iterator[str]:
    program = context.file.program
    if line.endswith("\r") and program.keeps_carriage_returns:
        yield f"{program.title} hands the carriage return at the end of the line to the command; here it is left out"
    account = found.user or _own_name()
    for name in sorted(program.keeps & context.env.keys()):
        if context.env[name] != account:
            yield f"{program.title} hands on {name}={context.env[name]}; here {name} is always the account, {account}"
    if context.pam.unread:
        yield f"{context.pam.unread} gives variables to the commands of {program.title}; add them to env"


def _own_name() -> str:
    """Whose crontab it is that nobody is named for."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return ""


def _notes(found: _Line, context: _Context) -> Iterator[str]:
    if context.notify is not None:
        yield NOTE
    if context.pam.files:
        yield f"env has the variables of {' and '.join(context.pam.files)}, as they are now"
    host = context.file.host
    if host is not None and found.user is not None and host.home_of(found.user) is None:
        yield f"there is no user {found.user} here; the job fails until there is one"
    if (home := _missing_home(found, context)) is not None:
        yield f"{home} is not there; {context.file.program.title} runs the command all the same, here in {_ROOT}"


def _missing_home(found: _Line, context: _Context) -> str | None:
    """The home that does not exist, where its cron is one that runs the command nevertheless."""
    program, host = context.file.program, context.file.host
    if host is None or not program.runs_without_home:
        return None
    home = context.env.get("HOME") or host.home_of(found.user)
    return home if home is not None and host.lacks(home) else None


def _name(found: _Line, file: CrontabFile, names: JobNames) -> str:
    """Of two jobs that run the same program, the second is told by its file or its user."""
    script, _ = _script_and_input(found.command, file.program)
    return names.give(name_of_command(script), file.stem or found.user or "")


def _why_not(reading: CronReading | CronRefusal, program: CronProgram) -> str:
    if isinstance(reading, CronRefusal):
        return f"{program.title} itself does not understand this schedule"
    if reading.is_random:
        return f"{program.title} chooses the time by chance; see jitter and spread"
    if reading.fields:
        return f"{program.title} takes this schedule and never runs it: a range runs backwards"
    return "it has seconds or a year; a job's schedule has seconds in front of its five fields, and no years"


def _specified(reading: CronReading) -> list[tuple[FieldSpec, CronField]]:
    return list(zip(FIVE_FIELDS, reading.fields, strict=True))


def _as_read(schedule: str, reading: CronReading) -> str:
    """The schedule with each field that Chronex would read otherwise written as the values that cron matches."""
    if schedule.startswith("@"):
        return schedule
    return " ".join(_field_as_read(spec, field) for spec, field in _specified(reading))


def _field_as_read(spec: FieldSpec, field: CronField) -> str:
    if field.is_free and ("*" in field.text.split(",") or field.text == "*/1"):
        return "*"
    if field.day_rules and field.other_weekday is not None:
        return ",".join([*map(str, sorted(field.values)), *field.day_rules])
    if field.day_rules:  # days by their place in the month are written alike, and the proof compares them
        return field.text
    mine, values = read_field(spec, field.text), sorted(v for v in field.values if v >= spec.low)
    is_same = mine is not None and not mine.rules and mine.values == sum(1 << value for value in values)
    # Of two day fields one may be without a value, `10-5` beside `MON`; then the other alone decides.
    return field.text if is_same else ",".join(map(str, values)) or "*"


def _needs_both(schedule: str, pattern: CronPattern) -> bool:
    """True for `*/2` beside a weekday: cron treats the day field as unrestricted, so both fields must hold, while
    Chronex treats it as a restriction, so either one would fire."""
    fields = schedule.split()
    return len(fields) == 5 and "*" not in (fields[2], fields[4]) and (pattern.free_days or pattern.free_weekdays)


def _both_days(schedule: str, pattern: CronPattern, text: str) -> dict[str, Any]:
    """The days of the month stay in the schedule; the weekdays become a constraint on the start."""
    weekdays = ",".join(str(day) for day in sorted(pattern.weekdays))
    days_only = text.removesuffix(schedule) + " ".join([*schedule.split()[:4], "*"])
    return {"schedule": days_only, "spread": {"duration": "0s", "only": f"dow={weekdays}"}}


def _table(schedule: str, found: _Line, context: _Context) -> dict[str, Any]:
    zone = f"TZ={context.zone.name} " if context.zone_is_own else ""
    script, stdin = _script_and_input(found.command, context.file.program)
    theirs = {name: value for name, value in context.pam.values.items() if name not in _OF_CRON}
    env = {name: value for name, value in (theirs | context.env).items() if name not in _OF_THE_SYSTEM}
    shell = env.setdefault("SHELL", _SHELL)
    env.setdefault("PATH", _PATH)
    table: dict[str, Any] = {"schedule": f"{zone}{schedule.lower() if schedule[0] == '@' else schedule}"}
    if description := _description(context.comment):
        table["description"] = description
    table |= DEFAULTS
    if stdin is not None:
        env[_STDIN] = stdin
        table["run"] = [_SHELL, "-c", _FEED, shell, script]
    else:
        table["run"] = script if shell in (_SHELL, "/usr/bin/sh", "sh") else [shell, "-c", script]
    if found.user is not None:
        table["user"] = found.user
    is_homeless = _missing_home(found, context) is not None
    table["directory"] = _ROOT if is_homeless else env.get("HOME") or f"~{found.user or ''}"
    if context.notify is not None:
        table["notify"] = context.notify
    table["env"] = env
    return table


def _description(comment: tuple[str, ...]) -> str:
    """Its lines as one text; none where they are a drawing, such as the legend of the fields in /etc/crontab."""
    if any(line.startswith((".--", "|")) for line in comment):
        return ""
    return " ".join(line for line in comment if line)


def _script_and_input(command: str, program: CronProgram) -> tuple[str, str | None]:
    if not program.splits_at_percent:
        return _without_blanks(command), None
    return split_percents(command, halves_backslashes=program.halves_backslashes)


def _without_blanks(script: str) -> str:
    """Without those at its end, of which one that follows a backslash is a part of the last word."""
    shorter = script.rstrip(" \t")
    return script if shorter.endswith("\\") else shorter


def split_percents(command: str, *, halves_backslashes: bool = False) -> tuple[str, str | None]:
    """The command and its standard input, as cron's own two loops take them apart.

    The first `%` that has no backslash before it ends the command; `\\%` is a `%`. In what follows a `%` ends a line,
    and a newline is added at the end where there is none. A backslash before another one protects that in the
    command, and stays what it is in the input; to Debian's cron the two are one there, inside of quotes too.
    """
    script, rest = _until_percent(command, "%\\" if halves_backslashes else "%")
    return _without_blanks(script), None if rest is None else _as_input(rest)


def _until_percent(command: str, without_backslash: str) -> tuple[str, str | None]:
    kept: list[str] = []
    is_escaped = False
    for at, char in enumerate(command):
        if is_escaped:
            if char in without_backslash:
                kept.pop()
            kept.append(char)
            is_escaped = False
            continue
        if char == "%":
            return "".join(kept), command[at + 1 :]
        kept.append(char)
        is_escaped = char == "\\"
    return "".join(kept), None


def _as_input(rest: str) -> str:
    kept: list[str] = []
    is_escaped = needs_newline = False
    for char in rest:
        put = char
        if is_escaped:
            if char != "%":
                kept.append("\\")
        elif char == "%":
            put = "\n"
        is_escaped = put == "\\"
        if not is_escaped:
            kept.append(put)
            needs_newline = put != "\n"
    # A backslash at the end comes before that newline, and asks for none itself.
    return "".join(kept) + ("\\" if is_escaped else "") + ("\n" if needs_newline else "")


# Whether a crontab has a user column: by where it lies and, where that says nothing, by what its lines say.
#
# A wrong guess turns a user into a program, or a program into a user, so where the lines leave it open nothing is
# guessed: the caller asks.

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
    for line in lines_of(text):
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
