"""chronex import crontab: nothing lost silently, every instant proven."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest

from chronex.cli.commands import import_jobs
from chronex.clock import wall_ms
from chronex.expr.diagnostics import ERROR
from chronex.imports.cron_host import CronHost
from chronex.imports.crontab import CrontabFile, read_crontab, split_percents
from chronex.imports.import_result import Import, as_chronex_reads, job_file_text, prove, with_shared_defaults
from chronex.lint.cron_programs import BCRON, BSD, BUSYBOX, CRONIE, DEBIAN, SUPERCRONIC, CronProgram
from chronex.lint.linter import lint_document
from chronex.lint.source_files import open_document
from chronex.model.channels import NoticeEvent
from chronex.timing.zones import load_zone, machine_zone, show_one_time, utc_zone
from tests.cli.conftest import Chronex
from tests.imports.crontabs import CRONTABS, SYSTEM
from tests.lint.linting import assume

NOW = int(datetime(2026, 11, 16, tzinfo=UTC).timestamp())
BERLIN = load_zone("Europe/Berlin")


def imported(text: str, *, has_user: bool = False) -> Import:
    program = CRONIE if "CRON_TZ" in text else DEBIAN
    return read_crontab(text, BERLIN, CrontabFile(has_user, None, program))


@pytest.mark.parametrize("name", CRONTABS)
def test_every_line_becomes_a_job_or_is_named(name: str) -> None:
    text, jobs, lost = CRONTABS[name]
    found = imported(text)
    assert (len(found.jobs), len(found.lost)) == (jobs, lost)
    assert len(as_chronex_reads(found).jobs) == jobs
    document = open_document("imported.toml", job_file_text(with_shared_defaults(found)))
    findings = lint_document(document, assume()).findings
    assert [finding for finding in findings if finding.severity == ERROR] == []


@pytest.mark.parametrize("name", CRONTABS)
def test_every_instant_of_five_years_is_the_same(name: str) -> None:
    _, proven = prove(imported(CRONTABS[name][0]), NOW)
    assert [(each.job.origin, each.differences[:3]) for each in proven if each.differences] == []
    assert all(each.compared for each in proven if each.job.table["schedule"] != "@start")


@pytest.mark.parametrize(
    ("line", "program", "schedule", "why"),
    [
        ("5/10 * * * * x", DEBIAN, None, "Debian's cron itself does not understand this schedule"),
        ("5/10 * * * * x", BSD, "5/10 * * * *", None),
        ("5/10 * * * * x", BUSYBOX, "5 * * * *", None),
        ("0 22-6 * * * x", CRONIE, None, "cronie takes this schedule and never runs it: a range runs backwards"),
        ("0 22-6 * * * x", BUSYBOX, "0 22-6 * * *", None),
        ("0~59 4 * * * x", CRONIE, None, "cronie chooses the time by chance; see jitter and spread"),
        ("4~59 4 * * * x", DEBIAN, "4 4 * * *", None),
        ("0 9 * * FRI#2 x", DEBIAN, "0 9 * * 5", None),
        ("0 9 */10 * * x", BUSYBOX, "0 9 10,20,30 * *", None),
        ("30 2 * * * x", BUSYBOX, "30 2 * * *", None),
        # Debian's bits of the days are empty, and either day field may match.
        ("0 0 10-5 * 1 x", DEBIAN, "0 0 * * 1", None),
        ("0 0 10-5 * * x", DEBIAN, None, "Debian's cron takes this schedule and never runs it: a range runs backwards"),
        ("0 12 15,L * * x", SUPERCRONIC, "0 12 15,L * *", None),
        ("0 12 1W,31W * * x", SUPERCRONIC, "0 12 1W,31W * *", None),
        ("0 12 LW * MON,FRI#2,TUEL x", SUPERCRONIC, "0 12 LW * MON,FRI#2,TUEL", None),
        ("0 12 L * *,MON x", SUPERCRONIC, "0 12 L * *", None),
        ("0 12 1,15W * * x", SUPERCRONIC, None, "Chronex does not read days written like this; give each a line of its own, with short names"),
        ("0 22-6/2 * * * x", SUPERCRONIC, None, "supercronic takes this schedule and never runs it: a range runs backwards"),
        # It knows no zero in front of a weekday and takes it for 0; to it 7 is 0 in a range too.
        ("*/5 * * * * * * x", SUPERCRONIC, None, "it has seconds or a year; a job's schedule has seconds in front of its five fields, and no years"),
        ("0 0 1 1 * 2027 x", SUPERCRONIC, None, "it has seconds or a year; a job's schedule has seconds in front of its five fields, and no years"),
        ("0 */5 * * * * * x", SUPERCRONIC, "*/5 * * * *", None),
        ("0 9 * * 1  * x", SUPERCRONIC, "0 9 * * 1", None),
        ("0 9 * * 1 2100 x", SUPERCRONIC, "0 9 * * 1", None),
        ("0 9 * * 1 * x", BUSYBOX, "0 9 * * 1", None),
        ("0 9 * * 05 x", SUPERCRONIC, "0 9 * * 0", None),
        ("0 9 * * 05#2 x", SUPERCRONIC, "0 9 * * 0#2", None),
        ("0 9 * * 0-7 x", SUPERCRONIC, "0 9 * * 0", None),
        ("0 9 * * 7/2 x", SUPERCRONIC, "0 9 * * 0,2,4,6", None),
        ("0 9 1 05 * x", SUPERCRONIC, "0 9 1 05 *", None),
    ],
    ids=lambda value: getattr(value, "key", value),
)  # fmt: skip
def test_lines_are_carried_over_as_their_cron_reads_them(
    line: str, program: CronProgram, schedule: str | None, why: str | None
) -> None:
    found = read_crontab(f"{line}\n", BERLIN, CrontabFile(program=program))
    assert [job.table["schedule"] for job in found.jobs] == ([schedule] if schedule else [])
    assert [lost.why for lost in found.lost] == ([why] if why else [])
    _, proven = prove(found, NOW)
    assert [each.differences[:3] for each in proven if each.differences] == []


@pytest.mark.parametrize(
    ("program", "zone", "notes"),
    [
        (SUPERCRONIC, "Europe/Berlin", 1),
        (BCRON, "Europe/Berlin", 1),
        (SUPERCRONIC, "Asia/Tokyo", 0),
        (DEBIAN, "Europe/Berlin", 0),
    ],
    ids=lambda value: getattr(value, "key", value),
)
def test_nothing_is_claimed_of_clock_changes_where_the_rule_of_the_cron_is_not_known(
    program: CronProgram, zone: str, notes: int
) -> None:
    _, (proven,) = prove(read_crontab("30 2 * * * x\n", load_zone(zone), CrontabFile(program=program)), NOW)
    assert sum("on which the clock is set is not known" in note for note in proven.job.notes) == notes


@pytest.mark.parametrize(
    ("value", "zone", "lost"),
    [
        ("Asia/Seoul", "Asia/Seoul", 0),
        ("", "Europe/Berlin", 0),
        ('""', "Europe/Berlin", 0),
        ("Nope/Zone", "UTC", 1),
        ("europe/berlin", "UTC", 1),
        ("UTC-3", "Etc/GMT-3", 0),
        (":Asia/Seoul", "Asia/Seoul", 0),
    ],
)
def test_a_zone_is_the_one_that_cronie_takes_it_for(value: str, zone: str, lost: int) -> None:
    """By its source, 1.7.2: an empty one is the machine's again; what the C library does not know is UTC."""
    text = f"CRON_TZ=Asia/Tokyo\nCRON_TZ={value}\n0 9 * * * x\n"
    found = read_crontab(text, BERLIN, CrontabFile(program=CRONIE))
    written = "" if zone == BERLIN.name else f"TZ={zone} "
    assert [(job.zone.name, job.table["schedule"]) for job in found.jobs] == [(zone, f"{written}0 9 * * *")]
    assert len(found.lost) == lost
    (site,) = lint_document(open_document("crontab", text), assume()._replace(cron=CRONIE)).sites
    assert site.zone.name == zone


