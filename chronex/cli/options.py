"""Options and arguments of commands: the declarations that several share, and what their values mean."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chronex.errors import ChronexError

if TYPE_CHECKING:
    from chronex.timing.zones import Zone, ZoneChoice
    from chronex_store.opening import StoreLocation

# -- declarations that several commands share ---------------------------------------------------------------------

Dialect = Annotated[str, typer.Option(help="The language of the expression: chronex or posix.", metavar="DIALECT")]
ZoneName = Annotated[
    str | None, typer.Option("--tz", help="Zone for expressions without TZ= (default: the host's).", metavar="ZONE")
]
Since = Annotated[
    str | None, typer.Option("--from", help="Count from this ISO 8601 time (default: now).", metavar="TIME")
]
Calendars = Annotated[
    list[str] | None,
    typer.Option(
        "--calendar",
        help="No run on these: a name of the job file, holidays=DE-BY, ics=FILE, dates=A..B, weekdays=SAT,SUN.",
        metavar="CALENDAR",
    ),
]
OnExcludedWord = Annotated[
    str, typer.Option("--on-excluded", help="skip, next_workday or previous_workday.", metavar="WORD")
]
Workdays = Annotated[
    list[int] | None,
    typer.Option("--workday", help="Only on these working days of the month; -1 is the last.", metavar="N"),
]
Text = Annotated[str, typer.Argument(help="The expression, in quotes.", metavar="EXPR")]
StorePath = Annotated[
    str | None,
    typer.Option(
        "--store",
        help="A directory, or postgresql://… (default: CHRONEX_STORE, else your state directory).",
        metavar="STORE",
    ),
]
Form = Annotated[str, typer.Option("--format", help="text or json.", metavar="FORMAT")]
Config = Annotated[
    str | None,
    typer.Option("--config", help="The job file (default: CHRONEX_CONFIG, else ./chronex.toml).", metavar="FILE"),
]
JobName = Annotated[str, typer.Argument(help="The job's name.", metavar="JOB")]
OfJob = Annotated[str | None, typer.Option("--job", help="Those of this job.", metavar="JOB")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for the end; exit 1 unless it went well.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
AsOf = Annotated[str, typer.Option("--as-of", help="Run the job as it was then, or as it is now.", metavar="WHEN")]
ReasonText = Annotated[str, typer.Option(help="Why, for the journal.", metavar="TEXT")]


# -- what the values mean: choices, zones, instants, durations ----------------------------------------------------

TEXT_OR_JSON = ("text", "json")


class UsageError(ChronexError):
    """The command was not understood; see --help."""


def choose(option: str, value: str, allowed: tuple[str, ...]) -> str:
    """One of a few words, or a usage error that names them."""
    if value not in allowed:
        from chronex.text.suggestions import nearest

        meant = nearest(value, allowed)
        hint = f"did you mean {meant}?" if meant else f"use {', '.join(allowed[:-1])} or {allowed[-1]}"
        raise UsageError(f"{option}: {value!r} is not known; {hint}")
    return value


def check_format(form: str) -> None:
    choose("--format", form, TEXT_OR_JSON)


def choose_zone(option: str | None) -> ZoneChoice:
    """--tz, else the host's zone, else UTC; always with a word on where it came from."""
    from chronex.timing.zones import ZoneChoice, host_zone

    if not option:
        return host_zone()
    from chronex.errors import UnknownZoneError
    from chronex.timing.zones import load_zone

    try:
        return ZoneChoice(load_zone(option), "from --tz")
    except UnknownZoneError:
        raise UsageError(f"--tz: unknown time zone {option!r}; {_zone_hint(option)}") from None


def _zone_hint(option: str) -> str:
    from chronex.text.suggestions import nearest
    from chronex.timing.zones import zone_names

    meant = nearest(option, zone_names())
    return f"did you mean {meant}?" if meant else "use an IANA name such as Europe/Berlin"


def read_instant(text: str | None, zone: Zone, option: str = "--from") -> int:
    """Epoch milliseconds of an ISO 8601 text (in `zone` when it has no offset); now when absent.

    `yesterday`, `today` and `tomorrow` are days of `zone`, with or without a time of day.
    """
    from chronex.clock import wall_ms

    if text is None or text == "now":
        return wall_ms()
    from datetime import datetime

    from chronex.text.instants import epoch_ms, local_datetime, with_named_day

    try:
        moment = datetime.fromisoformat(with_named_day(text, local_datetime(wall_ms(), zone.tzinfo).date()))
    except ValueError:
        raise UsageError(
            f"{option}: {text!r} is not a time; write 2027-03-14T01:00:00, 2027-03-14 or yesterday 01:00"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone.tzinfo)
    try:
        return epoch_ms(moment)
    except OverflowError:
        raise UsageError(f"{option}: {text!r} lies outside the years 1 to 9999") from None


