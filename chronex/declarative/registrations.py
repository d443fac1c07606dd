"""The registrations given to `initialize`, all checked before anything is done: name, cron, callback, retry delay.

The cron expression is strict POSIX cron: `check_cron` has the nine rules of the specification, with their messages.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from chronex.declarative.scheduler_errors import (
    CronExpressionInvalidError,
    FieldParseError,
    InvalidCronExpressionError,
    InvalidRegistrationError,
    NegativeRetryDelayError,
    RegistrationShapeError,
    RegistrationsNotArrayError,
    ScheduleDuplicateTaskError,
)
from chronex.timing import validate

Callback = Callable[[], Awaitable[None]]
Registration = tuple[str, str, Callback, timedelta]
MAX_NAME = 1_000
MAX_CRON = 1_000


class TaskDefinition(NamedTuple):
    """A valid registration. Two are identical when name, cron text and delay are; the callback does not count."""

    name: str
    cron: str
    callback: Callback
    delay_ms: int


def check_registrations(registrations: Any) -> tuple[TaskDefinition, ...]:
    """The definitions; raises a RegistrationError for the first mistake in the registrations."""
    if not isinstance(registrations, list | tuple):
        raise RegistrationsNotArrayError
    for index, received in enumerate(registrations):
        _check_shape(index, received)
    definitions = tuple(_definition(received) for received in registrations)
    _refuse_duplicates(definitions)
    return definitions


def _check_shape(index: int, received: Any) -> None:
    if not isinstance(received, list | tuple) or len(received) != 4:
        raise RegistrationShapeError(index, received)
    name, cron, callback, delay = received
    are_texts = isinstance(name, str) and isinstance(cron, str)
    if not (are_texts and callable(callback) and isinstance(delay, timedelta)):
        raise RegistrationShapeError(index, received)


def _definition(received: Sequence[Any]) -> TaskDefinition:
    name, cron, callback, delay = received
    _check_name(name)
    _check_cron(cron)
    _check_callback(callback)
    if delay < timedelta(0):
        raise NegativeRetryDelayError(delay / timedelta(milliseconds=1))
    microseconds = (delay.days * 86_400 + delay.seconds) * 1_000_000 + delay.microseconds
    # Rounded up, so that no retry comes before its delay has passed.
    return TaskDefinition(name, cron, callback, -(-microseconds // 1000))


def _check_name(name: str) -> None:
    if not name:
        raise InvalidRegistrationError("name", name, "must not be empty")
    if len(name) > MAX_NAME:
        raise InvalidRegistrationError("name", name[:40], f"must not be longer than {MAX_NAME} characters")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InvalidRegistrationError("name", name, "must be text that can be written as UTF-8") from None


def _check_cron(cron: str) -> None:
    if len(cron) > MAX_CRON:
        shown = cron[:40] + "…"
        raise CronExpressionInvalidError(shown, "expression", f"must not be longer than {MAX_CRON} characters")
    try:
        check_cron(cron)
    except InvalidCronExpressionError as problem:
        details = problem.details
        raise CronExpressionInvalidError(cron, details["field"], details["reason"]) from problem


def _check_callback(callback: Any) -> None:
    if not _is_async(callback):
        raise InvalidRegistrationError("callback", callback, "must be an async function")
    try:
        inspect.signature(callback).bind()
    except TypeError:
        raise InvalidRegistrationError("callback", callback, "must be callable without arguments") from None
    except ValueError:
        return  # its signature cannot be read; a call without arguments may still work


def _is_async(callback: Any) -> bool:
    inner = callback
    while isinstance(inner, functools.partial):
        inner = inner.func
    inner = inspect.unwrap(inner)
    return inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(getattr(inner, "__call__", None))  # noqa: B004


def _refuse_duplicates(definitions: Sequence[TaskDefinition]) -> None:
    seen: set[str] = set()
    for definition in definitions:
        if definition.name in seen:
            raise ScheduleDuplicateTaskError(definition.name)
        seen.add(definition.name)


class Field(NamedTuple):
    name: str
    low: int
    high: int


FIELDS = (
    Field("minute", 0, 59),
    Field("hour", 0, 23),
    Field("day", 1, 31),
    Field("month", 1, 12),
    Field("weekday", 0, 6),
)
WHOLE = "expression"

_NUMBER = re.compile(r"[0-9]+", re.ASCII)
_RANGE = re.compile(r"([0-9]+)-([0-9]+)", re.ASCII)
# L, 5L, LW, 15W, L-3 and the like; names such as JUL and WED are words and not these.
_QUARTZ = re.compile(r"[?]|.*#.*|[0-9]*L(?:W|-[0-9]+W?)?|[0-9]+W", re.ASCII | re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z]{2,}(?:-[A-Za-z0-9]+)?|[0-9]+-[A-Za-z]{2,}", re.ASCII)
_OTHER_NUMBER = re.compile(
    r"[+-].*|0[xXoObB][0-9A-Fa-f]+|[0-9]+(?:\.[0-9]*)?[eE][+-]?[0-9]+|[0-9]*\.[0-9]+|[0-9]+-[+-][0-9]+", re.ASCII
)


def check_cron(text: str) -> None:
    """InvalidCronExpressionError with the field and the reason, where the text is not POSIX cron."""
    words = [word for word in re.split(r"[ \t]+", text) if word]
    if words and words[0].startswith("@"):
        raise InvalidCronExpressionError(text, WHOLE, "must not be a macro such as @daily; write the five fields")
    if len(words) != len(FIELDS):
        reason = f"must have exactly 5 parts separated by whitespace, not {len(words)}"
        raise InvalidCronExpressionError(text, WHOLE, reason)
    for field, word in zip(FIELDS, words, strict=True):
        try:
            _check_field(field, word)
        except FieldParseError as problem:
            raise InvalidCronExpressionError(text, field.name, str(problem)) from problem
    # The rules above are those of the specification; the timing library runs the expression. They must agree.
    assert validate(text, "posix").is_valid, text


def _check_field(field: Field, text: str) -> None:
    if text == "*":
        return
    if "/" in text:
        raise _refused(field, text, f"must not contain step syntax (/N), but has {_shown(text)}")
    for element in text.split(","):
        _check_element(field, element, text)


def _check_element(field: Field, element: str, text: str) -> None:
    if _NUMBER.fullmatch(element):
        _check_value(field, element, text)
        return
    bounds = _RANGE.fullmatch(element)
    if bounds is None:
        raise _refused(field, text, _why_not(element))
    for word in bounds.groups():
        _check_value(field, word, text)
    if int(bounds[1]) > int(bounds[2]):
        raise _refused(field, text, f"must not contain the wrap-around range {element}; its start is after its end")


def _check_value(field: Field, word: str, text: str) -> None:
    # A number with thousands of digits is out of range whatever it is, and Python would not convert it.
    value = int(word) if len(word) <= 9 else field.high + 1
    if field.name == "weekday" and value == 7:
        raise _refused(field, text, "must not contain 7; use 0 for Sunday")
    if not field.low <= value <= field.high:
        raise _refused(field, text, f"value {_shown(word)} is out of range {field.low}-{field.high}")


def _why_not(element: str) -> str:
    if element == "":
        return "has an empty element in its list"
    if _QUARTZ.fullmatch(element):
        return f"must not contain the Quartz token {_shown(element)}; only numbers, ranges and lists are POSIX"
    if _OTHER_NUMBER.fullmatch(element):
        return f"must contain plain decimal numbers only, not {_shown(element)}"
    if _WORD.fullmatch(element):
        return f"must not contain the named value {_shown(element)}; write its number"
    return f"must be *, or numbers and ranges separated by commas, not {_shown(element)}"


def _refused(field: Field, text: str, reason: str) -> FieldParseError:
    return FieldParseError(reason, text, field.name)


def _shown(text: str) -> str:
    """Shortened, and without control characters, which could steer a terminal."""
    short = text if len(text) <= 40 else text[:40] + "…"
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in short)
