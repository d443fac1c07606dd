"""Valid files: exactly these settings, jobs and tasks."""

from __future__ import annotations

import msgspec
import pytest

from chronex.jobfile import STARTER, Address, HistorySettings, JobFile, LogSettings, SchedulerSettings, read_job_file
from chronex.model import (
    Cadence,
    CrashCheck,
    CrashPolicy,
    DstSetting,
    FailureStrategy,
    Job,
    LeftoverPolicy,
    OverlapPolicy,
    RecoveryPolicy,
    RecoveryStrategy,
    RetryPolicy,
    SpreadPolicy,
    Task,
    TaskMode,
)
from chronex.model.policies import ResourceLimits
from chronex.storage import keys
from chronex.storage.codec import decode, encode

HOST = "Europe/Berlin"
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


def read(text: str) -> JobFile:
    return read_job_file(text, "chronex.toml", HOST)


def job_of(text: str) -> Job:
    (job,) = read(text).jobs
    return job


def job(schedule: str = "@daily", **fields: object) -> Job:
    values: dict[str, object] = {
        "timezone": HOST,
        "source": "chronex.toml",
        "tasks": (Task(name="main", run="true"),),
    }
    return Job(id="a", schedule=schedule, **{**values, **fields})  # type: ignore[arg-type]


def with_job(line: str, schedule: str = "@daily") -> str:
    return f'[jobs.a]\nschedule = "{schedule}"\nrun = "true"\n{line}\n'


def test_an_empty_file_has_no_jobs() -> None:
    assert read("") == JobFile("chronex.toml", SchedulerSettings(timezone=HOST), ())


def test_a_file_that_uses_most_keys() -> None:
    found = read(FULL_EXAMPLE)
    assert found.settings == SchedulerSettings(
        timezone="Europe/Berlin", max_concurrent_jobs=50, grace_ms=30_000, metrics=Address("127.0.0.1", 9464)
    )
    assert found.warnings == ()
    assert found.jobs == (
        Job(
            id="backup",
            schedule="TZ=Asia/Seoul 0 3 * * * {jitter:5m, window:4h, tag:nightly}",
            timezone="Asia/Seoul",
            tags=("nightly",),
            source="chronex.toml",
            task_timeout_ms=5 * MINUTE,
            retry=RetryPolicy(max=3, interval_ms=30_000, backoff=2.0, max_interval_ms=10 * MINUTE, jitter=0.1),
            execution_timeout_ms=HOUR,
            spread=SpreadPolicy(
                mode="after",
                duration_ms=2 * HOUR,
                distribution="skewEarly",
                seed="daily",
                only="dow=MON-FRI;between=01:00-06:00",
            ),
            tasks=(
                Task(name="dump", run=("pg_dump", "-Fc", "app"), env={"PGUSER": "app"}, secrets=("PGPASSWORD",)),
                Task(name="cleanup", run="rm -f dump.tmp", on_failure=FailureStrategy.CONTINUE),
            ),
        ),
    )


