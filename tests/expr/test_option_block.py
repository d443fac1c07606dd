"""The options block."""

from __future__ import annotations

import pytest

import chronex
from chronex.expr.diagnostics import ParseReport
from chronex.expr.iso8601 import parse_moment
from chronex.expr.option_block import NO_OPTIONS, OPTION_NAMES, Fragment, Options, parse_options


def read(text: str) -> Options:
    report = ParseReport()
    options = parse_options(Fragment(text, 0), report)
    assert report.errors == ()
    return options


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("jitter:30s", Options(jitter=30_000)),
        ("jitter:0s", Options(jitter=0)),
        ("stagger:5m", Options(stagger=300_000)),
        ("window:15m", Options(window=900_000)),
        ("max:10", Options(max=10)),
        ("max:+10", Options(max=10)),
        ("max:007", Options(max=7)),
        ("tag:report", Options(tags=("report",))),
        ("tag:health-check+a_1+Z9", Options(tags=("health-check", "a_1", "Z9"))),
        ("from:2026-06-01", Options(from_=parse_moment("2026-06-01"))),
        ("from:2026-06-01T09:00:00", Options(from_=parse_moment("2026-06-01T09:00:00"))),
        ("until:2026-06-01T09:00:00+02:00", Options(until=parse_moment("2026-06-01T09:00:00+02:00"))),
        ("stagger:3m, jitter:10s", Options(stagger=180_000, jitter=10_000)),
        ("  max :  1  ,tag: a+b ", Options(max=1, tags=("a", "b"))),
        ("JITTER:1s", Options(jitter=1000)),
        ("jitter:1s,jitter:2s", Options(jitter=2000)),
    ],
)
def test_options_are_read(text: str, expected: Options) -> None:
    assert read(text) == expected


def test_no_option_has_no_text() -> None:
    assert str(NO_OPTIONS) == ""
    assert {"from", "jitter", "max", "stagger", "tag", "until", "window"} == set(OPTION_NAMES)


def test_both_brackets_hold_the_same_options() -> None:
    curly = chronex.parse("TZ=Asia/Seoul 0 9 * * MON-FRI {jitter:30s}")
    angle = chronex.parse("TZ=Asia/Seoul 0 9 * * MON-FRI <jitter:30s>")
    assert curly == angle
    assert str(angle) == "TZ=Asia/Seoul 0 9 * * MON-FRI {jitter:30s}"


@pytest.mark.parametrize(
    ("text", "code", "start", "end"),
    [
        ("0 9 * * * {tag:foo+bar+foo}", "W001", 23, 26),
        ("0 9 * * * {tag:a+a+a}", "W001", 17, 18),
    ],
)
def test_a_duplicate_tag_is_a_warning_and_stays(text: str, code: str, start: int, end: int) -> None:
    result = chronex.validate(text)
    assert result.is_valid
    found = [d for d in result.warnings if d.code == code]
    assert (found[0].start, found[0].end) == (start, end)
    assert chronex.parse(text).options.tags.count(found[0].value) > 1


def test_a_later_option_of_the_same_name_counts() -> None:
    assert chronex.parse("0 9 * * * {max:1, max:2}").options.max == 2
    assert chronex.validate("0 9 * * * {max:1, max:2}").is_valid


@pytest.mark.parametrize(
    "text",
    [
        "{from:2026-01-01, until:2026-01-01}",
        "{from:2026-01-01T10:00:00Z, until:2026-01-01T10:00:01Z}",
        "{from:2026-01-01T00:00:00+09:00, until:2025-12-31T16:00:00Z}",
    ],
)
def test_bounds_in_order_are_valid(text: str) -> None:
    assert chronex.validate(f"0 9 * * * {text}").is_valid


@pytest.mark.parametrize(
    "text",
    [
        "{from:2026-01-02, until:2026-01-01}",
        "{from:2026-01-01T10:00:00Z, until:2026-01-01T10:00:00Z}",
        "{from:2026-01-01T10:00:00, until:2026-01-01T18:59:59+09:00}",
    ],
)
def test_bounds_out_of_order_are_refused(text: str) -> None:
    assert [d.code for d in chronex.validate(f"0 9 * * * {text}").errors] == ["E020"]


def test_bounds_are_compared_in_the_zone_of_the_expression() -> None:
    block = "{from:2026-01-01T10:00:00, until:2026-01-01T02:00:00Z}"
    assert chronex.validate(f"TZ=Asia/Seoul 0 9 * * * {block}").is_valid
    assert not chronex.validate(f"0 9 * * * {block}").is_valid
