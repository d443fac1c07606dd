"""Every page of the B-tree, read as bytes: unlike LMDB, which trusts its pages and aborts, this cannot crash."""

from __future__ import annotations

from pathlib import Path

from lmdb import verify

TRIES = 3


def damaged_pages(data: Path) -> list[str]:
    """What is wrong with the pages of `data`; BusyError when it is written faster than it can be read.

    Only for a file that this process does not have open: closing it again drops LMDB's locks.
    """
    for _ in range(TRIES):
        before = _metas(data)
        try:
            problems: list[str] = verify.verify(str(data))  # type: ignore[no-untyped-call]
        except verify.VerifyError as error:
            problems = [str(error)]
        if not problems or _metas(data) == before:
            return problems
    raise BusyError


class BusyError(Exception):
    """The file changed during every try."""


def _metas(data: Path) -> bytes:
    """The two meta pages: equal before and after means that nobody committed meanwhile."""
    with data.open("rb") as file:
        return file.read(8192)
