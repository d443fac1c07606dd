"""chronex import systemd: calendars against systemd itself, and what surrounds them."""

from __future__ import annotations

import re
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from chronex.imports.import_result import Import, as_chronex_reads, job_file_text, prove, with_accepted_warnings
from chronex.imports.systemd import Timer, read_timers, timer_of, timers_in
from chronex.imports.systemd_service import span_ms
from chronex.timing.zones import load_zone

NOW = int(datetime(2026, 11, 16, tzinfo=UTC).timestamp())
BERLIN = load_zone("Europe/Berlin")
NEW_YEAR = tuple(int(datetime(*day, tzinfo=UTC).timestamp()) for day in ((2027, 12, 20), (2028, 1, 12)))
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
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
        'Type=oneshot\nExecStart=/usr/bin/tool --name "a b"\nWorkingDirectory=/srv\nEnvironment="A=1" B=2\n'
        "TimeoutStartSec=1h 30min"
    )
    found = written(tmp_path, timer, service)
    job = as_chronex_reads(found).jobs[0]
    assert job.schedule.endswith("{jitter:5m}") or "jitter" in job.schedule
    assert job.recovery.strategy == "execute_last"
    assert job.tasks[0].run == ("/usr/bin/tool", "--name", "a b")
    assert job.tasks[0].env == {"A": "1", "B": "2", "PATH": SYSTEM_PATH}
    assert job.tasks[0].directory == "/srv"
    assert job.task_timeout_ms == 90 * 60_000
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
    assert isinstance(timer, Timer)
    (job,) = read_timers([timer], BERLIN).jobs
    assert job.table["run"] == ["/bin/dump", "app-main", "app/main", "dump", "50%", "%H"]
    assert (job.table["directory"], job.table["description"]) == ("/srv/app-main", "of app-main")
    assert job.table["env"] == {"A": "dump@app-main.service", "B": "%h", "PATH": SYSTEM_PATH}
    assert len([text for text in job.lost if "specifiers such as %h are not expanded" in text]) == 2


def test_a_time_that_two_calendars_name_is_one_run(tmp_path: Path) -> None:
    """They were two jobs, both called the same, and on Mondays the command ran twice at once."""
    found, proven = prove(written(tmp_path, "OnCalendar=*-*-* 03:00\nOnCalendar=Mon 03:00 Europe/Berlin"), NOW)
    (job,) = found.jobs
    assert job.table["schedule"] == ["0 3 * * *", "TZ=Europe/Berlin 0 3 * * MON"]
    assert (proven[0].compared, proven[0].differences, proven[0].verdict) == (1827, (), "same")


@pytest.mark.parametrize(
    ("event", "is_passed_over"),
    [("*-*-3/8", True), ("*-*-1/2 12:00", False), ("*-*-1/11 23:00", True), ("Mon..Sun *-*-5/18 2:00", True), ("*-*-2/2", False),
     ("*-*-4/3", False), ("*-*-3..27/8", False), ("*-*-3,11", False), ("*-*-* 0/7:00", True), ("*-*-* 0/6:00", False), ("02:0/15", False), ("*:0/7", True), ("*:0/10", False)],
)  # fmt: skip
def test_times_that_systemd_passes_over_make_a_job_differ(tmp_path: Path, event: str, is_passed_over: bool) -> None:
    """By its manual 3 January is one of `3/8`. systemd 252 goes from 27 December to 11 January, and both were called the
    same."""
    found, proven = prove(written(tmp_path, f"OnCalendar={event} UTC"), NOW)
    assert proven[0].verdict == ("differs" if is_passed_over else "same")
    if shutil.which("systemd-analyze") and version_of_systemd() in range(252, 258):
        assert (theirs_around_new_year(event) != _instants(found)) is is_passed_over


def version_of_systemd() -> int:
    done = subprocess.run(["systemd-analyze", "--version"], capture_output=True, text=True, check=True)
    return int(done.stdout.split()[1])


