"""chronex import systemd: calendars against systemd itself, and what surrounds them."""

from __future__ import annotations

import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from chronex.imports.import_result import Import, as_chronex_reads, prove
from chronex.imports.systemd import read_timers, timer_of, timers_in
from chronex.imports.systemd_service import span_ms
from chronex.timing.zones import load_zone

NOW = int(datetime(2026, 11, 16, tzinfo=UTC).timestamp())
BERLIN = load_zone("Europe/Berlin")
CALENDARS = {
    "daily": "0 0 * * *",
    "hourly": "0 * * * *",
    "Mon..Fri 09:00": "0 9 * * MON,TUE,WED,THU,FRI",
    "*-*-* 02:30:00": "30 2 * * *",
    "*:0/15": "0/15 * * * *",
    "*-*-01 04:00": "0 4 1 * *",
    "Sun *-*-* 03:10": "10 3 * * SUN",
    "*-*~1 23:00": "0 23 L * *",
    "*-01,07-01 00:00": "0 0 1 1,7 *",
    "*:*:0/20": "0/20 * * * * *",
    "02..04:30": "30 2-4 * * *",
}


def written(tmp_path: Path, timer: str, service: str = "ExecStart=/bin/true") -> Import:
    (tmp_path / "job.timer").write_text(f"[Unit]\nDescription=Mine\n[Timer]\n{timer}\n")
    (tmp_path / "job.service").write_text(f"[Service]\n{service}\n")
    return read_timers(list(timers_in([tmp_path])), BERLIN)


@pytest.mark.parametrize("event", CALENDARS)
def test_a_calendar_becomes_an_expression_that_fires_the_same(tmp_path: Path, event: str) -> None:
    found, proven = prove(written(tmp_path, f"OnCalendar={event}"), NOW)
    assert [job.table["schedule"] for job in found.jobs] == [CALENDARS[event]]
    assert [each.differences[:3] for each in proven] == [()]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize("event", ["*-*-* 02:30:00", "*:0/30", "Sun *-*-* 02..03:10", "Mon *-*-1..7 06:00"])
