"""The syntax of our own source, for the tests that look through all of it."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


def syntax_of(path: Path) -> ast.Module:
    text = path.read_text(encoding="utf-8")
    with _no_collection():
        return ast.parse(text)


def nodes_of(paths: Iterable[Path], kinds: tuple[type[ast.AST], ...]) -> dict[Path, list[ast.AST]]:
    """The nodes of some kinds in each file, all files at once."""
    with _no_collection():
        return {path: [node for node in ast.walk(syntax_of(path)) if isinstance(node, kinds)] for path in paths}


@contextmanager
def _no_collection() -> Iterator[None]:
    """The collector would visit the nodes of every file again and again, which is most of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