def read_since(text: str | None, zone: Zone) -> int | None:
    """`2h` is that long ago; otherwise an ISO 8601 time in `zone`."""
    if text is None:
        return None
    from chronex.clock import wall_ms
    from chronex.text.durations import parse_duration

    span = parse_duration(text)
    if span is not None:
        return wall_ms() - span
    try:
        return read_instant(text, zone, "--since")
    except UsageError as error:
        raise UsageError(f"{error}, or how long ago: 90m, 2d") from None


def read_duration(option: str, text: str | None) -> int | None:
    """Milliseconds of a duration that must be longer than nothing."""
    if text is None:
        return None
    from chronex.text.durations import parse_duration, suggest_duration

    ms = parse_duration(text)
    if ms == 0:
        raise UsageError(f"{option}: {text!r} is no time at all; write 90s, 10m or 2h30m")
    if ms is None:
        meant = suggest_duration(text)
        hint = f"did you mean {meant}?" if meant else "write 90s, 10m or 2h30m"
        raise UsageError(f"{option}: {text!r} is not a duration; {hint}")
    return ms


# -- where the job file and the store are: the option, else the variable, else the platform's own directory --------

JOB_FILE = "chronex.toml"
CONFIG_VARIABLE = "CHRONEX_CONFIG"
STORE_VARIABLE = "CHRONEX_STORE"
# Paths that the shell has opened already, as `<(…)` and `< file`: a pipe there has a writer at its other end.
_OPEN_ALREADY = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")


def job_file_path(option: str | None, environ: Mapping[str, str] = os.environ) -> Path:
    """--config, else CHRONEX_CONFIG, else ./chronex.toml when there is one, else the user's own."""
    if chosen := option or environ.get(CONFIG_VARIABLE):
        return Path(chosen)
    here = Path(JOB_FILE)
    if here.exists():
        return here
    from platformdirs import user_config_path

    try:
        return user_config_path("chronex", appauthor=False) / JOB_FILE
    except RuntimeError:
        return here  # a user without a home directory has no job file of their own


def is_named(option: str | None, environ: Mapping[str, str] = os.environ) -> bool:
    """True where the user named a job file, which must then exist."""
    return bool(option or environ.get(CONFIG_VARIABLE))


def store_path(option: str | None, environ: Mapping[str, str] = os.environ) -> Path:
    """The store's directory, for a command that works on one: a database has tools of its own for what they do."""
    location = store_location(option, environ)
    if isinstance(location, Path):
        return location
    raise UsageError(
        f"this command is for a store in a directory, and {location.shown} is a database; "
        "use its tools, such as pg_dump"
    )


def store_location(option: str | None, environ: Mapping[str, str] = os.environ) -> StoreLocation:
    """Where the store is: --store, else CHRONEX_STORE, else a directory for the user's state."""
    if option == "":  # as of a variable that is not set
        raise UsageError("--store is empty; name a directory or a postgresql:// address, or leave it out")
    from chronex_store.opening import problem_of_store_name, read_location

    if chosen := option or environ.get(STORE_VARIABLE):
        if problem := problem_of_store_name(chosen, "--store" if option else STORE_VARIABLE):
            raise UsageError(problem)
        return read_location(chosen)
    from platformdirs import user_state_path

    try:
        usual = user_state_path("chronex", appauthor=False) / "store"
    except RuntimeError:
        raise UsageError(f"this user has no home directory; name a store with --store or {STORE_VARIABLE}") from None
    if problem := problem_of_store_name(str(usual), STORE_VARIABLE):
        raise UsageError(problem)
    return usual


def is_open_already(path: Path) -> bool:
    return str(path).startswith(_OPEN_ALREADY)


def read_file(path: Path, most: int) -> bytes:
    """At most so many bytes of it; OSError for a file that could block for ever, as a named pipe could."""
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode) and not is_open_already(path):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    with path.open("rb") as file:
        return file.read(most)
