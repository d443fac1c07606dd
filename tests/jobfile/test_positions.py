"""The scanner agrees with tomllib and json on every key and value, and reads anything without raising."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from chronex.jobfile.positions import MAX_DEPTH, LineIndex, TextNode, scan_json, scan_toml

KEYS = st.sampled_from(["a", "b", "c-d", "e_1", "9", '"q.r"', "'l t'", r'"\u00e9\""', '""'])
TEXTS = st.sampled_from(
    [
        '""', '"plain"', r'"esc \" \\ \u00e9"', "'lit # [x]'", "''", '"""m"""', '"""\nfirst\n second\\\n   third"""',
        "'''\nraw\n'''", "'''a''b'''", '"""ends with quote""""', "'''two'''''", '"# no comment ] }"', '"=,"',
        "'''\n\n'''", '"""a"b""c\\""" d"""',
    ]
)  # fmt: skip
PLAIN = st.sampled_from(
    [
        "1", "-7", "0xff", "1_000", "3.5", "1e3", "inf", "-inf", "true", "false", "1979-05-27", "07:32:00",
        "1979-05-27 07:32:00", "1979-05-27T07:32:00Z", "1979-05-27 00:32:00.999999-07:00",
    ]
)  # fmt: skip
GAPS = st.sampled_from(["", " ", "\t "])
WIDE = st.sampled_from(["", " ", "\n", "  # note ] } \" '\n", "\n\n\t"])


@st.composite
def arrays(draw: st.DrawFn, values: st.SearchStrategy[str]) -> str:
    parts = [draw(WIDE) + v + draw(WIDE) for v in draw(st.lists(values, max_size=3))]
    comma = draw(st.sampled_from(["", ","])) if parts else ""
    return "[" + ",".join(parts) + comma + draw(WIDE) + "]"


@st.composite
def inline_tables(draw: st.DrawFn, values: st.SearchStrategy[str]) -> str:
    pairs = [
        f"{draw(GAPS)}{draw(dotted())}{draw(GAPS)}={draw(GAPS)}{v}{draw(GAPS)}"
        for v in draw(st.lists(values, max_size=3))
    ]
    return "{" + ",".join(pairs) + "}"


@st.composite
def dotted(draw: st.DrawFn) -> str:
    return f"{draw(GAPS)}.{draw(GAPS)}".join(draw(st.lists(KEYS, min_size=1, max_size=3)))


VALUES = st.recursive(TEXTS | PLAIN, lambda inner: arrays(inner) | inline_tables(inner), max_leaves=5)


@st.composite
def statements(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from(["pair", "pair", "pair", "table", "tables", "blank"]))
    indent, gap = draw(GAPS), draw(GAPS)
    note = draw(st.sampled_from(["", "", " # x = 1", "# [y]"]))
    if kind == "table":
        return f"{indent}[{gap}{draw(dotted())}{gap}]{note}"
    if kind == "tables":
        return f"{indent}[[{gap}{draw(dotted())}{gap}]]{note}"
    if kind == "pair":
        return f"{indent}{draw(dotted())}{gap}={gap}{draw(VALUES)}{gap}{note}"
    return indent + note


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Valid TOML: each statement that would make the whole invalid is left out again."""
    text = ""
    for statement in draw(st.lists(statements(), max_size=12)):
        try:
            tomllib.loads(text + statement + "\n")
        except tomllib.TOMLDecodeError:
            continue
        text += statement + "\n"
    return text.removesuffix("\n") if draw(st.booleans()) else text


def check_same(text: str, node: TextNode, value: Any, loads_value: Any, loads_key: Any) -> None:
    if isinstance(value, dict | list):
        names = list(value) if isinstance(value, dict) else list(range(len(value)))
        assert set(node.children) == set(names)
        for name in names:
            child = node.children[name]
            if isinstance(name, str):
                assert child.key is not None
                assert loads_key(text[slice(*child.key)]) == name
            check_same(text, child, value[name], loads_value, loads_key)
        return
    assert not node.children
    written = text[slice(*node.value)]
    assert loads_value(written) == value
    if node.content is not None:
        assert text.startswith(value, node.content)
        assert node.value.start < node.content <= node.value.end - 1 or value == ""
    elif isinstance(value, str):
        assert "\\" in written


def toml_value(written: str) -> Any:
    return tomllib.loads(f"x = {written}")["x"]


def toml_key(written: str) -> str:
    return next(iter(tomllib.loads(f"{written} = 1")))


@settings(max_examples=100, deadline=None)
@given(documents())
def test_every_key_and_value_of_a_toml_document_is_found_where_it_stands(text: str) -> None:
    found = scan_toml(text)
    assert found.twice is None
    assert found.too_deep is None
    check_same(text, found.root, tomllib.loads(text), toml_value, toml_key)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=100, deadline=None)
@given(JSON, st.sampled_from([None, 2]), st.booleans())
def test_every_key_and_value_of_a_json_document_is_found_where_it_stands(
    data: Any, indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps(data, indent=indent, ensure_ascii=ascii_only)
    found = scan_json(text)
    assert found.too_deep is None
    check_same(text, found.root, data, json.loads, json.loads)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="ab=[]{}.,\"'\\\n #1-:x\r\t", max_size=60))
def test_no_text_makes_the_scanner_raise(text: str) -> None:
    scan_json(text)
    found = scan_toml(text)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    assume("\r" not in text)
    check_same(text, found.root, data, toml_value, toml_key)


@pytest.mark.parametrize(
    "text",
    [
        "a" + ".a" * 100_000 + " = 1",
        "[" + "a." * 100_000 + "a]",
        "a = " + "[" * 100_000,
        "a = " + "{a=" * 100_000,
        f"a = {'[' * MAX_DEPTH}{']' * MAX_DEPTH}",
    ],
)
def test_depth_is_noticed_before_a_parser_suffers_from_it(text: str) -> None:
    assert scan_toml(text).too_deep is not None


def test_what_is_just_deep_enough() -> None:
    text = f"a = {'[' * (MAX_DEPTH - 1)}{']' * (MAX_DEPTH - 1)}"
    assert scan_toml(text).too_deep is None


def test_a_key_given_twice_is_remembered_where_it_comes_again() -> None:
    text = "a = 1\nb = 2\na = 3\nb = 4\n"
    twice = scan_toml(text).twice
    assert twice is not None
    assert (twice[0], LineIndex(text).line_and_column(twice[1].start)) == ("a", (3, 1))


def test_lines_and_columns_count_from_one() -> None:
    lines = LineIndex("ab\n\ncd")
    assert [lines.line_and_column(i) for i in range(7)] == [(1, 1), (1, 2), (1, 3), (2, 1), (3, 1), (3, 2), (3, 3)]
    assert [lines.end_of_line(n) for n in (1, 2, 3)] == [2, 3, 6]


@pytest.mark.parametrize(
    "text", ["a = 1\na.b = 2\n", "a = 1\n[a.b]\nc = 2\n", "a = 'x'\n[[a]]\nb = 1\n", "a = 1\n[[a.b]]\n"]
)
def test_a_table_inside_a_plain_value_is_left_to_the_parser(text: str) -> None:
    assert scan_toml(text).root.children["a"].children == {}
    assert scan_toml("x = 1").root.children["x"].children == {}