def test_the_instants_are_those_that_systemd_names(tmp_path: Path, event: str) -> None:
    for day in ("2027-03-27", "2027-10-30"):
        begin = int(datetime.fromisoformat(f"{day}T20:00:00+00:00").timestamp())
        done = subprocess.run(
            ["systemd-analyze", "calendar", "--iterations=12", f"--base-time=@{begin}", f"{event} Europe/Berlin"],
            capture_output=True, text=True, check=True, env={"TZ": "UTC", "PATH": "/usr/bin:/bin", "LC_ALL": "C"},
        )  # fmt: skip
        lines = [
            line for line in done.stdout.splitlines() if "(in UTC)" in line or "Next elapse" in line or "Iter" in line
        ]
        times = [line.split(": ", 1)[1].removesuffix(" UTC") for line in lines if line.endswith("UTC")]
        expected = [int(datetime.strptime(t[4:], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp()) for t in times]
        theirs = written(tmp_path, f"OnCalendar={event} Europe/Berlin").jobs[0].source_instants
        assert theirs is not None
        ours = list(theirs(begin + 1, expected[-1] + 1))
        assert ours == list(dict.fromkeys(expected))


def test_a_weekday_and_a_date_must_both_hold(tmp_path: Path) -> None:
    found, proven = prove(written(tmp_path, "OnCalendar=Mon *-*-1..7 06:00"), NOW)
    assert found.jobs[0].table["spread"] == {"duration": "0s", "only": "dow=MON"}
    assert proven[0].differences == ()


def test_what_surrounds_the_calendar_is_carried_over(tmp_path: Path) -> None:
    timer = "OnCalendar=daily\nRandomizedDelaySec=5min\nPersistent=true"
    service = (
        'ExecStart=/usr/bin/tool --name "a b"\nWorkingDirectory=/srv\nEnvironment="A=1" B=2\nTimeoutStartSec=1h 30min'
    )
    found = written(tmp_path, timer, service)
    job = as_chronex_reads(found).jobs[0]
    assert job.schedule.endswith("{jitter:5m}") or "jitter" in job.schedule
    assert job.recovery.strategy == "execute_last"
    assert job.tasks[0].run == ("/usr/bin/tool", "--name", "a b")
    assert job.tasks[0].env == {"A": "1", "B": "2"}
    assert job.tasks[0].directory == "/srv"
    assert job.execution_timeout_ms == 90 * 60_000
    assert job.description == "Mine"


@pytest.mark.parametrize(
    ("timer", "expected"),
    [
        ("OnBootSec=5min", "OnBootSec=5min"),
        ("OnCalendar=2027-01-01 00:00", "OnCalendar=2027-01-01 00:00"),
        ("OnCalendar=Sometimes 09:00", "OnCalendar=Sometimes 09:00"),
        ("OnCalendar=daily\nWakeSystem=true", "WakeSystem=true"),
    ],
)
def test_what_has_no_equivalent_is_named(tmp_path: Path, timer: str, expected: str) -> None:
    assert expected in [lost.text for lost in written(tmp_path, timer).lost]


def test_a_monotonic_repetition_becomes_an_interval(tmp_path: Path) -> None:
    found = written(tmp_path, "OnUnitActiveSec=15min")
    assert as_chronex_reads(found).jobs[0].schedule.startswith("@every")


def test_output_that_goes_to_a_file_is_lost_and_the_journal_is_not(tmp_path: Path) -> None:
    service = "ExecStart=/bin/x\nStandardOutput=append:/var/log/x.log\nStandardError=journal\n"
    (job,) = written(tmp_path, "OnCalendar=daily", service).jobs
    assert job.lost == ("StandardOutput=append:/var/log/x.log has no equivalent",)


def test_a_semicolon_that_stands_alone_begins_another_command(tmp_path: Path) -> None:
    """systemd runs both; it was an argument of the first."""
    service = """ExecStart=-/bin/sh -c 'a ; b' --x="c ; d" ; /bin/echo next \\; e;f ;"""
    (job,) = written(tmp_path, "OnCalendar=daily", service).jobs
    assert [task["run"] for task in job.table["tasks"]] == [
        ["/bin/sh", "-c", "a ; b", "--x=c ; d"], ["/bin/echo", "next", ";", "e;f"],
    ]  # fmt: skip
    assert [task.get("on_failure") for task in job.table["tasks"]] == ["continue", None]


def test_an_instance_has_the_service_of_its_template(tmp_path: Path) -> None:
    (tmp_path / "dump@.timer").write_text("[Unit]\nDescription=of %i\n[Timer]\nOnCalendar=daily\n")
    service = "ExecStart=/bin/dump %i %I %p 50%% %H\nWorkingDirectory=/srv/%i\nEnvironment=A=%n B=%h\n"
    (tmp_path / "dump@.service").write_text(f"[Service]\n{service}")
    timer = timer_of(tmp_path / "dump@.timer", [tmp_path], "dump@app-main.timer")
    (job,) = read_timers([timer], BERLIN).jobs
    assert job.table["run"] == ["/bin/dump", "app-main", "app/main", "dump", "50%", "%H"]
    assert (job.table["directory"], job.table["description"]) == ("/srv/app-main", "of app-main")
    assert job.table["env"] == {"A": "dump@app-main.service", "B": "%h"}
    assert len([text for text in job.lost if "specifiers such as %h are not expanded" in text]) == 2


def test_a_timer_without_its_service_says_so(tmp_path: Path) -> None:
    (tmp_path / "lone.timer").write_text("[Timer]\nOnCalendar=daily\n")
    found = read_timers(list(timers_in([tmp_path / "lone.timer"])), BERLIN)
    assert "its service was not found" in found.jobs[0].lost[0]


@pytest.mark.parametrize(
    ("text", "ms"),
    [("90", 90_000), ("5min", 300_000), ("1h 30min", 5_400_000), ("2days", 172_800_000), ("x", 0), ("", 0)],
)
def test_spans_of_time_as_systemd_writes_them(text: str, ms: int) -> None:
    assert span_ms(text) == ms
