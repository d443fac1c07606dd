"""What the reader's threads hand to the screen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

from chronex_tui.model.clockday import ClockDay
from chronex_tui.model.crowd import Crowd
from chronex_tui.model.density import Density
from chronex_tui.model.logs import Output
from chronex_tui.model.snapshot import Detail, Firing
from chronex_tui.model.timeline import Lane

if TYPE_CHECKING:
    from chronex.views.why.answer import Answer


class Arrived(Message):
    """A value from a thread: a snapshot, a history, or one of those below."""

    def __init__(self, value: object) -> None:
        super().__init__()
        self.value = value


@dataclass(frozen=True, slots=True)
class JobRead:
    name: str
    detail: Detail | None


@dataclass(frozen=True, slots=True)
class RunRead:
    firing: Firing | None


@dataclass(frozen=True, slots=True)
class LogRead:
    """The newest lines of an attempt's output."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WhyRead:
    """The chain of causes of one or two instants of a job."""

    job: str
    answers: tuple[Answer, ...]


@dataclass(frozen=True, slots=True)
class OutputRead:
    """What an attempt has written, for the screen that shows nothing else."""

    output: Output


@dataclass(frozen=True, slots=True)
class LanesDrawn:
    lanes: tuple[Lane, ...]


@dataclass(frozen=True, slots=True)
class ClockDrawn:
    days: tuple[ClockDay, ...]
    calm: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DensityDrawn:
    density: Density


@dataclass(frozen=True, slots=True)
class CrowdFound:
    """The busiest minute of the coming week, if any two jobs start together."""

    crowd: Crowd | None


@dataclass(frozen=True, slots=True)
class Done:
    """An action was carried out, or refused with a reason."""

    text: str
    is_refused: bool = False
    jobs: tuple[str, ...] = ()
