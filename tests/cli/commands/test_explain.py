"""explain: what an expression means, when it fires, and what clock changes do to it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.conftest import BINARY, Chronex

pytestmark = pytest.mark.binary


SEOUL = "TZ=Asia/Seoul 0 9 * * MON-FRI <jitter:30s>"


NEW_YORK = ("--tz", "America/New_York")


def explained(chronex: Chronex, *arguments: str) -> dict[str, Any]:
    done = chronex("explain", *arguments, "--format", "json")
    assert done.code == 0, done.err
    data: dict[str, Any] = json.loads(done.out)
    return data


def test_explain_works_as_the_user_wrote_it(chronex: Chronex) -> None:
    done = chronex("explain", SEOUL)
    assert done.code == 0
    assert "TZ=Asia/Seoul 0 9 * * MON-FRI {jitter:30s}" in done.out
    assert "At 09:00, Monday through Friday (Asia/Seoul), with up to 30s jitter" in done.out
    assert "Asia/Seoul (from the expression)" in done.out
    assert done.out.count("+09:00") >= 10


def test_the_json_of_explain_has_the_documented_keys(chronex: Chronex) -> None:
    data = explained(chronex, SEOUL, "--from", "2027-01-04T00:00:00+09:00", "-n", "1")
    documented = "expression canonical kind dialect timezone description occurrences clock_changes diagnostics"
    assert set(documented.split()) <= set(data)
    assert data["kind"] == "cron"
    assert data["timezone"] == "Asia/Seoul"
    assert data["occurrences"] == [
        {
            "nominal": "2027-01-04T09:00:00+09:00",
            "utc": "2027-01-04T00:00:00Z",
            "nominal_ms": 1799020800000,
            "earliest": "2027-01-04T09:00:00+09:00",
            "latest": "2027-01-04T09:00:30+09:00",
            "note": "",
        }
    ]


def test_clock_changes_say_what_this_expression_does(chronex: Chronex) -> None:
    data = explained(chronex, "30 2 * * *", *NEW_YORK, "--from", "2027-03-13")
    assert data["clock_changes"] == [
        {
            "at": "2027-03-14T03:00:00-04:00",
            "kind": "gap",
            "from_offset": "-05:00",
            "to_offset": "-04:00",
            "effect": "02:30 does not exist: the run fires at 03:00 instead",
        },
        {
            "at": "2027-11-07T01:00:00-05:00",
            "kind": "overlap",
            "from_offset": "-04:00",
            "to_offset": "-05:00",
            "effect": "no runs affected",
        },
    ]
    assert [d["code"] for d in data["diagnostics"]] == ["W111"]


@pytest.mark.parametrize(
    ("expression", "since", "nominal", "note"),
    [
        ("30 2 * * *", "2027-03-13T03:00", "2027-03-14T03:00:00-04:00", "moved: 02:30 does not exist on this day"),
        ("0 1-5 * * *", "2027-03-14T01:30", "2027-03-14T03:00:00-04:00", "merged: 02:00 does not exist on this day"),
        ("30 1 * * *", "2027-11-07T00:00", "2027-11-07T01:30:00-04:00", "first pass only: this hour happens twice"),
        ("*/30 * * * *", "2027-11-07T00:30", "2027-11-07T01:00:00-04:00", "first pass: this hour happens twice"),
        ("0 9 * * *", "2027-03-14T00:00", "2027-03-14T09:00:00-04:00", ""),
    ],
)
def test_a_run_that_a_clock_change_touched_has_a_note(
    chronex: Chronex, expression: str, since: str, nominal: str, note: str
) -> None:
    run = explained(chronex, expression, *NEW_YORK, "--from", since, "-n", "1")["occurrences"][0]
    assert (run["nominal"], run["note"]) == (nominal, note)


@pytest.mark.skipif(bool(BINARY), reason="a frozen program takes its encoding from the locale alone")
def test_the_picture_of_the_day_shows_the_missing_and_the_doubled_hour(chronex: Chronex) -> None:
    done = chronex("explain", "30 1 * * *", *NEW_YORK, "--from", "2027-01-01", "-n", "1")
    assert "    00 01 02 03 04" in done.out
    assert "    ·· ·● ░░ ·· ··" in done.out
    assert "    00 01 01 02 03" in done.out
    assert "    ·· ┄● ┅┅ ·· ··" in done.out
    plain = chronex(
        "explain",
        "30 1 * * *",
        *NEW_YORK,
        "--from",
        "2027-01-01",
        LC_ALL="C",
        PYTHONUTF8="0",
        PYTHONIOENCODING="ascii",
    )
    assert "    .. .* xx .. .." in plain.out


def test_stagger_needs_an_id_to_be_exact(chronex: Chronex) -> None:
    arguments = ("0 9 * * * {stagger:30s}", "--from", "2027-01-01", "-n", "1")
    known = explained(chronex, *arguments, "--id", "my-trigger")["occurrences"][0]
    assert known["earliest"] == known["latest"] == "2027-01-01T09:00:04.970+00:00"
    unknown = explained(chronex, *arguments)["occurrences"][0]
    assert (unknown["earliest"], unknown["latest"]) == ("2027-01-01T09:00:00+00:00", "2027-01-01T09:00:30+00:00")


def test_a_spread_shows_window_choice_and_shape(chronex: Chronex) -> None:
    arguments = ("0 9 * * *", "--from", "2027-01-04", "-n", "2", "--spread", "2h", "--id", "backup")
    data = explained(chronex, *arguments, "--only", "between=09:30-10:00")
    for run in data["occurrences"]:
        assert run["decision"]["window_end"] > run["decision"]["chosen_time"] > run["decision"]["window_start"]
        assert run["decision"]["seed_hash"]
    assert sum(data["histogram"]) == 200
    shown = chronex("explain", *arguments, "--only", "between=12:00-13:00")
    assert "unschedulable, no candidate accepted within MaxAttempts" in shown.out


def test_shortest_and_longest_distance_over_the_next_year(chronex: Chronex) -> None:
    data = explained(chronex, "30 2 * * *", *NEW_YORK, "--from", "2027-01-01")
    assert data["distances"]["shortest_ms"] == (23 * 60 + 30) * 60_000
    assert data["distances"]["longest_ms"] == 25 * 3_600_000


def test_an_invalid_expression_is_shown_with_carets_and_exits_2(chronex: Chronex) -> None:
    done = chronex("explain", "*/5 25 * * MNO")
    assert done.code == 2
    assert done.out == ""
    assert done.err.splitlines() == [
        "  */5 25 * * MNO",
        "      ^^ E003 hour: value 25 out of range [0, 23]",
        "             ^^^ E006 dayOfWeek: unknown name 'MNO'; did you mean MON?",
    ]
    as_json = chronex("explain", "0 25 * * *", "--format", "json")
    assert as_json.code == 2
    assert [d["code"] for d in json.loads(as_json.out)["diagnostics"]] == ["E003"]


def test_the_hosts_zone_applies_and_is_named(chronex: Chronex) -> None:
    done = chronex("explain", "0 9 * * *", "-n", "1", TZ="Europe/Paris")
    assert "zone      Europe/Paris (the host's, from the TZ variable)" in done.out


def test_a_zone_variable_without_a_name_is_not_used_and_that_is_told(chronex: Chronex) -> None:
    done = chronex("explain", "0 9 * * *", "-n", "1", TZ="CET-1CEST")
    assert "; TZ='CET-1CEST' is no zone name and not used)" in done.out


@pytest.mark.parametrize("command", ["explain", "next", "fmt", "lint"])
def test_the_posix_dialect_is_offered_by_every_command(chronex: Chronex, command: str) -> None:
    good = chronex(command, "0 9 * * 1-5", "--dialect", "posix")
    assert good.code == 0, good.err
    bad = chronex(command, "*/5 * * * *", "--dialect", "posix")
    assert bad.code == (1 if command == "lint" else 2)
    assert "steps are not" in bad.out + bad.err


def test_a_posix_minute_in_a_gap_is_skipped(chronex: Chronex) -> None:
    done = chronex("next", "30 2 * * *", "--dialect", "posix", "--from", "2027-03-13T03:00", *NEW_YORK)
    assert done.out == "2027-03-15T02:30:00-04:00\n"


def test_calendars_say_what_they_leave_out_and_where_they_move_it(chronex: Chronex) -> None:
    about = ("explain", "0 9 1 * *", "-n", "2", "--from", "2026-12-30", "--tz", "Europe/Berlin")
    calendars = ("--calendar", "dates=2027-01-01", "--on-excluded", "next_workday")
    done = chronex(*about, *calendars)
    assert "moved from 2027-01-01T09:00:00+01:00 by dates=2027-01-01" in done.out
    assert "Fri 2027-01-01 09:00:00 +01:00   dates=2027-01-01, moved to Mon 2027-01-04 09:00:00 +01:00" in done.out
    found = json.loads(chronex(*about, *calendars, "--format", "json").out)
    assert [one["nominal"] for one in found["occurrences"]] == [
        "2027-01-04T09:00:00+01:00",
        "2027-02-01T09:00:00+01:00",
    ]
    assert [(one["nominal"], one["moved_to"]) for one in found["excluded"]] == [
        ("2027-01-01T09:00:00+01:00", "2027-01-04T09:00:00+01:00")
    ]


# -- for other programs -----------------------------------------------------------------------------------------------


def test_the_equivalent_for_another_program_is_printed_with_its_proof(chronex: Chronex) -> None:
    done = chronex(
        "explain", "TZ=Europe/Berlin 0 9 * * MON-FRI {jitter:30s}", "--as", "systemd", "--from", "2027-01-01"
    )
    assert done.code == 0
    assert done.out.splitlines() == [
        "OnCalendar=Mon..Fri *-*-* 09:00:00 Europe/Berlin",
        "# All 1305 instants of the next five years are the same for systemd and Chronex.",
        "# Not in this text: jitter.",
    ]


def test_where_there_is_no_equivalent_the_reason_and_the_first_difference_are_printed(chronex: Chronex) -> None:
    done = chronex("explain", "TZ=Europe/Berlin 30 2 * * *", "--as", "kubernetes", "--from", "2027-01-01")
    assert done.code == 1
    assert done.out.splitlines() == [
        "no equivalent for Kubernetes: what comes nearest fires at other times",
        '  schedule: "30 2 * * *"',
        "  timeZone: Europe/Berlin",
        "  first difference: Sun 2027-03-28 03:00:00 CEST, when only Chronex fires",
    ]


def test_the_equivalent_as_json_has_the_documented_keys(chronex: Chronex) -> None:
    done = chronex("explain", "0 9 15,L * *", "--tz", "UTC", "--as", "quartz", "--format", "json")
    data = json.loads(done.out)
    assert done.code == 1
    assert (data["as"], data["equivalent"], data["reason"]) == ("quartz", None, "list of days by their place")
    assert set(data) == {
        "expression", "canonical", "as", "program", "timezone", "equivalent", "reason", "difference", "compared",
        "compared_all", "left_out",
    }  # fmt: skip


def test_a_program_that_is_not_known_is_bad_usage(chronex: Chronex) -> None:
    done = chronex("explain", "0 9 * * *", "--as", "sytemd")
    assert done.code == 2
    assert "did you mean systemd?" in done.err
