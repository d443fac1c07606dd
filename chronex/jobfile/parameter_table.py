"""The `[jobs.NAME.parameters]` table: what a trigger may give a job, of which type, and what it gets otherwise."""

from __future__ import annotations

import re
from typing import Any

from msgspec.structs import replace

from chronex.jobfile import values
from chronex.jobfile.entries import Entry, Reader, RefusedError, read_each, read_table
from chronex.jobfile.graph_tables import plain_value, refuse_one_variable
from chronex.jobfile.values import refuse_duplicates
from chronex.model.job_parameters import Parameter, ParameterType, normal_text, problem_with
from chronex.text.terminal import quoted

MOST_PARAMETERS = 100
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", re.ASCII)


def _choices(entry: Entry) -> tuple[str, ...]:
    if not entry.expect_list(entry.assignment('["full", "daily"]')):
        entry.refuse(f"{entry.label} is empty", 'write for example ["full", "daily"]', "J013")
    found: list[str] = read_each(entry, plain_value)
    refuse_duplicates(entry, found)
    return tuple(found)


def _default(entry: Entry) -> str:
    return "" if entry.value == "" else plain_value(entry)


PARAMETER: dict[str, Reader] = {
    "type": values.choice_of(ParameterType),
    "default": _default,
    "choices": _choices,
    "required": values.yes_or_no,
    "description": values.text,
}


def parameters(entry: Entry) -> dict[str, Parameter]:
    """By name; every one with a mistake is reported before the table is refused."""
    table = entry.expect_table('[jobs.NAME.parameters] and below it level = { type = "integer", default = 1 }')
    if len(table) > MOST_PARAMETERS:
        entry.refuse(f"{len(table)} parameters are too many", f"at most {MOST_PARAMETERS}", "J014")
    refuse_one_variable(entry, "CHRONEX_PARAM_")
    found: dict[str, Parameter] = {}
    refused = False
    for name in table:
        try:
            found[name] = _parameter(entry.child(name), name)
        except RefusedError:
            refused = True
    if refused:
        raise RefusedError
    return found


def _parameter(entry: Entry, name: str) -> Parameter:
    if not _NAME.fullmatch(name):
        hint = "use letters, digits, _ and -, and begin with a letter"
        entry.refuse(f"{quoted(name)} cannot name a parameter", hint, "J017", entry.key_span)
    own: dict[str, Any] = read_table(entry, PARAMETER, entry.assignment('{ type = "string", default = "…" }'))
    if len(own) < len(entry.expect_table()):
        raise RefusedError  # a key of it is reported already
    if "type" not in own and "choices" in own:
        own["type"] = ParameterType.CHOICE
    parameter = Parameter(**own)
    _check_choices(entry, parameter)
    _check_default(entry, parameter)
    return parameter if parameter.default is None else _normal(parameter, parameter.default)


def _normal(parameter: Parameter, default: str) -> Parameter:
    return replace(parameter, default=normal_text(parameter, default))


def _check_choices(entry: Entry, parameter: Parameter) -> None:
    is_choice = parameter.type is ParameterType.CHOICE
    if is_choice and not parameter.choices:
        entry.refuse(f"{entry.label} is a choice without choices", 'add choices = ["full", "daily"]', "J012")
    if parameter.choices and not is_choice:
        place = entry.child("choices")
        hint = 'write type = "choice", or remove it'
        place.refuse(f"choices do not go with the type {parameter.type.value}", hint, "J024", place.key_span)


def _check_default(entry: Entry, parameter: Parameter) -> None:
    if parameter.default is None and parameter.required:
        place = entry.child("required")
        message = f"{entry.label} has no default, and nobody gives a run of the schedule a value"
        place.refuse(message, "add a default for those runs", "J024", place.key_span)
    if parameter.default is not None and (problem := problem_with(parameter, parameter.default)):
        place = entry.child("default")
        place.refuse(f"default: {quoted(parameter.default)} {problem}", "write another one", "J013")
