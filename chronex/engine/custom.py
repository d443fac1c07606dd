"""Schedules that a program brings itself. They are registered by name in the process that plans with them; a job
refers to one by its name (dialect `custom`), so the store holds no code.

Such a schedule is called inside the transaction that plans, so it is not trusted: what it raises, and an answer that
would make the planner go round for ever, become a CustomScheduleError of its own job and trouble no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

from chronex.errors import ChronexError, CustomScheduleError
from chronex.model.ids import check_name

T = TypeVar("T")
CUSTOM = "custom"
# After a fault the job is looked at again: whatever was wrong with its schedule may be over.
FAULTY_SCHEDULE_PAUSE_MS = 60_000


class Schedule(Protocol):
    """Nominal instants in epoch milliseconds. The answers must not change: the same question, the same instant."""

    def next(self, after_ms: int) -> int | None:
        """The first one later than `after_ms`."""
        ...

    def previous(self, before_ms: int) -> int | None:
        """The last one earlier than `before_ms`; None also where that is not known."""
        ...

    def between(self, after_ms: int, until_ms: int) -> Iterator[int]:
        """Those in (after, until], in order."""
        ...


class _Checked:
    """A registered schedule, held to what the protocol promises."""

    def __init__(self, name: str, schedule: Schedule) -> None:
        self.name, self.schedule = name, schedule

    def next(self, after_ms: int) -> int | None:
        found = self._asked(lambda: self.schedule.next(after_ms))
        if found is not None and found <= after_ms:
            raise self._fault(f"next({after_ms}) gave {found}, which is not later")
        return found

    def previous(self, before_ms: int) -> int | None:
        found = self._asked(lambda: self.schedule.previous(before_ms))
        if found is not None and found >= before_ms:
            raise self._fault(f"previous({before_ms}) gave {found}, which is not earlier")
        return found

    def between(self, after_ms: int, until_ms: int) -> Iterator[int]:
        rest = self._guarded(lambda: iter(self.schedule.between(after_ms, until_ms)))
        last = after_ms
        while (found := self._asked(lambda: next(rest, None))) is not None:
            if not last < found <= until_ms:
                raise self._fault(f"between({after_ms}, {until_ms}) gave {found} after {last}")
            yield found
            last = found

    def _asked(self, question: Callable[[], object]) -> int | None:
        found = self._guarded(question)
        if found is not None and type(found) is not int:
            raise self._fault(f"it gave {type(found).__name__} where an instant is a whole number of milliseconds")
        return found

    def _guarded(self, question: Callable[[], T]) -> T:
        try:
            return question()
        except Exception as problem:
            raise self._fault(f"it raised {type(problem).__name__}: {problem}") from problem

    def _fault(self, what: str) -> CustomScheduleError:
        return CustomScheduleError(f"the schedule {self.name!r} does not keep its promises: {what}"[:500])


class _Unknown:
    """Stands for a schedule of another program: this one cannot say when it fires."""

    def next(self, after_ms: int) -> int | None:
        return None

    def previous(self, before_ms: int) -> int | None:
        return None

    def between(self, after_ms: int, until_ms: int) -> Iterator[int]:
        return iter(())


_registered: dict[str, _Checked] = {}
_UNKNOWN = _Unknown()


def register_schedule(name: str, schedule: Schedule) -> None:
    """Let jobs of this process refer to `schedule` by `name`. One name means one schedule."""
    check_name(name, "schedule")
    known = _registered.get(name)
    if known is not None and known.schedule is not schedule:
        raise ChronexError(f"another schedule is registered as {name!r}; choose another name")
    _registered[name] = _Checked(name, schedule)


def forget_schedule(name: str) -> None:
    _registered.pop(name, None)


def is_known(dialect: str, schedule: str) -> bool:
    """Can this process say when a job with this schedule fires?"""
    return dialect != CUSTOM or schedule in _registered


def custom_schedule(name: str) -> Schedule:
    return _registered.get(name, _UNKNOWN)
