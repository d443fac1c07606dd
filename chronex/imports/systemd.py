"""Import of systemd timers with their services: calendar, repetition, delay, persistence, and commands."""

from __future__ import annotations

import heapq
import os
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from chronex.imports.import_result import Import, Imported, Instants, JobNames, Lost
from chronex.imports.systemd_service import BLANKS, ServiceManager, read_service, span_ms, unit_conditions
from chronex.lint.systemd_calendar import CalendarEvent, CalendarSchedule, Chain, Values, parse_calendar
from chronex.timing.zones import Zone, load_zone

Unit = dict[str, dict[str, list[str]]]
_MICRO = 1_000_000
_CRON_WEEKDAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
_SAME_RULES = {"gap": "skip", "overlap": "first"}
_MONOTONIC = ("OnBootSec", "OnStartupSec", "OnActiveSec", "OnUnitInactiveSec")
_BESIDE = "systemd runs the unit once at a time; here its calendars are jobs that may run beside each other"
_PASSES_OVER = (
    "of steps such as 3/8, systemd up to 258 can pass over the first of a year (before 252 also of a month, day or"
    " hour); here they run"
)
_TIMES = (*_MONOTONIC, "OnCalendar", "OnUnitActiveSec")
_CARRIED = frozenset({"OnCalendar", "OnUnitActiveSec", "Persistent", "RandomizedDelaySec", "Unit"})
_OFF = ("no", "n", "false", "f", "off", "0")
_USUAL_ACCURACY_MS = 60_000


class _Shared(NamedTuple):
    """What all jobs of one timer have in common."""

    table: dict[str, Any]
    jitter: str
    lost: tuple[str, ...]


_INSTANCE = re.compile(r"([^@]+)@([^@]+)(\.[a-z]+)")
_SPECIFIER = re.compile(r"%(.)")  # also %%, so that its second mark begins nothing


class Timer(NamedTuple):
    """With its service, and with whoever runs the two."""

    name: str
    timer: Unit
    service: Unit | None
    manager: ServiceManager = ServiceManager()


class Masked(NamedTuple):
    """A timer that has not run, because it or its service is a link to /dev/null: `unit` says which."""

    name: str
    unit: str


def read_timers(timers: list[Timer], zone: Zone, names: JobNames | None = None) -> Import:
    found = Import("systemd", zone.name, {}, [], [])
    names = names or JobNames()
    for timer in timers:
        _timer(timer, zone, names, found)
    return found


def read_unit(text: str) -> Unit:
    """Sections of keys with all their values; an empty value starts a list anew, and for a time all lists of times,
    as in systemd."""
    unit: Unit = {}
    section: dict[str, list[str]] = {}
    for line in _joined_lines(text):
        if line[0] == "[" and line[-1] == "]":
            section = unit.setdefault(line[1:-1], {})
        elif "=" in line:
            key, _, value = (part.strip(BLANKS) for part in line.partition("="))
            if value:
                section.setdefault(key, []).append(value)
            for other in () if value else (*_TIMES, key) if key in _TIMES else (key,):
                section.get(other, []).clear()
    return unit


def _joined_lines(text: str) -> Iterator[str]:
    """Without comments, which end with their line, also inside of a line that goes on.

    Systemd knows fewer blanks and ends of lines than Python does: a form feed or U+2028 is a part of a command.
    """
    begun = ""
    for line in re.split("[\n\r\0]", text):
        stripped = line.strip(BLANKS)
        if not stripped or stripped[0] in "#;":
            if begun and not stripped:
                yield begun
                begun = ""
            continue
        if stripped.endswith("\\"):
            begun += f"{stripped[:-1]} "
            continue
        yield f"{begun}{stripped}"
        begun = ""
    if begun.strip(BLANKS):
        yield begun.strip(BLANKS)


def timers_in(paths: list[Path]) -> Iterator[Timer]:
    """The timers of files and directories, each with the service that it starts, where that file lies beside it."""
    for path in paths:
        files = sorted(path.glob("*.timer")) if path.is_dir() else [path]
        for file in files:
            timer = timer_of(file, [file.parent])
            if isinstance(timer, Timer):
                yield timer


