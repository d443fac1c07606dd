"""`chronex.toml` and trigger definitions to settings and jobs, or to every problem they have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from os.path import basename
from typing import Any, NamedTuple, TypeVar

from chronex.errors import UnknownZoneError
from chronex.jobfile.calendar_tables import CALENDAR, named_calendars, read_calendars
from chronex.jobfile.entries import (
    MAX_PROBLEMS,
    SOME_TIME_MS,
    Entry,
    JobFileError,
    NamedZone,
    PositionsNeededError,
    Problem,
    Reader,
    RefusedError,
    Sheet,
    TooManyProblemsError,
    WrittenSchedule,
    read_table,
)
from chronex.jobfile.group_tables import CATCH_UP, CHECK, GROUP, read_groups
from chronex.jobfile.inherited_tables import CRASH, DST, RECOVERY, RETRY
from chronex.jobfile.job_tables import (
    DEFAULTS,
    JOB,
    TASK,
    Defaults,
    FileZone,
    build_job,
    check_case,
    note_schedule,
    read_defaults,
    read_jobs,
)
from chronex.jobfile.keymap import KEYS, TUI, read_keymap
from chronex.jobfile.lint_table import LINT, read_lint
from chronex.jobfile.notify_table import CHANNEL, HEARTBEAT, NOTIFY, SMTP, read_channels
from chronex.jobfile.otlp_table import OTLP
from chronex.jobfile.parameter_table import PARAMETER
from chronex.jobfile.parsing import open_json, open_toml, open_toml_unplaced, salvage_json, salvage_toml
from chronex.jobfile.positions import TextSpan
from chronex.jobfile.process_table import LIMITS
from chronex.jobfile.properties import PROPERTY, Property, read_properties
from chronex.jobfile.settings import HISTORY, LOGS, SCHEDULER, SchedulerSettings, scheduler
from chronex.jobfile.spread_table import SPREAD
from chronex.jobfile.values import name
from chronex.model.calendars import JobCalendar
from chronex.model.channels import Channel
from chronex.model.groups import GroupSettings
from chronex.model.job import Job
from chronex.text.terminal import quoted
from chronex.timing.zones import load_zone

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class JobFile:
    """A valid job file. Warnings are advice about it, in the order of the text."""

    path: str
    settings: SchedulerSettings
    jobs: tuple[Job, ...]
    properties: tuple[Property, ...] = ()
    warnings: tuple[Problem, ...] = field(default=())
    calendars: tuple[JobCalendar, ...] = ()
    groups: tuple[GroupSettings, ...] = ()
    channels: tuple[Channel, ...] = ()

    def job(self, job_id: str) -> Job | None:
        return next((job for job in self.jobs if job.id == job_id), None)


class Inspection(NamedTuple):
    """All that there is to say about a job file, valid or not: its problems, and the schedules and zones in it.

    `jobs` are those that could be read, whatever is wrong with others; they may refer to what could not.
    """

    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    schedules: tuple[WrittenSchedule, ...]
    zones: tuple[NamedZone, ...]
    jobs: tuple[Job, ...] = ()


def read_job_file(text: str | bytes, path: str, host_zone: str, now_ms: int = SOME_TIME_MS) -> JobFile:
    """The settings and jobs of a chronex.toml. Raises JobFileError with every problem, and nothing else.

    Its calendars are made as of `now_ms`, from files that lie beside `path`.
    """
    if len(text) > _LONG and (quick := _read_unplaced(text, Sheet(path, "", host_zone, now_ms=now_ms))) is not None:
        return _valid(*quick)
    root = open_toml(text, path, host_zone)
    root.sheet.now_ms = now_ms
    return _checked(root, _toml_file)


# Of a longer text the places are looked for only when there is something to say about them.
_LONG = 1 << 16


def _read_unplaced(text: str | bytes, like: Sheet) -> tuple[Sheet, Content] | None:
    """What a faultless text says; None where anything in it must be reported, which needs the places."""
    root = open_toml_unplaced(text, like.path, like.host_zone)
    if root is None:
        return None
    sheet = root.sheet
    _take_from(like, sheet)
    sheet.is_placed = False
    try:
        return sheet, _read(root, _toml_file)
    except PositionsNeededError:
        return None


def _take_from(like: Sheet, sheet: Sheet) -> None:
    """What a file knows of the directory around it before its own text is read."""
    sheet.now_ms, sheet.is_part, sheet.shared = like.now_ms, like.is_part, like.shared
    sheet.calendars, sheet.blackout, sheet.groups = dict(like.calendars), like.blackout, like.groups
    sheet.channels, sheet.most_warnings = dict(like.channels), like.most_warnings


def read_triggers(text: str | bytes, path: str, host_zone: str, *, needs_tasks: bool = False) -> JobFile:
    """The jobs of a TriggerDefinition in JSON, or of a list of them. Raises JobFileError and nothing else.

    A definition without a task is for a program that registers a handler; `needs_tasks` refuses it elsewhere.
    """
    return _checked(open_json(text, path, host_zone), partial(_json_file, needs_tasks=needs_tasks))


# The file of a directory that has what holds for all of its files; it may have jobs too.
COMMON_FILE = "chronex.toml"
FileText = tuple[str, bytes]


def read_job_directory(path: str, files: Iterable[FileText], host_zone: str, now_ms: int = SOME_TIME_MS) -> JobFile:
    """The settings and jobs of the files of a directory, each given by its path and its text, as one.

    Raises one JobFileError with the problems of all of them. What COMMON_FILE says holds for all; another file has
    jobs, and defaults for them that go before those of the directory.
    """
    ordered = sorted(files, key=lambda file: (basename(file[0]) != COMMON_FILE, file[0]))
    common = Sheet(path, "", host_zone, now_ms=now_ms)
    settings, properties = SchedulerSettings(timezone=host_zone), tuple[Property, ...]()
    jobs: list[Job] = []
    problems: list[Problem] = []
    warnings: list[Problem] = []
    known: dict[str, Job] = {}
    for file, text in ordered:
        is_part = basename(file) != COMMON_FILE
        common.most_warnings = MAX_PROBLEMS - len(warnings)
        sheet, content = _read_part(file, text, common, is_part=is_part)
        if not is_part:
            common, (settings, _, properties) = sheet, content
        problems += _in_order(sheet.problems)
        warnings += _in_order(sheet.warnings)
        problems += _named_before(content[1], known, text)
        jobs += content[1]
        if len(problems) >= MAX_PROBLEMS:
            break
    if problems:
        raise JobFileError(problems)
    return JobFile(
        path, settings, tuple(jobs), properties, tuple(warnings),
        _calendars_of(common), _groups_of(common), _channels_of(common),
    )  # fmt: skip


def _read_part(path: str, text: bytes, common: Sheet, *, is_part: bool) -> tuple[Sheet, Content]:
    like = Sheet(
        path, "", common.host_zone, now_ms=common.now_ms, is_part=is_part, most_warnings=common.most_warnings
    )
    if is_part:
        like.shared, like.calendars, like.blackout = common.shared, common.calendars, common.blackout
        like.groups, like.channels = common.groups, common.channels
        if (quick := _read_unplaced(text, like)) is not None:
            return quick
    try:
        root = open_toml(text, path, common.host_zone)
    except JobFileError as error:
        return Sheet(path, "", common.host_zone, problems=list(error.problems)), (SchedulerSettings(), (), ())
    sheet = root.sheet
    _take_from(like, sheet)
    content = _read(root, _toml_file)
    if not is_part and isinstance(root.value, dict):
        # Its jobs are its own, and its calendars and groups have been made.
        sheet.shared = {key: root.child(key) for key in root.value if key in TOP_LEVEL.keys() - _NOT_SHARED}
    return sheet, content


_NOT_SHARED = {"jobs", "calendars", "groups", "verify", "tui", "lint"}


def _named_before(jobs: Iterable[Job], known: dict[str, Job], text: bytes) -> Iterator[Problem]:
    """Two files of a directory must not have jobs of one name; of which one is meant nobody could tell."""
    for job in jobs:
        before = known.setdefault(job.id.lower(), job)
        if before is not job and before.source != job.source:
            what = "is in" if before.id == job.id else f"differs only by case from {quoted(before.id)} in"
            message = f"job {quoted(job.id)} {what} {basename(before.source)} too"
            root = open_toml(text, job.source, "UTC")  # once more with places: it was read without them
            table = root.child("jobs").child(job.id)
            table.report(message, "give one of them another name", "J018", table.key_span)
            yield from root.sheet.problems


def inspect_job_file(text: str, path: str, host_zone: str, now_ms: int = SOME_TIME_MS) -> Inspection:
    """What read_job_file finds, without raising; of a text that is not TOML, as much as can be made out."""
    try:
        root = open_toml(text, path, host_zone)
    except JobFileError as error:
        return _inspected(salvage_toml(text, path, host_zone), _toml_file, error.problems)
    root.sheet.now_ms = now_ms
    return _inspected(root, _toml_file)


def inspect_triggers(text: str, path: str, host_zone: str) -> Inspection:
    """The same for trigger definitions."""
    try:
        root = open_json(text, path, host_zone)
    except JobFileError as error:
        return _inspected(salvage_json(text, path, host_zone), _json_file, error.problems)
    return _inspected(root, _json_file)


Content = tuple[SchedulerSettings, tuple[Job, ...], tuple[Property, ...]]


def _read(root: Entry, read: Callable[[Entry], Content]) -> Content:
    try:
        return read(root)
    except (RefusedError, TooManyProblemsError):
        return SchedulerSettings(), (), ()


def _checked(root: Entry, read: Callable[[Entry], Content]) -> JobFile:
    sheet = root.sheet
    settings, jobs, properties = _read(root, read)
    if sheet.problems:
        raise JobFileError(_in_order(sheet.problems))
    return _valid(sheet, (settings, jobs, properties))


def _valid(sheet: Sheet, content: Content) -> JobFile:
    settings, jobs, properties = content
    made = _calendars_of(sheet), _groups_of(sheet), _channels_of(sheet)
    return JobFile(sheet.path, settings, jobs, properties, tuple(_in_order(sheet.warnings)), *made)


def _calendars_of(sheet: Sheet) -> tuple[JobCalendar, ...]:
    return tuple(calendar for calendar in sheet.calendars.values() if calendar is not None)


def _channels_of(sheet: Sheet) -> tuple[Channel, ...]:
    return tuple(channel for channel in sheet.channels.values() if channel is not None)


def _groups_of(sheet: Sheet) -> tuple[GroupSettings, ...]:
    return tuple(group for group in (sheet.groups or {}).values() if group is not None)


def _inspected(root: Entry, read: Callable[[Entry], Content], fatal: tuple[Problem, ...] = ()) -> Inspection:
    """With a fatal problem the rest of the text is guesswork: only its schedules and zones count."""
    sheet = root.sheet
    _, jobs, _ = _read(root, read)
    problems = fatal or tuple(_in_order(sheet.problems))
    warnings = () if problems else tuple(_in_order(sheet.warnings))
    return Inspection(problems, warnings, tuple(sheet.schedules), tuple(sheet.zones), () if fatal else jobs)


def _in_order(problems: list[Problem]) -> list[Problem]:
    return sorted(dict.fromkeys(problems), key=lambda p: (p.line, p.column, p.end_column, p.code, p.message))


# -- chronex.toml -----------------------------------------------------------------------------------------


def _unread(entry: Entry) -> Entry:
    return entry


TOP_LEVEL: dict[str, Reader] = {
    "scheduler": _unread,
    "calendars": _unread,
    "groups": _unread,
    "notify": _unread,
    "defaults": _unread,
    "jobs": _unread,
    "verify": _unread,
    "tui": _unread,
    "lint": _unread,
}


def _toml_file(root: Entry) -> Content:
    own, shared = _own_tables(root), root.sheet.shared
    tables: dict[str, Entry] = {**shared, **own}
    settings = SchedulerSettings(timezone=root.sheet.host_zone)
    if "scheduler" in tables:
        settings = _unless_refused(scheduler, tables["scheduler"], settings)
    zone = FileZone(_known_zone(root.sheet, settings.timezone), _zone_source(tables.get("scheduler"), settings))
    _read_calendars(root, tables, settings, zone.name)
    root.sheet.groups = root.sheet.groups or {}
    if "groups" in tables:
        with suppress(RefusedError):
            read_groups(tables["groups"])
    if "notify" in own:
        with suppress(RefusedError):
            read_channels(own["notify"])
    defaults = Defaults()
    for table in (shared.get("defaults"), own.get("defaults")):
        if table is not None:
            defaults = _unless_refused(partial(read_defaults, base=defaults), table, defaults)
    jobs = read_jobs(tables["jobs"], defaults, zone) if "jobs" in tables else ()
    properties: tuple[Property, ...] = ()
    if "verify" in tables:
        properties = _unless_refused(read_properties, tables["verify"], properties)
    if "tui" in tables:
        with suppress(RefusedError):
            read_keymap(tables["tui"])  # the dashboard reads them for itself
    if "lint" in tables:
        with suppress(RefusedError):
            read_lint(tables["lint"])  # and so does the linter
    return settings, jobs, properties


# What a file of a directory has of its own; the rest holds for all of them.
_OF_A_PART = frozenset({"jobs", "defaults"})


def _own_tables(root: Entry) -> dict[str, Entry]:
    tables: dict[str, Entry] = read_table(root, TOP_LEVEL)
    for key in [key for key in tables if root.sheet.is_part and key not in _OF_A_PART]:
        entry = tables.pop(key)
        message = f"[{key}] holds for all files of a directory"
        entry.report(message, f"write it into {COMMON_FILE} of the same directory", "J024", entry.key_span)
    return tables


def _read_calendars(root: Entry, tables: dict[str, Entry], settings: SchedulerSettings, zone: str) -> None:
    if "calendars" in tables:
        with suppress(RefusedError):
            read_calendars(tables["calendars"], zone)
    if settings.blackout:
        root.sheet.blackout = named_calendars(tables["scheduler"].child("blackout"), settings.blackout)


def read_keys(text: str | bytes, path: str) -> dict[str, str]:
    """Only the keys of the dashboard, whatever else is wrong with the file. Raises JobFileError as the others do."""
    root = open_toml(text, path, "UTC")
    if not isinstance(root.value, dict) or "tui" not in root.value:
        return {}
    found: dict[str, str] = _unless_refused(read_keymap, root.child("tui"), {})
    if root.sheet.problems:
        raise JobFileError(_in_order(root.sheet.problems))
    return found


def _unless_refused(read: Callable[[Entry], Value], entry: Entry, otherwise: Value) -> Value:
    try:
        return read(entry)
    except RefusedError:
        return otherwise


def _zone_source(scheduler_table: Entry | None, settings: SchedulerSettings) -> str:
    """Is the zone that schedules are read in the one which [scheduler] names, or the host's?"""
    written = scheduler_table.value if scheduler_table is not None else None
    is_written = isinstance(written, dict) and written.get("timezone") == settings.timezone
    return "scheduler" if is_written else "host"


