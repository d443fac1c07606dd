"""A frame as a PNG."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chronex_tui.app import ChronexApp


def save_png(app: ChronexApp, file: Path) -> None:
    from chronex_tui.launch import PictureError

    raise PictureError(f"{file.name}: PNG is not written yet; use an .svg file")
