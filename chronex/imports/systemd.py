"""Import of systemd timers with their services: calendar, repetition, delay, persistence, and commands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from chronex.imports.import_result import Import, Imported, Instants, JobNames, Lost
from chronex.imports.systemd_service import read_service, span_ms, unit_conditions
from chronex.lint.systemd_calendar import CalendarEvent, CalendarSchedule, Chain, Values, parse_calendar
from chronex.timing.zones import Zone, load_zone

Unit = dict[str, dict[str, list[str]]]
_MICRO = 1_000_000
_CRON_WEEKDAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
_SAME_RULES = {"gap": "skip", "overlap": "first"}
_MONOTONIC = ("OnBootSec", "OnStartupSec", "OnActiveSec", "OnUnitInactiveSec")
_IGNORED = {"AccuracySec": "1s", "WakeSystem": "false", "RemainAfterElapse": "", "FixedRandomDelay": "false"}


class _Shared(NamedTuple):
    """What all jobs of one timer have in common."""

    table: dict[str, Any]
    jitter: str
    lost: tuple[str, ...]


_INSTANCE = re.compile(r"([^@]+)@([^@]+)(\.[a-z]+)")
_SPECIFIER = re.compile(r"%(.)")  # also %%, so that its second mark begins nothing


class Timer(NamedTuple):
    name: str
    timer: Unit
    service: Unit | None


def read_timers(timers: list[Timer], zone: Zone, names: JobNames | None = None) -> Import:
    found = Import("systemd", zone.name, {}, [], [])
    names = names or JobNames()
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
            yield timer_of(file, [file.parent])


def timer_of(file: Path, directories: list[Path], name: str = "") -> Timer:
    """The timer with its service, which is looked for in these directories, the first one before the others. `name`
    is that of an instance, `backup@main.timer`, whose file is that of its template."""
    name = name or file.name
    timer = read_unit(_of_instance(_text_with_dropins(file, directories), name))
    wanted = Path(_last(timer.get("Timer", {}), "Unit") or f"{name.removesuffix('.timer')}.service").name
    service = unit_file(wanted, directories)
    if service is None:
        return Timer(name, timer, None)
    return Timer(name, timer, read_unit(_of_instance(_text_with_dropins(service, directories), wanted)))


def unit_file(name: str, directories: list[Path]) -> Path | None:
    """The file of the unit, or that of its template where it is an instance."""
    template = _INSTANCE.sub(r"\1@\3", name)
    names = dict.fromkeys((name, template))
    return next((place / each for each in names for place in directories if (place / each).is_file()), None)


def _of_instance(text: str, unit: str) -> str:
    """With the specifiers that its name answers; others stay and are told of, as all do of escaped names."""
    found = _INSTANCE.fullmatch(unit)
    if found is None or "\\" in found[2]:
        return text
    values = {"i": found[2], "I": found[2].replace("-", "/"), "p": found[1], "n": unit}
    return _SPECIFIER.sub(lambda mark: values.get(mark[1], mark[0]), text)


def _text_with_dropins(file: Path, directories: list[Path]) -> str:
    """The unit, then what `NAME.d/*.conf` beside it says; a name in an earlier directory hides the same later."""
    found: dict[str, Path] = {}
    for place in directories:
        for dropin in sorted((place / f"{file.name}.d").glob("*.conf")):
            found.setdefault(dropin.name, dropin)
    files = [file, *(found[name] for name in sorted(found))]
    return "\n".join(each.read_text("utf-8", "replace") for each in files)


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
            note = "counts from when the job is applied, not from the last start of the unit"
            why = "an interval has no times to compare"
            found.jobs.append(Imported(name, timer.name, table, zone, differs=(note,), lost=shared.lost, times=why))


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
    return Imported(names.give(origin.removesuffix(".timer")), origin, table, own, elapses, lost=shared.lost)


def _elapses(schedule: CalendarSchedule, start: int, end: int) -> Iterator[int]:
    for ms in schedule.instants(start * 1000 - 1):
        if ms >= end * 1000:
            return
        yield ms // 1000


def _jitter(section: Mapping[str, list[str]]) -> str:
    ms = span_ms(_last(section, "RandomizedDelaySec"))
    return f" {{jitter:{ms}ms}}" if ms else ""


def _shared(timer: Timer, section: Mapping[str, list[str]]) -> _Shared:
    table: dict[str, Any] = {
        "overlap": "skip",
        "recovery": "execute_last" if _is_true(_last(section, "Persistent")) else "mark_missed",
    }
    if description := _last(timer.timer.get("Unit", {}), "Description"):
        table["description"] = description
    jitter = _jitter(section)
    if timer.service is None:
        table["run"] = ["false"]
        return _Shared(table, jitter, ("its service was not found: put a command into run",))
    lost = (*read_service(timer.service.get("Service", {}), table), *unit_conditions(timer.service.get("Unit", {})))
    return _Shared(table, jitter, lost)


def _is_true(value: str) -> bool:
    return value.lower() in ("yes", "true", "1", "on")


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
