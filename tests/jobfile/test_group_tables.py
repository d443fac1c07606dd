"""[groups], and what jobs say of groups, conditions, checks and catch-up: each wrong value with its place and a hint."""

from __future__ import annotations

import pytest

from chronex.jobfile import JobFileError, read_job_file, read_triggers
from chronex.jobfile.program_jobs import check_jobs, read_program_job
from chronex.model.groups import CatchUpPace, GroupSettings, StartRate
from chronex.model.job import Job, Task, TaskCheck
from chronex.model.policies import Condition, read_condition
from tests.jobfile.marked import Place, unmarked

GROUPS = '[groups.database]\nlimit = 2\n[groups.api]\nrate = "30/m"\n'
JOB = '[jobs.a]\nschedule = "@daily"\nrun = "x"\n'


def read(text: str) -> Job:
    (job,) = read_job_file(text, "chronex.toml", "UTC").jobs
    return job


def test_groups_are_read() -> None:
    found = read_job_file(GROUPS + '[groups.both]\nlimit = 10000\nrate = "5/10s"\n' + JOB, "chronex.toml", "UTC")
    assert found.groups == (
        GroupSettings("database", limit=2),
        GroupSettings("api", rate=StartRate(30, 60_000)),
        GroupSettings("both", limit=10_000, rate=StartRate(5, 10_000)),
    )


@pytest.mark.parametrize(
    ("written", "rate"),
    [("1/s", (1, 1_000)), ("1000/d", (1_000, 86_400_000)), ("2/1h30m", (2, 5_400_000)), (" 3 / m ", (3, 60_000)), ("7/500ms", (7, 500))],
)  # fmt: skip
def test_a_rate_has_any_window(written: str, rate: tuple[int, int]) -> None:
    found = read_job_file(f'[groups.g]\nrate = "{written}"\n{JOB}', "chronex.toml", "UTC")
    assert found.groups[0].rate == StartRate(*rate)


def test_a_job_names_groups_with_or_without_weights_and_inherits_them() -> None:
    assert read(f'{GROUPS}{JOB}groups = ["database", "api"]\n').groups == {"database": 1, "api": 1}
    assert read(f"{GROUPS}{JOB}groups = {{ database = 2 }}\npriority = -100\n").groups == {"database": 2}
    inherited = read(f'{GROUPS}[defaults]\ngroups = ["api"]\npriority = 7\nwait_for = ["mains"]\n{JOB}')
    assert (inherited.groups, inherited.priority, inherited.wait_for) == ({"api": 1}, 7, ("mains",))
    assert read(f'{GROUPS}[defaults]\ngroups = ["api"]\n{JOB}groups = []\n').groups == {}


def test_a_check_is_a_command_or_a_file() -> None:
    assert read(f'{JOB}check = ["verify", "it"]\n').tasks[0].check == TaskCheck(run=("verify", "it"))
    assert read(f'{JOB}check = "test -s x"\n').tasks[0].check == TaskCheck(run="test -s x")
    check = read(f'{JOB}check = {{ file = "/b", min_size = "1MB", newer = true }}\n').tasks[0].check
    assert check == TaskCheck(file="/b", min_size=1_000_000, newer=True)
    tasks = '[jobs.a]\nschedule = "@daily"\n[[jobs.a.tasks]]\nname = "t"\nrun = "x"\ncheck = { file = "/b", min_size = 1 }\n'
    assert read(tasks).tasks[0].check == TaskCheck(file="/b", min_size=1)


def test_the_pace_of_catch_up() -> None:
    found = read_job_file(f'[scheduler]\ncatch_up = {{ spacing = "0s", share = 1 }}\n{JOB}', "chronex.toml", "UTC")
    assert found.settings.catch_up == CatchUpPace(0, 1.0)
    assert read_job_file(JOB, "chronex.toml", "UTC").settings.catch_up == CatchUpPace(500, 0.5)


