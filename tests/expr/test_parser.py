"""Text to meaning or diagnostics: every code, at its exact place, with its fix where there is one."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

import chronex

REFERENCE = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "code", "field", "start", "end", "fix"),
    [
        ("60 * * * * *", "E001", "second", 0, 2, None),
        ("-1 * * * *", "E002", "minute", 0, 2, None),
        ("5,60 * * * *", "E002", "minute", 2, 4, None),
        ("0 24 * * *", "E003", "hour", 2, 4, None),
        ("0 0 0 * *", "E004", "dayOfMonth", 4, 5, None),
        ("0 0 32 * *", "E004", "dayOfMonth", 4, 6, None),
        ("0 0 1 13 *", "E005", "month", 6, 8, None),
        ("0 0 1 JNA *", "E005", "month", 6, 9, "JAN"),
        ("0 0 1 0 *", "E005", "month", 6, 7, None),
        ("0 0 * * 8", "E006", "dayOfWeek", 8, 9, None),
        ("0 0 * * MNO", "E006", "dayOfWeek", 8, 11, "MON"),
        ("0 0 * * MONDAY", "E006", "dayOfWeek", 8, 14, "MON"),
        ("*/0 * * * *", "E007", "minute", 2, 3, None),
        ("*/ * * * *", "E007", "minute", 2, 2, None),
        ("*/x * * * *", "E007", "minute", 2, 3, None),
        ("*/-5 * * * *", "E007", "minute", 2, 4, None),
        ("1-/2 * * * *", "E002", "minute", 2, 2, None),
        ("5- * * * *", "E002", "minute", 2, 2, None),
        ("-5 * * * *", "E002", "minute", 0, 2, None),
        ("1-2-3 * * * *", "E002", "minute", 2, 5, None),
        ("/5 * * * *", "E002", "minute", 0, 2, None),
        ("1,,2 * * * *", "E002", "minute", 2, 2, None),
        (",1 * * * *", "E002", "minute", 0, 0, None),
        ("* * L-31 * *", "E004", "dayOfMonth", 4, 8, None),
        ("* * L-0 * *", "E004", "dayOfMonth", 4, 7, None),
        ("* * 32W * *", "E004", "dayOfMonth", 4, 7, None),
        ("* * 0W * *", "E004", "dayOfMonth", 4, 6, None),
        ("* * 1-5W * *", "E004", "dayOfMonth", 6, 8, None),
        ("* * 1,L-31 * *", "E004", "dayOfMonth", 6, 10, None),
        ("* * W * *", "E004", "dayOfMonth", 4, 5, None),
        ("* * WL * *", "E004", "dayOfMonth", 4, 6, None),
        ("* * * * L", "E006", "dayOfWeek", 8, 9, None),
        ("* * * * MON#6", "E006", "dayOfWeek", 8, 13, None),
        ("* * * * MON#0", "E006", "dayOfWeek", 8, 13, None),
        ("* * * * 8#1", "E006", "dayOfWeek", 8, 11, None),
        ("* * * * MON#", "E006", "dayOfWeek", 8, 12, None),
        ("* * * * FRI#L", "E006", "dayOfWeek", 8, 13, "FRIL"),
        ("* * * * 8L,5", "E006", "dayOfWeek", 8, 10, None),
        ("? * * * *", "E002", "minute", 0, 1, "*"),
        ("H * * * *", "E002", "minute", 0, 1, "0"),
        ("* * ? * *,?", "E006", "dayOfWeek", 10, 11, "*"),
        ("٣ * * * *", "E002", "minute", 0, 1, "3"),
        ("* * * *", "E010", "expression", 0, 7, None),
        ("* * * * * * *", "E010", "expression", 0, 13, None),
        ("* * * * * * * *", "E010", "expression", 0, 15, None),
        ("daily", "E010", "expression", 0, 5, "@daily"),
        ("@wekly", "E010", "expression", 0, 6, "@weekly"),
        ("@reboot", "E010", "expression", 0, 7, "@start"),
        ("@daily 5", "E010", "expression", 7, 8, None),
        ("@", "E010", "expression", 0, 1, None),
        ("TZ= * * * * *", "E011", "timezone", 0, 3, None),
        ("TZ=Asia/Seul 0 9 * * *", "E011", "timezone", 3, 12, "Asia/Seoul"),
        ("TZ=asia/seoul 0 9 * * *", "E011", "timezone", 3, 13, "Asia/Seoul"),
        ("tz=Asia/Seoul 0 9 * * *", "E010", "expression", 0, 3, "TZ="),
        ("CRON_TZ=UTC 0 9 * * *", "E010", "expression", 0, 8, "TZ="),
        ("TZ=Asia/Seoul", "E010", "expression", 13, 13, None),
        ("@once", "E012", "once", 5, 5, None),
        ("@once 2026-02-30T00:00:00", "E012", "once", 6, 25, None),
        ("@once 2026-02-03", "E012", "once", 6, 16, "2026-02-03T00:00:00"),
        ("@once 2026-02-03T25:00:00", "E012", "once", 6, 25, None),
        ("@once tomorrow", "E012", "once", 6, 14, None),
        ("@once +0s", "E017", "once", 7, 9, None),
        ("@once +", "E017", "once", 7, 7, None),
        ("@once +5", "E017", "once", 7, 8, "5s"),
        ("@once +5min", "E017", "once", 7, 11, "5m"),
        ("@once -5m", "E012", "once", 6, 9, None),
        ("@every", "E013", "every", 6, 6, None),
        ("@every 0s", "E013", "every", 7, 9, None),
        ("@every 30", "E013", "every", 7, 9, "30s"),
        ("@every 30min", "E013", "every", 7, 12, "30m"),
        ("@every 2h-1h", "E014", "every", 7, 12, None),
        ("@every 1h-1h", "E014", "every", 7, 12, None),
        ("@every 1h-", "E013", "every", 10, 10, None),
        ("@every -1h", "E013", "every", 7, 10, None),
        ("@every 0s-1h", "E013", "every", 7, 9, None),
        ("@every 1 h", "E013", "every", 7, 10, "1h"),
        ("0 9 * * * {jiter:30s}", "E015", "options", 11, 16, "jitter"),
        ("0 9 * * * {jitter:30}", "E016", "options.jitter", 18, 20, "30s"),
        ("0 9 * * * {jitter}", "E016", "options.jitter", 11, 17, None),
        ("0 9 * * * {jitter:}", "E016", "options.jitter", 11, 18, None),
        ("0 9 * * * {:30s}", "E015", "options", 11, 11, None),
        ("0 9 * * * {max:0}", "E021", "options.max", 15, 16, None),
        ("0 9 * * * {max:-5}", "E021", "options.max", 15, 17, None),
        ("0 9 * * * {max:x}", "E016", "options.max", 15, 16, None),
        ("0 9 * * * {max:1.5}", "E016", "options.max", 15, 18, None),
        ("0 9 * * * {window:0s}", "E023", "options.window", 18, 20, None),
        ("0 9 * * * {stagger:0s}", "E024", "options.stagger", 19, 21, None),
        ("0 9 * * * {tag:1a}", "E016", "options.tag", 15, 17, None),
        ("0 9 * * * {tag:a b}", "E016", "options.tag", 15, 18, None),
        ("0 9 * * * {tag:a++b}", "E016", "options.tag", 17, 17, None),
        ("0 9 * * * {from:x}", "E016", "options.from", 16, 17, None),
        ("0 9 * * * {until:2026-13-01}", "E016", "options.until", 17, 27, None),
        ("0 9 * * * {from:2026-12-31, until:2026-01-01}", "E020", "options", 11, 44, None),
        ("0 9 * * * {}", "E010", "expression", 10, 12, ""),
        ("0 9 * * * { }", "E010", "expression", 10, 13, ""),
        ("0 9 * * * {jitter:5s,}", "E010", "expression", 21, 21, None),
        ("0 9 * * * {,jitter:5s}", "E010", "expression", 11, 11, None),
        ("0 9 * * * {jitter:5s>", "E010", "expression", 20, 21, "}"),
        ("0 9 * * * <jitter:5s}", "E010", "expression", 20, 21, ">"),
        ("0 9 * * * {jitter:5s", "E010", "expression", 10, 20, None),
        ("0 9 * * * {jitter:5s} x", "E010", "expression", 22, 23, None),
        ("0 9 * * * {jitter:5s} {max:1}", "E010", "expression", 22, 29, None),
        ("{jitter:5s}", "E010", "expression", 0, 0, None),
        ("R/2026-01-01T00:00:00", "E010", "expression", 0, 21, None),
        ("R/x/P1D", "E012", "repeating", 2, 3, None),
        ("R/2026-01-01T00:00:00/P0D", "E013", "repeating", 22, 25, None),
        ("R/2026-01-01T00:00:00/1D", "E013", "repeating", 22, 24, None),
        ("R-1/2026-01-01T00:00:00/P1D", "E010", "expression", 0, 27, None),
        ("R/2026-01-02T00:00:00Z/2026-01-01T00:00:00Z", "E013", "repeating", 23, 43, None),
        ("R/2026-01-02/2026-01-02", "E013", "repeating", 13, 23, None),
        ("R/2026-01-01T00:00:00/2026-02-01T00:00:00Z", "E012", "repeating", 2, 21, None),
        ("R/P0D", "E013", "repeating", 2, 5, None),
        ("R0/P1D", "E021", "repeating", 1, 2, None),
        ("R2/P1D/x", "E012", "repeating", 7, 8, None),
        ("R/2026-01-01T00:00:00/P1D/P1D", "E010", "expression", 0, 29, None),
        ("P0D", "E013", "repeating", 0, 3, None),
        ("TZ=UTC P3X", "E013", "repeating", 7, 10, None),
        ("P1D 3", "E010", "expression", 0, 5, None),
    ],
)  # fmt: skip
def test_a_fault_has_its_code_its_place_and_its_fix(
    text: str, code: str, field: str, start: int, end: int, fix: str | None
) -> None:
    found = chronex.validate(text, reference=REFERENCE).errors
    assert [(d.code, d.field, d.start, d.end, d.fix) for d in found] == [(code, field, start, end, fix)]
    assert found[0].value == text[start:end]
    assert found[0].is_error
    assert found[0].position == start
    with pytest.raises(chronex.ExpressionError) as caught:
        chronex.parse(text, reference=REFERENCE)
    assert caught.value.diagnostics == found
    assert caught.value.text == text
    assert str(caught.value) == str(found[0])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("60 * * * * *", "second: value 60 out of range [0, 59]"),
        ("60 * * * *", "minute: value 60 out of range [0, 59]"),
        ("0 25 * * *", "hour: value 25 out of range [0, 23]"),
        ("0 0 32 * *", "dayOfMonth: value 32 out of range [1, 31]"),
        ("0 0 1 13 *", "month: value 13 out of range [1, 12]"),
        ("0 0 * * 8", "dayOfWeek: value 8 out of range [0, 7]"),
        ("*/0 * * * *", "minute: step must be positive, got 0"),
        ("0 0 */0 * *", "dayOfMonth: step must be positive, got 0"),
        ("* * * *", "expected 5 or 6 fields, got 4"),
        ("TZ=Mars/Olympus 0 0 * * *", "timezone: unknown timezone 'Mars/Olympus'"),
        ("@every 0s", "every: duration must be positive"),
        ("@every -5m", "every: duration must be positive"),
        ("@every 2h-1h", "every: min duration must be less than max"),
        ("@once +0s", "once: relative duration must be positive"),
        ("0 9 * * * {from:2026-02-01, until:2026-01-01}", "options: 'from' must be before 'until'"),
        ("0 9 * * * {max:0}", "options.max: must be positive, got 0"),
        ("0 9 * * * {window:0s}", "options.window: must be positive"),
        ("0 9 * * * {stagger:0s}", "options.stagger: must be positive"),
    ],
)
def test_the_wording_is_that_of_the_specification(text: str, message: str) -> None:
    assert [str(d) for d in chronex.validate(text, reference=REFERENCE).errors] == [message]


@pytest.mark.parametrize(
    ("text", "beginning"),
    [
        ("@once soon", "once: invalid datetime format 'soon'"),
        ("0 9 * * * {colour:red}", "options: unknown option 'colour'"),
        ("0 9 * * * {jitter:soon}", "options.jitter: expected duration, got 'soon'"),
        ("0 9 * * * {from:soon}", "options.from: expected date or datetime, got 'soon'"),
        ("0 9 * * * {max:some}", "options.max: expected positive integer, got 'some'"),
        ("0 0 0 0 0 0 2030", "expected 5 or 6 fields, got 7; a seventh field for years is not supported"),
        ("* * * * * echo hello world", "expected 5 or 6 fields, got 8; a command does not belong"),
        ("@reboot", "@reboot is a word of cron; here it is @start"),
        ("H 9 * * *", "minute: 'H' is Jenkins' hash"),
        ("0 9 * * FRI#L", "dayOfWeek: 'FRI#L': the last one of a month is written FRIL"),
        ("\u0663 9 * * *", "minute: '\u0663' is not a value: only plain ASCII characters count"),
        ("0\u00a09 * * *", "character U+00A0 (no-break space) is not allowed"),
        ("", "the schedule is missing"),
    ],
)
def test_a_message_begins_with_what_is_wrong_and_goes_on_with_what_to_do(text: str, beginning: str) -> None:
    found = chronex.validate(text, reference=REFERENCE).errors
    assert str(found[0]).startswith(beginning)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("61 25 0 13 8", [("E002", "61"), ("E003", "25"), ("E004", "0"), ("E005", "13"), ("E006", "8")]),
        ("60 61 25 0 13 8", [("E001", "60"), ("E002", "61"), ("E003", "25"), ("E004", "0"), ("E005", "13"), ("E006", "8")]),
        ("60,61-70,*/0 * * * *", [("E002", "60"), ("E002", "61"), ("E002", "70"), ("E007", "0")]),
        ("99/0 * * * *", [("E002", "99"), ("E007", "0")]),
        ("0 0 L-0,LW,0W * *", [("E004", "L-0"), ("E004", "0W")]),
        ("0 0 1,2w,15W * *", [("E004", "2w")]),
        ("0 0 * * MON#6,TUEL,9", [("E006", "MON#6"), ("E006", "9")]),
        ("TZ=Nope/X 61 * * * * {jiter:1, max:0}", [("E011", "Nope/X"), ("E002", "61"), ("E015", "jiter"), ("E021", "0")]),
        ("@every x-y {stagger:0s, window:0s}", [("E013", "x"), ("E013", "y"), ("E024", "0s"), ("E023", "0s")]),
        ("R/x/y", [("E012", "x"), ("E013", "y")]),
        ("TZ= * * *", [("E011", "TZ="), ("E010", "* * *")]),
        ("0 25 * * * {max:x>", [("E003", "25"), ("E016", "x"), ("E010", ">")]),
        ("0 9 * * * {tag:1+2}", [("E016", "1"), ("E016", "2")]),
    ],
)  # fmt: skip
def test_all_faults_are_reported_at_once_in_the_order_of_the_text(text: str, expected: list[tuple[str, str]]) -> None:
    found = chronex.validate(text, reference=REFERENCE).errors
    assert [(d.code, d.value) for d in found] == expected
    assert all(text[d.start : d.end] == d.value for d in found)


@pytest.mark.parametrize(
    ("text", "start", "value"),
    [
        ("\t0\t25\t*\t*\t*", 3, "25"),
        ("  0   25 * * *", 6, "25"),
        ("0 9 * * \u00fc", 8, "\u00fc"),
        ("0 9 * \U0001f600,13 *", 6, "\U0001f600"),
        ("0 9 * JAN,\U0001f600,13 *", 10, "\U0001f600"),
        ("0 9 \u65e5 * 8", 4, "\u65e5"),
        ("TZ=UTC\t61 * * * *", 7, "61"),
        ("0 9 * * *\t{\tmax:0}", 16, "0"),
        ("0 9 * * * { tag:\u00e9 }", 16, "\u00e9"),
        ("@every\t 5\u00b5s", 8, "5\u00b5s"),
        ("0\t9 * *", 0, "0\t9 * *"),
        ("0 9 * * * {from:2026-02-01,\tuntil:2026-01-01}", 11, "from:2026-02-01,\tuntil:2026-01-01"),
    ],
)
def test_places_are_counted_in_characters_beside_tabs_and_other_scripts(text: str, start: int, value: str) -> None:
    found = chronex.validate(text).errors
    assert (found[0].start, found[0].end, found[0].value) == (start, start + len(value), value)
    assert text[start : start + len(value)] == value


def test_two_faults_beside_another_script_are_both_in_place() -> None:
    text = "0 9 * \U0001f600,13 8"
    assert [(d.start, d.value) for d in chronex.validate(text).errors] == [(6, "\U0001f600"), (8, "13"), (11, "8")]


def test_a_control_character_is_named_and_can_be_removed() -> None:
    found = chronex.validate("0\x00 9 * * *\n").errors
    assert [(d.code, d.start, d.end, d.fix) for d in found] == [("E010", 1, 2, ""), ("E010", 10, 11, " ")]
    assert "U+0000" in found[0].message


FIXABLE = (
    "0 0 1 JNA *", "0 0 * * MONDAY", "0 0 * * FRI#L", "? * * * *", "H * * * *", "daily", "@wekly", "TZ=Asia/Seul 0 9 * * *",
    "TZ=asia/seoul 0 9 * * *", "tz=Asia/Seoul 0 9 * * *", "CRON_TZ=UTC 0 9 * * *", "@once 2026-02-03", "@once +5min", "@every 30",
    "@every 1 hour", "0 9 * * * {jiter:30s}", "0 9 * * * {jitter:30}", "0 9 * * * {}", "0 9 * * * {jitter:5s>", "0 9 * * *\n",
    "0\u00a09 * * *", "\ufeff0 9 * * *",
)  # fmt: skip


@pytest.mark.parametrize("text", FIXABLE)
def test_the_fix_put_in_the_place_of_the_fault_makes_the_text_valid(text: str) -> None:
    (found,) = chronex.validate(text, reference=REFERENCE).errors
    assert found.fix is not None
    repaired = text[: found.start] + found.fix + text[found.end :]
    assert chronex.validate(repaired, reference=REFERENCE).is_valid, repaired


@pytest.mark.parametrize(
    "text",
    [
        "*/5 * * * *", "0 9 * * MON-FRI", "0 0 1 * *", "30 4 1,15 * *", "0 22 * * 1-5", "0 */5 * * * *", "30 0 * * * *",
        "*/10 * * * * *", "TZ=Asia/Seoul 0 9 * * *", "TZ=America/New_York 0 17 * * MON-FRI", "TZ=UTC 0 0 * * *", "0 0 L * *",
        "0 0 LW * *", "0 0 L-3 * *", "0 0 15W * *", "0 0 * * 5L", "0 0 * * MON#2", "@every 30m", "@every 2h", "@every 1h30m",
        "@every 45s", "@every 1h-2h", "@once 2025-03-01T09:00:00+09:00", "@once 2025-12-31T23:59:59Z", "@once +20m", "@once +1h30m",
        "@daily", "@hourly", "@weekly", "@YEARLY", "0 9 * * * {jitter:30s}", "0 * * * * {stagger:5m}",
        "0 9 * * * {stagger:3m, jitter:10s}", "0 9 * * * {window:15m}", "*/10 * * * * {until:2025-12-31}", "@every 1h {max:10}",
        "@every 5m {from:2025-06-01, until:2025-12-31}", "TZ=Asia/Seoul 0 9 * * MON-FRI {jitter:30s, until:2025-12-31}",
        "TZ=UTC @every 15m {window:5m, max:100, tag:health-check}", "TZ=America/Chicago 0 0 L * * {jitter:1m, tag:monthly+report}",
        "0 * * * * {stagger:5m, tag:hourly+batch}", "@once 2025-04-01T02:00:00+09:00 {tag:migration}", "@once +30m {tag:reminder}",
        "TZ=Asia/Seoul 0 9 * * MON-FRI <jitter:30s>", "TZ=Etc/GMT+5 @daily", "TZ=America/Argentina/Ushuaia @daily",
        "0 0 30 2 *", "R5/2026-01-01T00:00:00Z/P1M", "R/2026-01-01T09:00/P3W", "0 9 * * *{max:5}", "  @ANNUALLY  ",
    ],
)  # fmt: skip
def test_the_examples_of_the_specification_are_valid(text: str) -> None:
    result = chronex.validate(text, reference=REFERENCE)
    assert result.is_valid
    assert result.errors == ()
    assert chronex.parse(text, reference=REFERENCE) == chronex.parse(text, reference=REFERENCE)


def test_a_diagnostic_is_a_row_of_plain_values() -> None:
    (found,) = chronex.validate("0 0 1 JNA *").errors
    assert found.to_dict() == {
        "code": "E005",
        "severity": "error",
        "field": "month",
        "message": "unknown name 'JNA'; did you mean JAN?",
        "value": "JNA",
        "start": 6,
        "end": 9,
        "fix": "JAN",
    }


def test_a_long_value_is_shortened_in_the_message_and_whole_in_the_diagnostic() -> None:
    (found,) = chronex.validate("9" * 500 + " * * * *").errors
    assert len(found.message) < 100
    assert found.value == "9" * 500
