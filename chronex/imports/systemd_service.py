"""The [Service] section of a unit as keys of a job: what it runs, as whom, with what, within what. What has no key is
named: a unit has some two hundred settings, and none of them may go without a word."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from chronex.text.variable_files import MOST_BYTES, VariableFileError, parse_variables

# Spans of time as systemd writes them.

_UNITS_MS = {
    "us": 0.001, "usec": 0.001, "ms": 1, "msec": 1, "": 1000, "s": 1000, "sec": 1000, "second": 1000, "seconds": 1000,
    "m": 60_000, "min": 60_000, "minute": 60_000, "minutes": 60_000, "h": 3_600_000, "hr": 3_600_000,
    "hour": 3_600_000, "hours": 3_600_000, "d": 86_400_000, "day": 86_400_000, "days": 86_400_000,
    "w": 604_800_000, "week": 604_800_000, "weeks": 604_800_000,
    "M": 2_629_800_000, "month": 2_629_800_000, "months": 2_629_800_000,
    "y": 31_557_600_000, "year": 31_557_600_000, "years": 31_557_600_000,
}  # fmt: skip
_SPAN = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-zA-Z]*)")


def span_ms(text: str) -> int:
    """Milliseconds of a time span as systemd writes it: `1h 30min`, `90` (seconds), `2days`; 0 for any other text."""
    total, at = 0.0, 0
    for match in _SPAN.finditer(text):
        if match.start() != at or match[2] not in _UNITS_MS:
            return 0
        total += float(match[1]) * _UNITS_MS[match[2]]
        at = match.end()
    return round(total) if at == len(text.rstrip()) else 0


Section = Mapping[str, list[str]]
_PREFIXES = "@-:+!|"
_ACCOUNT = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\$?|[0-9]+")
_SIZE = re.compile(r"([0-9]+)([KMGT]?)")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LOST_BACKSLASH = re.compile(rb"[^#;=][^=]*=\s*[^\"'\s][^\\]*\\.*")
# Settings that are carried over below, and those that change nothing for a command which a scheduler starts.
_READ = frozenset({
    "ExecStart", "ExecStartPre", "ExecStartPost", "WorkingDirectory", "Environment", "EnvironmentFile", "User",
    "Group", "Nice", "UMask", "MemoryMax", "CPUQuota", "TasksMax", "LimitNOFILE", "TimeoutStartSec", "RuntimeMaxSec",
    "TimeoutStopSec", "KillMode", "SuccessExitStatus",
})  # fmt: skip
_HARMLESS = frozenset({
    "SyslogIdentifier", "GuessMainPID", "PIDFile",
    "NotifyAccess", "CPUAccounting", "MemoryAccounting", "TasksAccounting", "IOAccounting",
})  # fmt: skip
_OUTPUT = ("journal", "inherit", "null", "kmsg", "syslog", "journal+console", "kmsg+console", "syslog+console")
_FINE = {
    "Type": ("oneshot", "simple", "exec"), "RemainAfterExit": ("no", "false"), "Restart": ("no",),
    "StandardOutput": _OUTPUT, "StandardError": _OUTPUT,
}  # fmt: skip
_OFF = ("no", "false", "off", "0")
_SANDBOXES = (
    "Private",
    "Protect",
    "Restrict",
    "NoNewPrivileges",
    "LockPersonality",
    "MemoryDenyWrite",
    "DynamicUser",
)
# Units that a service takes along with its start; targets and slices of a machine that is up are there.
_STARTED_WITH_IT = ("Requires", "Requisite", "BindsTo", "Wants", "Upholds")
# Of [Unit]: what must hold, what follows, and what bounds its starts.
_OF_THE_UNIT = (
    "OnFailure", "OnSuccess", "Conflicts", "RequiresMountsFor", "FailureAction", "SuccessAction", "StartLimitAction",
    "StartLimitBurst", "StartLimitIntervalSec", "JobTimeoutSec", "JobRunningTimeoutSec",
)  # fmt: skip
_REACHED_AT_BOOT = (".target", ".slice")
_KEEPS_WHAT_IS_LEFT = ("process", "none")
# What the system's manager gives to every service; the daemon's own may be another one.
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_MOST_SHOWN = 8


class ServiceManager(NamedTuple):
    """Who runs the service: that of the system, or that `of_user`. `root` is the tree in which its files lie."""

    of_user: bool = False
    root: Path = Path("/")


def read_service(section: Section, table: dict[str, Any], manager: ServiceManager) -> Iterator[str]:
    """Put the service into the table of a job; what is lost of it, in words."""
    yield from _commands(section, table)
    yield from _account(section, table)
    yield from _directory(section, table, manager)
    yield from _variables(section, table, manager)
    yield from _ends(section, table)
    yield from _limits(section, table)
    yield from _times(section, table)
    for key in ("WorkingDirectory", "Environment", "EnvironmentFile"):
        for value in section.get(key, []):
            if "%" in value.replace("%%", ""):
                yield f"{key}={value}: specifiers such as %h are not expanded"
    yield from _unread(section)


def _times(section: Section, table: dict[str, Any]) -> Iterator[str]:
    """Of a oneshot each command is bounded by the time that its start may take, because it is a start until it ends.
    Of other types that time bounds no command, and RuntimeMaxSec= does; of a oneshot that says nothing."""
    is_oneshot = _last(section, "Type") == "oneshot"
    limit = ("TimeoutStartSec", "task_timeout") if is_oneshot else ("RuntimeMaxSec", "execution_timeout")
    for setting, key in (limit, ("TimeoutStopSec", "grace_period")):
        text = _last(section, setting)
        if ms := span_ms(text):
            table[key] = f"{ms}ms"
        elif text not in ("", "infinity") and text.strip("0"):
            yield f"{setting}={text}: not a span of time"


def _directory(section: Section, table: dict[str, Any], manager: ServiceManager) -> Iterator[str]:
    """Where nothing is said, a service of the system begins in / and that of a user at home."""
    text = _last(section, "WorkingDirectory").replace("%%", "%")
    directory = text.removeprefix("-") or ("~" if manager.of_user else "/")
    home = "~" if manager.of_user else f"~{table.get('user', 'root')}"
    table["directory"] = home if directory == "~" else directory
    if text.startswith("-"):
        yield f"WorkingDirectory={text}: it may be missing to systemd; here it must be there"


def unit_conditions(unit: Section) -> Iterator[str]:
    """What [Unit] of a service asks for before it starts, or sets off when it has ended."""
    for key, values in unit.items():
        if key.startswith(("Condition", "Assert")) or key in _OF_THE_UNIT:
            is_of_shutdown = key == "Conflicts" and all(unit.endswith(".target") for unit in " ".join(values).split())
            left = () if is_of_shutdown else (value for value in values if value not in ("0", "none"))
            yield from (f"{key}={value} has no equivalent" for value in left)
        elif key in _STARTED_WITH_IT:
            units = [unit for value in values for unit in value.split() if not unit.endswith(_REACHED_AT_BOOT)]
            yield from (f"{key}={unit}: systemd starts it along with this unit, here nobody does" for unit in units)


def _last(section: Section, key: str) -> str:
    return (section.get(key) or [""])[-1]


# -- what it runs --------------------------------------------------------------------------------------------------


def _commands(section: Section, table: dict[str, Any]) -> Iterator[str]:
    lines = [*section.get("ExecStartPre", []), *section.get("ExecStart", []), *section.get("ExecStartPost", [])]
    commands = [command for line in lines for command in _separated(line)]
    tasks = [_task(number, text) for number, text in enumerate(commands, 1)]
    if len(tasks) == 1 and "on_failure" not in tasks[0]:
        table["run"] = tasks[0]["run"]
    else:
        table["tasks"] = tasks or [{"name": "main", "run": ["false"]}]
    if any("on_failure" in task for task in tasks[1:]):
        # Else a command whose own failure does not count would run after that of one before it, as cleanups do.
        for before, task in pairwise(tasks):
            task["needs"] = [before["name"]]
    if not tasks:
        yield "it has no ExecStart: put a command into run"
    for text in commands:
        yield from _lost_of_command(text)
    if _last(section, "Type") != "oneshot":
        if sum(len(_separated(line)) for line in section.get("ExecStart", [])) > 1:
            yield "systemd refuses a service of several ExecStart= that is not of Type=oneshot, and has not run it"
        for line in section.get("ExecStartPost", []):
            yield f"ExecStartPost={line}: systemd runs it when the command has begun, here it follows its end"


def _lost_of_command(text: str) -> Iterator[str]:
    if unquoted(text) is None:
        yield f"{text}: a quote is not closed"
    if "%" in text.replace("%%", ""):
        yield f"{text}: specifiers such as %h are not expanded"
    if any(map(_is_expanded, _arguments(text))):
        yield f"{text}: variables are not expanded without a shell"
    if any(mark in _prefixes(text) for mark in "@+!"):
        yield f"{text}: {_prefixes(text)} before the command is not carried over"


def _separated(line: str) -> list[str]:
    """The commands of one line: a `;` that stands alone begins another, unless quoted or escaped."""
    cuts, quote, at = [-1], "", 0
    while at < len(line):
        char = line[at]
        if char == "\\":
            at += 1
        elif quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char == ";" and not line[at - 1 : at].strip(BLANKS) and not line[at + 1 : at + 2].strip(BLANKS):
            cuts.append(at)
        at += 1
    parts = (line[start + 1 : end].strip(BLANKS) for start, end in zip(cuts, [*cuts[1:], len(line)], strict=True))
    return [part for part in parts if part]


def _prefixes(text: str) -> str:
    return text[: len(text) - len(text.lstrip(_PREFIXES))]


def _arguments(text: str) -> list[str]:
    """The words in which systemd looks for variables: none of a command that has a colon before it."""
    prefixes = _prefixes(text)
    return [] if ":" in prefixes else _words(text[len(prefixes) :])


def _is_expanded(word: str) -> bool:
    """Whether systemd puts the value of a variable in: $NAME has to be a word of its own, ${NAME} may be in one."""
    alone = word.startswith("$") and not word.startswith(("$$", "${"))
    return alone or "${" in word.replace("$$", "")


def _task(number: int, text: str) -> dict[str, Any]:
    prefixes = _prefixes(text)
    argv = [word.replace("%%", "%") for word in _words(text[len(prefixes) :])]
    if ":" not in prefixes:
        argv = [word.replace("$$", "$") for word in argv]
    if "@" in prefixes:
        del argv[1:2]  # the name that the program sees as its own
    task: dict[str, Any] = {"name": f"step-{number}", "run": argv or ["false"]}
    if "-" in prefixes:
        task["on_failure"] = "continue"
    return task


def _words(text: str) -> list[str]:
    words = unquoted(text)
    return text.split() if words is None else [";" if word == "\\;" else word for word in words]


BLANKS = " \t\n\r"
_ESCAPES = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "s": " ",
    "\\": "\\", '"': '"', "'": "'",
}  # fmt: skip
_BY_NUMBER = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})")


def unquoted(text: str) -> list[str] | None:
    """The words of a line as systemd takes them apart; None where a quote is not closed, and it ignores the line.

    Escapes are those of C, outside and inside of both quotes; a backslash that begins none stays.
    """
    words: list[str] = []
    word: str | None = None
    quote, at = "", 0
    while at < len(text):
        char, at = text[at], at + 1
        if char == "\\":
            put, at = _escape(text, at)
            word = (word or "") + put
        elif quote and char == quote:
            quote = ""
        elif not quote and char in "\"'":
            quote, word = char, word or ""
        elif quote or char not in BLANKS:
            word = (word or "") + char
        elif word is not None:
            words.append(word)
            word = None
    if word is not None:
        words.append(word)
    return None if quote else words


def _escape(text: str, at: int) -> tuple[str, int]:
    """What stands for the escape that begins here, behind its backslash, and where the text goes on."""
    if number := _BY_NUMBER.match(text, at):
        code = int(number[number.lastindex or 0], 8 if number[4] else 16)
        if 0 < code < 0x110000:
            return chr(code), number.end()
    char = text[at : at + 1]
    return _ESCAPES.get(char, f"\\{char}"), at + 1


# -- as whom, with what, within what -------------------------------------------------------------------------------


def _account(section: Section, table: dict[str, Any]) -> Iterator[str]:
    for setting, key in (("User", "user"), ("Group", "group")):
        value = _last(section, setting)
        if _ACCOUNT.fullmatch(value):
            table[key] = value
        elif value:
            yield f"{setting}={value}: not a plain name"
    if re.fullmatch(r"0?[0-7]{3}", umask := _last(section, "UMask").removeprefix("0o")):
        table["umask"] = umask
    elif umask:
        yield f"UMask={umask}: not three octal digits"
    nice = _last(section, "Nice")
    if re.fullmatch(r"-?[0-9]+", nice) and -20 <= int(nice) <= 19:
        table["nice"] = int(nice)
    elif nice:
        yield f"Nice={nice}: not a number from -20 to 19"


def _variables(section: Section, table: dict[str, Any], manager: ServiceManager) -> Iterator[str]:
    lines = section.get("Environment", [])
    yield from (f"Environment={line}: a quote is not closed" for line in lines if unquoted(line) is None)
    env = dict(word.replace("%%", "%").partition("=")[::2] for line in lines for word in unquoted(line) or ())
    good = {name: value for name, value in env.items() if _VARIABLE.fullmatch(name)}
    yield from (f"Environment={name}: not a variable that a job can have" for name in env if name not in good)
    has_own = bool(good)
    if not manager.of_user:
        good.setdefault("PATH", _SYSTEM_PATH)
    files = [path.replace("%%", "%") for path in section.get("EnvironmentFile", [])]
    kept = list[str]()
    for path in files:
        yield from _file_of_variables(path, manager.root, good, kept, has_own=has_own)
    if kept:
        table["env_file"] = kept if len(kept) > 1 else kept[0]
    if good:
        table["env"] = good


def _file_of_variables(
    path: str, root: Path, env: dict[str, str], kept: list[str], *, has_own: bool
) -> Iterator[str]:
    """Under systemd the file wins over Environment=, and here `env` would: so it loses what the file has."""
    name, setting = path.removeprefix("-"), f"EnvironmentFile={path}"
    if not name.startswith("/") or set("*?[") & set(name):
        yield f"{setting}: a pattern; name the files in env_file"
        return
    found = _variables_of(root / name[1:])
    if found is None and name != path:
        yield f"{setting}: a file that may be missing, and is; write env_file if it comes"
        return
    kept.append(name)
    if name != path:
        yield f"{setting}: it may be missing to systemd; here it must be there"
    if found is None:
        if has_own:
            yield f"{setting}: it cannot be read here; what it has wins under systemd, and here env does"
        return
    if found.problem:
        yield f"{setting}: {found.problem}"
    for variable in found.names & env.keys():
        del env[variable]


class _FileOfVariables(NamedTuple):
    names: frozenset[str]
    problem: str = ""


def _variables_of(path: Path) -> _FileOfVariables | None:
    """What such a file has now, and what systemd reads of it otherwise than a job; None where it cannot be read."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            text = file.read(MOST_BYTES)
    except OSError:
        return None
    try:
        names = frozenset(parse_variables(text))
    except VariableFileError as fault:
        return _FileOfVariables(frozenset(), f"{fault}; systemd passes over it, and here nothing starts")
    if any(_LOST_BACKSLASH.fullmatch(line.strip()) for line in text.splitlines()):
        return _FileOfVariables(names, "systemd takes a backslash out of a value without quotes, here it stays")
    return _FileOfVariables(names)


