"""Jobs of a program: the job file's keys and checks, with the place of each problem in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from chronex.jobfile import read_job_file
from chronex.jobfile.program_jobs import InvalidJobError, check_jobs, one_task_table, read_program_job, table_of
from chronex.model import Call, Job, OverlapPolicy, RecoveryPolicy, RecoveryStrategy, RetryPolicy, SpreadPolicy, Task
from chronex.model.policies import CrashPolicy, DstSetting, FailureStrategy, NotifyPolicy, ResourceLimits
from tests.jobfile.test_values import FULL_EXAMPLE

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.toml"))
TEXTS = [pytest.param(path.read_text(), id=path.name) for path in EXAMPLES]
DO = (Task(name="main", run=("true",)),)


def refused(job: Any, *others: Any) -> list[str]:
    with pytest.raises(InvalidJobError) as caught:
        check_jobs([job, *others])
    assert str(caught.value) == "\n".join(map(str, caught.value.problems))
    return [str(problem) for problem in caught.value.problems]


def job(**fields: Any) -> Job:
    return Job(**{"id": "tidy", "schedule": "@daily", "tasks": DO, **fields})


@pytest.mark.parametrize("text", [*TEXTS, pytest.param(FULL_EXAMPLE, id="most keys")])
def test_what_a_file_says_a_program_can_say(text: str) -> None:
    for written in read_job_file(text, "chronex.toml", "UTC").jobs:
        if written.notify is not None and written.notify.channels:
            continue  # channels are tables of a file
        plain = replace(written, source="")
        assert read_program_job(written.id, table_of(written)) == plain
        assert check_jobs([plain]) == [plain]


def test_every_field_of_a_job_comes_back() -> None:
    full = job(
        description="all of it",
        recovery=RecoveryPolicy(RecoveryStrategy.BOUNDED, max_count=3, max_age_ms=7_200_000),
        retry=RetryPolicy(max=None, interval_ms=1_500, backoff=3.0, max_interval_ms=60_000, jitter=0.5, newest_wins=True),
        overlap=OverlapPolicy.QUEUE,
        on_crash=CrashPolicy.FAIL,
        failure=FailureStrategy.CONTINUE,
        dst=DstSetting("skip", "both"),
        spread=SpreadPolicy(duration_ms=60_000, mode="around", seed="daily", salt="s", only="dow=MON"),
        notify=NotifyPolicy(("mail",), 3, on_recovery=False, on_errors=True),
        execution_timeout_ms=1, task_timeout_ms=2, grace_ms=0, expect_within_ms=3, expect_usual=True, log_limit=4096,
        on_start=Call("begin"), on_complete="echo done", tags=("a", "b"), metadata={"k": "v"}, enabled=False,
        tasks=(
            Task(name="one", run=Call("f", ("x", 1), {"deep": [None, {"a": 1.5}]}), timeout_ms=5, retry=RetryPolicy(max=2)),
            Task(name="two", run="true", env={"A": "1"}, secrets=("B",), directory="/tmp", success_codes=(0, 3),
                 retry_codes=(75,), idempotency_key="{job}", idempotency_ttl_ms=9, on_failure=FailureStrategy.FAIL_FAST,
                 secret_sources={"B": "file:/b"}, env_file=("/e",), user="app", group="adm", umask="077", nice=3,
                 limits=ResourceLimits(memory=2**30, cpu=150, tasks=9, open_files=64)),
        ),
    )  # fmt: skip
    assert check_jobs([full]) == [full]
    one, two = full.tasks
    like_a_file = replace(full, tasks=(replace(one, retry=None), two))
    assert read_program_job("tidy", table_of(like_a_file)) == like_a_file


@pytest.mark.parametrize("key", [{"user": "app"}, {"nice": 3}, {"limits": {"tasks": 3}}, {"env_file": "/a"}])
def test_a_function_is_no_other_user_and_has_no_limits(key: dict[str, Any]) -> None:
    (name,) = key
    with pytest.raises(InvalidJobError, match=f"{name} is for commands, and this is a function"):
        read_program_job("tidy", {"schedule": "@daily", "tasks": [{"name": "main", "run": Call("tidy"), **key}]})


def test_words_lists_and_spans_become_what_a_job_holds() -> None:
    task: dict[str, Any] = {"name": "main", "run": ["echo", "hello"], "on_failure": "continue"}
    loose = job(overlap="queue", tasks=[Task(**task)], tags=["a"])
    (found,) = check_jobs([loose])
    assert found.overlap is OverlapPolicy.QUEUE
    assert found.tags == ("a",)
    assert found.tasks == (Task(name="main", run=("echo", "hello"), on_failure=FailureStrategy.CONTINUE),)
    keys = {"retry": 3, "timeout": timedelta(minutes=5), "idempotency_key": "{job}", "timezone": "Asia/Seoul"}
    read = read_program_job("tidy", one_task_table("@daily", Call("tidy"), keys))
    assert (read.retry.max, read.timezone) == (3, "Asia/Seoul")
    assert read.tasks == (Task(name="main", run=Call("tidy"), timeout_ms=300_000, idempotency_key="{job}"),)


def test_a_schedule_of_the_programs_own_is_known_by_its_name() -> None:
    own = job(schedule="tides", dialect="custom")
    assert check_jobs([own]) == [own]
    assert refused(job(schedule="the tides", dialect="custom")) == [
        "job 'tidy': 'the tides' is not a name; use letters, digits, _ and - only, such as the-tides"
    ]


PROBLEMS: dict[str, tuple[Job, list[str]]] = {
    "a bad expression": (
        job(schedule="99 * * * *"),
        ["job 'tidy': minute: value 99 out of range [0, 59]; try it: chronex explain '…'"],
    ),
    "no schedule": (job(schedule=""), ["job 'tidy': schedule is empty; write something, or remove the key"]),
    "an unknown zone": (
        job(timezone="Europe/Berlim"),
        ["job 'tidy': unknown time zone 'Europe/Berlim'; did you mean Europe/Berlin?"],
    ),
    "an unknown dialect": (
        job(dialect="quartz"),
        ["job 'tidy': dialect cannot be 'quartz'; it is one of chronex, posix"],
    ),
    "a name of two words": (
        job(id="daily report"),
        ["job 'daily report': 'daily report' is not a name; use letters, digits, _ and - only, such as daily-report"],
    ),
    "a name that is no text": (
        job(id=7),
        ["job '7': the id of a job is text, not int; write for example \"tidy\""],
    ),
    "two tasks of one name": (
        job(tasks=(*DO, *DO)),
        ["job 'tidy', task 'main': task 'main' is given twice; give it another name"],
    ),
    "no tasks": (
        job(tasks=()),
        ["job 'tidy': job 'tidy' has no tasks; write run = [\"echo\", \"hello\"], or add [[jobs.tidy.tasks]]"],
    ),
    "a task with nothing to run": (
        job(tasks=(Task(name="main"),)),
        ["job 'tidy', task 'main': run names no program; name the program first, such as [\"echo\", \"hello\"]"],
    ),
    "a negative timeout": (
        job(tasks=(Task(name="main", run="true", timeout_ms=-5),)),
        [
            "job 'tidy', task 'main': timeout: '-5ms' is not a duration; "
            "write a number and ms, s, m, h or d, such as 90s or 1h30m"
        ],
    ),
    "bounded without bounds": (
        job(recovery=RecoveryPolicy(RecoveryStrategy.BOUNDED)),
        [
            "job 'tidy', recovery: bounded needs max_count or max_age; "
            'write recovery = { strategy = "bounded", max_count = 10 }, or with max_age = "1d"'
        ],
    ),
    "an overlap that is none": (job(overlap="skp"), ["job 'tidy': overlap cannot be 'skp'; did you mean skip?"]),
    "retries below zero": (
        job(retry=RetryPolicy(max=-1)),
        ["job 'tidy', retry: max cannot be -1; it goes from 0 to 1000000"],
    ),
    "arguments that no store can keep": (
        job(tasks=(Task(name="main", run=Call("mail", (datetime(2027, 1, 1, tzinfo=UTC),))),)),
        [
            "job 'tidy', task 'main': the arguments of 'mail' cannot be stored; "
            "give text, numbers, lists and tables, or bind other values with functools.partial"
        ],
    ),
    "a function without a name": (
        job(tasks=(Task(name="main", run=Call(" ")),)),
        ["job 'tidy', task 'main': run calls a function without a name; write Call(\"send_mail\")"],
    ),
    "an empty variable": (
        job(tasks=(Task(name="main", run="true", env={"1A": "x"}),)),
        ["job 'tidy', task 'main', env: '1A' cannot name a variable; use letters, digits and _, and no digit first"],
    ),
    "a delay that no schedule has": (
        job(cadence="fixed_delay"),
        ['job \'tidy\': fixed_delay is for intervals only; write schedule = "@every 15m", or remove cadence'],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("bad", "told"), PROBLEMS.values(), ids=PROBLEMS)
def test_what_a_file_would_refuse_is_refused_with_its_place(bad: Job, told: list[str]) -> None:
    assert refused(bad) == told


def test_a_job_that_is_given_twice_is_refused() -> None:
    assert refused(job(), job()) == ["job 'tidy': job 'tidy' is given twice; give it another name"]
    assert refused(job(), job(id="Tidy")) == [
        "job 'Tidy': job 'Tidy' differs from 'tidy' only by case; give it another name"
    ]


def test_every_problem_of_every_job_is_told_at_once() -> None:
    assert len(refused(job(schedule="99 99 * * *", timezone="x"), job(id="b", tasks=()), "no job")) == 5


def test_an_unknown_keyword_is_taught() -> None:
    with pytest.raises(InvalidJobError, match=r"job 'tidy': unknown key 'retries'; did you mean retry\?"):
        read_program_job("tidy", one_task_table("@daily", Call("tidy"), {"retries": 3}))
