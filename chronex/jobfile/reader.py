"""`chronex.toml` and trigger definitions to settings and jobs, or to every problem they have."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from chronex.errors import UnknownZoneError
from chronex.jobfile.document import open_json, open_toml
from chronex.jobfile.entries import Entry, Reader, RefusedError, Sheet, TooManyProblemsError, read_table
from chronex.jobfile.jobs import JOB, Defaults, build_job, check_case, read_defaults, read_jobs
from chronex.jobfile.keymap import read_keymap
from chronex.jobfile.positions import TextSpan
from chronex.jobfile.problems import JobFileError, Problem
from chronex.jobfile.properties import Property, read_properties
from chronex.jobfile.settings import SchedulerSettings, scheduler
from chronex.jobfile.values import name
from chronex.model.records import Job
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

    def job(self, job_id: str) -> Job | None:
        return next((job for job in self.jobs if job.id == job_id), None)


def read_job_file(text: str | bytes, path: str, host_zone: str) -> JobFile:
    """The settings and jobs of a chronex.toml. Raises JobFileError with every problem, and nothing else."""
    return _read(open_toml(text, path, host_zone), _toml_file)


def read_triggers(text: str | bytes, path: str, host_zone: str) -> JobFile:
    """The jobs of a TriggerDefinition in JSON, or of a list of them. Raises JobFileError and nothing else."""
    return _read(open_json(text, path, host_zone), _json_file)


Content = tuple[SchedulerSettings, tuple[Job, ...], tuple[Property, ...]]


def _read(root: Entry, read: Callable[[Entry], Content]) -> JobFile:
    sheet = root.sheet
    try:
        settings, jobs, properties = read(root)
    except (RefusedError, TooManyProblemsError):
        settings, jobs, properties = SchedulerSettings(), (), ()
    if sheet.problems:
        raise JobFileError(_in_order(sheet.problems))
    return JobFile(sheet.path, settings, jobs, properties, tuple(_in_order(sheet.warnings)))


def _in_order(problems: list[Problem]) -> list[Problem]:
    return sorted(dict.fromkeys(problems), key=lambda p: (p.line, p.column, p.end_column, p.code, p.message))


# -- chronex.toml -----------------------------------------------------------------------------------------


def _kept(entry: Entry) -> Entry:
    return entry


TOP_LEVEL: dict[str, Reader] = {"scheduler": _kept, "defaults": _kept, "jobs": _kept, "verify": _kept, "tui": _kept}


def _toml_file(root: Entry) -> Content:
    tables: dict[str, Entry] = read_table(root, TOP_LEVEL)
    settings = SchedulerSettings(timezone=root.sheet.host_zone)
    if "scheduler" in tables:
        settings = _unless_refused(scheduler, tables["scheduler"], settings)
    zone = _known_zone(root.sheet, settings.timezone)
    defaults = Defaults()
    if "defaults" in tables:
        defaults = _unless_refused(read_defaults, tables["defaults"], defaults)
    jobs = read_jobs(tables["jobs"], defaults, zone) if "jobs" in tables else ()
    properties: tuple[Property, ...] = ()
    if "verify" in tables:
        properties = _unless_refused(read_properties, tables["verify"], properties)
    if "tui" in tables:
        with suppress(RefusedError):
            read_keymap(tables["tui"])  # the dashboard reads them for itself
    return settings, jobs, properties


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
    "expression": _kept,
    **{key: reader for key, reader in JOB.items() if key != "schedule"},
}


def _json_file(root: Entry) -> Content:
    zone = _known_zone(root.sheet, root.sheet.host_zone)
    if not isinstance(root.value, dict | list):
        root.refuse_type("a trigger definition or a list of them", '{ "id": "…", "expression": "…" }')
    jobs: list[Job] = []
    known: dict[str, str] = {}
    for entry in root.children() if isinstance(root.value, list) else (root,):
        try:
            jobs.append(_trigger(entry, known, zone))
        except RefusedError:
            continue
    return SchedulerSettings(timezone=root.sheet.host_zone), tuple(jobs), ()


def _trigger(entry: Entry, known: dict[str, str], zone: str) -> Job:
    own: dict[str, Any] = read_table(entry, TRIGGER, '{ "id": "…", "expression": "…" }')
    for key in ("id", "expression"):
        if key not in entry.expect_table():
            entry.report(f"a trigger definition has no {key}", f'write "{key}": "…"', "J012")
    if "id" not in own or "expression" not in own:
        raise RefusedError
    check_case(entry.child("id"), own["id"], known, "trigger")
    own["schedule"] = own.pop("expression")
    return build_job(own.pop("id"), entry, own, Defaults(), zone, needs_tasks=False)
