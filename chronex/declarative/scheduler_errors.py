"""Every error of the declarative scheduler, with the names, messages and details that its specification fixes.

    SchedulerError
    ├── RegistrationError                    before anything is scheduled
    │   ├── RegistrationsNotArrayError
    │   ├── RegistrationShapeError
    │   ├── InvalidRegistrationError
    │   ├── ScheduleDuplicateTaskError
    │   ├── CronExpressionInvalidError
    │   └── NegativeRetryDelayError
    ├── ScheduleTaskError                    initialize() failed, and everything is as before
    ├── StopSchedulerError                   stop() failed
    ├── InvalidCronExpressionError           the reading of an expression
    ├── FieldParseError                      the reading of one field
    ├── CronCalculationError                 a valid expression whose next instant cannot be found
    ├── TaskTryDeserializeError              the persisted state of a task
    │   ├── TaskMissingFieldError
    │   ├── TaskInvalidTypeError
    │   ├── TaskInvalidValueError
    │   └── TaskInvalidStructureError
    └── TaskListMismatchError                the persisted tasks are not the registered ones

`details` has the keys of the specification, as they are spelled there; `details["cause"]` is also the `__cause__`.
They hold values as they are; in messages control characters are escaped, because a message may end in a terminal.
"""

from __future__ import annotations

from typing import Any

from chronex.errors import ChronexError
from chronex.text.terminal import escaped, quoted


class SchedulerError(ChronexError):
    """The scheduler could not do what was asked."""

    def __init__(self, message: str | None = None, /, **details: Any) -> None:
        super().__init__(message)
        self.details = details

    @property
    def name(self) -> str:
        return type(self).__name__


# -- registrations ------------------------------------------------------------------------------------------


class RegistrationError(SchedulerError, ValueError):
    """The registrations are not valid; nothing was scheduled."""


class RegistrationsNotArrayError(RegistrationError):
    """Registrations must be an array"""


class RegistrationShapeError(RegistrationError):
    """Invalid registration shape: expected [string, string, function, Duration]"""

    def __init__(self, index: int, received: Any) -> None:
        super().__init__(None, registrationIndex=index, received=received)


class InvalidRegistrationError(RegistrationError):
    """The registration is not valid."""

    def __init__(self, field: str, value: Any, reason: str) -> None:
        super().__init__(f"Invalid registration: {field} {reason}", field=field, value=value, reason=reason)


class ScheduleDuplicateTaskError(RegistrationError):
    """The task is already scheduled."""

    def __init__(self, task: str) -> None:
        super().__init__(f'Task with name "{escaped(task)}" is already scheduled', taskName=task)


class CronExpressionInvalidError(RegistrationError):
    """The cron expression is not valid."""

    def __init__(self, expression: str, field: str, reason: str) -> None:
        message = f'Invalid cron expression "{escaped(expression)}": {field} field {reason}'
        super().__init__(message, expression=expression, field=field, reason=reason)


class NegativeRetryDelayError(RegistrationError):
    """Retry delay must be non-negative"""

    def __init__(self, delay_ms: int | float) -> None:
        super().__init__(None, retryDelayMs=delay_ms)


# -- lifecycle ----------------------------------------------------------------------------------------------


class ScheduleTaskError(SchedulerError):
    """A task could not be scheduled; everything is as it was before."""

    def __init__(self, task: str, expression: str, cause: BaseException) -> None:
        message = f"Failed to schedule task '{escaped(task)}': {cause}"
        super().__init__(message, name=task, cronExpression=expression, cause=cause)


class StopSchedulerError(SchedulerError):
    """The scheduler could not be stopped in good order."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(f"Failed to stop scheduler: {cause}", cause=cause)


# -- cron ---------------------------------------------------------------------------------------------------


class FieldParseError(SchedulerError, ValueError):
    """A field of a cron expression cannot be read."""

    def __init__(self, message: str, value: str, field: str) -> None:
        super().__init__(message, fieldValue=value, fieldName=field)


class InvalidCronExpressionError(SchedulerError, ValueError):
    """A cron expression cannot be read."""

    def __init__(self, expression: str, field: str, reason: str) -> None:
        message = f'Invalid cron expression "{escaped(expression)}": {field} field {reason}'
        super().__init__(message, expression=expression, field=field, reason=reason)


class CronCalculationError(SchedulerError):
    """The next occurrence cannot be calculated."""

    def __init__(self, expression: str, current_time: str, cause: BaseException) -> None:
        message = f"Failed to calculate next occurrence: {cause}"
        super().__init__(message, expression=expression, currentTime=current_time, cause=cause)


# -- persisted state ----------------------------------------------------------------------------------------


class TaskTryDeserializeError(SchedulerError, ValueError):
    """The persisted state of a task cannot be read."""

    def name_task(self, task: str) -> None:
        """Say of which task, behind the message that the specification fixes."""
        self.args = (f"{self} (task {quoted(task)})",)
        self.details["taskName"] = task


class TaskMissingFieldError(TaskTryDeserializeError):
    """A field is missing from the persisted state of a task."""

    def __init__(self, field: str) -> None:
        super().__init__(f"Missing required field: {field}", field=field)


class TaskInvalidTypeError(TaskTryDeserializeError):
    """A field of the persisted state of a task has the wrong type."""

    def __init__(self, field: str, value: Any, expected: str, actual: str) -> None:
        message = f"Invalid type for field '{field}': expected {expected}, got {actual}"
        super().__init__(message, field=field, value=value, expectedType=expected, actualType=actual)


class TaskInvalidValueError(TaskTryDeserializeError):
    """A field of the persisted state of a task has a value that cannot be."""

    def __init__(self, field: str, value: Any, reason: str) -> None:
        super().__init__(f"Invalid value for field '{field}': {reason}", field=field, value=value, reason=reason)


class TaskInvalidStructureError(TaskTryDeserializeError):
    """The persisted state of a task is not one of a task."""

    def __init__(self, message: str, value: Any) -> None:
        super().__init__(message, value=value)


class TaskListMismatchError(SchedulerError):
    """The persisted tasks are not the registered ones."""

    def __init__(self, expected: list[str], actual: list[str]) -> None:
        message = f"The persisted tasks {actual} are not the registered ones {expected}"
        super().__init__(message, expected=expected, actual=actual)