def _known_zone(sheet: Sheet, zone: str) -> str:
    """The zone for schedules that name none; only the host's has not been checked yet."""
    try:
        load_zone(zone)
    except UnknownZoneError:
        message = f"the host's time zone {quoted(zone)} is unknown"
        sheet.report(TextSpan(0, 1), message, 'write timezone = "Europe/Berlin" under [scheduler]', "J016")
        return "UTC"
    return zone


# -- trigger definitions ----------------------------------------------------------------------------------

TRIGGER: dict[str, Reader] = {
    "id": name,
    "expression": _unread,
    **{key: reader for key, reader in JOB.items() if key != "schedule"},
}


def _json_file(root: Entry, *, needs_tasks: bool = False) -> Content:
    zone = FileZone(_known_zone(root.sheet, root.sheet.host_zone), "host")
    if not isinstance(root.value, dict | list):
        root.refuse_type("a trigger definition or a list of them", '{ "id": "…", "expression": "…" }')
    jobs: list[Job] = []
    known: dict[str, str] = {}
    for entry in root.children() if isinstance(root.value, list) else (root,):
        try:
            jobs.append(_trigger(entry, known, zone, needs_tasks=needs_tasks))
        except RefusedError:
            continue
    return SchedulerSettings(timezone=root.sheet.host_zone), tuple(jobs), ()


