"""JSON Schemas of chronex.toml and of trigger definitions, made from the tables of keys that the reader itself uses.

Editors complete and check files by them. A schema says less than the reader: what holds between two keys, and whether
an expression is valid, only the reader and the linter know. The files lie in chronex/jobfile/schemas; after a change
of a key, `python -m chronex.jobfile.json_schema` writes them anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chronex.jobfile import (
    graph_tables,
    group_tables,
    inherited_tables,
    notify_table,
    otlp_table,
    parameter_table,
    process_table,
    settings,
    spread_table,
    values,
)
from chronex.jobfile.entries import Reader
from chronex.jobfile.inherited_tables import work
from chronex.jobfile.lint_table import rule_codes
from chronex.jobfile.reader import TABLES, TRIGGER
from chronex.model.channels import NoticeEvent
from chronex.model.groups import MOST_PLACES
from chronex.model.job import MAX_NAME
from chronex.model.policies import CrashPolicy, RetryPolicy
from chronex.text.durations import format_duration

Schema = dict[str, Any]
SCHEMAS = Path(__file__).parent / "schemas"
_DIALECT = "http://json-schema.org/draft-07/schema#"
_NAME = {"type": "string", "pattern": "^[A-Za-z0-9_-]+$", "maxLength": MAX_NAME}
_TEXT = {"type": "string"}
_PLAIN = {"type": ["string", "number", "boolean"]}
_PLAINS = {"type": "array", "items": _PLAIN, "minItems": 1}
_TEXTS = {"type": "array", "items": _TEXT}
_CODES = {"type": "array", "items": {"type": "string", "pattern": "^[A-Za-z][0-9]{0,3}$"}}
_DURATION = {"type": "string", "pattern": "^([0-9]+(ms|[smhd]))+$"}
_SECRET = {"type": "string", "pattern": f"^({'|'.join(process_table.SOURCES)}):."}
_OFF = {"const": values.OFF}
_COMMAND = {"anyOf": [{"type": "string", "minLength": 1}, {"type": "array", "items": _TEXT, "minItems": 1}]}


_PLACES = {"type": "integer", "minimum": 1, "maximum": MOST_PLACES}
_CONDITION = {"type": "string", "pattern": "^(mains|network|tcp:.+:[0-9]+|path:.+|command:.+)$"}
_EVENTS = {"type": "array", "items": {"enum": [one.value for one in NoticeEvent]}, "minItems": 1}
_WORKDAY = {"type": "integer", "minimum": -23, "maximum": 23, "not": {"const": 0}}


def _table(name: str) -> Schema:
    return {"$ref": f"#/definitions/{name}"}


def _whole(reader: values.WholeNumberReader) -> Schema:
    return {"type": "integer", "minimum": reader.low, "maximum": reader.high}


# What a reader accepts; a reader that is not here accepts anything as far as the schema is concerned.
_BY_READER: dict[Any, Schema] = {
    values.text: _TEXT,
    values.filled_text: {"type": "string", "minLength": 1},
    values.key_template: {"type": "string", "minLength": 1},
    values.name: _NAME,
    values.zone: _TEXT,
    values.yes_or_no: {"type": "boolean"},
    values.duration: _DURATION,
    values.positive_duration: _DURATION,
    values.duration_or_off: {"anyOf": [_DURATION, {"const": values.OFF}]},
    values.texts: _TEXTS,
    rule_codes: _CODES,
    values.text_table: {"type": "object", "additionalProperties": _TEXT},
    inherited_tables.command: _COMMAND,
    work: _COMMAND,
    inherited_tables.retry: {"anyOf": [{"type": "integer", "minimum": 0}, _TEXT, _table("retry")]},
    inherited_tables.recovery: {"anyOf": [_TEXT, _table("recovery")]},
    inherited_tables.dst: _table("dst"),
    inherited_tables.on_crash: {"anyOf": [{"enum": [one.value for one in CrashPolicy]}, _table("on_crash")]},
    notify_table.notify: {"anyOf": [_COMMAND, _table("notify")]},
    notify_table.web_address: {"type": "string", "minLength": 1},
    notify_table.mail_address: {"type": "string", "minLength": 1},
    notify_table.smtp: _table("smtp"),
    notify_table.heartbeat: _table("heartbeat"),
    otlp_table.otlp: {"anyOf": [{"type": "string", "minLength": 1}, _table("otlp")]},
    inherited_tables.environment: {"type": "object", "additionalProperties": _TEXT},
    inherited_tables.secrets: {"anyOf": [_TEXTS, {"type": "object", "additionalProperties": _SECRET}]},
    process_table.account: {"type": ["string", "integer"]},
    process_table.umask: {"type": "string", "pattern": "^0?[0-7]{3}$"},
    process_table.limits: _table("limits"),
    process_table.env_file: {"anyOf": [{"type": "string", "minLength": 1}, _TEXTS]},
    group_tables.job_groups: {"anyOf": [_TEXTS, {"type": "object", "additionalProperties": _PLACES}]},
    group_tables.conditions: {"type": "array", "items": _CONDITION},
    group_tables.task_check: {"anyOf": [_COMMAND, _table("check")]},
    group_tables.rate: {"type": "string", "pattern": "^[0-9]+/[0-9a-z]+$"},
    group_tables.catch_up: _table("catch_up"),
    spread_table.spread: _table("spread"),
    graph_tables.needs: {"type": "array", "items": _NAME},
    graph_tables.after: {"anyOf": [_NAME, {"type": "array", "items": _NAME, "minItems": 1}]},
    graph_tables.matrix: {"type": "object", "additionalProperties": _PLAINS},
    parameter_table.parameters: {"type": "object", "additionalProperties": _table("parameter")},
    values.size: {"type": ["integer", "string"]},
    settings.shared_size: {"type": ["integer", "string"]},
    values.codes: {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 255}},
}
_BY_KEY: dict[tuple[str, str], Schema] = {
    ("top", "scheduler"): _table("scheduler"),
    ("top", "defaults"): _table("defaults"),
    ("top", "jobs"): {"type": "object", "propertyNames": _NAME, "additionalProperties": _table("job")},
    ("top", "verify"): {"type": "object", "properties": {"property": {"type": "array", "items": _table("property")}}},
    ("top", "tui"): _table("tui"),
    ("top", "lint"): _table("lint"),
    ("lint", "per_file_ignores"): {"type": "object", "additionalProperties": _CODES},
    ("tui", "keys"): _table("keys"),
    ("scheduler", "history"): _table("history"),
    ("scheduler", "logs"): _table("logs"),
    ("scheduler", "metrics"): _TEXT,
    ("top", "calendars"): {"type": "object", "propertyNames": _NAME, "additionalProperties": _table("calendar")},
    ("top", "groups"): {"type": "object", "propertyNames": _NAME, "additionalProperties": _table("group")},
    ("check", "min_size"): {"type": ["integer", "string"]},
    ("catch_up", "spacing"): _DURATION,
    ("top", "notify"): {"type": "object", "propertyNames": _NAME, "additionalProperties": _table("channel")},
    ("channel", "mail"): {"anyOf": [_TEXT, _TEXTS]},
    ("channel", "webhook"): {"type": "string", "minLength": 1},
    ("channel", "on"): _EVENTS,
    ("notify", "on"): _EVENTS,
    ("notify", "to"): {"type": "array", "items": _NAME},
    ("smtp", "host"): {"type": "string", "minLength": 1},
    ("smtp", "password"): _SECRET,
    ("heartbeat", "every"): _DURATION,
    ("otlp", "headers"): {"type": "object", "additionalProperties": _SECRET},
    ("calendar", "dates"): _TEXTS,
    ("calendar", "weekdays"): _TEXTS,
    ("job", "workday"): {"anyOf": [_WORKDAY, {"type": "array", "items": _WORKDAY}]},
    ("trigger", "workday"): {"anyOf": [_WORKDAY, {"type": "array", "items": _WORKDAY}]},
    ("job", "schedule"): {"anyOf": [_TEXT, {"type": "array", "items": _TEXT, "minItems": 1}]},
    ("job", "tasks"): {"type": "array", "items": _table("tasks")},
    ("trigger", "expression"): {"type": "string", "minLength": 1},
    ("trigger", "tasks"): {"type": "array", "items": _table("tasks")},
    ("property", "rule"): _TEXT,
    ("parameter", "default"): _PLAIN,
    ("parameter", "choices"): _PLAINS,
    ("limits", "memory"): {"type": ["integer", "string"]},
    ("limits", "cpu"): {"type": "string", "pattern": "^([0-9]+%|off)$"},
    ("limits", "tasks"): {"anyOf": [_whole(process_table.TASKS_LIMIT), _OFF]},
    ("limits", "open_files"): {"anyOf": [_whole(process_table.OPEN_FILES_LIMIT), _OFF]},
}


# What holds where a key is left out, for editors that show it.
_DEFAULTS: dict[tuple[str, str], Any] = {
    ("retry", "max"): RetryPolicy().max,
    ("retry", "interval"): format_duration(RetryPolicy().interval_ms),
    ("retry", "backoff"): RetryPolicy().backoff,
    ("retry", "max_interval"): format_duration(RetryPolicy().longest_ms),
    ("retry", "jitter"): RetryPolicy().jitter,
    ("retry", "newest_wins"): RetryPolicy().newest_wins,
}


def _value(table: str, key: str, reader: Reader) -> Schema:
    default = {"default": _DEFAULTS[table, key]} if (table, key) in _DEFAULTS else {}
    return {**_type(table, key, reader), **default}


def _type(table: str, key: str, reader: Reader) -> Schema:
    if (table, key) in _BY_KEY:
        return _BY_KEY[table, key]
    if isinstance(reader, values.WordReader | values.ChoiceReader):
        return {"enum": list(reader.names)}
    if isinstance(reader, values.WholeNumberReader):
        return _whole(reader)
    if isinstance(reader, values.NumberReader):
        return {"type": "number", "minimum": reader.low, "maximum": reader.high}
    return _BY_READER.get(reader, {})


def _object(table: str, keys: Mapping[str, Reader]) -> Schema:
    properties = {key: _value(table, key, reader) for key, reader in sorted(keys.items())}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _definitions() -> dict[str, Schema]:
    return {name: _object(name, keys) for name, keys in sorted(TABLES.items()) if name != "top"}


def job_file_schema() -> Schema:
    whole = _object("top", TABLES["top"])
    return {"$schema": _DIALECT, "title": "chronex.toml", **whole, "definitions": _definitions()}


def trigger_schema() -> Schema:
    """One definition or a list of them; further keys are allowed."""
    one = {**_object("trigger", TRIGGER), "required": ["id", "expression"], "additionalProperties": True}
    definitions = {**_definitions(), "trigger": one}
    either = [_table("trigger"), {"type": "array", "items": _table("trigger")}]
    return {"$schema": _DIALECT, "title": "Chronex trigger definition", "anyOf": either, "definitions": definitions}


def files() -> dict[Path, str]:
    """Every schema as it stands in its file."""
    made = {"job-file.schema.json": job_file_schema(), "trigger.schema.json": trigger_schema()}
    return {SCHEMAS / name: json.dumps(schema, indent=1) + "\n" for name, schema in made.items()}


if __name__ == "__main__":
    SCHEMAS.mkdir(exist_ok=True)
    for path, text in files().items():
        path.write_text(text, "utf-8")
