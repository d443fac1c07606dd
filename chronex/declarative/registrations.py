"""The registrations given to `initialize`, all checked before anything is done: name, cron, callback, retry delay."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from chronex.declarative.cron import check_cron
from chronex.declarative.scheduler_errors import (
    CronExpressionInvalidError,
    InvalidCronExpressionError,
    InvalidRegistrationError,
    NegativeRetryDelayError,
    RegistrationShapeError,
    RegistrationsNotArrayError,
    ScheduleDuplicateTaskError,
)

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
