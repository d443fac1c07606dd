"""Crontabs as the cron that reads them has it: the verdicts of the programs, and what is said of each oddity."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chronex.lint.cron_grammar import CronReading, read_schedule
from chronex.lint.cron_programs import (
    BCRON,
    BSD,
    BUSYBOX,
    CRON_PROGRAMS,
    CRONIE,
    DEBIAN,
    SUPERCRONIC,
    CronProgram,
    program_of_file,
    program_of_machine,
)
from chronex.lint.findings import LintFinding, ScheduleSite
from chronex.lint.host_schedules import judge, schedule_of
from chronex.lint.hosts import CRON_HOSTS
from chronex.lint.linter import lint_document
from chronex.lint.source_files import open_document
from tests.lint.golden import NOW_MS
from tests.lint.linting import assume
from tests.lint.real_crons import VERDICTS, Verdict, comparable, installed, record, spelt
from tests.lint.test_hosts import place

ROWS: list[tuple[str, dict[str, Verdict]]] = [tuple(row) for row in json.loads(VERDICTS.read_text())]


def takes(line: str, program: CronProgram) -> bool | str:
    """Does lint find the line of a crontab with this schedule to be refused? Misread lines are taken: the values."""
    words = line.split()
    if words[0].startswith("@"):
        schedule = words[0]
        if words[1:] and words[1].startswith("*"):
            return False  # a command cannot begin with it
    elif len(words) < 5:
        return False  # the command stands in a column of the schedule
    else:
        schedule = " ".join(words[:5])
    reading = read_schedule(schedule, program)
    return isinstance(reading, CronReading) and spelt(field.values for field in reading.fields)


def differs(line: str, key: str, verdict: Verdict) -> bool:
    if verdict is None or not comparable(line, key):
        return False
    ours = takes(line, CRON_PROGRAMS[key])
    return ours != verdict if isinstance(verdict, str) else (ours is not False) != verdict


def differences(rows: list[tuple[str, dict[str, Verdict]]]) -> list[tuple[str, str]]:
    return [
        (key, line) for line, verdicts in rows for key, verdict in verdicts.items() if differs(line, key, verdict)
    ]


def test_the_grammars_agree_with_the_recorded_verdicts_of_the_programs() -> None:
    assert len(ROWS) >= 1000
    assert {key for _, verdicts in ROWS for key in verdicts} == {"debian", "cronie", "busybox", "bcron"}
    assert differences(ROWS) == []


def test_the_sample_has_lines_that_the_programs_disagree_on() -> None:
    for one, other in (("debian", "cronie"), ("debian", "busybox"), ("cronie", "busybox")):
        assert sum(verdicts[one] is not verdicts[other] for _, verdicts in ROWS) > 20


def test_a_line_that_is_refused_has_an_error_and_only_such_a_line_or_one_that_is_misread() -> None:
    for line, _ in ROWS[::8]:
        words = line.split()
        if len(words) != 5 or line.lstrip().startswith(("#", "@")):
            continue
        for key, program in CRON_PROGRAMS.items():
            found = judge(place(line.strip(), CRON_HOSTS[key]), NOW_MS)
            refusals = [d for d in found if d.is_error and d.code != "E139"]
            assert bool(refusals) is not isinstance(read_schedule(line, program), CronReading), (key, line)


@pytest.mark.torture
@pytest.mark.timeout(3600)
def test_ten_thousand_lines_through_the_programs_that_are_installed() -> None:
    programs = installed()
    if not programs:
        pytest.skip("no cron is installed here; CHRONEX_CRONS says where they are")
    assert differences(list(record(10_000, programs, seed=2))) == []


# -- what is said -------------------------------------------------------------------------------------------------


def said(text: str, program: CronProgram) -> list[str]:
    found = judge(place(text, CRON_HOSTS[program.key]), NOW_MS)
    return [f"{d.code} {d.message}" for d in found if d.is_error]


@pytest.mark.parametrize(
    ("text", "program", "expected"),
    [
        ("1,,5 0,,12 * * *", BCRON, []),
        (",1 * * * *", BCRON, ["E002 an element of the list is missing; remove the extra comma"]),
        ("0-4294966742949667297 * * * *", CRONIE, ["E002 value 4294966742949667297 out of range [0, 59]"]),
        ("4294966742949667297-31 * * * *", CRONIE, ["E139 '4294966742949667297-31' runs backwards: cronie takes the line and never runs it; write it in two parts"]),
        ("5/10 * * * *", DEBIAN, ["E130 '5/10': Debian's cron takes a step after * or a range only; write 5-59/10"]),
        ("0/15 * * * *", CRONIE, ["E130 '0/15': cronie takes a step after * or a range only; write */15"]),
        ("0/15 * * * *", BSD, []),
        ("0/15 * * * *", SUPERCRONIC, []),
        ("0/15 * * * *", BUSYBOX, ["E139 BusyBox crond leaves out the step of '0/15'; write a range before the slash"]),
        ("0,30/5 * * * *", DEBIAN, ["E130 '30/5': Debian's cron takes a step after * or a range only; write 30-59/5"]),
        ("0 22-6 * * *", DEBIAN, ["E139 '22-6' runs backwards: Debian's cron takes the line and never runs it; write it in two parts"]),
        ("0 22-6 * * *", CRONIE, ["E139 '22-6' runs backwards: cronie takes the line and never runs it; write it in two parts"]),
        ("0 9,22-6 * * *", DEBIAN, ["E139 '22-6' runs backwards: Debian's cron leaves it out; write it in two parts"]),
        ("0 22-6 * * *", BUSYBOX, []),
        ("0 22-6 * * *", SUPERCRONIC, ["E130 '22-6' runs backwards, which supercronic refuses; write 22-23,0-6"]),
        ("0 22-6/2 * * *", SUPERCRONIC, ["E139 '22-6/2' runs backwards: supercronic takes the line and never runs it; write it in two parts"]),
        ("0 9,22-6/2 * * *", SUPERCRONIC, ["E139 '22-6/2' runs backwards: supercronic leaves it out; write it in two parts"]),
        ("0 9 10-5 * MON", DEBIAN, ["E139 '10-5' runs backwards: Debian's cron leaves it out; write it in two parts"]),
        ("0 9 10-5 * *", DEBIAN, ["E139 '10-5' runs backwards: Debian's cron takes the line and never runs it; write it in two parts"]),
        ("0 9 * * 05", SUPERCRONIC, ["E139 supercronic reads '05' as Sunday: its parser knows no zero in front of a weekday; write 5"]),
        ("0 9 * * MON,05L", SUPERCRONIC, ["E139 supercronic reads '05' as Sunday: its parser knows no zero in front of a weekday; write 5"]),
        ("0 9 * * 01-05", SUPERCRONIC, ["E139 supercronic reads '01' as Sunday: its parser knows no zero in front of a weekday; write 1"]),
        ("0 9 * * 1-05", SUPERCRONIC, ["E130 '1-05' runs backwards, which supercronic refuses"]),
        ("0 9 * * 00,07", SUPERCRONIC, []),
        ("0 9 * * 1,7", SUPERCRONIC, []),
        ("0 9 * * 0-7", SUPERCRONIC, ["E139 supercronic reads '0-7' as '0-0', because its 7 is 0; write 0-6"]),
        ("0 9 * * 3,00-07/2", SUPERCRONIC, ["E139 supercronic reads '00-07/2' as '0-0/2', because its 7 is 0; write 0-6/2"]),
        ("0 9 * * 7/2", SUPERCRONIC, ["E139 supercronic reads '7/2' as '0/2', because its 7 is 0; write 0"]),
        ("0 9 * * 7-7", SUPERCRONIC, []),
        ("0 9 * * 0-7", DEBIAN, []),
        ("05 09 01 * *", SUPERCRONIC, []),
        ("0 9 1 1-09 *", SUPERCRONIC, []),
        ("0 9 * * 05", DEBIAN, []),
        ("*/007 * * * *", SUPERCRONIC, ["E130 supercronic does not understand '*/007'"]),
        ("0 9 L-3 * *", SUPERCRONIC, ["E130 supercronic does not understand 'L-3'"]),
        ("\udcff 9 * * *", DEBIAN, ["E010 byte 0xFF is not UTF-8 and not allowed; schedules are plain ASCII"]),
        ("4~59 * * * *", DEBIAN, ["E139 Debian's cron reads '4~59' as '4', without any chance in it; random ranges are for cronie"]),
        ("4~59 * * * *", CRONIE, []),
        ("0~99 * * * *", CRONIE, ["E130 '0~99' is out of range [0, 59]"]),
        ("30~10 * * * *", CRONIE, ["E130 '30~10': a random range runs from the lower value to the higher one"]),
        ("~ 77 77 77 77", CRONIE, ["E003 value 77 out of range [0, 23]", "E004 value 77 out of range [1, 31]",
                                   "E005 value 77 out of range [1, 12]", "E006 value 77 out of range [0, 7]"]),
        ("0~30 99 * * *", CRONIE, ["E003 value 99 out of range [0, 23]"]),
        ("0 9 * * FRI#2", DEBIAN, ["E139 Debian's cron reads 'FRI#2' as 'FRI' and leaves out the rest"]),
        ("0 9 * * FRI#2", CRONIE, ["E130 'FRI#2': cronie does not know L, W and #"]),
        ("0 9 * * FRI#2", SUPERCRONIC, []),
        ("0 9 L * *", SUPERCRONIC, []),
        ("0 9 L * *", DEBIAN, ["E130 'L': Debian's cron does not know L, W and #"]),
        ("0 9 */2 * *", BUSYBOX, ["E139 BusyBox crond counts days from 0, so that '*/2' is 2, 4, 6 and so on; other crons begin with 1; write 1-31/n"]),
        ("@every_minute", BSD, []),
        ("@midnight", SUPERCRONIC, ["E130 supercronic does not know '@midnight'; it takes @annually, @daily, @hourly, @monthly, @weekly, @yearly"]),
        ("0 9 * * 7", BUSYBOX, ["E130 '7' is out of range [0, 6]"]),
        ("0/15 * * * *", BCRON, ["E139 bcron leaves out the step of '0/15'; write a range before the slash"]),
        ("0 22-6 * * *", BCRON, ["E130 '22-6' runs backwards, which bcron refuses; write 22-23,0-6"]),
        ("0 9 1 * MON", BCRON, ["E139 bcron runs it only when both day fields match; other crons run it when either does; write * in one of them"]),
        ("0 9 */2 * monday", BCRON, []),
        ("@daily", BCRON, ["E130 bcron does not know '@daily'; write five fields such as 17 4 * * *"]),
    ],
    ids=lambda value: getattr(value, "key", value if isinstance(value, str) else None),
)  # fmt: skip
def test_each_cron_has_its_own_words(text: str, program: CronProgram, expected: list[str]) -> None:
    assert said(text, program) == expected


def upcoming(text: str, program: CronProgram, count: int = 3) -> list[str]:
    from datetime import UTC, datetime

    site: ScheduleSite = place(text, CRON_HOSTS[program.key])
    schedule = schedule_of(site._replace(zone=site.zone._replace(name="UTC")), NOW_MS)
    found = schedule.upcoming(NOW_MS, count) if schedule else []
    return [datetime.fromtimestamp(ms / 1000, UTC).strftime("%m-%d %H:%M") for ms in found]


@pytest.mark.parametrize(
    ("text", "program", "expected"),
    [
        ("0 22-1 * * *", BUSYBOX, ["01-01 01:00", "01-01 22:00", "01-01 23:00"]),
        ("0 9 1-31/2 * *", BUSYBOX, ["01-01 09:00", "01-03 09:00", "01-05 09:00"]),
        ("0 9 */2 * MON", DEBIAN, ["01-11 09:00", "01-25 09:00", "02-01 09:00"]),
        ("0 9 1-31/2 * MON", BUSYBOX, ["01-01 09:00", "01-03 09:00", "01-04 09:00"]),
        ("5/20 9 * * *", BSD, ["01-01 09:05", "01-01 09:25", "01-01 09:45"]),
        ("0 9 */2 * MON", BCRON, ["01-11 09:00", "01-25 09:00", "02-01 09:00"]),
        ("0~59 9 * * *", CRONIE, []),
        ("@reboot", DEBIAN, []),
    ],
)
def test_next_runs_are_those_of_the_program(text: str, program: CronProgram, expected: list[str]) -> None:
    assert upcoming(text, program) == expected


# -- files --------------------------------------------------------------------------------------------------------


def findings(path: str, text: str, program: CronProgram | None = DEBIAN) -> list[LintFinding]:
    return lint_document(open_document(path, text), assume()._replace(cron=program)).findings


@pytest.mark.parametrize(
    ("path", "text", "program", "codes"),
    [
        ("crontab", "\ufeff17 4 * * * /a\n", DEBIAN, ["E143"]),
        ("crontab", "17 4 * * * /a\r\n18 4 * * * /b\r\n", CRONIE, ["W144"]),
        ("crontab", "17 4 * * * /a\r\n", SUPERCRONIC, []),
        ("cron.d/my.job", "17 4 * * * root /a\n", DEBIAN, ["W145"]),
        ("cron.d/foo~", "17 4 * * * root /a\n", CRONIE, ["W145"]),
        ("cron.d/my.job", "17 4 * * * root /a\n", CRONIE, []),
        ("cron.d/my-job", "17 4 * * * root /a\n", DEBIAN, []),
        ("cron.d/my.job", "This is not a crontab.\n", DEBIAN, []),
        ("cron.d/app.j2", "17 4 * * * root /a\n", DEBIAN, []),
        ("crontab", "PATH=$PATH:/usr/local/bin\n17 4 * * * a\n", DEBIAN, ["W146"]),
        ("crontab", "STAMP=`date`\nHOME=${HOME}/x\n", CRONIE, ["W146", "W146"]),
        ("crontab", "PRICE=5$\n", CRONIE, []),
        ("crontab", "# monthly report\n0 0 * 1 * /report\n", DEBIAN, ["W147"]),
        ("crontab", "0 0 * 1 * /report monthly\n", DEBIAN, ["W147"]),
        ("crontab", "# monthly report\n\n0 0 * 1 * /report\n", DEBIAN, []),
        ("crontab", "0 0 * 1 * /report\n", DEBIAN, []),
        ("crontab", "0 0 1 * * /report monthly\n", DEBIAN, []),
        ("crontab", "CRON_TZ=Asia/Tokyo\n17 4 * * * /a\n", DEBIAN, ["W138"]),
        ("crontab", "CRON_TZ=Asia/Tokyo\n17 4 * * * /a\n", CRONIE, []),
        ("crontab", "CRON_TZ=:Asia/Tokyo\n17 4 * * * /a\n", CRONIE, []),
        ("crontab", "CRON_TZ=UTC+2\n17 4 * * * /a\n", CRONIE, ["W113"]),
        ("crontab", "CRON_TZ=EST5\n17 4 * * * /a\n", CRONIE, ["W113"]),
        ("crontab", "CRON_TZ=PST\n17 4 * * * /a\n", CRONIE, ["E011"]),
        ("crontab", "0~30 hello world foo bar x\n", CRONIE, ["E003", "E004", "E005", "E006"]),
        ("crontab", "*/10 * * * * * /every-ten-seconds\n", SUPERCRONIC, []),
        ("crontab", "*/10 17 4 * * * * /with-seconds-and-year\n", SUPERCRONIC, []),
        ("crontab", "@daily * 15 /a\n17 4 * * * *x /b\n", DEBIAN, ["E130", "E130"]),
        ("crontab", "17 4 * * * /no-newline", BUSYBOX, []),
        ("crontab", "17 4 * * * *x $(date +%F)\n", BCRON, []),
        ("crontab", "17 4 * * * x $(date +%F)\n", DEBIAN, ["W134"]),
        ("crontab", "17 4 * * * backup +%F\n", DEBIAN, ["W134"]),
        ("crontab", "17 4 * * * backup '+%Y-%m'\n", DEBIAN, ["W134", "W134"]),
        ("crontab", "17 4 * * * backup +\\%F\n", DEBIAN, []),
        ("crontab", "17 4 * * * mail root%text for + mail%\n", DEBIAN, []),
        ("crontab", "17 4 * * * x $(date +%F)\n", BUSYBOX, []),
        ("crontab", "17 4 * * * x $(date +%F)\n", SUPERCRONIC, []),
        ("crontab", "RANDOM_DELAY=5\n0~30 4 * * * /a\n", None, []),
        ("etc/crontabs/root", "0 22-1 * * * /a\n", None, []),
    ],
)  # fmt: skip
def test_what_each_cron_makes_of_a_file(path: str, text: str, program: CronProgram | None, codes: list[str]) -> None:
    found = [f.code for f in findings(path, text, program) if f.code != "W141"]
    assert found == codes


def test_times_under_a_zone_that_is_not_read_are_those_of_the_machine() -> None:
    document = open_document("crontab", "CRON_TZ=Asia/Tokyo\n17 4 * * * /a\n")
    zones = {
        key: lint_document(document, assume()._replace(cron=program)).sites[0].zone.name
        for key, program in CRON_PROGRAMS.items()
    }
    assert zones == {
        "debian": "Europe/Berlin", "cronie": "Asia/Tokyo", "bsd": "Europe/Berlin", "busybox": "Europe/Berlin",
        "supercronic": "Asia/Tokyo", "bcron": "Europe/Berlin",
    }  # fmt: skip


# -- which one ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "text", "program"),
    [
        ("/etc/crontabs/root", "", BUSYBOX),
        ("/var/cron/tabs/root", "", BSD),
        ("docker/supercronic.crontab", "", SUPERCRONIC),
        ("crontab", "RANDOM_DELAY=45\n", CRONIE),
        ("crontab", "@every_minute /a\n", BSD),
        ("crontab", "CRON_TZ=UTC\n", None),  # written by people whose cron does not read it, too
    ],
)
def test_a_file_tells_which_cron_it_is_for(path: str, text: str, program: CronProgram | None) -> None:
    assert program_of_file(path, text) is program


@pytest.mark.parametrize(
    ("release", "platform", "program"),
    [
        ("ID=debian\n", "linux", DEBIAN),
        ('ID=linuxmint\nID_LIKE="ubuntu debian"\n', "linux", DEBIAN),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "linux", CRONIE),
        ("ID=alpine\n", "linux", BUSYBOX),
        ("ID=nixos\n", "linux", DEBIAN),
        ("", "darwin", BSD),
        ("", "freebsd14", BSD),
    ],
)
def test_a_machine_tells_which_cron_it_has(tmp_path: Path, release: str, platform: str, program: CronProgram) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text(release)
    assert program_of_machine(tmp_path, platform) is program