def test_a_zone_that_the_cron_does_not_read_moves_nothing() -> None:
    text = "CRON_TZ=Asia/Tokyo\n0 9 * * * x\n"
    found = read_crontab(text, BERLIN, CrontabFile())
    assert found.jobs[0].table["schedule"] == "0 9 * * *"
    assert found.jobs[0].zone is BERLIN
    assert found.lost[0].why == "Debian's cron does not read it; the times are the machine's"


def test_comments_above_an_entry_become_its_description() -> None:
    found = imported(CRONTABS["comments above entries"][0])
    assert [job.table.get("description") for job in found.jobs] == ["nightly backup of the shop", "tick"]


def test_what_is_lost_stands_in_the_file_too() -> None:
    written = job_file_text(imported(CRONTABS["mail to what is no address"][0]))
    assert "# NOT CARRIED OVER, line 1: MAILTO=<ops>" in written
    assert set(tomllib.loads(written)["jobs"]) == {"loud"}


def test_mail_goes_to_whom_cron_sent_it() -> None:
    """The variable holds for the lines below it, an empty one silences, and none leaves the job as it is."""
    text = (
        "0 1 * * * before\nMAILTO=ops@example.org\n0 2 * * * a\n@reboot b\n"
        'MAILTO=ops@example.com, root\n0 3 * * * c\nMAILTO=""\n0 4 * * * d\nMAILTO=ops@example.org\n0 5 * * * e\n'
    )
    found = imported(text)
    assert found.lost == []
    jobs = {job.id: job for job in as_chronex_reads(found).jobs}
    told = {
        name: None if job.notify is None else [(one.name, one.to) for one in job.notify.channels]
        for name, job in jobs.items()
    }
    ops, both = [("ops", ("ops@example.org",))], [("ops-2", ("ops@example.com", "root"))]
    assert told == {"before": None, "a": ops, "b": ops, "c": both, "d": None, "e": ops}
    notify = jobs["a"].notify
    assert notify is not None
    assert notify.on == (NoticeEvent.OUTPUT, NoticeEvent.FAILED)
    assert as_chronex_reads(with_shared_defaults(found)).jobs == as_chronex_reads(found).jobs