def timer_of(file: Path, directories: list[Path], name: str = "") -> Timer | Masked:
    """The timer with its service, which is looked for in these directories, the first one before the others. `name`
    is that of an instance, `backup@main.timer`, whose file is that of its template."""
    name = name or file.name
    if _is_masked(file):
        return Masked(name, name)
    timer = _unit_of(file, directories, name)
    wanted = Path(_last(timer.get("Timer", {}), "Unit") or f"{name.removesuffix('.timer')}.service").name
    service, manager = unit_file(wanted, directories), ServiceManager(file.parent.parts[-2:] == ("systemd", "user"))
    if service is None:
        return Timer(name, timer, None, manager)
    if _is_masked(service):
        return Masked(name, wanted)
    return Timer(name, timer, _unit_of(service, directories, wanted), manager)


def unit_file(name: str, directories: list[Path]) -> Path | None:
    """The file of the unit, or that of its template where it is an instance. A masked unit is found too: whatever
    lies behind it does not count."""
    template = _INSTANCE.sub(r"\1@\3", name)
    names = dict.fromkeys((name, template))
    return next((place / each for each in names for place in directories if _is_unit(place / each)), None)


def _is_unit(path: Path) -> bool:
    return path.is_file() or _is_masked(path)


def _is_masked(path: Path) -> bool:
    """`systemctl mask` makes such a link; an empty file means the same."""
    return os.path.realpath(path) == os.devnull or (path.is_file() and path.stat().st_size == 0)


def _unit_of(file: Path, directories: list[Path], name: str) -> Unit:
    return read_unit(_of_instance(_text_with_dropins(file, directories, name), name))


def _of_instance(text: str, unit: str) -> str:
    """With the specifiers that its name answers; others stay and are told of, as all do of escaped names."""
    found = _INSTANCE.fullmatch(unit)
    if found is None or "\\" in found[2]:
        return text
    values = {"i": found[2], "I": found[2].replace("-", "/"), "p": found[1], "n": unit}
    return _SPECIFIER.sub(lambda mark: values.get(mark[1], mark[0]), text)


def _text_with_dropins(file: Path, directories: list[Path], name: str) -> str:
    """The unit, then what `NAME.d/*.conf` says, of the template and of the instance; a name in an earlier directory
    hides the same later."""
    found: dict[str, Path] = {}
    for unit in dict.fromkeys((name, file.name)):
        for place in directories:
            for dropin in sorted((place / f"{unit}.d").glob("*.conf")):
                found.setdefault(dropin.name, dropin)
    files = [file, *(found[each] for each in sorted(found))]
    return "\n".join(each.read_text("utf-8", "replace") for each in files)


def _last(section: Mapping[str, list[str]], key: str) -> str:
    return (section.get(key) or [""])[-1]


def _timer(timer: Timer, zone: Zone, names: JobNames, found: Import) -> None:
    section = timer.timer.get("Timer", {})
    found.lost.extend(_lost_keys(timer.name, section))
    shared = _shared(timer, section)
    events = list[_Calendar]()
    for text in section.get("OnCalendar", []):
        event = _event(text, timer.name, zone, shared.jitter)
        if isinstance(event, Lost):
            found.lost.append(event)
        elif event not in events:
            events.append(event)
    found.jobs.extend(_calendar_jobs(events, timer.name, zone, shared, names))
    for text in section.get("OnUnitActiveSec", []):
        ms = span_ms(text)
        if ms:
            table = {"schedule": f"@every {ms}ms{shared.jitter}", **shared.table}
            name = names.give(timer.name.removesuffix(".timer"))
            note = "counts from when the job is applied, not from the last start of the unit"
            why = "an interval has no times to compare"
            found.jobs.append(Imported(name, timer.name, table, zone, differs=(note,), lost=shared.lost, times=why))
        else:
            found.lost.append(Lost(timer.name, f"OnUnitActiveSec={text}", "not a span of time"))


def _lost_keys(name: str, section: Mapping[str, list[str]]) -> Iterator[Lost]:
    for key in _MONOTONIC:
        for value in section.get(key, []):
            yield Lost(name, f"{key}={value}", "Chronex counts no time from boot or from a unit's end")
    for key, values in section.items():
        if key not in (*_MONOTONIC, *_CARRIED) and values and not _is_harmless(key, values[-1]):
            yield Lost(name, f"{key}={values[-1]}", "has no equivalent; Chronex starts jobs at their second")


