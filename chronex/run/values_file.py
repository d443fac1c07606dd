"""What a command hands over to those that need it: `NAME=value` lines in the file that CHRONEX_OUTPUT names.

Whoever holds the command reads the file when it has ended, so a scheduler that died meanwhile is not missed. Values
are kept with the attempt, without secrets, and within bounds: they become the environment of other commands.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from chronex.errors import LogDirectoryError
from chronex.model.policies import ProcessSettings
from chronex.run.accounts import user_id
from chronex.run.attempt_log import LogDirectory, Redactor

OUTPUT_VARIABLE = "CHRONEX_OUTPUT"
MOST_VALUES = 64
MOST_BYTES = 16 * 1024
_MOST_READ = 64 * 1024
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}", re.ASCII)
_MOST_LINES_SHOWN = 3


class HandedValues(NamedTuple):
    """By name; `problem` is what was wrong with the rest, in one sentence."""

    values: dict[str, str]
    problem: str = ""


NOTHING_HANDED = HandedValues({})


class ValuesFile:
    """The file of one attempt. One of the scheduler's own user lies beside the logs, and is made by the command.

    Another user cannot reach that directory, and is given an empty file of its own, which stays open here.
    """

    def __init__(self, logs: LogDirectory, attempt_id: str, settings: ProcessSettings | None = None) -> None:
        self._logs = logs
        self._name = f"{attempt_id}.values"
        self._descriptor = -1
        self._is_gone = False
        self.path = logs.path_of(self._name)
        uid = None if settings is None or settings.user is None else user_id(settings.user)
        if uid is not None and uid != os.geteuid():
            self._make_for(uid)

    def _make_for(self, uid: int) -> None:
        """Without the file, where none can be made, the command finds no such variable, and says so if it minds."""
        self.path = ""
        with contextlib.suppress(OSError):
            self._descriptor, self.path = tempfile.mkstemp(prefix="chronex-values-")
            os.fchown(self._descriptor, uid, -1)

    def take(self, secrets: Iterable[bytes] = ()) -> HandedValues:
        """What the command left in it; the file is removed."""
        try:
            written = self._read()
        except LogDirectoryError:  # a link, a directory, or a pipe
            return HandedValues({}, f"{OUTPUT_VARIABLE} names no plain file any more: nothing is handed over")
        finally:
            self.remove()
        if not written:
            return NOTHING_HANDED
        if len(written) > _MOST_READ:
            return HandedValues({}, f"more than {_MOST_READ} bytes were written to {OUTPUT_VARIABLE}: none is kept")
        redactor = Redactor(secrets)
        return values_in(redactor.feed(written) + redactor.finish())

    def _read(self) -> bytes:
        if self._descriptor >= 0:
            return os.pread(self._descriptor, _MOST_READ + 1, 0)
        descriptor = self._logs.open_if_there(self._name)
        if descriptor is None:  # mostly nothing is handed over
            self._is_gone = True
            return b""
        try:
            return os.read(descriptor, _MOST_READ + 1)
        finally:
            os.close(descriptor)

    def remove(self) -> None:
        """Idempotent; a link is removed, never what it points to."""
        if self._is_gone:
            return
        self._is_gone = True
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            with contextlib.suppress(OSError):
                os.unlink(self.path)
        else:
            with contextlib.suppress(OSError, LogDirectoryError):
                self._logs.remove(self._name)


def values_in(written: bytes) -> HandedValues:
    """The lines of a file; of a name that stands there twice the last one counts."""
    try:
        text = written.decode()
    except UnicodeDecodeError:
        return HandedValues({}, f"what was written to {OUTPUT_VARIABLE} is not UTF-8: none of it is kept")
    found: dict[str, str] = {}
    bad: list[int] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, joint, value = line.rstrip("\r").partition("=")
        if not joint or not _NAME.fullmatch(name) or "\0" in value:
            bad.append(number)
        else:
            found[name] = value
    return _bounded(found, f"{_lines(bad)} not NAME=value" if bad else "")


def _lines(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:_MOST_LINES_SHOWN]))
    if len(numbers) == 1:
        return f"line {shown} of {OUTPUT_VARIABLE} is"
    more = "" if len(numbers) <= _MOST_LINES_SHOWN else f" and {len(numbers) - _MOST_LINES_SHOWN} more"
    return f"lines {shown}{more} of {OUTPUT_VARIABLE} are"


def values_returned(returned: Any) -> HandedValues:
    """What a function hands over: the dict that it returned. Anything else that it returns means nothing."""
    if not isinstance(returned, Mapping):
        return NOTHING_HANDED
    found: dict[str, str] = {}
    bad: list[str] = []
    for name, value in returned.items():
        is_named = isinstance(name, str) and _NAME.fullmatch(name) is not None
        text = _text(value)
        if is_named and text is not None and "\0" not in text:
            found[name] = text
        else:
            bad.append(repr(name)[:40])
    problem = f"{', '.join(bad[:_MOST_LINES_SHOWN])} cannot be handed over: names are words, values texts or numbers"
    return _bounded(found, problem if bad else "")


def _text(value: object) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else None


def _bounded(found: dict[str, str], problem: str) -> HandedValues:
    size = sum(len(name) + len(value.encode("utf-8", "surrogateescape")) for name, value in found.items())
    if len(found) > MOST_VALUES:
        return HandedValues({}, f"{len(found)} values are too many: at most {MOST_VALUES}, and none is kept")
    if size > MOST_BYTES:
        return HandedValues({}, f"the values have {size} bytes: at most {MOST_BYTES}, and none is kept")
    return HandedValues(found, problem)