@pytest.mark.parametrize(
    ("program", "sends_mail", "told"),
    [
        (DEBIAN, True, {"a": "backup", "b": "www-data", "c": None, "d": "ops@example.org"}),
        (CRONIE, True, {"a": "backup", "b": "www-data", "c": None, "d": "ops@example.org"}),
        (DEBIAN, False, {"a": None, "b": None, "c": None, "d": "ops@example.org"}),
        (BUSYBOX, True, {"a": None, "b": None, "c": None, "d": "ops@example.org"}),
    ],
    ids=lambda value: getattr(value, "key", str(value)),
)
def test_without_mailto_the_account_is_sent_mail_where_cron_could_send_it(
    program: CronProgram, sends_mail: bool, told: dict[str, str | None]
) -> None:
    text = '0 1 * * * backup a\n@daily www-data b\nMAILTO=""\n0 3 * * * backup c\nMAILTO=ops@example.org\n0 4 * * * root d\n'
    file = CrontabFile(True, None, program, host=CronHost(sends_mail=sends_mail))
    found = read_crontab(text, BERLIN, file)
    jobs = as_chronex_reads(with_shared_defaults(found)).jobs
    assert {job.id: job.notify and job.notify.channels[0].to[0] for job in jobs} == told
    assert found.lost == []


@pytest.mark.parametrize(
    "fault",
    [
        "60 * * * * bad\n", "@foo bad\n", "* * * * *\n", 'A="x" y\n', "A=it's\nB='it's'\n", 'A="open\n', "A=\n", "MAILTO=\n",
        "A B=x\n", "\r\n", f"0 1 * * * {'x' * 999}\n", "0 1 * * * last",
        "@HOURLY bad\n", "@Reboot bad\n", "\u00a0* * * * * bad\n", "* * * *\u00a0* bad\n", "A=last",
    ],
)  # fmt: skip
def test_what_debian_ignores_for_one_bad_line_is_not_the_same(fault: str) -> None:
    """The whole file; seen with 3.0pl1-162. cronie was not tried, and is left as it is."""
    proven = prove(imported(f"0 5 * * * x\n{fault}"), NOW)[1]
    assert {each.verdict for each in proven} == {"differs"}
    assert "Debian's cron ignores the whole file because of " in proven[0].job.differs[-1]
    others = read_crontab(f"0 5 * * * x\n{fault}", BERLIN, CrontabFile(False, None, CRONIE)).jobs
    assert not any("ignores" in text for job in others for text in job.differs)