ONE_KEY: dict[str, Job] = {
    "": job(),
    "enabled = false": job(enabled=False),
    'description = "why"': job(description="why"),
    'timezone = "UTC"': job(timezone="UTC"),
    'timezone = "local"': job(timezone=HOST),
    'dialect = "chronex"': job(),
    'overlap = "queue_one"': job(overlap=OverlapPolicy.QUEUE_ONE),
    'recovery = "execute_all"': job(recovery=RecoveryPolicy(RecoveryStrategy.EXECUTE_ALL)),
    'recovery = { strategy = "bounded", max_count = 3, max_age = "1d" }': job(
        recovery=RecoveryPolicy(RecoveryStrategy.BOUNDED, 3, DAY)
    ),
    'execution_timeout = "1h30m"': job(execution_timeout_ms=90 * MINUTE),
    'task_timeout = "500ms"': job(task_timeout_ms=500),
    'grace_period = "0s"': job(grace_ms=0),
    'leftovers = "kill"': job(leftovers=LeftoverPolicy.KILL),
    'log_limit = "64KiB"': job(log_limit=65_536),
    "retry = 2": job(retry=RetryPolicy(max=2)),
    'retry = "unlimited"': job(retry=RetryPolicy(max=None)),
    'retry = { max = "unlimited", interval = "1m" }': job(retry=RetryPolicy(max=None, interval_ms=MINUTE)),
    "retry = { backoff = 2 }": job(retry=RetryPolicy(backoff=2.0)),
    'on_failure = "continue"': job(failure=FailureStrategy.CONTINUE),
    'failure = "retry_on_failure"': job(failure=FailureStrategy.RETRY_ON_FAILURE),
    'mode = "parallel"': job(mode=TaskMode.PARALLEL),
    'on_crash = "fail"': job(on_crash=CrashPolicy.FAIL),
    'on_crash = { check = ["test", "-e", "done"] }': job(on_crash=CrashCheck(("test", "-e", "done"))),
    'on_crash = { check = "test -e done" }': job(on_crash=CrashCheck("test -e done")),
    'cadence = "fixed_rate"': job(),
    'spread = { duration = "1h" }': job(spread=SpreadPolicy(duration_ms=HOUR)),
    'spread = { duration = "1h", distribution = "skewLate", parameters = { s = 3 } }': job(
        spread=SpreadPolicy(duration_ms=HOUR, distribution="skewLate", parameters={"s": 3.0})
    ),
    'spread = { duration = "1h", distribution = "normal:mid", salt = "x", avoid = "dow=SUN" }': job(
        spread=SpreadPolicy(
            duration_ms=HOUR, distribution="normal", parameters={"mu": "mid"}, salt="x", avoid="dow=SUN"
        )
    ),
    'dst = { gap = "skip" }': job(dst=DstSetting(gap="skip", overlap="by-kind")),
    'tags = ["x", "y"]': job(tags=("x", "y")),
    'metadata = { "delivery.mode" = "webhook" }': job(metadata={"delivery.mode": "webhook"}),
    'on_start = ["a"]': job(on_start=("a",)),
    'on_complete = "b"': job(on_complete="b"),
    'env = { A = "1" }': job(tasks=(Task(name="main", run="true", env={"A": "1"}),)),
    'secrets = ["A"]': job(tasks=(Task(name="main", run="true", secrets=("A",)),)),
    'secrets = { A = "file:/a", B = "env:C" }': job(
        tasks=(Task(name="main", run="true", secrets=("A", "B"), secret_sources={"A": "file:/a", "B": "env:C"}),)
    ),
    'env_file = "/a"': job(tasks=(Task(name="main", run="true", env_file=("/a",)),)),
    'env_file = ["/a", "b"]': job(tasks=(Task(name="main", run="true", env_file=("/a", "b")),)),
    'expect = "usual"': job(expect_usual=True),
    'expect = "off"': job(),
    'user = "www-data"': job(tasks=(Task(name="main", run="true", user="www-data"),)),
    'user = 33\ngroup = "adm"': job(tasks=(Task(name="main", run="true", user="33", group="adm"),)),
    'umask = "0027"\nnice = 10': job(tasks=(Task(name="main", run="true", umask="0027", nice=10),)),
    'limits = { memory = "2G", cpu = "150%", tasks = 100, open_files = 1024 }': job(
        tasks=(
            Task(
                name="main",
                run="true",
                limits=ResourceLimits(memory=2_000_000_000, cpu=150, tasks=100, open_files=1024),
            ),
        )
    ),
    'limits = { memory = "off" }': job(tasks=(Task(name="main", run="true"),)),
    'directory = "/tmp"': job(tasks=(Task(name="main", run="true", directory="/tmp"),)),
    "success_codes = [0, 1, 0]": job(tasks=(Task(name="main", run="true", success_codes=(0, 1)),)),
    "retry_codes = [75]": job(tasks=(Task(name="main", run="true", retry_codes=(75,)),)),
    "retry_codes = []": job(tasks=(Task(name="main", run="true", retry_codes=()),)),
}


