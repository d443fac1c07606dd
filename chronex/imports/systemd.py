"""Import of systemd timers with their services: calendar, repetition, delay, persistence, and commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from chronex.imports.import_result import Import, Imported, Instants, JobNames, Lost
from chronex.lint.systemd_calendar import CalendarEvent, CalendarSchedule, Chain, Values, parse_calendar
from chronex.timing.zones import Zone, load_zone

Unit = dict[str, dict[str, list[str]]]
_UNITS_MS = {
    "us": 0.001, "usec": 0.001, "ms": 1, "msec": 1, "": 1000, "s": 1000, "sec": 1000, "second": 1000, "seconds": 1000,
    "m": 60_000, "min": 60_000, "minute": 60_000, "minutes": 60_000, "h": 3_600_000, "hr": 3_600_000,
    "hour": 3_600_000, "hours": 3_600_000, "d": 86_400_000, "day": 86_400_000, "days": 86_400_000,
    "w": 604_800_000, "week": 604_800_000, "weeks": 604_800_000,
}  # fmt: skip
_MICRO = 1_000_000
_CRON_WEEKDAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
_SPAN = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)")
_PREFIXES = "@-:+!|"
_SAME_RULES = {"gap": "skip", "overlap": "first"}
_MONOTONIC = ("OnBootSec", "OnStartupSec", "OnActiveSec", "OnUnitInactiveSec")
_IGNORED = {"AccuracySec": "1s", "WakeSystem": "false", "RemainAfterElapse": "", "FixedRandomDelay": "false"}


class _Shared(NamedTuple):
    """What all jobs of one timer have in common."""

    table: dict[str, Any]
    jitter: str
    notes: tuple[str, ...]


class Timer(NamedTuple):
    name: str
    timer: Unit
    service: Unit | None


def read_timers(timers: list[Timer], zone: Zone) -> Import:
    found = Import("systemd", zone.name, {"overlap": "skip"}, [], [])
    names = JobNames()
    for timer in timers:
        _timer(timer, zone, names, found)
    return found


def read_unit(text: str) -> Unit:
    """Sections of keys with all their values; an empty value starts a list anew, as in systemd."""
    unit: Unit = {}
    section: dict[str, list[str]] = {}
    for line in re.sub(r"\\\r?\n", " ", text).splitlines():
        stripped = line.strip()
        if not stripped or stripped[0] in "#;":
            continue
        if stripped[0] == "[" and stripped[-1] == "]":
            section = unit.setdefault(stripped[1:-1], {})
        elif "=" in stripped:
            key, _, value = stripped.partition("=")
            values = section.setdefault(key.strip(), [])
            if value.strip():
                values.append(value.strip())
            else:
                values.clear()
    return unit


def timers_in(paths: list[Path]) -> Iterator[Timer]:
    """The timers of files and directories, each with the service that it starts, where that file lies beside it."""
    for path in paths:
        files = sorted(path.glob("*.timer")) if path.is_dir() else [path]
        for file in files:
            timer = read_unit(file.read_text("utf-8", "replace"))
            wanted = _last(timer.get("Timer", {}), "Unit") or f"{file.stem}.service"
            beside = file.with_name(Path(wanted).name)
            service = read_unit(beside.read_text("utf-8", "replace")) if beside.is_file() else None
            yield Timer(file.name, timer, service)


def _last(section: Mapping[str, list[str]], key: str) -> str:
    return (section.get(key) or [""])[-1]


def _timer(timer: Timer, zone: Zone, names: JobNames, found: Import) -> None:
    section = timer.timer.get("Timer", {})
    found.lost.extend(_lost_keys(timer.name, section))
    shared = _shared(timer, section)
    for event_text in section.get("OnCalendar", []):
        entry = _calendar(event_text, timer.name, zone, shared, names)
        found.add(entry)
    for text in section.get("OnUnitActiveSec", []):
        ms = span_ms(text)
        if ms:
            table = {"schedule": f"@every {ms}ms{shared.jitter}", **shared.table}
            name = names.give(timer.name.removesuffix(".timer"))
            note = "counts from when the job is applied, not from the last boot"
            found.jobs.append(Imported(name, timer.name, table, zone, None, (*shared.notes, note)))


def _lost_keys(name: str, section: Mapping[str, list[str]]) -> Iterator[Lost]:
    for key in _MONOTONIC:
        for value in section.get(key, []):
            yield Lost(name, f"{key}={value}", "Chronex counts no time from boot or from a unit's end")
    for key, harmless in _IGNORED.items():
        for value in section.get(key, []):
            if value != harmless:
                yield Lost(name, f"{key}={value}", "has no equivalent; Chronex starts jobs at their second")


def _calendar(text: str, origin: str, zone: Zone, shared: _Shared, names: JobNames) -> Imported | Lost:
    event, faults = parse_calendar(text)
    if event is None:
        return Lost(origin, f"OnCalendar={text}", faults[0].message)
    translated = translate(event)
    if translated.lost:
        return Lost(origin, f"OnCalendar={text}", f"no expression says this: {translated.lost}")
    own = load_zone(event.zone) if event.zone else zone
    prefix = f"TZ={own.name} " if event.zone else ""
    schedule = f"{prefix}{translated.schedule}{shared.jitter}"
    table = {"schedule": schedule, **shared.table, **translated.extra, "dst": dict(_SAME_RULES)}
    elapses: Instants = partial(_elapses, CalendarSchedule(event, own))
    return Imported(names.give(origin.removesuffix(".timer")), origin, table, own, elapses, shared.notes)


def _elapses(schedule: CalendarSchedule, start: int, end: int) -> Iterator[int]:
    for ms in schedule.instants(start * 1000 - 1):
        if ms >= end * 1000:
            return
        yield ms // 1000


def _jitter(section: Mapping[str, list[str]]) -> str:
    ms = span_ms(_last(section, "RandomizedDelaySec"))
    return f" {{jitter:{ms}ms}}" if ms else ""


def span_ms(text: str) -> int:
    """Milliseconds of a time span as systemd writes it: `1h 30min`, `90` (seconds), `2days`; 0 for any other text."""
    total, at = 0.0, 0
    for match in _SPAN.finditer(text):
        if match.start() != at or match[2] not in _UNITS_MS:
            return 0
        total += float(match[1]) * _UNITS_MS[match[2]]
        at = match.end()
    return round(total) if at == len(text.rstrip()) else 0


def _shared(timer: Timer, section: Mapping[str, list[str]]) -> _Shared:
    table: dict[str, Any] = {"recovery": "execute_last" if _is_true(_last(section, "Persistent")) else "mark_missed"}
    if description := _last(timer.timer.get("Unit", {}), "Description"):
        table["description"] = description
    jitter = _jitter(section)
    if timer.service is None:
        table["run"] = ["false"]
        return _Shared(table, jitter, ("its service was not found beside it: put a command into run",))
    notes = _service(timer.service.get("Service", {}), table)
    return _Shared(table, jitter, notes)


def _is_true(value: str) -> bool:
    return value.lower() in ("yes", "true", "1", "on")


def _service(section: Mapping[str, list[str]], table: dict[str, Any]) -> tuple[str, ...]:
    notes: list[str] = []
    commands = [*section.get("ExecStartPre", []), *section.get("ExecStart", []), *section.get("ExecStartPost", [])]
    tasks = [_task(number, text, notes) for number, text in enumerate(commands, 1)]
    if len(tasks) == 1 and "on_failure" not in tasks[0]:
        table["run"] = tasks[0]["run"]
    else:
        table["tasks"] = tasks or [{"name": "main", "run": ["false"]}]
    if directory := _last(section, "WorkingDirectory").lstrip("-"):
        table["directory"] = directory
    env = dict(word.partition("=")[::2] for line in section.get("Environment", []) for word in _words(line))
    if env:
        table["env"] = env
    if ms := span_ms(_last(section, "TimeoutStartSec") or _last(section, "RuntimeMaxSec")):
        table["execution_timeout"] = f"{ms}ms"
    for key in ("User", "Group", "EnvironmentFile", "ExecCondition", "Restart", "LoadCredential"):
        if value := _last(section, key):
            notes.append(f"{key}={value} is not carried over")
    return tuple(notes)


def _task(number: int, text: str, notes: list[str]) -> dict[str, Any]:
    prefixes = text[: len(text) - len(text.lstrip(_PREFIXES))]
    argv = _words(text[len(prefixes) :])
    if "%" in text.replace("%%", ""):
        notes.append(f"{text}: specifiers such as %h are not expanded")
    if "$" in text:
        notes.append(f"{text}: variables are not expanded without a shell")
    task: dict[str, Any] = {"name": f"step-{number}", "run": [word.replace("%%", "%") for word in argv] or ["false"]}
    if "-" in prefixes:
        task["on_failure"] = "continue"
    return task


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


# -- a calendar event as a cron expression with seconds, where one says the same ----------------------------------


class Translated(NamedTuple):
    """`extra` are keys of the job beside its schedule; `lost` says what no expression can."""

    schedule: str
    extra: dict[str, Any]
    lost: str = ""


def translate(event: CalendarEvent) -> Translated:
    if event.at is not None:
        return Translated("", {}, "a single instant that is counted from 1970")
    seconds = _scaled(event.micros)
    if seconds is None:
        return Translated("", {}, "fractions of a second")
    if event.years is not None:
        return Translated("", {}, "years: use {from:…} and {until:…}")
    days = _days(event)
    if days is None:
        return Translated("", {}, "several days counted from the end of the month")
    times = [_field(seconds), _field(event.minutes), _field(event.hours)]
    fields = [*(times if times[0] != "0" else times[1:]), days, _field(event.months)]
    weekdays = _weekdays(event.weekdays)
    if weekdays != "*" and days != "*":
        # systemd wants both to hold; cron's fields are joined by "or".
        return Translated(" ".join([*fields, "*"]), {"spread": {"duration": "0s", "only": f"dow={weekdays}"}})
    return Translated(" ".join([*fields, weekdays]), {})


def _scaled(values: Values) -> Values:
    """Microseconds as seconds; None where one is no whole second."""
    if values is None:
        return (Chain(0, 59, 1),)
    parts = [part for chain in values for part in (chain.start, chain.stop or 0, chain.step)]
    if any(part % _MICRO for part in parts if part != 60 * _MICRO - 1):
        return None
    return tuple(
        Chain(c.start // _MICRO, None if c.stop is None else c.stop // _MICRO, c.step // _MICRO) for c in values
    )


def _field(values: Values) -> str:
    if values is None:
        return "*"
    return ",".join(_chain(chain) for chain in values)


def _chain(chain: Chain) -> str:
    if chain.stop is None:
        return f"{chain.start}/{chain.step}" if chain.step else str(chain.start)
    span = f"{chain.start}-{chain.stop}"
    return f"{span}/{chain.step}" if chain.step > 1 else span


def _days(event: CalendarEvent) -> str | None:
    if not event.from_end:
        return _field(event.days)
    chain = event.days[0] if event.days is not None and len(event.days) == 1 else None
    if chain is None or chain.stop is not None or chain.step:
        return None
    return "L" if chain.start == 1 else f"L-{chain.start - 1}"


def _weekdays(bits: int | None) -> str:
    if bits is None or bits == 0b1111111:
        return "*"
    return ",".join(name for number, name in enumerate(_CRON_WEEKDAYS) if bits >> number & 1)