def test_what_debian_takes_does_not_make_it_ignore_the_file() -> None:
    text = (
        '# c\n \t\nA=""\nB = spaced out  \n"C"=q name\nD=it\'s\nE=a "b" c\n1F=x\n  G  =  \'a  \'  \nH=$HOME/x\nI=abc\r\n'
        f"0 22-6 * * * never\n@reboot x\n0 5 * * * {'x' * 998}\n"
    )
    assert [job.differs for job in imported(text).jobs] == [(), ()]
    for end in ("#", " ", "\t# end", "  \t"):  # a last line without an end is no fault where nothing is in it
        assert [job.differs for job in imported(f"0 5 * * * x\n{end}").jobs] == [()]


def test_who_is_not_known_is_no_fault_of_a_file_from_elsewhere() -> None:
    file = CrontabFile(True, None, DEBIAN, host=CronHost())
    (job,) = read_crontab("0 5 * * * nosuchuser x\n", BERLIN, file).jobs
    assert job.differs == ()
    assert "there is no user nosuchuser here; the job fails until there is one" in job.notes


def test_what_no_job_file_can_say_is_lost_alone() -> None:
    found, proven = prove(imported("0 5 * * * -root x\n0 6 * * * root y\n", has_user=True), NOW)
    assert [each.job.id for each in proven] == ["y"]
    (lost,) = found.lost
    assert (lost.origin, lost.why) == ("line 1", "no job file can say it: user: '-root' cannot name a user")


def test_bytes_and_line_ends_are_not_quietly_changed() -> None:
    text = b"# caf\xe9\n0 1 * * * cmd\r\n0 2 * * * echo caf\xe9\nA=\xe9\n0 3 * * * f a\x0cb\xe2\x80\xa8c\n"
    found = imported(text.decode("utf-8", "surrogateescape"))
    assert [job.table["run"] for job in found.jobs] == ["cmd", "f a\x0cb\u2028c"]
    assert [len(job.differs) for job in found.jobs] == [1, 0], "the carriage return was a part of the command"
    assert [(lost.origin, lost.text) for lost in found.lost] == [
        ("line 3", "0 2 * * * echo caf\ufffd"), ("line 4", "A=\ufffd"),
    ]  # fmt: skip
    assert as_chronex_reads(found).jobs[1].tasks[0].run == "f a\x0cb\u2028c"


HOMES = {"root": "/root", "nobody": "/nonexistent", "shop": "/srv/shop", "ann": "/home/ann"}


@pytest.mark.parametrize(
    ("line", "program", "directory"),
    [
        ("0 1 * * * nobody x", DEBIAN, "/"),
        ("0 1 * * * nobody x", CRONIE, "~nobody"),
        ("@reboot shop x", DEBIAN, "/"),
        ("0 1 * * * ann x", DEBIAN, "~ann"),
        ("0 1 * * * who x", DEBIAN, "~who"),
        ("HOME=/gone\n0 1 * * * ann x", DEBIAN, "/"),
        ("HOME=/gone\n0 1 * * * ann x", CRONIE, "/gone"),
        ("HOME=/home/ann\n0 1 * * * nobody x", DEBIAN, "/home/ann"),
    ],
)
def test_a_job_whose_home_does_not_exist_runs_as_it_does_under_its_cron(
    tmp_path: Path, line: str, program: CronProgram, directory: str
) -> None:
    """`nobody` of every Debian: such a job failed at each run, because its directory was not there."""
    (tmp_path / "home/ann").mkdir(parents=True)
    found = read_crontab(line + "\n", BERLIN, CrontabFile(True, None, program, host=CronHost(HOMES, tmp_path)))
    (job,) = found.jobs
    assert job.table["directory"] == directory
    assert any("runs the command all the same, here in /" in note for note in job.notes) is (directory == "/")