@pytest.mark.parametrize("line", ONE_KEY)
def test_one_key_of_a_job(line: str) -> None:
    found = job_of(with_job(line))
    assert found == ONE_KEY[line]
    assert decode(keys.job_key("a"), encode(keys.job_key("a"), found)) == found


CASCADE = """
[defaults]
user = "app"
umask = "027"
env_file = "/etc/all"
limits = { memory = "1GiB", tasks = 10 }
secrets = { A = "file:/a", B = "file:/b" }
[jobs.a]
schedule = "@daily"
limits = { memory = "2GiB" }
env_file = "/etc/a"
secrets = ["B"]
[[jobs.a.tasks]]
name = "one"
run = "true"
[[jobs.a.tasks]]
name = "two"
run = "true"
user = "root"
limits = { memory = "off", tasks = "off" }
secrets = { C = "env:C" }
"""


def test_users_limits_and_secrets_go_from_level_to_level() -> None:
    one, two = job_of(CASCADE).tasks
    assert (one.user, one.umask, one.env_file) == ("app", "027", ("/etc/all", "/etc/a"))
    assert one.limits == ResourceLimits(memory=2 * 2**30, tasks=10)
    assert (one.secrets, one.secret_sources) == (("A", "B"), {"A": "file:/a"})
    assert (two.user, two.umask, two.limits) == ("root", "027", None)
    assert (two.secrets, two.secret_sources) == (("A", "B", "C"), {"A": "file:/a", "C": "env:C"})


TASK_KEY: dict[str, Task] = {
    'run = "x y"': Task(name="t", run="x y"),
    'run = ["x", "y z"]': Task(name="t", run=("x", "y z")),
    'run = ["x", ""]': Task(name="t", run=("x", "")),
    'run = "x"\ntimeout = "1s"': Task(name="t", run="x", timeout_ms=1000),
    'run = "x"\nretry = 1': Task(name="t", run="x", retry=RetryPolicy(max=1)),
    'run = "x"\nidempotency_key = "k"\nidempotency_ttl = "1d"': Task(
        name="t", run="x", idempotency_key="k", idempotency_ttl_ms=DAY
    ),
    'run = "x"\nmetadata = { a = "b" }': Task(name="t", run="x", metadata={"a": "b"}),
    'run = "x"\nfailure = "continue"': Task(name="t", run="x", on_failure=FailureStrategy.CONTINUE),
    'run = "x"\nsuccess_codes = [3]\nretry_codes = [4]': Task(
        name="t", run="x", success_codes=(3,), retry_codes=(4,)
    ),
    'run = "x"\n[jobs.a.tasks.env]\nA = "b"': Task(name="t", run="x", env={"A": "b"}),
}


@pytest.mark.parametrize("lines", TASK_KEY)
def test_one_key_of_a_task(lines: str) -> None:
    text = f'[jobs.a]\nschedule = "@daily"\n[[jobs.a.tasks]]\nname = "t"\n{lines}\n'
    assert job_of(text).tasks == (TASK_KEY[lines],)


def test_defaults_reach_jobs_and_jobs_reach_tasks_key_by_key() -> None:
    found = job_of(
        """
        [defaults]
        overlap = "allow"
        task_timeout = "5m"
        execution_timeout = "1h"
        on_failure = "continue"
        retry = { max = 3, interval = "10s", backoff = 2 }
        env = { A = "default", B = "default", C = "default" }
        secrets = ["S"]
        directory = "/srv"
        success_codes = [0, 9]
        dst = { gap = "skip" }
        [jobs.a]
        schedule = "@daily"
        execution_timeout = "off"
        retry = { max = 5 }
        env = { B = "job", C = "job" }
        dst.overlap = "both"
        [[jobs.a.tasks]]
        name = "plain"
        run = "x"
        [[jobs.a.tasks]]
        name = "own"
        run = "x"
        retry.interval = "1s"
        env = { C = "task" }
        secrets = ["T"]
        directory = "/tmp"
        success_codes = [0]
        on_failure = "fail_fast"
        """
    )
    plain, own = found.tasks
    assert (found.overlap, found.task_timeout_ms, found.execution_timeout_ms) == ("allow", 5 * MINUTE, None)
    assert (found.failure, found.dst) == ("continue", DstSetting(gap="skip", overlap="both"))
    assert found.retry == RetryPolicy(max=5, interval_ms=10_000, backoff=2.0)
    assert plain == Task(
        name="plain",
        run="x",
        env={"A": "default", "B": "job", "C": "job"},
        secrets=("S",),
        directory="/srv",
        success_codes=(0, 9),
    )
    assert found.retry_for(own) == RetryPolicy(max=5, interval_ms=1_000, backoff=2.0)
    assert own.env == {"A": "default", "B": "job", "C": "task"}
    assert (own.secrets, own.directory, own.success_codes) == (("S", "T"), "/tmp", (0,))
    assert (plain.on_failure, own.on_failure) == (None, FailureStrategy.FAIL_FAST)


