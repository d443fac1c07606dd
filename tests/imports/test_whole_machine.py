"""A whole machine in one import: every crontab, spool, anacrontab and timer, and what each loses."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from chronex.imports.import_result import Import, Proven, as_chronex_reads, prove, with_shared_defaults
from chronex.imports.whole_machine import MachineFiles, read_machine
from chronex.timing.zones import load_zone
from tests.cli.conftest import Chronex
from tests.kit.users import needs_root

NOW = 1_800_000_000
BERLIN = load_zone("Europe/Berlin")
FILES = {
    "etc/crontab": (
        "SHELL=/bin/sh\nPATH=/usr/sbin:/usr/bin:/sbin:/bin\n"
        "17 * * * * root cd / && run-parts --report /etc/cron.hourly\n"
        "25 6 * * * root test -x /usr/sbin/anacron || ( cd / && run-parts --report /etc/cron.daily )\n"
    ),
    "etc/cron.d/shop": "HOME=/srv/shop\n*/10 * * * * www-data php artisan queue:prune\n",
    "etc/cron.d/old.dpkg-old": "* * * * * root broken\n",
    "etc/cron.daily/backup.sh": "#!/bin/sh\n",
    "etc/anacrontab": "SHELL=/bin/sh\n1\t5\tcron.daily\trun-parts --report /etc/cron.daily\n7 10 tidy tidy-up --all\n",
    "var/spool/cron/crontabs/ann": "@reboot agent --start\n30 2 * * 1-5 report%Hello%\n",
    "etc/systemd/system/dump.timer": "[Timer]\nOnCalendar=*-*-* 03:00\nPersistent=true\nRandomizedDelaySec=5min\n",
    "lib/systemd/system/dump.service": (
        "[Unit]\nConditionACPower=true\n[Service]\nType=oneshot\nExecStart=/usr/bin/pg_dump app\nUser=postgres\nGroup=adm\n"
        "UMask=0027\nNice=10\nMemoryMax=2G\nCPUQuota=150%\nTasksMax=64\nLimitNOFILE=4096\nEnvironmentFile=/etc/default/pg\n"
        "Environment=PGUSER=app\nWorkingDirectory=/var/backups\nTimeoutStopSec=90\nProtectSystem=full\n"
    ),
    "etc/default/pg": "PGUSER_OF_FILE=1\n",
    "lib/systemd/system/idle.timer": "[Timer]\nOnCalendar=daily\n",
}  # fmt: skip


def lay_out(root: Path, *without: str) -> MachineFiles:
    for name, text in FILES.items():
        if name not in without:
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(0o600 if "spool" in name else 0o644)
    wants = root / "etc/systemd/system/timers.target.wants"
    wants.mkdir(parents=True, exist_ok=True)
    (wants / "dump.timer").symlink_to("../dump.timer")
    return MachineFiles(root, root / "etc")


@pytest.fixture
def place(tmp_path: Path) -> MachineFiles:
    return lay_out(tmp_path)


def by_name(found: Import) -> dict[str, Proven]:
    return {each.job.id: each for each in prove(found, NOW)[1]}


def test_every_source_of_the_machine_is_read(place: MachineFiles) -> None:
    found = read_machine(place, BERLIN)
    assert {job.id: job.table.get("user") for job in found.jobs} == {
        "cron-hourly": "root", "cron-daily": "root", "artisan": "www-data", "agent": "ann", "report": "ann",
        "dump": "postgres",
    }  # fmt: skip
    assert [job.origin for job in found.jobs][2] == "/etc/cron.d/shop, line 2"
    assert len(as_chronex_reads(with_shared_defaults(found)).jobs) == len(found.jobs)


def test_what_the_machine_itself_passes_over_is_said_and_not_lost(place: MachineFiles) -> None:
    found = read_machine(place, BERLIN)
    assert found.lost == []
    assert [text.partition(":")[0] for text in found.passed] == [
        "/etc/cron.d/old.dpkg-old", "/etc/anacrontab", "/etc/cron.daily/backup.sh",
    ]  # fmt: skip


def test_a_service_is_carried_into_the_keys_and_the_rest_is_named(place: MachineFiles) -> None:
    proven = by_name(read_machine(place, BERLIN))["dump"]
    (task,) = as_chronex_reads(Import("machine", "Europe/Berlin", {}, [proven.job], [])).jobs[0].tasks
    assert (task.user, task.group, task.umask, task.nice) == ("postgres", "adm", "0027", 10)
    assert task.limits is not None
    assert (task.limits.memory, task.limits.cpu, task.limits.tasks, task.limits.open_files) == (
        2 << 30,
        150,
        64,
        4096,
    )
    assert (task.env_file, task.env["PGUSER"], task.directory) == (("/etc/default/pg",), "app", "/var/backups")
    assert proven.job.table["grace_period"] == "90000ms"
    assert proven.job.lost == ("ProtectSystem=full has no equivalent", "ConditionACPower=true has no equivalent")
    assert (proven.verdict, proven.has_proven_times) == ("lost", True), "proven is said of its times alone"


@pytest.mark.parametrize("wanted_by", ["multi-user.target.wants", "sysstat.service.wants", "basic.target.requires"])
def test_a_timer_is_enabled_by_whatever_wants_it(tmp_path: Path, wanted_by: str) -> None:
    """Debian's sysstat, mdadm and ntpsec have their timers started with their services: they were left out."""
    place = lay_out(tmp_path)
    wants = place.etc / "systemd/system" / wanted_by
    wants.mkdir()
    (wants / "idle.timer").symlink_to("/lib/systemd/system/idle.timer")
    assert "idle" in {job.id for job in read_machine(place, BERLIN).jobs}


