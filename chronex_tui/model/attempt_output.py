"""The output of an attempt, read a piece at a time while it grows, and searched."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from chronex.errors import LogDirectoryError
from chronex.model.occurrence import Attempt
from chronex.model.reasons import shown_text
from chronex.model.states import AttemptState, is_final
from chronex.storage.records import Reading
from chronex.text.terminal import cell_safe, cell_width
from chronex_tui.model.display import word
from chronex_tui.model.snapshot import Firing

if TYPE_CHECKING:
    from chronex.run.attempt_log import LogReader


_TAIL_BYTES = 64 * 1024
_TAIL_LINES = 60


@dataclass(frozen=True, slots=True)
class AttemptOutput:
    """What an attempt has written so far. `offset` is how far the file was read; -1 where it must be read whole."""

    attempt: Attempt
    lines: tuple[str, ...]
    offset: int
    is_over: bool
    problem: str = ""


def _reader(store_path: Path) -> LogReader:
    from chronex.run.attempt_log import LogReader  # loaded with the first output that is read

    return LogReader(store_path / "logs")


def _limit(attempt: Attempt) -> int:
    from chronex.run.attempt_log import DEFAULT_LIMIT

    return attempt.log_limit or DEFAULT_LIMIT


def read_output(reading: Reading, store_path: Path, attempt: Attempt, before: AttemptOutput | None) -> AttemptOutput:
    """Everything, or what came since `before`. A log that outgrew its limit is a ring, and is read whole."""
    now = reading.attempt(attempt.job, attempt.nominal_ms, attempt.task, attempt.number) or attempt
    is_over = now.state is not AttemptState.RUNNING
    if before is not None and before.is_over:
        return before
    reader = _reader(store_path)
    try:
        limit = _limit(now)
        if before is None or is_over or before.offset < 0:
            data = reader.whole(now.log_path, limit, is_over=is_over)
            return AttemptOutput(now, lines_of(data), len(data) if len(data) < limit else -1, is_over)
        data = reader.beyond(now.log_path, before.offset)
        if before.offset + len(data) >= limit:
            whole = reader.whole(now.log_path, limit, is_over=is_over)
            return AttemptOutput(now, lines_of(whole), -1, is_over)
        # The last line may not be complete yet; it is read again with the next call.
        kept = data[: data.rfind(b"\n") + 1] if before.lines else data
        if not kept:
            return before
        return AttemptOutput(now, (*before.lines, *lines_of(kept)), before.offset + len(kept), is_over)
    except (LogDirectoryError, OSError) as problem:
        return AttemptOutput(now, (), -1, is_over, str(problem))
    finally:
        reader.close()


def read_tail(store_path: Path, attempt: Attempt) -> tuple[str, ...]:
    """The last lines, for a small panel."""
    reader = _reader(store_path)
    try:
        if attempt.state is not AttemptState.RUNNING:
            data = reader.beyond(attempt.log_path, max(0, attempt.log_bytes - _TAIL_BYTES))
        else:
            data = reader.whole(attempt.log_path, _limit(attempt), is_over=False)
        return lines_of(data[-_TAIL_BYTES:])[-_TAIL_LINES:]
    except (LogDirectoryError, OSError) as problem:
        return (str(problem),)
    finally:
        reader.close()


def no_output(firing: Firing | None) -> str:
    """Why a run without any attempt has written nothing."""
    if firing is None:
        return "this job has not run yet, so there is no output"
    state, reason = firing.occurrence.state, shown_text(firing.occurrence.reason)
    because = f" ({reason})" if reason else ""
    if is_final(state):
        return f"this run was {word(state)}{because}: nothing was started, so there is no output"
    return f"this run has not started yet{because}, so there is no output"


def lines_of(data: bytes) -> tuple[str, ...]:
    """Lines as text, not yet made safe for the terminal: only visible lines are."""
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    return tuple(text.removesuffix("\n").split("\n")) if text else ()


def wrapped(lines: tuple[str, ...], cells: int) -> list[tuple[int, str]]:
    """Every line broken at the width, as pairs of the number of the line and a piece of it."""
    pieces: list[tuple[int, str]] = []
    for number, line in enumerate(lines):
        text = cell_safe(line)
        if cell_width(text) <= cells:
            pieces.append((number, text))
            continue
        while text:
            taken, used = 0, 0
            for char in text:
                used += cell_width(char)
                if used > cells:
                    break
                taken += 1
            pieces.append((number, text[: max(taken, 1)]))
            text = text[max(taken, 1) :]
    return pieces


def find(lines: tuple[str, ...], text: str, start: int, step: int) -> int | None:
    """The nearest line with the text, from `start` on in the direction of `step`, and on from the other end."""
    if not text or not lines:
        return None
    needle = text.lower()
    for distance in range(len(lines)):
        number = (start + step * distance) % len(lines)
        if needle in lines[number].lower():
            return number
    return None
