"""Schedules as their hosts read them. cronsim, which follows Debian's cron, is the judge of crontabs."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim

from chronex.lint.findings import ScheduleSite, ZoneNote
from chronex.lint.host_schedules import judge, schedule_of
from chronex.lint.hosts import CRONTAB, GITHUB, KUBERNETES, SYSTEMD, ScheduleHost
from tests.lint.golden import NOW_MS

BERLIN = ZoneInfo("Europe/Berlin")
BEFORE_SPRING = datetime(2027, 3, 27, 12, tzinfo=BERLIN)
BEFORE_AUTUMN = datetime(2027, 10, 30, 12, tzinfo=BERLIN)


def place(text: str, host: ScheduleHost) -> ScheduleSite:
    return ScheduleSite(text, 0, len(text), 0, host, ZoneNote("Europe/Berlin", "as the test says"))


def upcoming(text: str, host: ScheduleHost, after: datetime, count: int) -> list[datetime]:
    ms = int(after.timestamp() * 1000)
    schedule = schedule_of(place(text, host), ms)
    assert schedule is not None, text
    return [datetime.fromtimestamp(found / 1000, UTC) for found in schedule.upcoming(ms, count)]


def _field(dice: random.Random, low: int, high: int) -> str:
    first, last = sorted((dice.randint(low, high), dice.randint(low, high)))
    return dice.choice(
        ["*", "*", f"*/{dice.choice([2, 3, 5, 10, 15])}", str(first), f"{first}-{last}", f"{first},{last}"]
    )


@pytest.mark.parametrize("seed", range(40))
def test_crontabs_run_as_in_debian(seed: int) -> None:
    """Over both clock changes, and where a day field that begins with * joins the other by AND."""
    dice = random.Random(seed)
    for _ in range(5):
        hour = dice.choice(["1", "2", "3", "*", "*/2", "1-3", "0", "2,3"])
        month = dice.choice(["*", "3", "10", "*/2"])
        text = f"{_field(dice, 0, 59)} {hour} {_field(dice, 1, 28)} {month} {_field(dice, 0, 6)}"
        for start in (BEFORE_SPRING, BEFORE_AUTUMN):
            theirs = [moment.astimezone(UTC) for moment in islice(CronSim(text, start), 20)]
            assert upcoming(text, CRONTAB, start, 20) == theirs, text


@pytest.mark.parametrize(
    ("host", "text", "spring", "autumn"),
    [
        # The run of 02:30, in UTC, on the day without it and on the day that has it twice.
        (CRONTAB, "30 2 * * *", ["01:00"], ["00:30"]),
        (CRONTAB, "*/30 2 * * *", [], ["00:00", "00:30", "01:00", "01:30"]),
        (GITHUB, "30 2 * * *", ["01:00"], ["00:30"]),
        (KUBERNETES, "30 2 * * *", [], ["00:30", "01:30"]),
        (SYSTEMD, "02:30", [], ["00:30"]),
        (SYSTEMD, "02:00/30", [], ["00:00", "00:30"]),
    ],
)
def test_clock_changes(host: ScheduleHost, text: str, spring: list[str], autumn: list[str]) -> None:
    for start, day, expected in ((BEFORE_SPRING, (2027, 3, 28), spring), (BEFORE_AUTUMN, (2027, 10, 31), autumn)):
        found = [m for m in upcoming(text, host, start, 6) if (m.year, m.month, m.day) == day]
        assert [f"{moment:%H:%M}" for moment in found] == expected


@pytest.mark.parametrize(
    ("text", "refused_by"),
    [
        ("17 4 * * *", []),
        ("@daily", [GITHUB]),
        ("@every 5m", [CRONTAB, GITHUB]),
        ("@reboot", [GITHUB, KUBERNETES]),
        ("@once +20m", [CRONTAB, GITHUB, KUBERNETES]),
        ("17 4 ? * *", [CRONTAB, GITHUB]),
        ("17 4 L * *", [CRONTAB, GITHUB, KUBERNETES]),
        ("17 4 * * FRI#2", [CRONTAB, GITHUB, KUBERNETES]),
        ("17 4 * * 7", [GITHUB, KUBERNETES]),
        ("17 4 * * 5-7", [GITHUB, KUBERNETES]),
        ("17 22-4 * * *", [CRONTAB, GITHUB, KUBERNETES]),
        ("0 17 4 * * *", [CRONTAB, GITHUB, KUBERNETES]),
        ("17 4 * * * {jitter:5m}", [CRONTAB, GITHUB, KUBERNETES]),
        ("TZ=UTC 17 4 * * *", [CRONTAB, GITHUB, KUBERNETES]),
        ("0~59 4 * * *", [CRONTAB, GITHUB, KUBERNETES]),
        ("17 4 * *", [CRONTAB, GITHUB, KUBERNETES]),
        ("17 4 * * MNO", [CRONTAB, GITHUB, KUBERNETES]),
        ("H 4 * * *", [CRONTAB, GITHUB, KUBERNETES]),
    ],
)
def test_what_each_host_refuses(text: str, refused_by: list[ScheduleHost]) -> None:
    hosts = [CRONTAB, GITHUB, KUBERNETES]
    assert [host for host in hosts if any(d.is_error for d in judge(place(text, host), 0))] == refused_by


@pytest.mark.parametrize(
    "text", ["H 4 * * *", "17 4 31 * *", "17 4 * * 1-5 *", "17 4 * * L", "1 2 3 4 5 6 7 8", "x y z"]
)
@pytest.mark.parametrize("host", [CRONTAB, GITHUB, KUBERNETES], ids=lambda host: host.key)
def test_no_message_to_a_host_names_what_only_chronex_has(text: str, host: ScheduleHost) -> None:
    for diagnostic in judge(place(text, host), 0):
        advice = f"{diagnostic.message} {diagnostic.fix or ''}"
        assert not any(word in advice for word in ("{stagger", "{from", "5 or 6", "FRIL", "L is the last")), advice


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@every 1d", ["E130 '@every 1d': durations of Kubernetes have hours, minutes and seconds; write @every 24h"]),
        ("@every 1d12h", ["E130 '@every 1d12h': durations of Kubernetes have hours, minutes and seconds; write @every 36h"]),
        ("@every 1h-2h", ["E130 '@every 1h-2h': Kubernetes has no random intervals"]),
        ("@every  1h", ["E130 Kubernetes takes no blanks around '@every 1h'; remove them"]),
        ("@daily\n", ["E130 Kubernetes takes no blanks around '@daily'; remove them"]),
        (" @daily", ["E130 Kubernetes takes no blanks around '@daily'; remove them"]),
        ("@every 500ms", ["E139 Kubernetes takes '500ms' for '1s'"]),
        ("@every -5m", ["E139 Kubernetes takes '-5m' for '1s'"]),
        ("*-5 9 * * *", ["E139 Kubernetes takes '*-5' for '*'"]),
        ("0 9 , * *", ["E139 ',' names no value: Kubernetes takes it and never runs"]),
        ("@every 1.5h", []),
        ("5,,6 9 * * *", []),
        ("? 9 * ? *", []),
        ("+5 9 * * *", []),
        ("0\u00a09 * * *", []),
    ],
)  # fmt: skip
def test_kubernetes_takes_and_refuses_what_its_library_does(text: str, expected: list[str]) -> None:
    found = judge(place(text, KUBERNETES), NOW_MS)
    assert [f"{d.code} {d.message}" for d in found if d.is_error] == expected


def test_a_star_in_a_list_leaves_a_day_field_free_for_kubernetes() -> None:
    """`*,5` beside MON is every Monday there, and any day to other crons."""
    after = datetime(2026, 11, 16, 12, tzinfo=UTC)
    assert upcoming("0 9 *,5 * MON", KUBERNETES, after, 2) == upcoming("0 9 * * MON", KUBERNETES, after, 2)