@pytest.mark.parametrize("masked", ["dump.timer", "dump.service"])
def test_a_masked_unit_has_not_run_and_is_not_carried_over(tmp_path: Path, masked: str) -> None:
    """`systemctl mask` puts a link to /dev/null before the package's unit, which was read nevertheless."""
    place = lay_out(tmp_path)
    (place.etc / "systemd/system/dump.timer").rename(tmp_path / "lib/systemd/system/dump.timer")
    (place.etc / "systemd/system" / masked).symlink_to("/dev/null")
    found = read_machine(place, BERLIN)
    assert "dump" not in {job.id for job in found.jobs}
    assert f"dump.timer: left out, because {masked} is masked" in found.passed


def test_what_an_instance_adds_to_its_template_is_read(tmp_path: Path) -> None:
    units = tmp_path / "etc/systemd/system"
    (units / "timers.target.wants").mkdir(parents=True)
    (units / "copy@.timer").write_text("[Timer]\nOnCalendar=daily\n")
    (units / "copy@.service").write_text("[Service]\nExecStart=/bin/copy %i\n")
    (units / "copy@a.service.d").mkdir()
    (units / "copy@a.service.d/nice.conf").write_text("[Service]\nNice=7\n")
    (units / "timers.target.wants/copy@a.timer").symlink_to("../copy@.timer")
    (job,) = read_machine(MachineFiles(tmp_path, tmp_path / "etc"), BERLIN).jobs
    assert (job.table["run"], job.table["nice"]) == (["/bin/copy", "a"], 7)


def test_with_anacron_its_jobs_come_and_what_leaves_them_to_it_goes(tmp_path: Path) -> None:
    place = lay_out(tmp_path)
    (tmp_path / "usr/sbin").mkdir(parents=True)
    (tmp_path / "usr/sbin/anacron").touch()
    found = read_machine(place, BERLIN)
    jobs = {job.id: job for job in found.jobs}
    assert (
        jobs["anacron-cron-daily" if "anacron-cron-daily" in jobs else "cron-daily"].table["recovery"]
        == "execute_last"
    )
    assert (jobs["tidy"].table["schedule"], jobs["tidy"].table["run"]) == ("40 7 * * 1", "tidy-up --all")
    assert by_name(found)["tidy"].verdict == "differs"
    assert [text for text in found.passed if text.startswith("/etc/crontab, line 4: left out")]


def test_an_address_of_anacron_that_is_none_is_lost(tmp_path: Path) -> None:
    place = lay_out(tmp_path)
    (tmp_path / "usr/sbin").mkdir(parents=True)
    (tmp_path / "usr/sbin/anacron").touch()
    (place.etc / "anacrontab").write_text("MAILTO=no@@address\n1 5 tidy tidy-up\nMAILTO=\n7 5 more tidy-up\n")
    assert [lost.text for lost in read_machine(place, BERLIN).lost] == ["MAILTO=no@@address"]


@pytest.mark.parametrize("how", ["etc", "root", "argument"])
def test_the_command_takes_a_machine_by_its_etc_or_its_root(chronex: Chronex, place: MachineFiles, how: str) -> None:
    named = {"etc": [str(place.etc)], "root": ["machine", "--root", str(place.root)], "argument": [str(place.root)]}
    done = chronex("import", *named[how], "--check", "--tz", "Europe/Berlin", "--now", "2027-01-01")
    assert done.code == 1, "the sandbox of dump is lost"
    assert done.out.splitlines()[-1] == "6 jobs: 5 the same, 1 with a loss; 2 things lost; the times of 5 proven"


def test_a_machine_without_losses_is_exit_0(chronex: Chronex, tmp_path: Path) -> None:
    place = lay_out(tmp_path, "lib/systemd/system/dump.service", "etc/systemd/system/dump.timer")
    (place.etc / "systemd/system/timers.target.wants/dump.timer").unlink()
    done = chronex("import", str(place.etc), "--check", "--tz", "UTC", "--now", "2027-01-01")
    assert done.code == 0, done.out
    assert "nothing lost" in done.out


