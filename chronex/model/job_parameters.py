"""The parameters of a job: what a trigger may give it, of which type, and what a run gets where nothing was given."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from chronex.text.suggestions import nearest

_MOST_DIGITS = 18
_WHOLE = re.compile(r"[+-]?([0-9]+)", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


class ParameterType(StrEnum):
    """What the text of a value must be."""

    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    CHOICE = "choice"


class Parameter(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """One parameter. Values are texts, as a command finds them in its environment."""

    type: ParameterType = ParameterType.STRING
    # What a run gets that nobody gave a value; None leaves the variable away.
    default: str | None = None
    # The values that a choice may have.
    choices: tuple[str, ...] = ()
    # Who triggers the job must name a value; a run of the schedule gets the default.
    required: bool = False
    # One line for people.
    description: str = ""


def problem_with(parameter: Parameter, value: str) -> str:
    """What is wrong with the value, as the end of a sentence ("is not a whole number"); empty where it is right."""
    match parameter.type:
        case ParameterType.INTEGER:
            whole = _WHOLE.fullmatch(value)
            if whole is None:
                return "is not a whole number"
            return f"has more than {_MOST_DIGITS} digits" if len(whole[1]) > _MOST_DIGITS else ""
        case ParameterType.NUMBER if not _is_number(value):
            return "is not a number"
        case ParameterType.BOOLEAN if value.lower() not in (*_TRUE, *_FALSE):
            return "is neither true nor false"
        case ParameterType.CHOICE if value not in parameter.choices:
            meant = nearest(value, parameter.choices)
            known = ", ".join(parameter.choices)
            return f"is none of {known}" + (f"; did you mean {meant}?" if meant else "")
    return ""


def _is_number(value: str) -> bool:
    return _NUMBER.fullmatch(value) is not None and math.isfinite(float(value))


def normal_text(parameter: Parameter, value: str) -> str:
    """The one way in which a value is written: of true, yes, on and 1 commands see `true`."""
    if parameter.type is ParameterType.BOOLEAN:
        return "true" if value.lower() in _TRUE else "false"
    return value


def defaults_of(parameters: Mapping[str, Parameter]) -> dict[str, str]:
    """What an occurrence gets for which nobody gave anything."""
    return {name: one.default for name, one in parameters.items() if one.default is not None}
