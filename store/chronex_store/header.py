"""What the first two pages of data.mdb say, read as bytes before LMDB maps the file.

LMDB trusts them: a file that is shorter than they say can kill the process with SIGBUS, and one that power
failed on while it was made is refused for ever, though nothing was in it.
"""

from __future__ import annotations

import os
from enum import Enum
from pathlib import Path
from struct import Struct

PAGE = 4096
MAGIC = 0xBEEFC0DE
# Page header of 16 bytes; magic, version, address, map size; two trees of 48 bytes; last page, transaction.
# The first tree's first field holds the page size.
_META = Struct("=16xII8xQI44x48xQQ")


class Header(Enum):
    """What kind of file it is."""

    MISSING = "missing"
    UNBORN = "unborn"  # made, but never committed to
    WHOLE = "whole"
    SHORT = "short"  # pages that its newest commit allocated are missing
    FOREIGN = "foreign"


def inspect(data: Path) -> Header:
    """Only for a file that this process does not have open: closing it again drops LMDB's locks."""
    try:
        with data.open("rb") as file:
            first = file.read(2 * PAGE)
            size = os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        return Header.MISSING
    pages = first[:PAGE], first[PAGE:]
    metas = [_parse(page) for page in pages]
    if all(meta is None and any(page) for meta, page in zip(metas, pages, strict=True)):
        return Header.FOREIGN
    if all(not any(page) or (meta and meta[2] == 0) for meta, page in zip(metas, pages, strict=True)):
        return Header.UNBORN
    newest = max((meta for meta in metas if meta), key=lambda meta: meta[2], default=None)
    if newest is None or any(meta is None for meta in metas):
        return Header.FOREIGN
    page_size, last_page, _ = newest
    return Header.WHOLE if size >= (last_page + 1) * page_size else Header.SHORT


def _parse(page: bytes) -> tuple[int, int, int] | None:
    """Page size, last page and transaction number of a meta page."""
    if len(page) < _META.size:
        return None
    magic, version, _, page_size, last_page, transaction = _META.unpack_from(page)
    if magic != MAGIC or version & 0xFFFF != 1 or not page_size:
        return None
    return page_size, last_page, transaction