def test_the_times_of_another_machine_are_read_in_its_own_zone(chronex: Chronex, place: MachineFiles) -> None:
    (place.etc / "timezone").write_text("America/New_York\n")
    done = chronex("import", str(place.etc), "-o", "-", TZ="Asia/Tokyo")
    assert 'timezone = "America/New_York"' in done.out


def second_name(path: Path) -> None:
    os.link(path, path.parent.parent / "second")


def behind_a_link(path: Path) -> None:
    path.rename(path.parent.parent / "elsewhere")
    path.symlink_to(path.parent.parent / "elsewhere")


# As 3.0pl1-162 was seen to do. A link to a file of root is read in cron.d, and in the spool it is not.
DISTRUSTED: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "a file that its group can write": ("etc/cron.d/shop", lambda path: path.chmod(0o664), "its mode 0664"),
    "a file that all can write": ("etc/crontab", lambda path: path.chmod(0o646), "its mode 0646"),
    "a file of another": ("etc/cron.d/shop", lambda path: os.chown(path, 7, 7), "its owner, user 7"),
    "a file with two names": ("etc/cron.d/shop", second_name, "a second name"),
    "a crontab that others read": ("var/spool/cron/crontabs/ann", lambda path: path.chmod(0o640), "its mode 0640"),
    "a crontab that nobody writes": ("var/spool/cron/crontabs/ann", lambda path: path.chmod(0o400), "its mode 0400"),
    "a crontab behind a link": ("var/spool/cron/crontabs/ann", behind_a_link, "its being a link"),
    "a crontab with two names": ("var/spool/cron/crontabs/ann", second_name, "a second name"),
}


@needs_root
@pytest.mark.parametrize("case", DISTRUSTED)
def test_what_debian_does_not_trust_has_not_run(place: MachineFiles, case: str) -> None:
    name, change, why = DISTRUSTED[case]
    before = {job.id for job in read_machine(place, BERLIN).jobs if not job.differs}
    change(place.root / name)
    found = read_machine(place, BERLIN).jobs
    said = {job.id: job.differs[-1] for job in found if job.differs}
    assert said
    assert {job.id for job in found if f"/{name}," in job.origin} == said.keys()
    assert all(f"ignores the whole file because of {why}" in text for text in said.values())
    assert before - said.keys() == {job.id for job in found if not job.differs}


@needs_root
def test_a_link_to_a_file_of_root_is_trusted_in_cron_d(place: MachineFiles) -> None:
    behind_a_link(place.etc / "cron.d/shop")
    assert not any(job.differs for job in read_machine(place, BERLIN).jobs)


@needs_root
def test_a_copy_that_is_not_roots_says_nothing_of_owners(place: MachineFiles) -> None:
    os.chown(place.etc, 7, 7)
    (place.etc / "cron.d/shop").chmod(0o666)
    assert not any(job.differs for job in read_machine(place, BERLIN).jobs)


@needs_root
def test_a_machine_runs_nothing_for_who_has_no_account(place: MachineFiles) -> None:
    """Debian's cron ignores the whole file of a line with such a user, and the spool of one."""
    (place.etc / "passwd").write_text("root:x:0:0:root:/root:/bin/sh\nann:x:1:1::/home/ann:/bin/sh\n")
    (place.etc / "cron.d/more").write_text("1 1 * * * root first\n2 1 * * * 0 second\n")
    (place.root / "var/spool/cron/crontabs/bob").write_text("3 1 * * * third\n")
    (place.root / "var/spool/cron/crontabs/bob").chmod(0o600)
    ignored = {job.id: job.differs for job in read_machine(place, BERLIN).jobs if job.differs}
    assert ignored.keys() == {"artisan", "first", "second", "third"}
    assert "because of line 2, " in ignored["first"][0]
    assert "because of its name, which is no user's" in ignored["third"][-1]


def test_what_cannot_be_read_is_lost(tmp_path: Path) -> None:
    place = lay_out(tmp_path)
    (place.etc / "systemd/system/timers.target.wants/gone.timer").symlink_to("../gone.timer")
    (place.etc / "cron.d/large").write_bytes(b"#" * (1 << 20) + b"\n")
    assert [lost.text for lost in read_machine(place, BERLIN).lost] == ["large", "gone.timer"]