def theirs_around_new_year(event: str) -> list[int]:
    """What systemd itself names from 20 December to the middle of January."""
    command = ["systemd-analyze", "calendar", "--iterations=9000", f"--base-time=@{NEW_YEAR[0] - 1}", f"{event} UTC"]
    environment = {"TZ": "UTC", "PATH": "/usr/bin:/bin", "LC_ALL": "C"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    times = re.findall(r"(?:elapse|Iter\. #\d+): \w+ (\S+ \S+) UTC", done.stdout)
    seconds = [int(datetime.strptime(time, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp()) for time in times]
    return [second for second in seconds if second < NEW_YEAR[1]]


def _instants(found: Import) -> list[int]:
    theirs = found.jobs[0].source_instants
    assert theirs is not None
    return list(theirs(*NEW_YEAR))


def test_a_list_of_schedules_is_clean_for_lint_too(tmp_path: Path) -> None:
    found, _ = prove(written(tmp_path, "OnCalendar=02:30\nOnCalendar=04:00"), NOW)
    text = with_accepted_warnings(job_file_text(found), "Europe/Berlin", NOW)
    assert '    # chronex: ignore[W111, W112] as it ran before\n    "30 2 * * *",\n    "0 4 * * *",\n' in text


def test_calendars_that_no_one_job_can_say_are_jobs_that_differ(tmp_path: Path) -> None:
    found, proven = prove(written(tmp_path, "OnCalendar=Mon *-*-1..7 06:00\nOnCalendar=daily"), NOW)
    assert [job.table["schedule"] for job in found.jobs] == ["0 6 1-7 * *", "0 0 * * *"]
    assert {each.verdict for each in proven} == {"differs"}
    assert "may run beside each other" in found.jobs[0].differs[0]


@pytest.mark.parametrize(
    ("service", "timeouts"),
    [
        ("TimeoutStartSec=5min", (None, None)),
        ("Type=simple\nRuntimeMaxSec=1h", (3_600_000, None)),
        ("Type=oneshot\nRuntimeMaxSec=1h", (None, None)),
        ("Type=oneshot\nTimeoutStartSec=5min\nRuntimeMaxSec=1h", (None, 300_000)),
        ("Type=oneshot\nTimeoutStartSec=infinity", (None, None)),
        ("Type=oneshot\nTimeoutStartSec=0", (None, None)),
        ("Type=oneshot\nTimeoutStartSec=1month", (None, 2_629_800_000)),
    ],
)
def test_which_time_limit_holds_depends_on_the_type(
    tmp_path: Path, service: str, timeouts: tuple[int | None, int | None]
) -> None:
    """TimeoutStartSec= bounds a command that is a oneshot; of any other type it bounds the start alone."""
    found = written(tmp_path, "OnCalendar=daily", f"{service}\nExecStart=/bin/x")
    (job,) = as_chronex_reads(found).jobs
    assert (job.execution_timeout_ms, job.task_timeout_ms) == timeouts
    assert found.jobs[0].lost == ()


def test_a_time_limit_that_cannot_be_read_is_lost(tmp_path: Path) -> None:
    (job,) = written(tmp_path, "OnCalendar=daily", "Type=oneshot\nExecStart=/bin/x\nTimeoutStartSec=soon").jobs
    assert job.lost == ("TimeoutStartSec=soon: not a span of time",)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (r"/bin/find / -name \*.tmp", ["/bin/find", "/", "-name", r"\*.tmp"]),
        (r"/bin/printf 'a\tb' \x41\102 a\sb", ["/bin/printf", "a\tb", "AB", "a b"]),
        (r'/bin/echo "a\"b" it\'s --x="c d"e', ["/bin/echo", 'a"b', "it's", "--x=c de"]),
        (r"/bin/find . -exec true {} \; -print a\;b", ["/bin/find", ".", "-exec", "true", "{}", ";", "-print", r"a\;b"]),
        (r"/bin/echo \u00e9 \\ x\\y", ["/bin/echo", "\u00e9", "\\", "x\\y"]),
        (r"/bin/echo # no comment", ["/bin/echo", "#", "no", "comment"]),
        ("/bin/echo '' \"\"", ["/bin/echo", "", ""]),
        ("/bin/echo a\u00a0b\fc\u2028d \x0b\x85", ["/bin/echo", "a\u00a0b\fc\u2028d", "\x0b\x85"]),
    ],
)  # fmt: skip
def test_words_are_taken_apart_as_systemd_does(tmp_path: Path, line: str, words: list[str]) -> None:
    """Unlike a shell it knows escapes of C, also inside of quotes, and keeps a backslash that begins none."""
    (job,) = written(tmp_path, "OnCalendar=daily", f"ExecStart={line}").jobs
    assert (job.table["run"], job.lost) == (words, ())


