"""Any text at all is a value or a list of diagnostics, at little cost; nothing else ever comes out."""

from __future__ import annotations

import sys
import time
import tracemalloc
import unicodedata
from datetime import UTC, datetime
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import chronex
from chronex.expr.parser import MAX_TEXT
from tests.kit.work import assert_cheap

REFERENCE = datetime(2026, 5, 17, 12, 34, 56, tzinfo=UTC)
MOST_WORK = 100.0  # units; the worst text needs about twenty, and one that is read again and again thousands
SUSPICIOUS_S = 0.005
VALID = (
    "*/5 * * * *", "0 9 * * MON-FRI", "0 0 1,15 * FRI", "30 4 1-7/2 JAN-MAR *", "*/10 * * * * *", "0 0 L * *",
    "0 0 LW * *", "0 0 L-3 * *", "0 0 15W * *", "0 0 * * 5L", "0 0 * * MON#2", "0 9 15,L * *", "0 9 * * MON#1,THU#1,SAT", "0 22-2 * * FRI-MON", "@daily",
    "TZ=Asia/Seoul 0 9 * * MON-FRI {jitter:30s, until:2027-12-31}", "TZ=America/Chicago 0 0 L * * <tag:monthly+report>",
    "@every 1h30m", "@every 1h-2h {max:10}", "@once 2027-03-01T09:00:00+09:00", "@once +20m {tag:reminder}",
    "R5/2026-01-01T00:00:00Z/P1M", "R/2026-01-31T09:00/P1Y2M3W4DT5H6M7.5S", "TZ=UTC @hourly {stagger:5m, window:15m}",
    "0 9 * * * {from:2026-06-01T00:00:00, until:2026-12-31}",
)  # fmt: skip
PIECES = (
    "*", "/", "-", ",", " ", "\t", "?", "L", "W", "#", "LW", "H", "0", "7", "59", "60", "-1", "99999999", "00", "TZ=", "@",
    "@every ", "@once ", "@reboot", "R", "R5/", "{", "}", "<", ">", ":", "+", "jitter:", "max:", "tag:", "from:", "until:",
    "1h", "30min", "0s", "ms", "P1M", "PT", "T", "Z", "2026-02-30", "9999-12-31T23:59:59", "0001-01-01T00:00:00+23:59",
    "MON", "MNO", "JAN", "٣", "９", "²", "ſun", "İ", "\0", "\x1b[31m", "\u202e", "\u200b", "\u00a0", "\u3000", "\n", "\ud800",
    "\U0001f600", "America/New_York", "__init__/x", "../../etc/passwd", "(", "%", "\\", "'", '"',
)  # fmt: skip
HOSTILE = {
    "a page of days by their place": "0 0 " + "L,1W," * 800 + "L * *",
    "nothing": "",
    "blanks": " \t ",
    "a lone zone prefix": "TZ=",
    "a zone and nothing else": "TZ=Asia/Seoul",
    "a zone that is a folder": "TZ=America * * * * *",
    "a zone that is a module": "TZ=__init__/x * * * * *",
    "a zone that climbs": "TZ=../../../etc/passwd * * * * *",
    "a zone of a thousand parts": "TZ=" + "A/" * 1900 + "A * * * * *",
    "a zone that counts leap seconds": "TZ=right/UTC * * * * *",
    "arabic digits": "٣ ٤ * * *",
    "wide digits": "０ ９ * * *",
    "a superscript": "² * * * *",
    "a long s": "0 0 * * ſun",
    "a dotted I": "0 0 * * frİ",
    "NUL": "\0",
    "a page of NUL": "\0" * MAX_TEXT,
    "a page of different control characters": "".join(chr(c % 32) for c in range(MAX_TEXT)),
    "an escape sequence": "\x1b[2J * * * * *",
    "text that runs backwards": "\u202e0 9 * * *\u202c",
    "a zero width space": "0\u200b 9 * * *",
    "a no-break space": "0\u00a09 * * *",
    "a newline": "0 9 * * *\n",
    "a carriage return": "0 9 * * *\r",
    "half of a surrogate pair": "\ud800 * * * *",
    "a huge range": "0-99999999 * * * *",
    "a huge step": "*/99999999999999999999 * * * *0",
    "a page of digits": "9" * 4000 + " * * * *",
    "a page of zeros": "0" * 4000 + "5 * * * *",
    "a page of commas": "," * 4000 + " * * * *",
    "a page of values": ",".join(["1"] * 2000) + " * * * *",
    "a page of wrong names": "0 0 * " + "MNO," * 1000 + " *",
    "a page of wrong weekdays": "0 0 * * " + "MNO," * 1000,
    "a page of steps of zero": "*/0," * 1000 + "* * * * *",
    "a page of wrong options": "0 0 * * * {" + "jiter:1," * 500 + "}",
    "a page of tags": "0 0 * * * {tag:" + "+".join(f"{chr(97 + n % 26)}{n}" for n in range(900)) + "}",
    "a page of one tag": "0 0 * * * {tag:" + "+".join("a" for _ in range(2000)) + "}",
    "a page of brackets": "0 0 * * * " + "{" * 4000,
    "a page of units": "@every " + "1m" * 2000,
    "a page of wrong units": "@every " + "1min" * 1000,
    "a page of dashes": "@every " + "-" * 4000,
    "a wrong zone and a page of commas": "TZ=America/New_Yrok " + "," * 4000 + " * * * *",
    "a page of words": "x " * 2000,
    "a long alias": "@" + "a" * 4000,
    "a period beyond the calendar": "R/2026-01-01T00:00:00/P999999Y",
    "too many repetitions": "R9999999999999/2026-01-01T00:00:00/P1D",
    "a relative moment beyond the calendar": "@once +3650000d",
    "an interval beyond the calendar": "@every 99999999999999999999d",
    "a mebibyte of brackets": "(" * 2**20,
    "a byte too many": "*" * (MAX_TEXT + 1),
}


