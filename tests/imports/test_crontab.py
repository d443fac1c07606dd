"""chronex import crontab: nothing lost silently, every instant proven."""

from __future__ import annotations

import json
import subprocess
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest

from chronex.imports.crontab import read_crontab, split_percents
from chronex.imports.import_result import Import, as_chronex_reads, job_file_text, prove
from chronex.lint.cron_programs import BSD, BUSYBOX, CRONIE, DEBIAN, CronProgram
from chronex.timing.zones import load_zone
from tests.cli.conftest import Chronex
from tests.imports.crontabs import CRONTABS, SYSTEM

NOW = int(datetime(2026, 11, 16, tzinfo=UTC).timestamp())
BERLIN = load_zone("Europe/Berlin")


def imported(text: str, *, has_user: bool = False) -> Import:
    program = CRONIE if "CRON_TZ" in text else DEBIAN
    return read_crontab(text, BERLIN, has_user=has_user, user="ann", program=program)


@pytest.mark.parametrize("name", CRONTABS)
def test_every_line_becomes_a_job_or_is_named(name: str) -> None:
    text, jobs, lost = CRONTABS[name]
    found = imported(text)
    assert (len(found.jobs), len(found.lost)) == (jobs, lost)
    assert len(as_chronex_reads(found).jobs) == jobs


@pytest.mark.parametrize("name", CRONTABS)
def test_every_instant_of_five_years_is_the_same(name: str) -> None:
    _, proven = prove(imported(CRONTABS[name][0]), NOW)
    assert [(each.job.origin, each.differences[:3]) for each in proven if each.differences] == []
    assert all(each.compared for each in proven)


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
    ],
    ids=lambda value: getattr(value, "key", value),
)  # fmt: skip
def test_lines_are_carried_over_as_their_cron_reads_them(
    line: str, program: CronProgram, schedule: str | None, why: str | None
) -> None:
    found = read_crontab(f"{line}\n", BERLIN, has_user=False, user="ann", program=program)
    assert [job.table["schedule"] for job in found.jobs] == ([schedule] if schedule else [])
    assert [lost.why for lost in found.lost] == ([why] if why else [])
    _, proven = prove(found, NOW)
    assert [each.differences[:3] for each in proven if each.differences] == []


def test_a_zone_that_the_cron_does_not_read_moves_nothing() -> None:
    text = "CRON_TZ=Asia/Tokyo\n0 9 * * * x\n"
    found = read_crontab(text, BERLIN, has_user=False, user="ann", program=DEBIAN)
    assert found.jobs[0].table["schedule"] == "0 9 * * *"
    assert found.jobs[0].zone is BERLIN
    assert found.lost[0].why == "Debian's cron does not read it; the times are the machine's"


def test_comments_above_an_entry_become_its_description() -> None:
    found = imported(CRONTABS["comments above entries"][0])
    assert [job.table.get("description") for job in found.jobs] == ["nightly backup of the shop", "tick"]


def test_what_is_lost_stands_in_the_file_too() -> None:
    written = job_file_text(imported(CRONTABS["reboot"][0]))
    assert "# NOT CARRIED OVER, line 1: @reboot /usr/bin/agent" in written
    assert set(tomllib.loads(written)["jobs"]) == {"other"}


def test_a_system_crontab_has_a_user_column() -> None:
    found = imported(SYSTEM, has_user=True)
    assert found.jobs[0].table["run"] == "cd / && run-parts --report /etc/cron.hourly"
    assert "root" in found.jobs[0].notes[0]
    assert [job.id for job in found.jobs] == ["run-parts", "anacron"]


@pytest.mark.parametrize(
    ("command", "script", "stdin"),
    [
        ("date +\\%F", "date +%F", None),
        ("cat%one%two", "cat", "one\ntwo\n"),
        ("cat%50\\%%x", "cat", "50%\nx\n"),
        ("plain", "plain", None),
    ],
)
def test_percent_signs_mean_what_they_mean_to_cron(command: str, script: str, stdin: str | None) -> None:
    assert split_percents(command) == (script, stdin)


def test_a_command_with_input_reads_it(tmp_path: Path) -> None:
    table = imported(f"0 9 * * * cat > {tmp_path}/out%Hello, 'you'%$HOME `id`\n").jobs[0].table
    subprocess.run(table["run"], shell=True, check=True, env={"PATH": "/usr/bin:/bin", **table["env"]})
    assert (tmp_path / "out").read_text() == "Hello, 'you'\n$HOME `id`\n"


def test_the_command_writes_a_file_that_applies(chronex: Chronex, tmp_path: Path) -> None:
    source, written = tmp_path / "mine", tmp_path / "chronex.toml"
    source.write_text(CRONTABS["steps and lists"][0])
    done = chronex("import", "crontab", str(source), "-o", str(written), "--tz", "Europe/Berlin")
    assert done.code == 0, done.err
    assert "4 jobs, 4 of them proven the same; 0 things not carried over" in done.out
    assert chronex("apply", str(written), "--store", str(tmp_path / "store")).code == 0
    again = chronex("import", "crontab", str(source), "-o", str(written))
    assert again.code == 2
    assert "--force" in again.err


def test_check_writes_nothing_and_exits_1_for_what_is_lost(chronex: Chronex, tmp_path: Path) -> None:
    done = chronex(
        "import", "crontab", "-", "--check", "--format", "json", "--tz", "UTC", stdin="@reboot x\n0 1 * * * y\n"
    )
    assert done.code == 1
    output = json.loads(done.out)
    assert [lost["text"] for lost in output["lost"]] == ["@reboot x"]
    assert [(job["id"], job["differences"]) for job in output["jobs"]] == [("y", [])]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("import", "crontab", "/nowhere/at/all"), "cannot read"),
        (("import", "quartz"), "crontab, systemd or k8s"),
        (("import", "crontab", "-"), "nothing to import"),
        (("import", "systemd", "/nowhere"), "is not there"),
    ],
)
def test_bad_input_is_one_sentence(chronex: Chronex, arguments: tuple[str, ...], words: str) -> None:
    done = chronex(*arguments)
    assert done.code == 2
    assert words in done.err