@pytest.mark.parametrize(
    ("line", "words", "is_lost"),
    [
        ("/bin/sh -c 'echo $A $(date) $0'", ["/bin/sh", "-c", "echo $A $(date) $0"], False),
        ("/bin/sh -c 'echo $$A'", ["/bin/sh", "-c", "echo $A"], False),
        ("/bin/sh -c 'echo $${A}'", ["/bin/sh", "-c", "echo ${A}"], False),
        ("/bin/sh -c 'echo ${A}'", ["/bin/sh", "-c", "echo ${A}"], True),
        ("/bin/echo $A", ["/bin/echo", "$A"], True),
        ("/bin/echo '$A b'", ["/bin/echo", "$A b"], True),
        ("/bin/echo a$A $$A", ["/bin/echo", "a$A", "$A"], False),
        (":/bin/echo $A ${A} $$A", ["/bin/echo", "$A", "${A}", "$$A"], False),
    ],
)
def test_variables_are_lost_where_systemd_puts_them_in(
    tmp_path: Path, line: str, words: list[str], is_lost: bool
) -> None:
    """It knows $NAME as a word of its own and ${NAME} in any, and neither behind a colon."""
    (job,) = written(tmp_path, "OnCalendar=daily", f"ExecStart={line}").jobs
    lost = (f"{line}: variables are not expanded without a shell",) if is_lost else ()
    assert (job.table["run"], job.lost) == (words, lost)


def test_a_program_that_is_given_a_name_keeps_its_arguments(tmp_path: Path) -> None:
    (job,) = written(tmp_path, "OnCalendar=daily", "ExecStart=@/bin/sh mine -c true").jobs
    assert job.table["run"] == ["/bin/sh", "-c", "true"]
    assert job.lost == ("@/bin/sh mine -c true: @ before the command is not carried over",)


def test_two_percent_signs_are_one_in_every_setting(tmp_path: Path) -> None:
    (tmp_path / "50%").write_text("A=1\n")
    service = (
        f"ExecStart=/bin/x\nEnvironment=FORM=+%%F\nWorkingDirectory=/srv/100%%\nEnvironmentFile={tmp_path}/50%%\n"
    )
    (job,) = written(tmp_path, "OnCalendar=daily", service).jobs
    assert job.table["env"]["FORM"] == "+%F"
    assert (job.table["directory"], job.table["env_file"], job.lost) == ("/srv/100%", f"{tmp_path}/50%", ())


def test_units_that_start_with_a_service_and_mounts_that_it_needs_are_told(tmp_path: Path) -> None:
    unit = (
        "Requires=db.service network-online.target\nWants=tell.service\nAfter=db.service\nRequiresMountsFor=/backup\n"
    )
    (tmp_path / "job.timer").write_text("[Timer]\nOnCalendar=daily\n")
    (tmp_path / "job.service").write_text(f"[Unit]\n{unit}[Service]\nExecStart=/bin/true\n")
    (job,) = read_timers(list(timers_in([tmp_path])), BERLIN).jobs
    assert job.lost == (
        "Requires=db.service: systemd starts it along with this unit, here nobody does",
        "Wants=tell.service: systemd starts it along with this unit, here nobody does",
        "RequiresMountsFor=/backup has no equivalent",
    )


def test_a_soft_limit_of_its_own_is_told(tmp_path: Path) -> None:
    (job,) = written(tmp_path, "OnCalendar=daily", "ExecStart=/bin/x\nLimitNOFILE=1024:4096").jobs
    assert (job.table["limits"], job.lost) == (
        {"open_files": 1024},
        ("LimitNOFILE=1024:4096: here both limits are 1024",),
    )


def test_a_line_with_an_open_quote_is_lost_because_systemd_ignores_it(tmp_path: Path) -> None:
    (job,) = written(tmp_path, "OnCalendar=daily", "ExecStart=/bin/echo 'a b\nEnvironment='A=1").jobs
    assert job.lost == ("/bin/echo 'a b: a quote is not closed", "Environment='A=1: a quote is not closed")


def test_what_runs_beside_a_service_that_is_no_oneshot_is_told(tmp_path: Path) -> None:
    service = "ExecStart=/bin/serve\nExecStartPost=/bin/tell"
    (job,) = written(tmp_path, "OnCalendar=daily", service).jobs
    assert job.lost == (
        "ExecStartPost=/bin/tell: systemd runs it when the command has begun, here it follows its end",
    )
    (job,) = written(tmp_path, "OnCalendar=daily", f"Type=oneshot\n{service}").jobs
    assert job.lost == ()


