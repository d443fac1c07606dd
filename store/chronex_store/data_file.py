"""The file data.mdb read as bytes, before LMDB maps it: its first two pages, and every page of the B-tree.

LMDB trusts its pages. A file that is shorter than its first pages say can kill the process with SIGBUS, a damaged
page aborts it, and a file whose making was cut off by a power failure is refused for ever, though it is empty.
Reading bytes cannot crash. It is only for a file that this process does not have open: closing it again drops LMDB's
locks.
"""

from __future__ import annotations

import os
from enum import Enum
from pathlib import Path
from struct import Struct

from lmdb import verify

from chronex.errors import StoreDamagedError

PAGE = 4096
MAGIC = 0xBEEFC0DE
# Page header of 16 bytes; magic, version, address, map size; two trees of 48 bytes; last page, transaction.
# The first tree's first field holds the page size.
_META = Struct("=16xII8xQI44x48xQQ")
# How often the pages are read again when a commit changed the file meanwhile.
_MAX_READS = 3


class DataFileState(Enum):
    """What the first two pages say of the file."""

    MISSING = "missing"
    UNCOMMITTED = "uncommitted"  # made, but nothing was ever committed to it
    WHOLE = "whole"
    SHORT = "short"  # pages that its newest commit allocated are missing
    FOREIGN = "foreign"


class DataFileBusyError(Exception):
    """The file changed each time that its pages were read."""


def data_file_state(data: Path) -> DataFileState:
    try:
        with data.open("rb") as file:
            first = file.read(2 * PAGE)
            size = os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        return DataFileState.MISSING
    pages = first[:PAGE], first[PAGE:]
    metas = [_parse(page) for page in pages]
    if all(meta is None and any(page) for meta, page in zip(metas, pages, strict=True)):
        return DataFileState.FOREIGN
    if all(not any(page) or (meta and meta[2] == 0) for meta, page in zip(metas, pages, strict=True)):
        return DataFileState.UNCOMMITTED
    newest = max((meta for meta in metas if meta), key=lambda meta: meta[2], default=None)
    if newest is None or any(meta is None for meta in metas):
        return DataFileState.FOREIGN
    page_size, last_page, _ = newest
    return DataFileState.WHOLE if size >= (last_page + 1) * page_size else DataFileState.SHORT


def _parse(page: bytes) -> tuple[int, int, int] | None:
    """Page size, last page and transaction number of a meta page."""
    if len(page) < _META.size:
        return None
    magic, version, _, page_size, last_page, transaction = _META.unpack_from(page)
    if magic != MAGIC or version & 0xFFFF != 1 or not page_size:
        return None
    return page_size, last_page, transaction


def damaged_pages(data: Path) -> list[str]:
    """What is wrong with the pages of `data`; DataFileBusyError when it is written faster than it can be read."""
    for _ in range(_MAX_READS):
        before = _meta_pages(data)
        try:
            problems: list[str] = verify.verify(str(data))  # type: ignore[no-untyped-call]
        except verify.VerifyError as error:
            problems = [str(error)]
        if not problems or _meta_pages(data) == before:
            return problems
    raise DataFileBusyError


def refuse_damaged_pages(data: Path) -> None:
    """Raise StoreDamagedError for damaged pages, on most of which LMDB would abort the process."""
    try:
        problems = damaged_pages(data)
    except DataFileBusyError:
        return  # another process commits to it, so LMDB can read it
    if problems:
        raise StoreDamagedError(f"{data} is damaged ({problems[0]}); run `chronex restore` with your last backup")


def _meta_pages(data: Path) -> bytes:
    """The two meta pages: when they are equal before and after, no process committed meanwhile."""
    with data.open("rb") as file:
        return file.read(2 * PAGE)