def test_tags_of_the_schedule_join_those_of_the_job() -> None:
    text = '[jobs.a]\nschedule = "@daily {tag:nightly+db}"\ntags = ["db", "prod"]\nrun = "true"\n'
    assert job_of(text).tags == ("db", "prod", "nightly")


def test_only_overrides_are_stored() -> None:
    raw = msgspec.to_builtins(job_of(with_job("")))
    assert raw == {
        "id": "a",
        "schedule": "@daily",
        "timezone": HOST,
        "source": "chronex.toml",
        "tasks": ({"name": "main", "run": "true"},),
    }


def test_the_default_of_the_execution_timeout_is_the_threshold_of_every_job_without_its_own() -> None:
    defaults = '[defaults]\nexecution_timeout = "1h"\n'
    assert job_of(defaults + with_job("")).execution_timeout_ms == 3_600_000
    assert job_of(defaults + with_job('execution_timeout = "2h"')).execution_timeout_ms == 7_200_000
    assert job_of(defaults + with_job('execution_timeout = "off"')).execution_timeout_ms is None


def test_recovery_of_a_job_tightens_or_replaces_the_default() -> None:
    defaults = '[defaults]\nrecovery = { strategy = "bounded", max_count = 9 }\n'
    assert job_of(defaults + with_job("")).recovery == RecoveryPolicy(RecoveryStrategy.BOUNDED, 9)
    tightened = job_of(defaults + with_job("recovery = { max_count = 2 }")).recovery
    assert tightened == RecoveryPolicy(RecoveryStrategy.BOUNDED, 2)
    replaced = job_of(defaults + with_job('recovery = "compressed"')).recovery
    assert replaced == RecoveryPolicy(RecoveryStrategy.COMPRESSED)


@pytest.mark.parametrize(
    ("scheduler", "own", "schedule", "zone"),
    [
        ("", "", "@daily", HOST),
        ('timezone = "local"', "", "@daily", HOST),
        ('timezone = "UTC"', "", "@daily", "UTC"),
        ('timezone = "UTC"', 'timezone = "Asia/Tokyo"', "@daily", "Asia/Tokyo"),
        ('timezone = "UTC"', 'timezone = "local"', "@daily", HOST),
        ('timezone = "UTC"', "", "TZ=Asia/Seoul @daily", "Asia/Seoul"),
    ],
)
def test_which_zone_applies(scheduler: str, own: str, schedule: str, zone: str) -> None:
    assert job_of(f"[scheduler]\n{scheduler}\n{with_job(own, schedule)}").timezone == zone


def test_a_posix_job_keeps_the_dialects_clock_rules_unless_it_says_otherwise() -> None:
    assert job_of(with_job('dialect = "posix"', "0 3 * * *")).dst is None
    own = job_of(with_job('dialect = "posix"\ndst = { gap = "end" }', "0 3 * * *"))
    assert own.dst == DstSetting(gap="end", overlap="first")


