"""What the commands that only look share: the open store, the zone of their times, and texts that fit."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from chronex.cli.arguments import UsageError, read_instant
from chronex.cli.places import store_path
from chronex.cli.terminal import inert, out, wants_unicode, width
from chronex.cli.times import shown_zone
from chronex.clock import wall_ms
from chronex.storage.records import Reading
from chronex.text.durations import parse_duration
from chronex_store import LmdbStore

T = TypeVar("T")
DEFAULT_WIDTH = 80


@contextmanager
def opened_store(option: str | None) -> Iterator[LmdbStore]:
    """A store that must be there; looking never makes one."""
    with LmdbStore.open(store_path(option, os.environ), create=False) as store:
        yield store


def looked_at(option: str | None, fn: Callable[[Reading], T]) -> T:
    with opened_store(option) as store:
        return store.view(lambda tx: fn(Reading(tx)))


def print_json(value: Any) -> None:
    out(json.dumps(value, indent=2))


def columns() -> int:
    return max(40, shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns)


def cut(text: str, room: int | None) -> str:
    """The text in at most `room` columns; what is cut off leaves a mark."""
    text = inert(text)
    if room is None or width(text) <= room:
        return text
    mark = "…" if wants_unicode() else "~"
    while text and width(text) > room - 1:
        text = text[:-1]
    return text + mark


def padded(text: str, room: int) -> str:
    return text + " " * max(0, room - width(text))


def since_ms(text: str | None) -> int | None:
    """`2h` is that long ago; otherwise an ISO 8601 time in the host's zone."""
    if text is None:
        return None
    span = parse_duration(text)
    if span is not None:
        return wall_ms() - span
    try:
        return read_instant(text, shown_zone(), "--since")
    except UsageError as error:
        raise UsageError(f"{error}, or how long ago: 90m, 2d") from None
