"""Outlines to shades: how much of each pixel a letter covers."""

from __future__ import annotations

from collections.abc import Iterable

from chronex_tui.picture.fonts import Contour

_STEPS = 4  # looks per pixel row


def coverage(contours: Iterable[Contour], width: int, height: int) -> list[bytes]:
    """A row of 0 to 255 for each line of pixels. Coordinates are pixels, y downwards; holes follow the direction."""
    edges = [
        (x0, y0, x1, y1)
        for contour in contours
        for (x0, y0), (x1, y1) in zip(contour, contour[1:] + contour[:1], strict=True)
        if y0 != y1
    ]
    return [_row(edges, y, width) for y in range(height)]


def _row(edges: list[tuple[float, float, float, float]], y: int, width: int) -> bytes:
    shades = [0.0] * width
    for step in range(_STEPS):
        at = y + (step + 0.5) / _STEPS
        crossings = sorted(
            (x0 + (at - y0) * (x1 - x0) / (y1 - y0), 1 if y1 > y0 else -1)
            for x0, y0, x1, y1 in edges
            if min(y0, y1) <= at < max(y0, y1)
        )
        winding = 0
        for index, (x, turn) in enumerate(crossings):
            winding += turn
            if winding and index + 1 < len(crossings):
                _fill(shades, x, crossings[index + 1][0], width)
    return bytes(min(255, round(shade * 255 / _STEPS)) for shade in shades)


def _fill(shades: list[float], start: float, end: float, width: int) -> None:
    """One stretch of a line: whole pixels, and parts of those at its ends."""
    start, end = max(start, 0.0), min(end, float(width))
    if end <= start:
        return
    first, last = int(start), min(int(end), width - 1)
    if first == last:
        shades[first] += end - start
        return
    shades[first] += first + 1 - start
    for pixel in range(first + 1, last):
        shades[pixel] += 1.0
    shades[last] += end - last