PROBLEMS = {
    "unknown group": (f'{GROUPS}{JOB}groups = [«"databse"»]\n', "J032", "unknown group 'databse'", "did you mean database?"),
    "no groups at all": (f'{JOB}groups = [«"database"»]\n', "J032", "unknown group 'database'", "add [groups.database] with limit = 1"),
    "unknown group with a weight": (f"{GROUPS}{JOB}groups = {{ «databse» = 1 }}\n", "J032", "unknown group 'databse'", "did you mean database?"),
    "rate of 0": ('[groups.g]\nrate = «"0/m"»\n' + JOB, "J033", "a rate of 0 would start nothing, ever", "write at least 1, or pause the jobs"),
    "a rate without its time": ("[groups.g]\nrate = «30»\n" + JOB, "J011", "rate takes starts and time in text, not a whole number", 'write rate = "30/m"'),
    "no rate": ('[groups.g]\nrate = «"often"»\n' + JOB, "J033", "'often' is not a rate", 'write rate = "30/m"'),
    "too high a rate": ('[groups.g]\nrate = «"1001/s"»\n' + JOB, "J033", "a rate counts at most 1000 starts", "write at most 1000"),
    "far too high a rate": ('[groups.g]\nrate = «"100000000000/d"»\n' + JOB, "J033", "a rate counts at most 1000 starts", "write at most 1000"),
    "too long a rate": ('[groups.g]\nrate = «"1/400d"»\n' + JOB, "J033", "the window of a rate is at most a year", "write for example 10/d"),
    "a rate of nothing": ('[groups.g]\nrate = «"1/0s"»\n' + JOB, "J033", "'1/0s' is not a rate", "write"),
    "weight over the limit": (f"{GROUPS}{JOB}groups = {{ database = «3» }}\n", "J033", "a run would take 3 places of database, which has 2", "write at most 2, or raise the limit"),
    "weight of 0": (f"{GROUPS}{JOB}groups = {{ database = «0» }}\n", "J014", "database cannot be 0", "it goes from 1"),
    "named twice": (f'{GROUPS}{JOB}groups = ["api", «"api"»]\n', "J018", "'api' is given twice", "remove one of them"),
    "too many groups": (GROUPS + "".join(f"[groups.g{n}]\nlimit = 1\n" for n in range(9)) + JOB + f"groups = «{[f'g{n}' for n in range(9)]}»\n", "J033", "groups names 9 groups", "a job is in at most 8"),
    "an empty group": ("[groups.«g»]\n" + JOB, "J012", "group 'g' has neither a limit nor a rate", "write limit = 1"),
    "a limit of 0": ("[groups.g]\nlimit = «0»\n" + JOB, "J014", "limit cannot be 0", "it goes from 1 to 10000"),
    "a bad name": ('[groups.«"a b"»]\nlimit = 1\n' + JOB, "J017", "'a b' is not a name", "use letters"),
    "priority": (f"{JOB}priority = «101»\n", "J014", "priority cannot be 101", "it goes from -100 to 100"),
    "no condition": (f'{JOB}wait_for = [«"moon"»]\n', "J034", "'moon' is not a condition", "write mains, network"),
    "a misspelt condition": (f'{JOB}wait_for = [«"netwrok"»]\n', "J034", "'netwrok' is not a condition", "did you mean network?"),
    "a port is missing": (f'{JOB}wait_for = [«"tcp:db"»]\n', "J034", "'tcp:db' is not a condition", "write tcp:HOST:PORT"),
    "a port out of range": (f'{JOB}wait_for = [«"tcp:db:70000"»]\n', "J034", "'tcp:db:70000' is not a condition", "write tcp:HOST:PORT"),
    "a port of too many digits": (f'{JOB}wait_for = [«"tcp:db:{"9" * 5_000}"»]\n', "J034", "'tcp:db:9999", "write tcp:HOST:PORT"),
    "no name of a host": (f'{JOB}wait_for = [«"tcp:a..b:80"»]\n', "J034", "'tcp:a..b:80' is not a condition", "write tcp:HOST:PORT"),
    "too long a name of a host": (f'{JOB}wait_for = [«"tcp:{"a" * 64}.com:80"»]\n', "J034", "'tcp:aaa", "write tcp:HOST:PORT"),
    "a name of a host with a blank": (f'{JOB}wait_for = [«"tcp:a b:80"»]\n', "J034", "'tcp:a b:80' is not a condition", "write tcp:HOST:PORT"),
    "an address of the web": (f'{JOB}wait_for = [«"tcp:http://db:80"»]\n', "J034", "'tcp:http://db:80' is not a condition", "write tcp:HOST:PORT"),
    "half a bracket": (f'{JOB}wait_for = [«"tcp:[::1:80"»]\n', "J034", "'tcp:[::1:80' is not a condition", "write tcp:HOST:PORT"),
    "no path": (f'{JOB}wait_for = [«"path:"»]\n', "J034", "'path:' is not a condition", "write path: and behind it the path"),
    "a word too many": (f'{JOB}wait_for = [«"mains:1"»]\n', "J034", "'mains:1' is not a condition", "write mains alone"),
    "no wait": (f"{JOB}wait_at_most = «\"0s\"»\n", "J015", "wait_at_most must be longer than 0", "write for example 30s"),
    "a wait of 0": (f"{JOB}wait_at_most = «0»\n", "J015", "wait_at_most must be longer than 0", "write for example 30s"),
    "a check without a file": (f"{JOB}«check» = {{ newer = true }}\n", "J012", "check names no file", "write check ="),
    "a check of nothing": (f"{JOB}check = «[]»\n", "J019", "check names no program", "name the program first"),
    "an empty file": (f'{JOB}check = {{ file = "/b", min_size = «0» }}\n', "J014", "min_size cannot be '0'", "write bytes, or for example 1MB"),
    "a check beside tasks": ('[jobs.a]\nschedule = "@daily"\n«check» = "x"\n[[jobs.a.tasks]]\nname = "t"\nrun = "x"\n', "J024", "check is for a job with run", "move it into the task"),
    "spacing": (f'[scheduler]\ncatch_up = {{ spacing = «"soon"» }}\n{JOB}', "J015", "spacing: 'soon' is not a duration", "write a number"),
    "long spacing": (f'[scheduler]\ncatch_up = {{ spacing = «"2h"» }}\n{JOB}', "J015", "spacing is longer than an hour", "write for example"),
    "no share": (f"[scheduler]\ncatch_up = {{ share = «0» }}\n{JOB}", "J014", "share cannot be 0", "it goes from 0.01 to 1"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("written", "host"),
    [("db", "db"), ("db.", "db."), ("10.0.0.1", "10.0.0.1"), ("::1", "::1"), ("[::1]", "::1"), ("[fe80::1%eth0]", "fe80::1%eth0"),
     ("my_db", "my_db"), ("münchen.example", "münchen.example"), ("a" * 63 + ".com", "a" * 63 + ".com")],
)  # fmt: skip
def test_a_host_is_a_name_or_a_number(written: str, host: str) -> None:
    assert read_condition(f"tcp:{written}:080") == Condition("tcp", host, 80)


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_mistake_has_a_place_and_a_hint(name: str) -> None:
    written, code, message, hint = PROBLEMS[name]
    text, (place,) = unmarked(written)
    with pytest.raises(JobFileError) as caught:
        read_job_file(text, "chronex.toml", "UTC")
    (problem,) = caught.value.problems
    assert problem.code == code
    assert problem.message.startswith(message)
    assert problem.hint.startswith(hint)
    assert Place(problem.line, problem.column, problem.end_column) == place


def test_a_program_and_a_trigger_name_groups_of_the_store() -> None:
    assert read_program_job("a", {"schedule": "@daily", "run": "x", "groups": ["any"]}).groups == {"any": 1}
    text = '{"id": "a", "expression": "@daily", "run": "x", "groups": {"any": 3}, "check": "true"}'
    (job,) = read_triggers(text, "x.json", "UTC").jobs
    assert job.groups == {"any": 3}


def test_a_job_of_a_program_comes_through_its_table_as_it_was() -> None:
    task = Task(name="main", run=("x",), check=TaskCheck(file="/b", min_size=7, newer=True))
    given = Job(
        id="a", schedule="@daily", tasks=(task,), groups={"g": 2}, priority=5, wait_for=("network",), wait_at_most_ms=5_000
    )  # fmt: skip
    assert check_jobs([given]) == [given]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("mains", Condition("mains")),
        ("tcp:db:5432", Condition("tcp", "db", 5432)),
        ("tcp:[::1]:80", Condition("tcp", "::1", 80)),
        ("path:/mnt/nas", Condition("path", "/mnt/nas")),
        ("command:test -e a:b", Condition("command", "test -e a:b")),
    ],
)
def test_a_condition_is_read(written: str, meant: Condition) -> None:
    assert read_condition(written) == meant