@pytest.mark.parametrize("service", ["ExecStart=/bin/a ; /bin/b", "ExecStart=/bin/a\nExecStart=/bin/b\nType=simple"])
def test_a_service_of_several_commands_that_systemd_refuses_is_told(tmp_path: Path, service: str) -> None:
    (job,) = written(tmp_path, "OnCalendar=daily", service).jobs
    assert job.lost == (
        "systemd refuses a service of several ExecStart= that is not of Type=oneshot, and has not run it",
    )
    (job,) = written(tmp_path, "OnCalendar=daily", f"{service}\nType=oneshot").jobs
    assert job.lost == ()


def test_conditions_of_the_timer_are_told_as_those_of_its_service(tmp_path: Path) -> None:
    (tmp_path / "job.timer").write_text("[Unit]\nConditionPathExists=/dev/nvme0\n[Timer]\nOnCalendar=daily\n")
    (tmp_path / "job.service").write_text("[Service]\nExecStart=/bin/true\n")
    (job,) = read_timers(list(timers_in([tmp_path])), BERLIN).jobs
    assert job.lost == ("ConditionPathExists=/dev/nvme0 has no equivalent",)


@pytest.mark.parametrize(
    ("service", "directory", "lost"),
    [
        ("WorkingDirectory=~\nUser=ann", "~ann", ()),
        ("WorkingDirectory=~", "~root", ()),
        ("WorkingDirectory=-/srv/x", "/srv/x", ("WorkingDirectory=-/srv/x: it may be missing to systemd; here it must be there",)),
    ],
)  # fmt: skip
def test_the_directory_of_a_service(tmp_path: Path, service: str, directory: str, lost: tuple[str, ...]) -> None:
    (job,) = written(tmp_path, "OnCalendar=daily", f"ExecStart=/bin/x\n{service}").jobs
    assert (job.table["directory"], job.lost) == (directory, lost)


@pytest.mark.parametrize(
    ("file", "env", "lost"),
    [
        ("A=of-file\nC=3\n", {"B": "2", "PATH": SYSTEM_PATH}, ""),
        ("PATH=/opt/bin\n", {"A": "1", "B": "2"}, ""),
        (None, {"A": "1", "B": "2", "PATH": SYSTEM_PATH}, "it cannot be read here; what it has wins under systemd, and here env does"),
        ("C=a\\ b\n", {"A": "1", "B": "2", "PATH": SYSTEM_PATH}, "systemd takes a backslash out of a value without quotes, here it stays"),
        ("C='a\\ b'\nD=\"\\$\"\n#\\\n", {"A": "1", "B": "2", "PATH": SYSTEM_PATH}, ""),
        ("C=3\nwords\n", {"A": "1", "B": "2", "PATH": SYSTEM_PATH}, "line 2 is not NAME=value; systemd passes over it, and here nothing starts"),
    ],
)  # fmt: skip
def test_a_file_of_variables_wins_over_those_of_the_unit(
    tmp_path: Path, file: str | None, env: dict[str, str], lost: str
) -> None:
    """Under systemd it does; in a job env does, so that the job would have run with other values, called the same."""
    path = tmp_path / "variables"
    if file is not None:
        path.write_text(file)
    service = f"ExecStart=/bin/x\nEnvironment=A=1 B=2\nEnvironmentFile={path}"
    (job,) = written(tmp_path, "OnCalendar=daily", service).jobs
    assert (job.table["env"], job.table["env_file"]) == (env, str(path))
    assert job.lost == ((f"EnvironmentFile={path}: {lost}",) if lost else ())


