"""Files whose expected problems are marked in the text itself: «these characters» are what is pointed at,
«» is the end of a line.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Place(NamedTuple):
    line: int
    column: int
    end_column: int


def unmarked(text: str) -> tuple[str, list[Place]]:
    """The file without its marks, and the positions that were marked, in order."""
    positions: list[Place] = []
    lines: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        plain = ""
        start = 0
        for part in re.split("([«»])", line):
            if part == "«":
                start = len(plain)
            elif part == "»":
                positions.append(Place(number, start + 1, max(len(plain), start + 1) + 1))
            else:
                plain += part
        lines.append(plain)
    return "\n".join(lines), positions