@pytest.mark.parametrize(
    ("made", "directories"),
    [
        (("root", "srv/shop"), {"artisan": "/srv/shop", "agent": "/", "report": "/", "x": "/"}),
        (("root", "srv/shop", "home/ann"), {"artisan": "/srv/shop", "agent": "~ann", "report": "~ann", "x": "/"}),
        # A copy of /etc alone has no homes at all, and says nothing of them.
        ((), {"artisan": "/srv/shop", "agent": "~ann", "report": "~ann", "x": "/"}),
    ],
)
def test_homes_are_those_of_the_machine_whose_files_they_are(
    place: MachineFiles, made: tuple[str, ...], directories: dict[str, str]
) -> None:
    accounts = ("root:x:0:0::/root:/bin/sh", "ann:x:7:7::/home/ann:/bin/sh", "who:x:8:8::/nonexistent:/bin/sh")
    (place.etc / "passwd").write_text("\n".join(accounts))
    (place.etc / "cron.d" / "who").write_text("1 1 * * * who x\n")
    for name in made:
        (place.root / name).mkdir(parents=True)
    found = {job.id: job.table["directory"] for job in read_machine(place, BERLIN).jobs}
    assert {name: found[name] for name in directories} == directories


def test_mail_to_accounts_is_carried_over_where_the_machine_can_send_it(place: MachineFiles) -> None:
    assert not any("notify" in job.table for job in read_machine(place, BERLIN).jobs)
    (place.root / "usr/sbin").mkdir(parents=True)
    for name in ("sendmail", "anacron"):
        (place.root / "usr/sbin" / name).write_text("")
    found = read_machine(place, BERLIN)
    told = {job.id: job.table["notify"]["to"] for job in found.jobs if "notify" in job.table}
    assert told == {
        "cron-hourly": ["root"], "artisan": ["www-data"], "agent": ["ann"], "report": ["ann"],
        "anacron-cron-daily": ["root"], "tidy": ["root"],
    }  # fmt: skip


PAM = (
    "auth\trequired pam_permit.so\n@include common-session\nsession required pam_env.so envfile=/etc/default/locale\n"
)


def with_pam(
    place: MachineFiles, environment: str, locale: str = "LANG=de_DE.UTF-8\n", settings: str = "# none\n"
) -> None:
    files = {"pam.d/cron": PAM, "pam.d/common-session": "session [success=ok default=die] pam_env.so\n",
             "environment": environment, "default/locale": locale, "security/pam_env.conf": settings}  # fmt: skip
    for name, text in files.items():
        (place.etc / name).parent.mkdir(exist_ok=True)
        (place.etc / name).write_text(text)


def test_what_pam_gives_to_the_commands_of_cron_is_carried_over(place: MachineFiles) -> None:
    """Seen with Debian's cron 3.0pl1-162: http_proxy of /etc/environment and LANG of /etc/default/locale arrive; PATH
    and HOME are cron's own, and what the crontab says goes before both."""
    with_pam(place, 'http_proxy="http://proxy:3128"\nPATH=/opt/bin\nHOME=/x\nFOO=bar # x\nexport A=1\nB C=2\nD\n')
    (place.etc / "cron.d/shop").write_text("A=2\n*/10 * * * * www-data php artisan queue:prune\n")
    proven = by_name(read_machine(place, BERLIN))
    assert proven["cron-hourly"].job.table["env"] == {
        "http_proxy": "http://proxy:3128", "FOO": "bar ", "A": "1", "LANG": "de_DE.UTF-8", "SHELL": "/bin/sh",
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    }  # fmt: skip
    assert proven["artisan"].job.table["env"]["A"] == "2"
    assert "HOME" not in proven["artisan"].job.table["env"]
    assert proven["artisan"].verdict == "same"
    assert "of /etc/environment and /etc/default/locale" in proven["artisan"].job.notes[0]


def test_a_machine_whose_cron_has_no_pam_env_gives_none(place: MachineFiles) -> None:
    with_pam(place, "A=1\n")
    (place.etc / "pam.d/cron").write_text("session required pam_limits.so\n")
    assert "A" not in by_name(read_machine(place, BERLIN))["artisan"].job.table["env"]


def test_rules_of_pam_that_are_not_read_make_a_job_differ(place: MachineFiles) -> None:
    with_pam(place, "A=1\n", settings="DISPLAY DEFAULT=:0\n")
    proven = by_name(read_machine(place, BERLIN))["artisan"]
    assert (proven.verdict, proven.job.differs[0].partition(" ")[0]) == ("differs", "/etc/security/pam_env.conf")


@pytest.mark.parametrize(
    ("written", "value"),
    [("a", "a"), ("'a'", "a"), ('"a b"', "a b"), ("\"it's\"", "it's"), ('"a" ', 'a" '), ("'", ""), ("", ""), ("a\"b\"", 'a"b"'),
     ("a#b", "a")],
)  # fmt: skip
def test_values_are_read_as_pam_env_reads_them(place: MachineFiles, written: str, value: str) -> None:
    with_pam(place, f"A={written}\n")
    assert by_name(read_machine(place, BERLIN))["artisan"].job.table["env"]["A"] == value