def _trigger(entry: Entry, known: dict[str, str], zone: FileZone, *, needs_tasks: bool) -> Job:
    own: dict[str, Any] = read_table(entry, TRIGGER, '{ "id": "…", "expression": "…" }', is_open=True)
    for key in ("id", "expression"):
        if key not in entry.expect_table():
            entry.report(f"a trigger definition has no {key}", f'write "{key}": "…"', "J012")
    if "id" not in own or "expression" not in own:
        if "expression" in own and isinstance(identity := entry.expect_table().get("id"), str):
            note_schedule(identity, entry, own["expression"], own, Defaults(), zone)
        raise RefusedError
    check_case(entry.child("id"), own["id"], known, "trigger")
    own["schedule"] = own.pop("expression")
    table = entry.expect_table()
    if needs_tasks and "run" not in table and not table.get("tasks"):
        hint = f'write "run": […], or apply it in a program that has a handler for {own["id"]}'
        entry.report(f"trigger {quoted(own['id'])} has nothing to run", hint, "J012")
    return build_job(own.pop("id"), entry, own, Defaults(), zone, needs_tasks=False)


# By the name under which the table is written; "top" is the file itself, "job" a table under [jobs].
TABLES: Mapping[str, Mapping[str, Reader]] = {
    "top": TOP_LEVEL, "scheduler": SCHEDULER, "defaults": DEFAULTS, "job": JOB, "tasks": TASK, "retry": RETRY,
    "recovery": RECOVERY, "dst": DST, "on_crash": CRASH, "spread": SPREAD, "history": HISTORY, "logs": LOGS,
    "property": PROPERTY, "calendar": CALENDAR, "tui": TUI, "keys": KEYS, "limits": LIMITS, "lint": LINT,
    "group": GROUP, "check": CHECK, "catch_up": CATCH_UP,
    "channel": CHANNEL, "notify": NOTIFY, "smtp": SMTP, "heartbeat": HEARTBEAT, "otlp": OTLP,
    "parameter": PARAMETER,
}  # fmt: skip
