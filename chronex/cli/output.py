"""What reaches the terminal: a result as text or JSON, colour where it is wanted, no control character from data."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, TextIO

from chronex.text.terminal import cell_width, terminal_safe

if TYPE_CHECKING:
    from chronex.cli.lint_io import CaretMark
    from chronex.expr.diagnostics import Diagnostic
    from chronex.model.job import Job
    from chronex.storage.records import Reading
    from chronex.timing.zones import Zone


DEFAULT_WIDTH = 80
_LEAST_WIDTH = 40
_LONGEST_EXCERPT = 160
_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}


# -- results ------------------------------------------------------------------------------------------------------


def print_result(form: str, data: Callable[[], Any], lines: Callable[[], Iterable[str]]) -> None:
    """The JSON for programs or the lines for people. What was not asked for is not built: a dry run of a year has
    thousands of effects, and people see ten lines of them."""
    if form == "json":
        print_json(data())
    else:
        print_lines(lines())


def print_json(value: Any, *, sort_keys: bool = False, ensure_ascii: bool = True) -> None:
    import json

    out(json.dumps(value, indent=2, sort_keys=sort_keys, ensure_ascii=ensure_ascii))


def print_lines(lines: Iterable[str]) -> None:
    """Lines without colour, which may hold any text of a user."""
    for line in lines:
        out(terminal_safe(line.rstrip()))


def print_styled(lines: Iterable[str]) -> None:
    """Lines that may hold colour; their parts were made safe one by one."""
    for line in lines:
        out(line)


# -- text ---------------------------------------------------------------------------------------------------------


def wants_colour() -> bool:
    """NO_COLOR, pipes and dumb terminals get plain text."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and sys.stdout.isatty()


def wants_unicode() -> bool:
    """The dashboard has a stream without an encoding in place of standard output; what it shows ends up there too."""
    stream = sys.stdout if getattr(sys.stdout, "encoding", None) else sys.__stdout__
    encoding = (getattr(stream, "encoding", "") or "").lower()
    return encoding.replace("-", "") == "utf8" and os.environ.get("TERM") != "dumb"


def paint(text: str, *styles: str) -> str:
    if not styles or not wants_colour():
        return text
    return f"\x1b[{';'.join(_CODES[s] for s in styles)}m{text}\x1b[0m"


def width(text: str) -> int:
    """Terminal columns of a text as it is shown."""
    return cell_width(terminal_safe(text))


def is_shown_at_a_terminal() -> bool:
    """Whether lines that are too long would be wrapped; COLUMNS says so too, as it does for every other program."""
    return "COLUMNS" in os.environ or sys.stdout.isatty()


def columns() -> int:
    return max(_LEAST_WIDTH, get_terminal_size((DEFAULT_WIDTH, 24)).columns)


def cut(text: str, limit: int | None) -> str:
    """The text in at most `limit` columns; a mark stands for what is cut off."""
    text = terminal_safe(text)
    if limit is None or width(text) <= limit:
        return text
    mark = "…" if wants_unicode() else "~"
    while text and width(text) > limit - 1:
        text = text[:-1]
    return text + mark


def padded(text: str, columns: int) -> str:
    return text + " " * max(0, columns - width(text))


def caret_lines(text: str, diagnostics: Iterable[Diagnostic | CaretMark], *, indent: str = "  ") -> Iterator[str]:
    """The source line, then for each diagnostic carets under its exact span, the code and the message."""
    shown = terminal_safe(text)
    yield indent + (shown if len(shown) <= _LONGEST_EXCERPT else shown[: _LONGEST_EXCERPT - 1] + "…")
    for d in diagnostics:
        start = min(d.start, _LONGEST_EXCERPT - 1)
        marks = max(width(text[d.start : min(d.end, _LONGEST_EXCERPT)]), 1)
        colour = "red" if d.severity == "error" else "yellow"
        pointer = " " * width(text[:start]) + paint("^" * marks, colour)
        yield f"{indent}{pointer} {paint(d.code, colour, 'bold')} {d}"


# -- commands in messages -----------------------------------------------------------------------------------------

# Commands that have commands of their own.
COMMAND_GROUPS = ("dlq", "notify", "state", "store", "service")
# Commands that have no option for the store; those of a group are named with the command below it.
NO_STORE_OPTION = frozenset(
    {
        *("explain", "next", "lint", "rule", "fmt", "lsp", "init", "import", "completion", "man", "version"),
        *("dlq", "notify", "state", "store", "store copy", "service", "service uninstall", "service status"),
    }
)
_FILE_COMMANDS = ("run", "apply", "edit", "service install")
# Compiled by the first message that has one: most commands print none.
_COMMAND = rf"chronex ((?:{'|'.join(COMMAND_GROUPS)}) [a-z]+|[a-z]+)(?![\w-])(?=([^;`\n]*))"


def hinted(text: str) -> str:
    """The message with every command of Chronex in it as it must be typed elsewhere to mean this store.

    Whoever copies "start one with: chronex run" must not start a daemon on another store.
    """
    return with_store_options(text, *_store_options(sys.argv)) if "chronex " in text else text


