"""TrueType outlines: as much of the format as drawing letters takes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from struct import unpack_from
from typing import NamedTuple

from chronex.errors import ChronexError

# By how much of the dashboard's signs they hold.
WANTED = (
    "DejaVuSansMono.ttf", "JetBrainsMono-Regular.ttf", "CascadiaMono.ttf", "NotoSansMono-Regular.ttf",
    "UbuntuMono-R.ttf", "LiberationMono-Regular.ttf", "FreeMono.ttf", "Menlo.ttc", "Courier New.ttf",
)  # fmt: skip
_BOLD = {"DejaVuSansMono.ttf": "DejaVuSansMono-Bold.ttf", "LiberationMono-Regular.ttf": "LiberationMono-Bold.ttf"}
Point = tuple[float, float]
Contour = list[Point]


class FontError(ChronexError):
    """No monospaced TrueType font was found for the picture; install DejaVu Sans Mono, or write an .svg file."""


class Fonts(NamedTuple):
    regular: Font
    bold: Font


def font_directories() -> list[Path]:
    home = Path(os.environ.get("HOME", "/"))
    return [
        Path("/usr/share/fonts"), Path("/usr/local/share/fonts"), home / ".local/share/fonts", home / ".fonts",
        Path("/Library/Fonts"), Path("/System/Library/Fonts"),
    ]  # fmt: skip


def find_fonts() -> Fonts:
    found = {file.name: file for place in font_directories() for file in place.rglob("*.tt[fc]")}
    for name in WANTED:
        if name in found:
            regular = Font(found[name].read_bytes())
            bold = found.get(_BOLD.get(name, ""))
            return Fonts(regular, regular if bold is None else Font(bold.read_bytes()))
    raise FontError


@dataclass
class Font:
    data: bytes

    def __post_init__(self) -> None:
        start = unpack_from(">I", self.data, 12)[0] if self.data[:4] == b"ttcf" else 0
        count = unpack_from(">H", self.data, start + 4)[0]
        rows = (unpack_from(">4sIII", self.data, start + 12 + 16 * number) for number in range(count))
        self._tables = {name.decode("latin-1"): offset for name, _, offset, _ in rows}
        head, hhea = self._tables["head"], self._tables["hhea"]
        self.units = unpack_from(">H", self.data, head + 18)[0]
        self._long_offsets = unpack_from(">h", self.data, head + 50)[0]
        self.ascent, self.descent = unpack_from(">hh", self.data, hhea + 4)
        # Monospaced fonts often keep one width for all glyphs.
        widths = unpack_from(">H", self.data, hhea + 34)[0]
        self.advance = unpack_from(">H", self.data, self._tables["hmtx"] + 4 * min(self.glyph("M"), widths - 1))[0]

    @cached_property
    def _characters(self) -> dict[int, int]:
        """From code points to glyphs: the Unicode tables of formats 4 and 12."""
        base = self._tables["cmap"]
        found: dict[int, int] = {}
        for number in range(unpack_from(">H", self.data, base + 2)[0]):
            at = base + unpack_from(">I", self.data, base + 4 + 8 * number + 4)[0]
            form = unpack_from(">H", self.data, at)[0]
            if form == 4:
                found |= self._segments(at)
            elif form == 12:
                for group in range(unpack_from(">I", self.data, at + 12)[0]):
                    first, last, glyph = unpack_from(">III", self.data, at + 16 + 12 * group)
                    found |= {code: glyph + code - first for code in range(first, last + 1)}
        return found

    def _segments(self, at: int) -> dict[int, int]:
        count = unpack_from(">H", self.data, at + 6)[0] // 2
        ends = unpack_from(f">{count}H", self.data, at + 14)
        starts = unpack_from(f">{count}H", self.data, at + 16 + 2 * count)
        deltas = unpack_from(f">{count}h", self.data, at + 16 + 4 * count)
        ranges_at = at + 16 + 6 * count
        ranges = unpack_from(f">{count}H", self.data, ranges_at)
        found: dict[int, int] = {}
        for index in range(count):
            for code in range(starts[index], min(ends[index], 0xFFFE) + 1):
                glyph = code
                if ranges[index]:
                    place = ranges_at + 2 * index + ranges[index] + 2 * (code - starts[index])
                    glyph = unpack_from(">H", self.data, place)[0]
                if glyph:
                    found[code] = (glyph + deltas[index]) & 0xFFFF
        return found

    def glyph(self, char: str) -> int:
        """The glyph of a character; 0, the sign for a missing one, where there is none."""
        return self._characters.get(ord(char), 0)

    def contours(self, glyph: int, depth: int = 0) -> list[Contour]:
        """Closed lines; curves are already broken into short straight ones."""
        start, end = self._place(glyph)
        if start == end or depth > 4:
            return []
        count = unpack_from(">h", self.data, start)[0]
        return self._simple(start, count) if count >= 0 else self._composite(start, depth)

    def _place(self, glyph: int) -> tuple[int, int]:
        loca, glyf = self._tables["loca"], self._tables["glyf"]
        if self._long_offsets:
            first, last = unpack_from(">II", self.data, loca + 4 * glyph)
        else:
            first, last = (2 * value for value in unpack_from(">HH", self.data, loca + 2 * glyph))
        return glyf + first, glyf + last

    def _composite(self, start: int, depth: int) -> list[Contour]:
        at, found = start + 10, []
        while True:
            flags, glyph = unpack_from(">HH", self.data, at)
            wide = flags & 1
            dx, dy = unpack_from(">hh" if wide else ">bb", self.data, at + 4)
            at += 8 if wide else 6
            xx = yy = 1.0
            if flags & 0x8:
                xx = yy = unpack_from(">h", self.data, at)[0] / 16384
            elif flags & 0x40:
                xx, yy = (value / 16384 for value in unpack_from(">hh", self.data, at))
            at += 2 if flags & 0x8 else 4 if flags & 0x40 else 8 if flags & 0x80 else 0
            found += [[(x * xx + dx, y * yy + dy) for x, y in one] for one in self.contours(glyph, depth + 1)]
            if not flags & 0x20:
                return found

    def _simple(self, start: int, count: int) -> list[Contour]:
        ends = unpack_from(f">{count}H", self.data, start + 10)
        if not ends:
            return []
        at = start + 10 + 2 * count
        at += 2 + unpack_from(">H", self.data, at)[0]
        flags: list[int] = []
        while len(flags) <= ends[-1]:
            flag = self.data[at]
            at += 1
            repeats = 1
            if flag & 8:
                repeats += self.data[at]
                at += 1
            flags += [flag] * repeats
        xs, at = self._coordinates(at, flags, 2, 16)
        ys, _ = self._coordinates(at, flags, 4, 32)
        points = [(x, y, bool(flag & 1)) for x, y, flag in zip(xs, ys, flags, strict=False)]
        firsts = (0, *(end + 1 for end in ends[:-1]))
        return [flatten(points[first : end + 1]) for first, end in zip(firsts, ends, strict=True)]

    def _coordinates(self, at: int, flags: list[int], short: int, same: int) -> tuple[list[int], int]:
        values, value = [], 0
        for flag in flags:
            if flag & short:
                value += self.data[at] if flag & same else -self.data[at]
                at += 1
            elif not flag & same:
                value += unpack_from(">h", self.data, at)[0]
                at += 2
            values.append(value)
        return values, at


def flatten(points: list[tuple[int, int, bool]]) -> Contour:
    """Quadratic curves as straight pieces. Between two points off the curve lies one on it, in the middle."""
    full: list[tuple[float, float, bool]] = []
    for index, (x, y, is_on) in enumerate(points):
        px, py, was_on = points[index - 1]
        if not is_on and not was_on:
            full.append(((x + px) / 2, (y + py) / 2, True))
        full.append((x, y, is_on))
    start = next((index for index, point in enumerate(full) if point[2]), None)
    if start is None:
        return []
    full = full[start:] + full[: start + 1]
    line: Contour = [(full[0][0], full[0][1])]
    for index in range(1, len(full)):
        point = full[index]
        if not point[2]:
            line += _curve(line[-1], point, full[index + 1])
        elif full[index - 1][2]:
            line.append((point[0], point[1]))
    return line


def _curve(start: Point, control: tuple[float, float, bool], end: tuple[float, float, bool]) -> Contour:
    found: Contour = []
    for step in (0.25, 0.5, 0.75, 1.0):
        a, b, c = (1 - step) ** 2, 2 * step * (1 - step), step**2
        found.append((a * start[0] + b * control[0] + c * end[0], a * start[1] + b * control[1] + c * end[1]))
    return found