def test_a_file_of_variables_that_may_be_missing_comes_along_where_it_is_there(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("A=1\n")
    service = f"ExecStart=/bin/x\nEnvironmentFile=-{tmp_path}/there\nEnvironmentFile=-{tmp_path}/gone"
    (job,) = written(tmp_path, "OnCalendar=daily", service).jobs
    assert job.table["env_file"] == f"{tmp_path}/there"
    assert job.lost == (
        f"EnvironmentFile=-{tmp_path}/there: it may be missing to systemd; here it must be there",
        f"EnvironmentFile=-{tmp_path}/gone: a file that may be missing, and is; write env_file if it comes",
    )


@pytest.mark.parametrize(
    ("mode", "leftovers"), [("", "kill"), ("mixed", "kill"), ("process", "keep"), ("none", "keep")]
)
def test_what_a_command_leaves_behind_ends_with_it_as_under_systemd(
    tmp_path: Path, mode: str, leftovers: str
) -> None:
    found = written(tmp_path, "OnCalendar=daily", f"ExecStart=/bin/x\nKillMode={mode}")
    assert (as_chronex_reads(found).jobs[0].leftovers, found.jobs[0].lost) == (leftovers, ())


def test_a_command_whose_failure_does_not_count_does_not_run_after_one_that_failed(tmp_path: Path) -> None:
    """A task that is set to continue would, as a cleanup does; under systemd nothing follows a failure."""
    service = "Type=oneshot\nExecStartPre=/bin/prepare\nExecStart=-/bin/work\nExecStartPost=/bin/tell"
    (job,) = as_chronex_reads(written(tmp_path, "OnCalendar=daily", service)).jobs
    assert [(task.name, task.needs, task.on_failure) for task in job.tasks] == [
        ("step-1", None, None), ("step-2", ("step-1",), "continue"), ("step-3", ("step-2",), None),
    ]  # fmt: skip


def test_exit_codes_that_are_a_success_come_along(tmp_path: Path) -> None:
    service = "ExecStart=/bin/x\nSuccessExitStatus=1 143\nSuccessExitStatus=0 DATAERR SIGKILL"
    (job,) = written(tmp_path, "OnCalendar=daily", service).jobs
    assert (job.table["success_codes"], job.lost) == ([0, 1, 65, 143], ("SuccessExitStatus=SIGKILL: no exit code",))


@pytest.mark.parametrize(
    ("line", "is_lost"),
    [("PrivateDevices=no", False), ("NoNewPrivileges=false", False), ("ProtectSystem=full", True), ("PrivateTmp=yes", True),
     ("RestrictRealtime=off", False), ("IgnoreSIGPIPE=no", True)],
)  # fmt: skip
def test_a_sandbox_that_is_switched_off_is_no_loss(tmp_path: Path, line: str, is_lost: bool) -> None:
    (job,) = written(tmp_path, "OnCalendar=daily", f"ExecStart=/bin/x\n{line}").jobs
    assert job.lost == ((f"{line} has no equivalent",) if is_lost else ())


def test_a_service_of_a_user_begins_at_home_and_has_no_path_of_the_system(tmp_path: Path) -> None:
    units = tmp_path / "systemd/user"
    units.mkdir(parents=True)
    (units / "job.timer").write_text("[Timer]\nOnCalendar=daily\n")
    for line, directory in (("", "~"), ("WorkingDirectory=/srv", "/srv")):
        (units / "job.service").write_text(f"[Service]\nExecStart=/bin/x\n{line}\n")
        (job,) = read_timers(list(timers_in([units])), BERLIN).jobs
        assert (job.table["directory"], "env" in job.table) == (directory, False)


@pytest.mark.parametrize(
    ("line", "is_lost"),
    [("RandomizedOffsetSec=10m", True), ("OnClockChange=true", True), ("OnTimezoneChange=no", False), ("AccuracySec=1us", False),
     ("AccuracySec=1min", False), ("AccuracySec=12h", True), ("WakeSystem=no", False), ("FixedRandomDelay=yes", True),
     ("RemainAfterElapse=no", True), ("Persistent=false", False), ("Unit=job.service", False)],
)  # fmt: skip
def test_every_setting_of_a_timer_is_carried_over_or_told(tmp_path: Path, line: str, is_lost: bool) -> None:
    assert [lost.text for lost in written(tmp_path, f"OnCalendar=daily\n{line}").lost] == ([line] if is_lost else [])


@pytest.mark.parametrize(("line", "is_lost"), [("StartLimitBurst=1", True), ("Conflicts=shutdown.target x.target", False), ("Conflicts=x.service", True), ("StartLimitIntervalSec=0", False),
                                               ("JobTimeoutSec=5min", True), ("SuccessAction=poweroff", True)])  # fmt: skip
def test_what_bounds_the_starts_of_a_service_is_told(tmp_path: Path, line: str, is_lost: bool) -> None:
    (tmp_path / "job.timer").write_text("[Timer]\nOnCalendar=daily\n")
    (tmp_path / "job.service").write_text(f"[Unit]\n{line}\n[Service]\nExecStart=/bin/true\n")
    (job,) = read_timers(list(timers_in([tmp_path])), BERLIN).jobs
    assert job.lost == ((f"{line} has no equivalent",) if is_lost else ())


def test_a_comment_ends_with_its_line_and_an_empty_time_drops_all_times(tmp_path: Path) -> None:
    timer = "# at night \\\nOnCalendar=03:00\nOnBootSec=5min\nOnCalendar=\nOnCalendar=04:00"
    found = written(tmp_path, timer)
    assert ([job.table["schedule"] for job in found.jobs], found.lost) == (["0 4 * * *"], [])


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