def _ends(section: Section, table: dict[str, Any]) -> Iterator[str]:
    """What its end means: with its command systemd ends whatever that has left behind."""
    if _last(section, "KillMode") not in _KEEPS_WHAT_IS_LEFT:
        table["leftovers"] = "kill"
    words = [word for line in section.get("SuccessExitStatus", []) for word in line.split()]
    found = {word: int(word) if word.isdecimal() else getattr(os, f"EX_{word}", None) for word in words}
    codes = sorted({code for code in found.values() if code is not None and 0 < code < 256})
    if codes:
        table["success_codes"] = [0, *codes]
    yield from (f"SuccessExitStatus={word}: no exit code" for word, code in found.items() if code is None)


def _limits(section: Section, table: dict[str, Any]) -> Iterator[str]:
    limits: dict[str, Any] = {}
    memory, cpu = _last(section, "MemoryMax"), _last(section, "CPUQuota")
    if size := _SIZE.fullmatch(memory):
        limits["memory"] = f"{size[1]}{size[2]}iB" if size[2] else int(size[1])  # systemd counts by 1024
    elif memory not in ("", "infinity"):
        yield f"MemoryMax={memory}: a share of the machine; write a size"
    if re.fullmatch(r"[1-9][0-9]{0,6}%", cpu):
        limits["cpu"] = cpu
    elif cpu:
        yield f"CPUQuota={cpu}: not whole percent"
    for setting, key in (("TasksMax", "tasks"), ("LimitNOFILE", "open_files")):
        value, _, hard = _last(section, setting).partition(":")
        if hard not in ("", value):
            yield f"{setting}={value}:{hard}: here both limits are {value}"
        if value.isdecimal() and int(value):
            limits[key] = int(value)
        elif value not in ("", "infinity"):
            yield f"{setting}={value}: not a number"
    if limits:
        table["limits"] = limits


# -- the rest ------------------------------------------------------------------------------------------------------


def _unread(section: Section) -> Iterator[str]:
    """Each setting that nothing above has read; of sandboxes, which have many, a few and their number."""
    left = [
        f"{key}={values[-1]}"
        for key, values in section.items()
        if values and key not in _READ | _HARMLESS and not _is_usual(key, values[-1].lower())
    ]
    yield from (f"{setting} has no equivalent" for setting in left[:_MOST_SHOWN])
    if len(left) > _MOST_SHOWN:
        yield f"{', '.join(setting.partition('=')[0] for setting in left[_MOST_SHOWN:])}: no equivalent"


def _is_usual(key: str, value: str) -> bool:
    """What every command has that is started by a scheduler, and a sandbox that is switched off."""
    return value in _FINE.get(key, ()) or (value in _OFF and key.startswith(_SANDBOXES))