def with_store_options(text: str, store: str, config: str) -> str:
    """`store` and `config` are the options that name them; empty where the default ones are meant.

    They stand right behind the command: in a sentence nothing else says where its arguments end.
    """

    from chronex.cli.app import COMMANDS

    def named(found: re.Match[str]) -> str:
        command, behind = found[1], found[2]
        if command.split()[0] not in COMMANDS or command in NO_STORE_OPTION or behind.startswith(" --help"):
            return found[0]
        file = config if command in _FILE_COMMANDS and "--config" not in behind else ""
        place = store if "--store" not in behind else ""
        return " ".join(word for word in (found[0], file, place) if word)

    return re.sub(_COMMAND, named, text)


def _store_options(arguments: Sequence[str]) -> tuple[str, str]:
    """How this command was told its store and its job file, as options that any other shell understands."""
    from shlex import quote

    from chronex.cli.options import CONFIG_VARIABLE, store_location
    from chronex.errors import ChronexError

    store, config = _option("--store", arguments), _option("--config", arguments) or os.environ.get(CONFIG_VARIABLE)
    try:
        place, usual = store_location(store or None), store_location(None, {})
    except ChronexError:
        return "", ""  # the message is about just that
    shown = str(place.absolute()) if isinstance(place, Path) else place.shown
    return (
        "" if isinstance(place, Path) and place.absolute() == usual else f"--store {quote(shown)}",
        f"--config {quote(str(Path(config).absolute()))}" if config else "",
    )


def _option(name: str, arguments: Sequence[str]) -> str | None:
    """The value of an option on the command line; what follows `--` is another program's."""
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    for number, word in enumerate(own):
        if word == name and number + 1 < len(own):
            return own[number + 1]
        if word.startswith(f"{name}="):
            return word.removeprefix(f"{name}=")
    return None


# -- streams ------------------------------------------------------------------------------------------------------


def out(text: str = "") -> None:
    _write(sys.stdout, text)


def err(text: str) -> None:
    """A message that cannot be written, because the disk is full or the reader has gone, fails no command."""
    try:
        _write(sys.stderr, hinted(text))
    except OSError:
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, sys.stderr.fileno())
        os.close(devnull)


def _write(stream: TextIO, text: str) -> None:
    """A terminal that cannot show a character gets a question mark for it."""
    encoding = stream.encoding or "ascii"
    stream.write(text.encode(encoding, "replace").decode(encoding) + "\n")


# -- times --------------------------------------------------------------------------------------------------------
#
# People see an instant in the zone of its job, with the offset: `2026-11-16 03:00+09:00`. An instant that belongs to
# no job is in the host's zone. `list` and `status` put many jobs beside the clock on the wall: their short times
# (`07:41`) are the host's too, and a line names the zone. The daemon's log and what `verify` shows of the journal are
# RFC 3339 in UTC, so that lines of both can be compared.
#
# Programs get every instant twice: RFC 3339 in UTC under its name, and epoch milliseconds under that and `_ms`.


def shown_zone() -> Zone:
    """The zone of times that belong to no job."""
    from chronex.timing.zones import host_zone

    return host_zone().zone


def zone_of(job: Job) -> Zone:
    from chronex.views.why.schedule_versions import zone_of as job_zone

    return job_zone(job)


def time_text(ms: int | None, zone: Zone) -> str:
    """`2026-11-16 03:00+09:00`, for people, who do not read the milliseconds of a wall clock."""
    if ms is None:
        return ""
    from chronex.views.wording import stamp

    return stamp(ms // 1000 * 1000, zone)


def rfc3339(ms: int | None) -> str | None:
    if ms is None:
        return None
    from chronex.text import instants

    return instants.rfc3339(ms)


def timed(name: str, ms: int | None) -> dict[str, Any]:
    """Both forms of an instant, for programs."""
    return {name: rfc3339(ms), f"{name}_ms": ms}


# The name of a declarative task may have a thousand characters.
_LONGEST_NAME = 60


class JobZones:
    """The zones and shown names of jobs by their ids, also of jobs that were removed; each is looked up once."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._known: dict[tuple[str, int | None], Zone] = {}
        self._names: dict[str, str] = {}

    def of(self, job: str, version: int | None = None) -> Zone:
        """The zone of the named version of the job, else of the job as it is."""
        key = (job, version)
        if key not in self._known:
            self._known[key] = self._find(job, version)
        return self._known[key]

    def name_of(self, job: str) -> str:
        """What people call the job, fit for a terminal."""
        if job not in self._names:
            found = self._reading.job(job)
            shown = job if found is None else found.shown_name
            self._names[job] = job if shown == job else cut(shown, _LONGEST_NAME)
        return self._names[job]

    def _find(self, name: str, version: int | None) -> Zone:
        from chronex.errors import ChronexError
        from chronex.timing.zones import load_zone

        job = self._reading.job_version(name, version) if version is not None else None
        job = job or self._reading.job(name)
        try:
            return shown_zone() if job is None else zone_of(job)
        except ChronexError:  # zone data that this machine has lost
            return load_zone("UTC")


# Questions to the person at the terminal.


def is_answered() -> bool:
    """Whether somebody is there who can answer: a script must say by an option what it means."""
    return sys.stdin.isatty()


def ask(question: str) -> bool:
    """Yes or no; no is the answer of an empty line and of an end of input."""
    err(f"{terminal_safe(question)} [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def choose_letter(question: str, letters: str) -> str:
    """One of the letters; the last of them for an empty line, an end of input, or anything else."""
    err(terminal_safe(question))
    answer = sys.stdin.readline().strip().lower()[:1]
    return answer if answer and answer in letters else letters[-1]