def test_mail_that_all_jobs_send_stands_in_the_defaults() -> None:
    found = with_shared_defaults(imported("MAILTO=root\n0 1 * * * x\n0 2 * * * y\n"))
    assert found.defaults["notify"] == {"to": ["root"], "on": ["output", "failed"]}
    assert '[notify.root]\nmail = "root"\n' in job_file_text(found)


def test_a_drawing_above_an_entry_is_no_description() -> None:
    """As in the /etc/crontab of Debian: the legend of the fields."""
    text = "# Example:\n# .---- minute (0 - 59)\n# |  .---- hour\n# *  * user command\n17 * * * * x\n"
    assert "description" not in imported(text).jobs[0].table


def test_reboot_becomes_start() -> None:
    (agent, _) = imported(CRONTABS["reboot"][0]).jobs
    assert (agent.id, agent.table["schedule"]) == ("agent", "@start")
    proven = prove(imported(CRONTABS["reboot"][0]), NOW)[1][0]
    assert (proven.verdict, proven.has_proven_times) == ("same", False), "there are no times that could be proven"


def test_a_system_crontab_names_the_users() -> None:
    found = imported(SYSTEM + "5 4 * * * www-data php /srv/app/cron.php\n", has_user=True)
    assert [(job.id, job.table["user"], job.table["directory"]) for job in found.jobs] == [
        ("cron-hourly", "root", "~root"),
        ("cron-daily", "root", "~root"),
        ("cron", "www-data", "~www-data"),
    ]
    assert found.jobs[0].table["run"] == "cd / && run-parts --report /etc/cron.hourly"
    assert as_chronex_reads(found).jobs[2].tasks[0].user == "www-data"


def test_the_variables_of_cron_are_those_of_the_job() -> None:
    text = "HOME=/srv/app\nLOGNAME=eve\nUSER=eve\nA=1\n0 1 * * * x\n"
    (job,) = as_chronex_reads(imported(text)).jobs
    expected = {"HOME": "/srv/app", "A": "1", "SHELL": "/bin/sh", "PATH": "/usr/bin:/bin"}
    assert job.tasks[0].env == expected, "who it is, a crontab cannot say"
    assert job.tasks[0].directory == "/srv/app"


@pytest.mark.parametrize(
    ("program", "differs"),
    [
        (DEBIAN, ["Debian's cron hands on USER=eve; here USER is always the account, ann"]),
        (CRONIE, []),
        (SUPERCRONIC, ["supercronic hands on LOGNAME=eve; here LOGNAME is always the account, ann",
                       "supercronic hands on USER=eve; here USER is always the account, ann"]),
    ],
)  # fmt: skip
def test_a_user_that_its_cron_hands_on_is_told(program: CronProgram, differs: list[str]) -> None:
    """Seen with Debian's cron: USER of a crontab arrives, LOGNAME does not; it was left out without a word."""
    file = CrontabFile(owner="ann", program=program)
    text = "0 1 * * * before\nLOGNAME=eve\nUSER=eve\n0 1 * * * x\nUSER=ann\nLOGNAME=ann\n0 1 * * * own\n"
    found = read_crontab(text, load_zone("UTC"), file)
    assert [list(job.differs) for job in found.jobs] == [[], differs, []]


@pytest.mark.parametrize("name", CRONTABS)
def test_what_all_jobs_share_stands_in_the_defaults_and_the_jobs_are_the_same(name: str) -> None:
    found = imported(CRONTABS[name][0])
    assert as_chronex_reads(with_shared_defaults(found)).jobs == as_chronex_reads(found).jobs


@pytest.mark.parametrize(("program", "value"), [(DEBIAN, "10"), (CRONIE, "10 ")])
def test_blanks_at_the_end_of_a_quoted_value_are_what_the_cron_makes_of_them(
    program: CronProgram, value: str
) -> None:
    """Debian's own cron, asked in a box, gives the command `10`."""
    found = read_crontab('SIZE="10 "\n0 1 * * * x\n', BERLIN, CrontabFile(program=program))
    assert found.jobs[0].table["env"]["SIZE"] == value