def _is_harmless(key: str, value: str) -> bool:
    """A tolerance of no more than systemd's own, and what is switched off."""
    if key == "AccuracySec":
        return span_ms(value) <= _USUAL_ACCURACY_MS and value != "infinity"
    return value.lower() in _OFF and key != "RemainAfterElapse"


class _Calendar(NamedTuple):
    """One OnCalendar=. `extra` are the keys that its job must have beside the schedule."""

    schedule: str
    extra: dict[str, Any]
    elapses: CalendarSchedule
    differs: str = ""


def _event(text: str, origin: str, zone: Zone, jitter: str) -> _Calendar | Lost:
    event, faults = parse_calendar(text)
    if event is None:
        return Lost(origin, f"OnCalendar={text}", faults[0].message)
    translated = translate(event)
    if translated.lost:
        return Lost(origin, f"OnCalendar={text}", f"no expression says this: {translated.lost}")
    own = load_zone(event.zone) if event.zone else zone
    prefix = f"TZ={own.name} " if event.zone else ""
    schedule = f"{prefix}{translated.schedule}{jitter}"
    differs = _PASSES_OVER if passes_over_times(event) else ""
    return _Calendar(schedule, translated.extra, CalendarSchedule(event, own), differs)


def _calendar_jobs(
    events: list[_Calendar], origin: str, zone: Zone, shared: _Shared, names: JobNames
) -> Iterator[Imported]:
    """One job for all of them: a time that two name starts the unit once. Only where they need different keys they
    are several, and of those nothing keeps one from running beside another."""
    is_one = all(event.extra == events[0].extra for event in events)
    groups = [events] if is_one else [[event] for event in events]
    for group in filter(None, groups):
        schedules = [event.schedule for event in group]
        table = {"schedule": schedules if len(schedules) > 1 else schedules[0], **shared.table, **group[0].extra,
                 "dst": dict(_SAME_RULES)}  # fmt: skip
        own = group[0].elapses.zone if len(group) == 1 else zone
        elapses: Instants = partial(_elapses, [event.elapses for event in group])
        name = names.give(origin.removesuffix(".timer"))
        differs = [*dict.fromkeys(event.differs for event in group if event.differs), *([] if is_one else [_BESIDE])]
        yield Imported(name, origin, table, own, elapses, differs=tuple(differs), lost=shared.lost)


def passes_over_times(event: CalendarEvent) -> bool:
    """Whether systemd adds a step beyond the end of a month, day, hour or minute, and goes on from where that comes
    out: after 27 December `3/8` came to the 35th, which is 4 January, and the 3rd was passed over. Seen with 252,
    where it is the end of a year alone; earlier it was every one."""
    spans: list[tuple[Values, int, int]] = [
        *((() if event.from_end else event.days, 1, length) for length in (28, 29, 30, 31)),
        (event.hours, 0, 23),
        (event.minutes, 0, 59),
        (event.micros, 0, 60 * _MICRO - 1),
    ]
    return any(
        _passes_over(chain, first, last)
        for values, first, last in spans
        for chain in values or ()
        if chain.step and chain.stop is None
    )


def _passes_over(chain: Chain, first: int, last: int) -> bool:
    """Whether the first step beyond the last value comes out behind the first value. Where the last one is one of the
    steps, the search goes on with the next month or day from its beginning."""
    steps, left = divmod(last - chain.start, chain.step)
    beyond = chain.start + (steps + 1) * chain.step - last - 1 + first
    return left != 0 and beyond > chain.start


def _elapses(schedules: list[CalendarSchedule], start: int, end: int) -> Iterator[int]:
    last = None
    for ms in heapq.merge(*(schedule.instants(start * 1000 - 1) for schedule in schedules)):
        if ms >= end * 1000:
            return
        if ms != last:
            yield ms // 1000
        last = ms


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
    lost = (
        *read_service(timer.service.get("Service", {}), table, timer.manager),
        *dict.fromkeys(
            each for unit in (timer.service, timer.timer) for each in unit_conditions(unit.get("Unit", {}))
        ),
    )
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
