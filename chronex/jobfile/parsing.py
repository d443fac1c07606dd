"""Bytes to a tree of entries, or the one problem that keeps the text from being read at all."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from typing import NoReturn

from chronex.jobfile.entries import Entry, JobFileError, Sheet
from chronex.jobfile.positions import MAX_DEPTH, Scan, TextNode, TextSpan, scan_json, scan_toml
from chronex.text.terminal import escaped, quoted

MAX_BYTES = 16 << 20
_BYTE_ORDER_MARK = "\ufeff"
_TOML_POSITION = re.compile(r" \(at (?:line ([0-9]+), column ([0-9]+)|end of document)\)$")
_CARRIAGE_RETURN = re.compile("\r(?=\n)")
_LONG_NUMBER = re.compile(r"[0-9][0-9_]{4000,}")
_MANY_DOTS = re.compile(r"(?:\.[ \t]*[A-Za-z0-9_\"'-]+[ \t]*){16}")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_TOML_TWICE = ("Cannot overwrite", "Cannot declare", "Cannot mutate", "Duplicate inline table key")
_TOML_HINTS = (
    ("Illegal character '\\r'", "end lines with a newline, or with CR and LF together"),
    ("Illegal character '\\n'", "close the quotes, or use three of them for several lines"),
    ("Illegal character", "write it as \\u and four digits"),
    ("Unterminated string", "close the quotes"),
    ("Expected '='", "write key = value"),
    ("Invalid value", 'put text in quotes: key = "text"'),
    ("Unescaped '\\'", "write \\\\ for one backslash, or use single quotes"),
    ("Unclosed array", "close it with ]"),
    ("Unclosed inline table", "close it with }"),
    ("Expected newline", "put one key = value on each line, and text in quotes"),
    ("Invalid statement", "a line is key = value, a [table] or a # comment"),
    ("Invalid initial character", "quote a key that has other characters than letters, digits, _ and -"),
)


def open_toml(content: str | bytes, path: str, host_zone: str) -> Entry:
    """The root table. Raises JobFileError with the one problem of a text that is not TOML."""
    return _parsed(_open(content, path, host_zone), _scan_toml, tomllib.loads, _refuse_toml)


def open_toml_unplaced(content: str | bytes, path: str, host_zone: str) -> Entry | None:
    """The root table without the places of its values, which take as long to find as the values themselves.

    None where the text must be read with places: it is not TOML, or nested so deeply that a parser should not see it.
    """
    sheet = _open(content, path, host_zone)
    if _MANY_DOTS.search(sheet.text):
        return None
    try:
        value = tomllib.loads(sheet.text)
    except (ValueError, RecursionError):
        return None
    # Each level needs one of these; a walk through all values of a hundred thousand files takes seconds.
    levels = sum(sheet.text.count(opener) for opener in ".[{")
    is_deep = levels >= MAX_DEPTH and _is_deeper(value, MAX_DEPTH)
    return None if is_deep else Entry(value, TextNode(TextSpan(0, len(sheet.text))), "the file", sheet)


def _is_deeper(value: object, levels: int) -> bool:
    if isinstance(value, dict):
        return levels <= 0 or any(_is_deeper(each, levels - 1) for each in value.values())
    return isinstance(value, list) and (levels <= 0 or any(_is_deeper(each, levels - 1) for each in value))


def open_json(content: str | bytes, path: str, host_zone: str) -> Entry:
    """The root value. Raises JobFileError with the one problem of a text that is not JSON."""
    return _parsed(_open(content, path, host_zone), scan_json, _strict_json, _refuse_json)


def salvage_toml(text: str, path: str, host_zone: str) -> Entry:
    """What can be made out of a TOML text that is half typed: the keys and values that were scanned."""
    return _salvaged(text, _scan_toml(text), _toml_value, Sheet(path, text, host_zone))


def salvage_json(text: str, path: str, host_zone: str) -> Entry:
    """What can be made out of a JSON text that is half typed."""
    return _salvaged(text, scan_json(text), json.loads, Sheet(path, text, host_zone))


def _salvaged(text: str, found: Scan, value_of: Callable[[str], object], sheet: Sheet) -> Entry:
    def value(node: TextNode) -> object:
        raw = text[node.value.start : node.value.end]
        is_list = node.is_table_array or raw[:1] == "["
        if node.children and is_list and all(isinstance(key, int) for key in node.children):
            return [value(child) for child in node.children.values()]
        if node.children:
            return {str(key): value(child) for key, child in node.children.items()}
        try:
            return value_of(raw)
        except (ValueError, RecursionError):
            return None

    return Entry(value(found.root), found.root, "the file", sheet)


def _toml_value(raw: str) -> object:
    return tomllib.loads(f"key={raw}")["key"]


def _scan_toml(text: str) -> Scan:
    """A space in the place of each carriage return keeps all offsets as they are."""
    return scan_toml(_CARRIAGE_RETURN.sub(" ", text))


def _open(content: str | bytes, path: str, host_zone: str) -> Sheet:
    sheet = Sheet(path, "", host_zone)
    raw = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    if len(raw) > MAX_BYTES:
        hint = "split it, and apply each of the files: a store takes the jobs of several"
        _refuse(
            sheet, TextSpan(0, 1), f"the file has more than {MAX_BYTES} bytes, the most that is read", hint, "J001"
        )
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode("utf-8")
        sheet.text = before
        message = f"byte 0x{raw[error.start]:02x} is not UTF-8"
        _refuse(sheet, TextSpan(len(before), len(before) + 1), message, "save the file as UTF-8", "J001")
    sheet.text = text.removeprefix(_BYTE_ORDER_MARK)
    return sheet


def _parsed(
    sheet: Sheet,
    scan: Callable[[str], Scan],
    loads: Callable[[str], object],
    refuse: Callable[[ValueError, str, Scan, Sheet], NoReturn],
) -> Entry:
    text = sheet.text
    found = scan(text)
    if found.too_deep is not None:
        _refuse_depth(sheet, found.too_deep)
    try:
        value = loads(text)
    except ValueError as error:
        refuse(error, text, found, sheet)
    except RecursionError:
        _refuse_depth(sheet, 0)
    return Entry(value, found.root, "the file", sheet)


def _refuse_depth(sheet: Sheet, at: int) -> NoReturn:
    _refuse(sheet, TextSpan(at, at + 1), f"more than {MAX_DEPTH} levels deep", "no setting lies that deep", "J003")


def _refuse_toml(error: ValueError, text: str, found: Scan, sheet: Sheet) -> NoReturn:
    message = str(error)
    position = _TOML_POSITION.search(message)
    if position is not None and position[1] and message.startswith("Cannot declare"):
        _refuse_table_twice(_offset(text, int(position[1]), 1), text, found, sheet)
    if found.twice is not None and message.startswith(_TOML_TWICE):
        _refuse_twice(found.twice, sheet)
    _refuse_long_number(error, text, sheet)
    at = len(text)
    if position is not None and position[1]:
        at = _offset(text, int(position[1]), int(position[2]))
    sentence = escaped(message[: position.start()] if position else message)
    hint = next(
        (hint for start, hint in _TOML_HINTS if message.startswith(start)), "see https://toml.io for the rules"
    )
    _refuse(sheet, TextSpan(at, at + 1), sentence, hint, "J002")


def _refuse_table_twice(start: int, text: str, found: Scan, sheet: Sheet) -> None:
    """A job that was copied and not renamed: its name is what is wrong, not the first of its keys."""
    again = next((header for header in found.headers if header.start == start), None)
    first = next((header for header in found.headers if again is not None and header.keys == again.keys), None)
    if again is None or first is None or first.start == start:
        return
    name = escaped(".".join(again.keys))
    line = text.count("\n", 0, first.start) + 1
    end = text.find("\n", start)
    span = TextSpan(start, end if end >= 0 else len(text))
    _refuse(sheet, span, f"the table [{name}] is on line {line} already", "rename this one, or remove it", "J018")


def _refuse_json(error: ValueError, text: str, found: Scan, sheet: Sheet) -> NoReturn:
    _refuse_long_number(error, text, sheet)
    if isinstance(error, json.JSONDecodeError):
        hint = "put keys and text in double quotes, and a comma between entries but not after the last"
        _refuse(sheet, TextSpan(error.pos, error.pos + 1), escaped(error.msg), hint, "J002")
    if isinstance(error, UnicodeEncodeError):
        surrogate = _SURROGATE.search(text)
        span = TextSpan(*surrogate.span()) if surrogate else TextSpan(0, 1)
        _refuse(sheet, span, "half of a surrogate pair is no character", "write the character itself", "J002")
    if found.twice is not None:
        _refuse_twice(found.twice, sheet)
    constant = max(text.find(str(error).partition(" ")[0]), 0)
    _refuse(sheet, TextSpan(constant, constant + 1), escaped(str(error)), "write a number", "J002")


def _refuse_long_number(error: ValueError, text: str, sheet: Sheet) -> None:
    """Python converts no more digits than this, and neither parser says where they stand."""
    number = _LONG_NUMBER.search(text) if "integer string conversion" in str(error) else None
    if number is not None:
        _refuse(sheet, TextSpan(*number.span()), "a number with thousands of digits", "write a smaller one", "J014")


def _strict_json(text: str) -> object:
    value = json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant)
    if _SURROGATE.search(text):
        json.dumps(value, ensure_ascii=False).encode("utf-8")  # halves of surrogate pairs cannot be stored
    return value


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("a key is given twice")
    return table


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _refuse_twice(twice: tuple[str, TextSpan], sheet: Sheet) -> NoReturn:
    name, span = twice
    _refuse(sheet, span, f"the key {quoted(name)} is given twice", "remove one of them", "J018")


def _refuse(sheet: Sheet, span: TextSpan, message: str, hint: str, code: str) -> NoReturn:
    sheet.report(span, message, hint, code)
    raise JobFileError(sheet.problems)


def _offset(text: str, line: int, column: int) -> int:
    start = 0
    for _ in range(line - 1):
        start = text.find("\n", start) + 1
    return start + column - 1