def test_cadence_is_for_intervals_and_a_default_leaves_other_schedules_alone() -> None:
    assert job_of(with_job('cadence = "fixed_delay"', "@every 5m")).cadence is Cadence.FIXED_DELAY
    defaults = '[defaults]\ncadence = "fixed_delay"\n'
    assert job_of(defaults + with_job("", "@every 5m")).cadence is Cadence.FIXED_DELAY
    assert job_of(defaults + with_job("")).cadence is Cadence.FIXED_RATE


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('metrics = "[::1]:9464"', SchedulerSettings(metrics=Address("::1", 9464))),
        ('grace_period = "5s"', SchedulerSettings(grace_ms=5_000)),
        ('reaper_interval = "10s"', SchedulerSettings(reaper_interval_ms=10_000)),
        ("max_concurrent_jobs = 1", SchedulerSettings(max_concurrent_jobs=1)),
        ('history = { max_age = "1d", max_count = 5 }', SchedulerSettings(history=HistorySettings(DAY, 5))),
        ("history.max_count = 5", SchedulerSettings(history=HistorySettings(max_count=5))),
        ('logs = { max_bytes = "1MiB" }', SchedulerSettings(logs=LogSettings(max_bytes=1 << 20))),
        (
            "logs = { max_bytes = 4096, max_count = 1 }",
            SchedulerSettings(logs=LogSettings(max_count=1, max_bytes=4096)),
        ),
    ],
)
def test_one_key_of_the_scheduler(line: str, expected: SchedulerSettings) -> None:
    assert read(f'[scheduler]\ntimezone = "UTC"\n{line}\n').settings == expected


def test_addresses_are_shown_as_they_are_written() -> None:
    assert [str(Address("::1", 1)), str(Address("localhost", 9464))] == ["[::1]:1", "localhost:9464"]


def test_warnings_are_kept_apart_and_have_places_too() -> None:
    found = read(
        with_job('timezone = "UTC"\nretry = { interval = "1h", max_interval = "1m" }', "TZ=Asia/Seoul 0 0 29 2 *")
    )
    assert [(w.line, w.column, w.code) for w in found.warnings] == [(2, 31, "W105"), (4, 12, "J101"), (5, 1, "J101")]
    assert str(found.warnings[1]) == (
        "chronex.toml:4:12: the schedule's own TZ=Asia/Seoul wins over this zone; remove one of them"
    )
    assert found.job("a") is found.jobs[0]
    assert found.job("b") is None


def test_the_starter_is_valid_as_it_is_and_with_every_comment_taken_off() -> None:
    assert [j.id for j in read(STARTER).jobs] == ["hello"]
    assert read(STARTER).warnings == ()
    lines = [line.removeprefix("# ") if " = " in line or "[" in line else line for line in STARTER.split("\n")]
    found = read("\n".join(line if not line.startswith("Every key") else "" for line in lines))
    assert [j.id for j in found.jobs] == ["hello", "backup"]
    assert [t.name for t in found.jobs[1].tasks] == ["dump", "prune"]


FULL_EXAMPLE = """\
[scheduler]
timezone = "Europe/Berlin"
max_concurrent_jobs = 50
grace_period = "30s"
metrics = "127.0.0.1:9464"          # off when absent

[defaults]                           # cascade: defaults -> job -> task; only overrides are stored
task_timeout = "5m"
retry = { max = 3, interval = "30s", backoff = 2.0, max_interval = "10m", jitter = 0.1 }

[jobs.backup]
schedule = "TZ=Asia/Seoul 0 3 * * * {jitter:5m, window:4h, tag:nightly}"
overlap = "skip"
recovery = "execute_last"
execution_timeout = "1h"
spread = { mode = "after", duration = "2h", distribution = "skewEarly", seed = "daily", only = "dow=MON-FRI;between=01:00-06:00" }

[[jobs.backup.tasks]]
name = "dump"
run = ["pg_dump", "-Fc", "app"]      # a list is argv; a string goes to the shell
env = { PGUSER = "app" }
secrets = ["PGPASSWORD"]             # taken from the daemon's environment, never stored, redacted in output

[[jobs.backup.tasks]]
name = "cleanup"
run = "rm -f dump.tmp"
on_failure = "continue"
"""
