"""The syntax of our own source, for the tests that look through all of it."""

from __future__ import annotations

import ast
import gc
from pathlib import Path


def syntax_of(path: Path) -> ast.Module:
    """The collector would visit the nodes of every file again and again, which is two thirds of the time."""
    text = path.read_text(encoding="utf-8")
    gc.disable()
    try:
        return ast.parse(text)
    finally:
        gc.enable()
