"""Text that reaches a terminal: it steers nothing, and it is as wide as it says."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import chain
from subprocess import run

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from chronex.text.terminal import cell_safe, cell_width, escaped, quoted, terminal_safe

CLEAR_SCREEN = "\x1b[2J"
RIGHT_TO_LEFT = "\u202e"


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("backup", "backup"),
        ("größer 漢字 🚀", "größer 漢字 🚀"),
        (f"a{CLEAR_SCREEN}b", "a�[2Jb"),
        (f"a{RIGHT_TO_LEFT}b", "a�b"),
        ("a\tb\nc\rd\0e", "a b�c�d�e"),
        ("a\x85b\xa0c", "a�b�c"),
    ],
)
def test_a_line_for_a_terminal_has_marks_for_what_could_steer_it(text: str, safe: str) -> None:
    assert terminal_safe(text) == safe
    assert cell_safe(text) == safe


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("❤\ufe0f", "❤"),  # with the selector some terminals draw two columns, some one
        ("🇩🇪", "��"),
        ("👍🏽", "👍�"),
        ("👩\u200d💻", "👩�💻"),
        ("\u1160", "�"),
    ],
)
def test_the_dashboard_shows_nothing_that_terminals_draw_differently(text: str, safe: str) -> None:
    assert cell_safe(text) == safe


@given(st.text())
def test_whatever_is_safe_is_printable_and_stays_as_it_is(text: str) -> None:
    for make in (terminal_safe, cell_safe, escaped):
        safe = make(text)
        assert safe.isprintable()
        assert make(safe) == safe


def test_an_escaped_text_tells_what_was_there() -> None:
    assert escaped(f"a{CLEAR_SCREEN}b\tc") == r"a\u001b[2Jb\u0009c"
    assert escaped("größer") == "größer"


def test_a_quoted_text_is_short() -> None:
    assert quoted("MONDAI") == "'MONDAI'"
    assert quoted("x\0") == r"'x\u0000'"
    assert quoted("x" * 40) == f"'{'x' * 40}'"
    assert quoted("x" * 41) == f"'{'x' * 39}…'"


@pytest.mark.parametrize(
    ("text", "columns"), [("", 0), ("backup", 6), ("größer", 6), ("gro\u0308ßer", 6), ("漢字", 4), ("🚀 go", 5)]
)
def test_width_in_columns(text: str, columns: int) -> None:
    assert cell_width(text) == columns


def assert_widths_add_up(codes: Iterable[int]) -> None:
    """Cutting a text character by character relies on it; and the dashboard is laid out by rich's widths."""
    for code in codes:
        safe = cell_safe(chr(code))
        assert cell_width(f"漢{safe}漢") == 4 + cell_width(safe) == 4 + cell_len(safe), hex(code)


def test_the_width_of_a_safe_text_is_the_sum_of_its_characters() -> None:
    """The scripts, the presentation forms and the emoji one by one; of the ideographs and the empty planes a sample."""
    assert_widths_add_up(chain(range(0x3400), range(0xD7B0, 0x10000), range(0x1F000, 0x1FC00)))
    assert_widths_add_up(range(0x3400, sys.maxunicode + 1, 97))


@pytest.mark.torture
def test_the_width_of_every_character_adds_up() -> None:
    assert_widths_add_up(range(sys.maxunicode + 1))


def test_rich_is_loaded_only_for_a_text_that_needs_it() -> None:
    program = (
        "import sys; from chronex.text.terminal import cell_width, terminal_safe;"
        "cell_width(terminal_safe('plain')); assert 'rich' not in sys.modules;"
        "cell_width('漢'); assert 'rich' in sys.modules"
    )
    assert run([sys.executable, "-c", program], check=False).returncode == 0
