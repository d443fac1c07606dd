"""Canonical text, equality and hash: one text for printing, one meaning for comparing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import chronex

REFERENCE = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        # blanks, zeros and case go; names, aliases and the number of fields stay
        ("  0   9 * *  1-5 ", "0 9 * * 1-5"),
        ("0\t9\t*\t*\t*", "0 9 * * *"),
        ("00 09 01 01 *", "0 9 1 1 *"),
        ("0 9 * * mon-fri", "0 9 * * MON-FRI"),
        ("0 0 1 jan,Feb *", "0 0 1 JAN,FEB *"),
        ("0 23-01 * * *", "0 23-1 * * *"),
        ("0 0 9 * * *", "0 0 9 * * *"),
        ("*/05 * * * *", "*/5 * * * *"),
        ("10,05 * * * *", "10,5 * * * *"),
        ("@DAILY", "@daily"),
        ("@midnight", "@midnight"),
        ("0 0 ? * ?", "0 0 * * *"),
        ("0 0 l * *", "0 0 L * *"),
        ("0 0 lw * *", "0 0 LW * *"),
        ("0 0 l-03 * *", "0 0 L-3 * *"),
        ("0 0 015w * *", "0 0 15W * *"),
        ("0 0 * * fril", "0 0 * * FRIL"),
        ("0 0 * * mon#2", "0 0 * * MON#2"),
        # Sunday is 0, except inside a range or a step
        ("0 0 * * 7", "0 0 * * 0"),
        ("0 0 * * 1,7", "0 0 * * 1,0"),
        ("0 0 * * 7L", "0 0 * * 0L"),
        ("0 0 * * 07L,05#2", "0 0 * * 0L,5#2"),
        ("0 0 * * 7#2", "0 0 * * 0#2"),
        ("0 0 * * 07", "0 0 * * 0"),
        ("0 0 * * 5-7", "0 0 * * 5-7"),
        ("0 0 * * 7-2", "0 0 * * 7-2"),
        ("0 0 * * 7/2", "0 0 * * 7/2"),
        ("0 7 * 7 1", "0 7 * 7 1"),
        # durations and options
        ("@every 90m", "@every 1h30m"),
        ("@EVERY  36h", "@every 1d12h"),
        ("@every 30m1h", "@every 1h30m"),
        ("@every 3600s-7200s", "@every 1h-2h"),
        ("0 9 * * * <jitter:90s>", "0 9 * * * {jitter:1m30s}"),
        ("0 9 * * *{max:5}", "0 9 * * * {max:5}"),
        ("0 9 * * * {max:05}", "0 9 * * * {max:5}"),
        ("0 9 * * * { window:15m , jitter: 10s,tag:b+a }", "0 9 * * * {jitter:10s, tag:b+a, window:15m}"),
        ("0 9 * * * {jitter:0s}", "0 9 * * * {jitter:0ms}"),
        ("0 9 * * * {jitter:5s, jitter:10s}", "0 9 * * * {jitter:10s}"),
        (
            "@daily {window:1h,until:2026-12-31,tag:x,stagger:1m,max:3,jitter:1s,from:2026-01-01}",
            "@daily {from:2026-01-01, jitter:1s, max:3, stagger:1m, tag:x, until:2026-12-31, window:1h}",
        ),
        ("0 9 * * * {from:2026-01-01T00:00}", "0 9 * * * {from:2026-01-01T00:00:00}"),
        # moments keep their offset
        ("@once 2026-03-01T09:00:00+09:00", "@once 2026-03-01T09:00:00+09:00"),
        ("@once 2026-03-01T09:00:00+00:00", "@once 2026-03-01T09:00:00Z"),
        ("@ONCE 2026-03-01T09:00:00.500", "@once 2026-03-01T09:00:00.5"),
        ("TZ=Asia/Seoul\t@daily", "TZ=Asia/Seoul @daily"),
        ("  TZ=UTC   0 9 * * *", "TZ=UTC 0 9 * * *"),
        ("TZ=Etc/GMT+5 @daily", "TZ=Etc/GMT+5 @daily"),
        ("R/2026-01-01T09:00/P14D", "R/2026-01-01T09:00:00/P2W"),
        ("r05/2026-01-01/PT90M", "R5/2026-01-01T00:00:00/PT1H30M"),
    ],
)  # fmt: skip
def test_the_canonical_text_is_normal_and_reads_back(text: str, canonical: str) -> None:
    expression = chronex.parse(text)
    assert str(expression) == canonical
    again = chronex.parse(canonical)
    assert again == expression
    assert hash(again) == hash(expression)
    assert str(again) == canonical


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("@weekly", "0 0 * * 0"),
        ("@yearly", "@annually"),
        ("@midnight", "@daily"),
        ("@monthly", "0 0 1 * *"),
        ("@hourly", "0 * * * *"),
        ("0 0 * * 7", "0 0 * * 0"),
        ("0 0 * * SUN", "0 0 * * 7"),
        ("0 9 * * MON-FRI", "0 9 * * 1-5"),
        ("0 9 * * MON-FRI", "0 9 * * 1,2,3,4,5"),
        ("0 0 9 * * *", "0 9 * * *"),
        ("0 */5 * * * *", "*/5 * * * *"),
        ("0 23-1 * * *", "0 23-0,1 * * *"),
        ("* 7-2 * * *", "* 0-2,7-23 * * *"),
        ("0 0 * * 5-7", "0 0 * * FRI-SUN"),
        ("0 0 1-31 * *", "0 0 * * *"),
        ("0 0 1-31 * MON", "0 0 * * *"),
        ("0 9 * JAN-DEC *", "0 9 * * *"),
        ("0 9 * * * <max:5>", "0 9 * * * {max:5}"),
        ("0 9 * * * {jitter:0s}", "0 9 * * *"),
        ("0 9 * * * {jitter:60s}", "0 9 * * * {jitter:1m}"),
        ("@every 90m", "@every 1h30m"),
        ("@once 2026-03-01T09:00:00+09:00", "@once 2026-03-01T00:00:00Z"),
        ("R/2026-01-01T09:00/P14D", "R/2026-01-01T09:00:00/P2W"),
        ("R/2026-01-01T09:00:00+09:00/P1D", "R/2026-01-01T00:00:00Z/P1D"),
    ],
)
def test_texts_of_one_meaning_are_equal_and_hash_alike(one: str, other: str) -> None:
    assert chronex.parse(one) == chronex.parse(other)
    assert hash(chronex.parse(one)) == hash(chronex.parse(other))
    assert len({chronex.parse(one), chronex.parse(other)}) == 1


@pytest.mark.parametrize(
    ("one", "other", "because"),
    [
        ("0-59 * * * *", ",".join(map(str, range(60))) + " 9 * * *", "another hour"),
        (",".join(map(str, range(60))) + " 9 * * *", "0-59 9 * * *", "only a range fires twice in a doubled hour"),
        ("0 9-10 * * *", "0 9,10 * * *", "only a range fires twice in a doubled hour"),
        ("0 0 1-31 * MON", "0 0 * * MON", "two restricted day fields are joined by or"),
        ("0 0 1 * 0-6", "0 0 1 * *", "two restricted day fields are joined by or"),
        ("0 0 1 * MON", "0 0 1 * *", "other days"),
        ("0 0 LW * *", "0 0 L * *", "another rule"),
        ("0 0 31 * *", "0 0 L * *", "the last day is not always the 31st"),
        ("0 0 * * 5L", "0 0 * * 5", "only the last Friday"),
        ("0 0 * * 5#1", "0 0 * * 5#2", "another Friday"),
        ("TZ=UTC 0 9 * * *", "0 9 * * *", "a zone of its own is not the caller's"),
        ("TZ=Asia/Seoul 0 9 * * *", "TZ=Asia/Tokyo 0 9 * * *", "another zone"),
        ("0 9 * * * {max:5}", "0 9 * * *", "another option"),
        ("0 9 * * * {tag:a+b}", "0 9 * * * {tag:b+a}", "the order of tags counts"),
        ("0 9 * * * {tag:a+a}", "0 9 * * * {tag:a}", "duplicates stay"),
        ("0 9 * * * {from:2026-01-01}", "0 9 * * * {from:2026-01-02}", "another bound"),
        ("@every 1h", "0 * * * *", "another kind"),
        ("@every 1h", "@every 1h-2h", "a random distance"),
        ("@once 2026-03-01T09:00:00", "@once 2026-03-01T09:00:00Z", "a wall time is not an instant"),
        ("R5/2026-01-01T09:00/P1D", "R/2026-01-01T09:00/P1D", "it ends"),
        ("R/2026-01-01T09:00/P1D", "R/2026-01-01T09:00/PT24H", "a day is not 24 hours when the clock changes"),
    ],
)  # fmt: skip
def test_texts_of_different_meaning_differ(one: str, other: str, because: str) -> None:
    assert chronex.parse(one) != chronex.parse(other), because


def test_a_relative_moment_is_resolved_when_it_is_read() -> None:
    expression = chronex.parse("@once +1h30m", reference=REFERENCE)
    assert str(expression) == "@once 2026-01-01T01:30:00Z"
    assert chronex.parse(str(expression)) == expression
    assert expression == chronex.parse("@once 2026-01-01T01:30:00Z")
    assert expression.next(REFERENCE) == REFERENCE + timedelta(minutes=90)
    assert str(chronex.parse("@once +500ms", reference=REFERENCE)) == "@once 2026-01-01T00:00:00.5Z"


def test_the_dialect_is_part_of_the_meaning() -> None:
    assert chronex.parse("0 9 * * *", dialect="posix") != chronex.parse("0 9 * * *")
    assert chronex.parse("0 9 * * *", dialect="posix") == chronex.parse("0 09 * * *", dialect="posix")


def test_an_expression_is_not_equal_to_other_things() -> None:
    assert chronex.parse("0 9 * * *") != "0 9 * * *"
    assert chronex.parse("0 9 * * *") is not None


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("0 9 * * *", "cron"),
        ("@daily", "cron"),
        ("@every 5m", "interval"),
        ("@once 2026-01-01T00:00:00Z", "once"),
        ("R/2026-01-01T00:00:00Z/P1D", "repeating"),
    ],
)
def test_an_expression_says_its_kind(text: str, kind: str) -> None:
    assert chronex.parse(text).kind == kind


def test_an_expression_shows_its_parts() -> None:
    expression = chronex.parse("TZ=Asia/Seoul 0 9 * * * {jitter:30s, max:3, tag:a+b}")
    assert expression.timezone == "Asia/Seoul"
    assert (expression.options.jitter, expression.options.max, expression.options.tags) == (30_000, 3, ("a", "b"))
    assert expression.dialect == "chronex"
    assert repr(expression) == "Expression('TZ=Asia/Seoul 0 9 * * * {jitter:30s, max:3, tag:a+b}')"
    assert chronex.parse("0 9 * * *").timezone is None
