"""Import of crontabs and cron.d files: every line becomes a job, or is listed as lost."""

from __future__ import annotations

import os
import re
import shlex
from typing import Any, NamedTuple

from chronex.errors import UnknownZoneError
from chronex.expr.fields import FIVE_FIELDS, read_field
from chronex.imports.import_result import Import, Imported, JobNames, Lost
from chronex.imports.oracle import CronPattern, instants, pattern_of, rules_of
from chronex.lint.cron_grammar import CronReading, CronRefusal, read_schedule
from chronex.lint.cron_programs import DEBIAN, CronProgram
from chronex.timing.zones import Zone, load_zone

_VARIABLE = re.compile(r"""\s*("[^"]*"|'[^']*'|[A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*""")
_SCHEDULE = re.compile(r"\s*(@[A-Za-z]+|\S+(?:\s+\S+){4})(?:\s+(.*))?")
_STDIN = "CRON_STDIN"
# The policies of cron itself, so that the import changes nothing: runs overlap, and missed ones are not caught up.
DEFAULTS: dict[str, Any] = {"overlap": "allow", "recovery": "mark_missed"}
_SEE_NOTIFY = "output is kept by chronex logs; for mail on failure see notify"
# Variables that configure cron itself and are not passed to the commands, with what to do instead.
_CRON_SETTINGS = {
    "MAILTO": _SEE_NOTIFY,
    "MAILFROM": _SEE_NOTIFY,
    "CONTENT_TYPE": "has no equivalent",
    "CONTENT_TRANSFER_ENCODING": "has no equivalent",
    "RANDOM_DELAY": "has no equivalent; see jitter and spread",
    "START_HOURS_RANGE": "has no equivalent",
}
# Words that begin a command and do not say what it is for.
_WRAPPERS = frozenset({
    "test", "[", "&&", "||", ";", "nice", "ionice", "timeout", "sudo", "env", "exec", "flock", "sleep", "sh", "bash",
    "/bin/sh", "/bin/bash", "/usr/bin/env", "/usr/bin/nice", "/usr/bin/flock", "command", "chronic",
})  # fmt: skip


class _Context(NamedTuple):
    """What the lines above an entry have set: variables, the zone, and the comment directly above it."""

    env: dict[str, str]
    zone: Zone
    program: CronProgram
    zone_is_own: bool = False
    comment: tuple[str, ...] = ()


def read_crontab(text: str, zone: Zone, *, has_user: bool, user: str, program: CronProgram = DEBIAN) -> Import:
    """`user` is the account that will run Chronex; entries of other accounts are carried over with a note.
    `program` is the cron that reads the file now: its grammar and its zone hold."""
    found = Import("crontab", zone.name, dict(DEFAULTS), [], [])
    names, context = JobNames(), _Context({}, zone, program)
    for number, line in enumerate(text.splitlines(), 1):
        origin, stripped = f"line {number}", line.strip()
        if not stripped:
            context = context._replace(comment=())
        elif stripped.startswith("#"):
            context = context._replace(comment=(*context.comment, stripped.lstrip("# ").rstrip()))
        elif (variable := _VARIABLE.fullmatch(line)) is not None:
            context = _with_variable(context, variable[1].strip("\"'"), _unquoted(variable[2]), origin, found.lost)
        else:
            entry = _entry(line, origin, context, has_user, user, names)
            found.add(entry)
            context = context._replace(comment=())
    return found


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


def _with_variable(context: _Context, name: str, value: str, origin: str, lost: list[Lost]) -> _Context:
    """The context for the lines below a variable; a few variables are settings of cron itself."""
    context = context._replace(comment=())
    if name == "CRON_TZ" and not context.program.reads_cron_tz:
        title = context.program.title
        lost.append(Lost(origin, f"CRON_TZ={value}", f"{title} does not read it; the times are the machine's"))
        return context
    if name == "CRON_TZ":
        try:
            return context._replace(zone=load_zone(value), zone_is_own=True)
        except UnknownZoneError:
            lost.append(Lost(origin, f"CRON_TZ={value}", "the zone is unknown here; times are read in the host's"))
            return context
    if name in _CRON_SETTINGS:
        if value:
            lost.append(Lost(origin, f"{name}={value}", _CRON_SETTINGS[name]))
        return context
    return context._replace(env={**context.env, name: value})


