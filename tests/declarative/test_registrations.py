"""What `initialize` refuses, with which error, message and details; all of it before anything is scheduled."""

from __future__ import annotations

import functools
from datetime import timedelta
from typing import Any
from unittest.mock import AsyncMock

import pytest

import chronex
from chronex.declarative import SchedulerError, SchedulerState
from chronex.declarative.registrations import check_registrations
from chronex.declarative.scheduler_errors import (
    InvalidRegistrationError,
    NegativeRetryDelayError,
    RegistrationError,
    RegistrationShapeError,
    RegistrationsNotArrayError,
    ScheduleDuplicateTaskError,
)
from chronex.errors import ChronexError
from tests.declarative.host import SimulatedHost

DELAY = timedelta(minutes=5)


async def callback() -> None:
    return


def good(name: str = "a") -> tuple[Any, ...]:
    return name, "0 0 * * *", callback, DELAY


@pytest.mark.parametrize("registrations", [None, "a", {"a": 1}, 5, iter([good()]), {good()[0]}])
def test_registrations_that_are_no_array(registrations: Any) -> None:
    with pytest.raises(RegistrationsNotArrayError) as refused:
        check_registrations(registrations)
    assert str(refused.value) == "Registrations must be an array"
    assert refused.value.details == {}


@pytest.mark.parametrize(
    "received",
    [
        None, "abcd", {}, (), good()[:3], (*good(), 1), (5, "0 0 * * *", callback, DELAY), ("a", 5, callback, DELAY),
        ("a", "0 0 * * *", "callback", DELAY), ("a", "0 0 * * *", callback, 300), ("a", "0 0 * * *", callback, None),
    ],
)  # fmt: skip
def test_a_registration_of_the_wrong_shape(received: Any) -> None:
    with pytest.raises(RegistrationShapeError) as refused:
        check_registrations([good(), received])
    assert str(refused.value) == "Invalid registration shape: expected [string, string, function, Duration]"
    assert refused.value.details == {"registrationIndex": 1, "received": received}


def test_a_tuple_and_a_list_are_both_arrays() -> None:
    assert [one.name for one in check_registrations((good("a"), list(good("b"))))] == ["a", "b"]
    assert check_registrations([]) == ()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "must not be empty"),
        ("x" * 1001, "must not be longer than 1000 characters"),
        ("\ud800", "must be text that can be written as UTF-8"),
    ],
)
def test_a_task_name_must_be_a_usable_text(name: str, reason: str) -> None:
    with pytest.raises(InvalidRegistrationError) as refused:
        check_registrations([good(name)])
    assert str(refused.value) == f"Invalid registration: name {reason}"
    assert refused.value.details["field"] == "name"
    assert refused.value.details["reason"] == reason


def test_a_name_twice() -> None:
    with pytest.raises(ScheduleDuplicateTaskError) as refused:
        check_registrations([good("a"), good("b"), good("a")])
    assert str(refused.value) == 'Task with name "a" is already scheduled'
    assert refused.value.details == {"taskName": "a"}


class Callable:
    async def __call__(self) -> None:
        return

    async def method(self) -> None:
        return


@pytest.mark.parametrize(
    "function", [callback, Callable(), Callable().method, functools.partial(callback), AsyncMock()]
)
def test_async_functions_of_every_kind_are_callbacks(function: Any) -> None:
    assert check_registrations([("a", "0 0 * * *", function, DELAY)])[0].callback is function


async def with_argument(_value: int) -> None:
    return


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda: None, "must be an async function"),
        (print, "must be an async function"),
        (with_argument, "must be callable without arguments"),
    ],
)
def test_a_callback_must_be_an_async_function_without_arguments(function: Any, reason: str) -> None:
    with pytest.raises(InvalidRegistrationError) as refused:
        check_registrations([("a", "0 0 * * *", function, DELAY)])
    assert refused.value.details == {"field": "callback", "value": function, "reason": reason}


@pytest.mark.parametrize(
    ("delay", "milliseconds"),
    [(timedelta(0), 0), (timedelta(microseconds=1), 1), (timedelta(seconds=90), 90_000), (timedelta.max, None)],
)
def test_a_delay_that_is_not_negative(delay: timedelta, milliseconds: int | None) -> None:
    (found,) = check_registrations([("a", "0 0 * * *", callback, delay)])
    assert milliseconds is None or found.delay_ms == milliseconds


def test_a_negative_delay() -> None:
    with pytest.raises(NegativeRetryDelayError) as refused:
        check_registrations([("a", "0 0 * * *", callback, timedelta(milliseconds=-1))])
    assert str(refused.value) == "Retry delay must be non-negative"
    assert refused.value.details == {"retryDelayMs": -1}


BAD: list[Any] = [
    None,
    [()],
    [good(""), good()],
    [good(), good()],
    [("a", "@daily", callback, DELAY)],
    [("a", "0 0 * * *", callback, -DELAY)],
]


@pytest.mark.parametrize("registrations", BAD)
async def test_what_is_invalid_is_raised_at_the_call_and_nothing_has_happened(registrations: Any) -> None:
    host = SimulatedHost()
    scheduler = host.scheduler()
    with pytest.raises(RegistrationError):
        _ = scheduler.initialize(registrations)  # not even awaited
    assert scheduler.state is SchedulerState.UNINITIALIZED
    assert host.journal() == []
    assert host.received == []
    assert scheduler.identifier == ""


async def test_invalid_input_leaves_a_running_scheduler_as_it_is() -> None:
    host = SimulatedHost()
    scheduler = host.scheduler()
    await scheduler.initialize([host.task("a")])
    for registrations in BAD:
        with pytest.raises(RegistrationError):
            _ = scheduler.initialize(registrations)
    assert scheduler.state is SchedulerState.RUNNING
    assert list(scheduler.tasks) == ["a"]
    await host.at("10:10")
    await scheduler.stop()
    assert ("a", "10:10") in host.runs


def test_the_interface_is_two_methods() -> None:
    methods = [name for name in vars(chronex.Scheduler) if not name.startswith("_")]
    assert [name for name in methods if not isinstance(vars(chronex.Scheduler)[name], property)] == [
        "initialize",
        "stop",
    ]


def test_every_error_is_one_of_chronex_and_has_its_name_and_details() -> None:
    from chronex.declarative import scheduler_errors

    kinds = vars(scheduler_errors).values()
    found = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, SchedulerError)]
    assert {kind.__name__ for kind in found} == {
        "SchedulerError", "RegistrationError", "RegistrationsNotArrayError", "RegistrationShapeError",
        "InvalidRegistrationError", "ScheduleDuplicateTaskError", "CronExpressionInvalidError",
        "NegativeRetryDelayError", "ScheduleTaskError", "StopSchedulerError", "InvalidCronExpressionError",
        "FieldParseError", "CronCalculationError", "TaskTryDeserializeError", "TaskMissingFieldError",
        "TaskInvalidTypeError", "TaskInvalidValueError", "TaskInvalidStructureError", "TaskListMismatchError",
    }  # fmt: skip
    assert all(issubclass(kind, ChronexError) for kind in found)
    assert scheduler_errors.TaskMissingFieldError("x").name == "TaskMissingFieldError"
    assert issubclass(scheduler_errors.TaskMissingFieldError, scheduler_errors.TaskTryDeserializeError)