def test_shared_settings_are_written_once() -> None:
    found = with_shared_defaults(imported("A=1\n0 1 * * * x\nB=2\n0 2 * * * y\n"))
    assert found.defaults["env"] == {"A": "1", "SHELL": "/bin/sh", "PATH": "/usr/bin:/bin"}
    assert [job.table.get("env") for job in found.jobs] == [None, {"B": "2"}]
    assert [set(job.table) & {"overlap", "recovery", "directory"} for job in found.jobs] == [set(), set()]


@pytest.mark.parametrize(
    ("command", "script", "stdin"),
    [
        ("date +\\%F", "date +%F", None),
        ("cat%one%two", "cat", "one\ntwo\n"),
        ("cat%50\\%%x", "cat", "50%\nx\n"),
        ("cat%", "cat", ""),
        ("cat%a%%", "cat", "a\n\n"),
        ("cat%a%b%", "cat", "a\nb\n"),
        ("echo \\\\%x", "echo \\\\", "x\n"),
        ("echo \\a\\%b", "echo \\a%b", None),
        ("cat%a\\b\\\\c", "cat", "a\\b\\\\c\n"),
        ("plain", "plain", None),
        ("cat%tail  ", "cat", "tail  \n"),
        ("cat   ", "cat", None),
        ("cat a\\ ", "cat a\\ ", None),
        ("cat%\\", "cat", "\\"),
        ("cat%\\\\", "cat", "\\\\"),
        ("cat%a\\", "cat", "a\\\n"),
        ("cat%a%\\", "cat", "a\n\\"),
    ],
)
def test_percent_signs_mean_what_they_mean_to_cron(command: str, script: str, stdin: str | None) -> None:
    assert split_percents(command) == (script, stdin)


@pytest.mark.parametrize(
    ("command", "script"),
    [
        (r"sed 's/\\/x/'", r"sed 's/\/x/'"),
        (r"echo \\%in", "echo \\"),
        (r"echo \\\%", r"echo \%"),
        (r"echo '\a'", r"echo '\a'"),
        (r"echo a\\ ", r"echo a\ "),
    ],
)
def test_two_backslashes_are_one_to_debian(command: str, script: str) -> None:
    """As 3.0pl1-162 was seen to do, also inside of quotes; cronie was not tried, and is left as it is."""
    assert split_percents(command, halves_backslashes=True)[0] == script


@pytest.mark.parametrize("program", [BUSYBOX, SUPERCRONIC, BCRON], ids=lambda program: program.key)
def test_a_cron_that_hands_the_line_to_the_shell_keeps_its_percent_signs(program: CronProgram) -> None:
    found = read_crontab("0 9 * * * x $(date +%F)\n", BERLIN, CrontabFile(has_user=False, program=program))
    assert found.jobs[0].table["run"] == "x $(date +%F)"


def test_a_command_with_input_reads_it(tmp_path: Path) -> None:
    table = imported(f"0 9 * * * cat > {tmp_path}/out%Hello, 'you'%$HOME `id`\n").jobs[0].table
    subprocess.run(table["run"], check=True, env=table["env"])
    assert (tmp_path / "out").read_text() == "Hello, 'you'\n$HOME `id`\n"


def test_the_command_writes_a_file_that_applies(chronex: Chronex, tmp_path: Path) -> None:
    source, written = tmp_path / "mine", tmp_path / "chronex.toml"
    source.write_text(CRONTABS["names and ranges"][0])
    done = chronex("import", "crontab", str(source), "-o", str(written), "--tz", "Europe/Berlin")
    assert done.code == 0, done.err
    assert "3 jobs: 3 the same; nothing lost; the times of 3 proven" in done.out
    assert chronex("apply", str(written), "--store", str(tmp_path / "store")).code == 0
    again = chronex("import", "crontab", str(source), "-o", str(written), "--tz", "UTC")
    os.mkfifo(tmp_path / "device")
    onto = chronex("import", "crontab", str(source), "-o", str(tmp_path / "device"), "--force", "--tz", "UTC")
    assert (onto.code, (tmp_path / "device").is_fifo()) == (2, True)
    assert "is not a file that could be written over; --check compares without writing" in onto.err
    assert again.code == 2
    assert "--force" in again.err