Reading = tuple[chronex.ValidationResult, chronex.Expression | None, chronex.ExpressionError | None]


def read(text: str, dialect: str) -> Reading:
    result = chronex.validate(text, dialect=dialect, reference=REFERENCE)
    try:
        return result, chronex.parse(text, dialect=dialect, reference=REFERENCE), None
    except chronex.ExpressionError as error:
        return result, None, error


def check(text: str, dialect: str = "chronex", *, must_be_cheap: bool = False) -> None:
    """Every promise about any text; what it costs is measured where that must be, or where it seems to be much."""
    begin = time.process_time()
    result, expression, refusal = read(text, dialect)
    if must_be_cheap or time.process_time() - begin > SUSPICIOUS_S:
        assert_cheap(lambda: read(text, dialect), MOST_WORK, f"{text[:200]!r} as {dialect}")
    assert result.is_valid is (refusal is None), result.errors
    if expression is not None:
        check_value(expression)
    if refusal is not None:
        assert [d.code for d in refusal.diagnostics if d.is_error] == [d.code for d in result.errors]
        assert refusal.text == text
        assert_clean(str(refusal))
    for found in result.diagnostics:
        assert 0 <= found.start <= found.end <= len(text)
        assert text[found.start : found.end] == found.value, found
        assert found.code[0] in "EW"
        assert len(found.code) == 4
        assert found.message
        assert_clean(str(found))
    assert list(result.errors) == sorted(result.errors, key=lambda d: (d.start, d.end))


def check_value(expression: chronex.Expression) -> None:
    canonical = str(expression)
    again = chronex.parse(canonical, dialect=expression.dialect, reference=REFERENCE)
    assert again == expression, canonical
    assert hash(again) == hash(expression)
    assert str(again) == canonical
    assert expression.describe()
    found = expression.next(REFERENCE)
    assert found is None or found > REFERENCE
    before = expression.previous(REFERENCE)
    assert before is None or before < REFERENCE