def _entry(line: str, origin: str, context: _Context, has_user: bool, user: str, names: JobNames) -> Imported | Lost:
    match = _SCHEDULE.fullmatch(line)
    command = (match[2] or "").strip() if match else ""
    notes: list[str] = []
    if match and has_user:
        owner, command = (*command.split(None, 1), "", "")[:2]
        if owner != user:
            notes.append(f"cron ran it as {owner}; Chronex runs it as whoever starts it")
    if match is None or not command:
        return Lost(origin, line.strip(), "no schedule and command can be read from it")
    schedule = " ".join(match[1].split())
    if schedule.lower() == "@reboot":
        return Lost(origin, line.strip(), "Chronex has no @reboot; let the service manager start it")
    reading = read_schedule(schedule, context.program)
    rules = rules_of(context.program)
    pattern = pattern_of(schedule, rules)
    if isinstance(reading, CronRefusal) or pattern is None:
        return Lost(origin, line.strip(), _why_not(reading, context.program))
    written, schedule = schedule, _as_read(schedule, reading)
    if written != schedule:
        notes.append(f"{context.program.title} reads {written} as {schedule}")
    table = _table(schedule, command, context)
    if _needs_both(schedule, pattern):
        table |= _both_days(schedule, pattern, table["schedule"])
        notes.append("cron wants both day fields to hold here; days with one of them are recorded as skipped")
    return Imported(
        id=names.give(_program_name(command)),
        origin=origin,
        table=table,
        zone=context.zone,
        source_instants=lambda start, end: instants(pattern, rules, context.zone, start, end),
        notes=tuple(notes),
    )


def _why_not(reading: CronReading | CronRefusal, program: CronProgram) -> str:
    if isinstance(reading, CronRefusal):
        return f"{program.title} itself does not understand this schedule"
    if reading.is_random:
        return f"{program.title} chooses the time by chance; see jitter and spread"
    if reading.fields:
        return f"{program.title} takes this schedule and never runs it: a range runs backwards"
    return "its times cannot be carried over"


def _as_read(schedule: str, reading: CronReading) -> str:
    """The schedule with each field that Chronex would read otherwise written as the values that cron matches."""
    if schedule.startswith("@"):
        return schedule
    words = []
    for spec, field in zip(FIVE_FIELDS, reading.fields, strict=True):
        mine, values = read_field(spec, field.text), sorted(v for v in field.values if v >= spec.low)
        is_same = mine is not None and not mine.rules and mine.values == sum(1 << value for value in values)
        words.append(field.text if is_same else ",".join(map(str, values)))
    return " ".join(words)


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


def _table(schedule: str, command: str, context: _Context) -> dict[str, Any]:
    zone = f"TZ={context.zone.name} " if context.zone_is_own else ""
    script, stdin = split_percents(command)
    shell = context.env.get("SHELL", "/bin/sh")
    env = {name: value for name, value in context.env.items() if name not in ("SHELL", "HOME", "LOGNAME")}
    if stdin is not None:
        env[_STDIN] = stdin
        script = f'printf %s "${_STDIN}" | ( {script}\n)'
    table: dict[str, Any] = {"schedule": f"{zone}{schedule.lower() if schedule[0] == '@' else schedule}"}
    if context.comment:
        table["description"] = " ".join(line for line in context.comment if line)
    table["run"] = script if shell in ("/bin/sh", "/usr/bin/sh", "sh") else [shell, "-c", script]
    table["directory"] = context.env.get("HOME") or os.path.expanduser("~")
    if env:
        table["env"] = env
    return table


def split_percents(command: str) -> tuple[str, str | None]:
    """The command and its standard input: the first `%` ends the command, later ones end lines, `\\%` is a `%`."""
    parts = re.split(r"(?<!\\)%", command)
    plain = [part.replace("\\%", "%") for part in parts]
    return plain[0].rstrip(), "\n".join(plain[1:]) + "\n" if len(plain) > 1 else None


def _program_name(command: str) -> str:
    """A job name from the command: its first word that is not a variable, wrapper or option."""
    try:
        words = shlex.split(command.replace("\\%", "%"))
    except ValueError:
        words = command.split()
    for before, word in zip(["", *words], words, strict=False):
        if word == "cd" or before == "cd":
            continue
        if "=" in word.partition("/")[0] or word in _WRAPPERS or word.startswith("-") or not re.search(r"\w", word):
            continue
        if word.replace(".", "").isdecimal():
            continue
        return os.path.basename(word.rstrip("/;")) or word
    return "job"
