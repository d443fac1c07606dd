"""Cells of coloured text to pixels, and pixels to a PNG file."""

from __future__ import annotations

import zlib
from struct import pack

from rich.style import Style

from chronex.text.terminal import cell_width
from chronex_tui.picture.fonts import Font, Fonts
from chronex_tui.picture.raster import coverage

Colour = tuple[int, int, int]
Stripe = tuple[int, int, bytes]  # a row of the cell, where in it, and its pixels
_MARGIN = 12


def colour_of(text: str) -> Colour:
    return (int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16))


class Canvas:
    """A page of cells in one size of one font."""

    def __init__(self, columns: int, rows: int, fonts: Fonts, pixels: int, ground: str, ink: str) -> None:
        self.fonts = fonts
        font = fonts.regular
        self._scale = pixels / (font.ascent - font.descent)
        self.cell_width = round(font.advance * self._scale)
        self.cell_height = pixels
        self._baseline = font.ascent * self._scale
        self.ground, self.ink = colour_of(ground), colour_of(ink)
        self.width = columns * self.cell_width + 2 * _MARGIN
        self.height = rows * self.cell_height + 2 * _MARGIN
        self._lines = [bytearray(bytes(self.ground) * self.width) for _ in range(self.height)]
        self._stripes: dict[tuple[str, bool, Colour, Colour], list[Stripe]] = {}

    def write(self, row: int, column: int, text: str, style: Style | None) -> int:
        """Put text into cells; the column behind it."""
        ink, ground, is_bold = self._colours(style)
        top = _MARGIN + row * self.cell_height
        for char in text:
            cells = cell_width(char)
            if cells:
                self._put(char, top, column, cells, ink, ground, is_bold=is_bold)
                column += cells
        return column

    def _colours(self, style: Style | None) -> tuple[Colour, Colour, bool]:
        ink, ground = self.ink, self.ground
        if style is None:
            return ink, ground, False
        if style.color is not None and not style.color.is_default:
            ink = tuple(style.color.get_truecolor())  # type: ignore[assignment]
        if style.bgcolor is not None and not style.bgcolor.is_default:
            ground = tuple(style.bgcolor.get_truecolor())  # type: ignore[assignment]
        if style.reverse:
            ink, ground = ground, ink
        if style.dim:
            ink = _mixed(ground, ink, 150)
        return ink, ground, bool(style.bold)

    def _put(
        self, char: str, top: int, column: int, cells: int, ink: Colour, ground: Colour, *, is_bold: bool
    ) -> None:
        left = _MARGIN + column * self.cell_width
        if ground != self.ground:
            fill = bytes(ground) * (self.cell_width * cells)
            for line in self._lines[top : top + self.cell_height]:
                line[left * 3 : left * 3 + len(fill)] = fill
        if char == " ":
            return
        key = (char, is_bold, ink, ground)
        if key not in self._stripes:
            self._stripes[key] = self._draw(char, is_bold, ink, ground, cells)
        for row, start, pixels in self._stripes[key]:
            place = (left + start) * 3
            self._lines[top + row][place : place + len(pixels)] = pixels

    def _draw(self, char: str, is_bold: bool, ink: Colour, ground: Colour, cells: int) -> list[Stripe]:
        """The letter as stripes of pixels, only where there is ink."""
        font = self.fonts.bold if is_bold and self.fonts.bold.glyph(char) else self.fonts.regular
        width = self.cell_width * cells
        stripes: list[Stripe] = []
        for row, shades in enumerate(coverage(self._contours(font, char), width, self.cell_height)):
            inked = [pixel for pixel, shade in enumerate(shades) if shade]
            if inked:
                first, last = inked[0], inked[-1] + 1
                mixed = b"".join(bytes(_mixed(ground, ink, shade)) for shade in shades[first:last])
                stripes.append((row, first, mixed))
        return stripes

    def _contours(self, font: Font, char: str) -> list[list[tuple[float, float]]]:
        # The grid is whole pixels, so letters are stretched a little to fill their cell: lines of frames must meet.
        across = self.cell_width / font.advance
        outlines = font.contours(font.glyph(char))
        return [[(x * across, self._baseline - y * self._scale) for x, y in outline] for outline in outlines]

    def png(self) -> bytes:
        raw = b"".join(b"\0" + bytes(line) for line in self._lines)
        header = pack(">IIBBBBB", self.width, self.height, 8, 2, 0, 0, 0)
        chunks = (_chunk(b"IHDR", header), _chunk(b"IDAT", zlib.compress(raw, 9)), _chunk(b"IEND", b""))
        return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def _mixed(ground: Colour, ink: Colour, shade: int) -> Colour:
    red, green, blue = (below + (above - below) * shade // 255 for below, above in zip(ground, ink, strict=True))
    return red, green, blue


def _chunk(kind: bytes, data: bytes) -> bytes:
    return pack(">I", len(data)) + kind + data + pack(">I", zlib.crc32(kind + data))