def assert_clean(text: str) -> None:
    bad = [c for c in text if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"}]
    assert not bad, (text, bad)


def mutated(rng: Random) -> str:
    text = rng.choice(VALID)
    for _ in range(rng.choice([1, 1, 2, 3, 6])):
        at = rng.randint(0, len(text))
        end = min(len(text), at + rng.choice([0, 0, 1, 1, 2, 5]))
        kind = rng.random()
        if kind < 0.6:
            text = text[:at] + rng.choice(PIECES) + text[end:]
        elif kind < 0.75:
            text = text[:at] + text[end:]
        elif kind < 0.85:
            text = text[:at] + text[at:end] * 3 + text[end:]
        elif kind < 0.95:
            other = rng.choice(VALID)
            text = text[:at] + other[rng.randint(0, len(other)) :]
        else:
            text = text[:at] + chr(rng.randint(0, sys.maxunicode)) + text[end:]
    return text


def assembled(rng: Random) -> str:
    return "".join(rng.choice(PIECES) for _ in range(rng.randint(0, 14)))


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_a_value_or_diagnostics_at_little_cost(name: str) -> None:
    for dialect in ("chronex", "posix"):
        check(HOSTILE[name], dialect, must_be_cheap=True)


@pytest.mark.parametrize("name", [name for name in HOSTILE if "page of" not in name or name == "a page of NUL"])
def test_hostile_text_that_is_wrong_says_so(name: str) -> None:
    result = chronex.validate(HOSTILE[name], reference=REFERENCE)
    assert not result.is_valid
    assert all(len(str(found)) < 300 for found in result.errors)


def test_more_than_four_kibibytes_are_refused_without_reading() -> None:
    found = chronex.validate("*" * (MAX_TEXT + 1)).errors
    assert [(d.code, d.start, d.end) for d in found] == [("E010", 0, 0)]
    assert "4097" in found[0].message
    padded = "0 9 * * *".ljust(MAX_TEXT)
    assert chronex.validate(padded).is_valid
    assert not chronex.validate(padded + " ").is_valid


@pytest.mark.parametrize("chunk", range(10))
def test_mutations_of_valid_text_are_a_value_or_diagnostics(chunk: int) -> None:
    rng = Random(chunk)
    for number in range(500):
        text = mutated(rng) if number % 3 else assembled(rng)
        check(text, "posix" if number % 10 == 0 else "chronex")


@pytest.mark.torture
@pytest.mark.parametrize("chunk", range(1000, 1100))
def test_half_a_million_mutations_are_a_value_or_diagnostics(chunk: int) -> None:
    rng = Random(chunk)
    for number in range(5000):
        text = mutated(rng) if number % 3 else assembled(rng)
        check(text, "posix" if number % 10 == 0 else "chronex")


@given(text=st.text(max_size=120))
@example(text="@once +3650000d")
@example(text="TZ=\t* * * * *")
@settings(max_examples=200, deadline=None)
def test_any_text_is_a_value_or_diagnostics(text: str) -> None:
    check(text)


@given(text=st.text(alphabet="0123456789*/-,LW#@R{}<>:+TZ= \tMONjanms", max_size=60))
@settings(max_examples=200, deadline=None)
def test_any_text_of_the_alphabet_is_a_value_or_diagnostics(text: str) -> None:
    check(text)
    check(text, "posix")


@pytest.mark.parametrize("value", [None, 5, b"* * * * *", ["*"]])
def test_what_is_not_text_is_a_type_error_that_says_what_is_wanted(value: object) -> None:
    with pytest.raises(TypeError, match="str"):
        chronex.validate(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["a page of commas", "a page of NUL", "a page of wrong names", "a page of values"])
def test_four_kibibytes_cost_little_memory(name: str) -> None:
    chronex.validate("0 0 * * *")
    tracemalloc.start()
    try:
        chronex.validate(HOSTILE[name])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**21  # a diagnostic for every character is less than half a kibibyte each