@pytest.mark.parametrize("program", ["debian", "busybox", "supercronic", "bcron"])
def test_what_an_import_writes_is_clean_for_lint(chronex: Chronex, tmp_path: Path, program: str) -> None:
    """What the source did and lint would warn of is accepted by name, above the schedule that did it."""
    source, written = tmp_path / "mine", tmp_path / "chronex.toml"
    source.write_text("*/1 4 1 * * poll\n0 4 */2 * MON both\n30 2 * * * gap\n0 0 10 * 1 either\n0 9 * * 1 plain\n")
    now = ("--now", "2027-01-01T00:00:00Z")
    chronex("import", "crontab", str(source), "-o", str(written), "--tz", "Europe/Berlin", "--cron", program, *now)
    done = chronex("lint", str(written), *now)
    assert (done.code, done.out) == (0, "")
    text = written.read_text()
    assert '# chronex: ignore[W111, W112] as it ran before\nschedule = "30 2 * * *"\n' in text
    assert '[jobs.plain]\nschedule = "0 9 * * 1"\n' in text


def test_check_writes_nothing_and_exits_1_for_what_is_lost(chronex: Chronex, tmp_path: Path) -> None:
    text = "RANDOM_DELAY=5\n0 1 * * * y\n"
    done = chronex("import", "crontab", "-", "--as", "user", "--check", "--format", "json", "--tz", "UTC", stdin=text)
    assert done.code == 1
    output = json.loads(done.out)
    assert [lost["text"] for lost in output["lost"]] == ["RANDOM_DELAY=5"]
    assert [(job["id"], job["verdict"], job["differences"]) for job in output["jobs"]] == [("y", "same", [])]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("import", "crontab", "/nowhere/at/all"), "cannot read"),
        (("import", "quartz"), "crontab, systemd, k8s or machine"),
        (("import", "crontab", "-"), "nothing to import"),
        (("import", "systemd", "/nowhere"), "is not there"),
    ],
)
def test_bad_input_is_one_sentence(chronex: Chronex, arguments: tuple[str, ...], words: str) -> None:
    done = chronex(*arguments, "--tz", "UTC")
    assert done.code == 2
    assert words in done.err


def test_where_the_shell_has_another_zone_than_the_machine_it_is_asked_which_one_cron_had(chronex: Chronex) -> None:
    """A TZ of a login was taken for cron's, which has that of the machine: every time was wrong, and proven."""
    machine, now = machine_zone() or utc_zone(), wall_ms() // 1000
    others = (load_zone(name) for name in ("Asia/Tokyo", "America/Lima"))
    other = next(zone for zone in others if not show_one_time(zone, machine, now, now + 86_400)).name
    line = "30 2 * * * backup\n"
    for source in (("crontab",), ("crontab", "/etc/crontab"), ("/etc",)):
        asked = chronex("import", *source, "--check", TZ=other)
        assert asked.code == 2
        assert f"TZ is {other} in this shell, and the machine's zone is {machine.name}" in asked.err
    taken = chronex("import", "crontab", "-", "--as", "user", "-o", "-", stdin=line, TZ=other)
    assert f'timezone = "{other}"' in taken.out, "a file from anywhere is read as the shell says"
    for one in (other, machine.name):
        done = chronex("import", "crontab", "-", "--as", "user", "-o", "-", "--tz", one, stdin=line, TZ=other)
        assert f'timezone = "{one}"' in done.out
    done = chronex("import", "crontab", "-", "--as", "user", "-o", "-", stdin=line, TZ=":/etc/localtime")
    assert f'timezone = "{machine.name}"' in done.out


@pytest.mark.parametrize(
    ("first", "have_it"), [(b"HOME=/\0TZ=Asia/Tokyo\0", True), (b"TZ=Asia/Tok\0", False), (None, False)]
)
def test_services_have_the_zone_of_the_shell_where_the_first_process_has_it(
    first: bytes | None, have_it: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container that is started with TZ gives it to its cron too."""
    environment = tmp_path / "environ"
    if first is not None:
        environment.write_bytes(first)
    monkeypatch.setattr(import_jobs, "_FIRST_ENVIRONMENT", environment)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert import_jobs._services_have_our_zone() is have_it
