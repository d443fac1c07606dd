"""A directory of job files is read as one: what holds for all stands in its chronex.toml."""

from __future__ import annotations

import pytest

from chronex.jobfile import JobFile, JobFileError, read_job_directory, read_job_file
from chronex.jobfile.entries import MAX_PROBLEMS
from chronex.jobfile.reader import _LONG

JOB = '[jobs.{}]\nschedule = "0 3 * * *"\nrun = ["true"]\n'


def read(**files: str) -> JobFile:
    texts = [(f"/conf/{name}.toml", text.encode()) for name, text in files.items()]
    return read_job_directory("/conf", texts, "UTC")


def problems(**files: str) -> list[str]:
    with pytest.raises(JobFileError) as refused:
        read(**files)
    return [str(problem) for problem in refused.value.problems]


def test_the_jobs_of_all_files_are_one_list_in_the_order_of_the_names() -> None:
    found = read(b=JOB.format("two") + JOB.format("three"), a=JOB.format("one"))
    assert [job.id for job in found.jobs] == ["one", "two", "three"]
    assert [job.source for job in found.jobs] == ["/conf/a.toml", "/conf/b.toml", "/conf/b.toml"]


def test_the_common_file_has_the_settings_zone_and_calendars_of_all() -> None:
    common = (
        '[scheduler]\ntimezone = "Asia/Seoul"\nmax_concurrent_jobs = 7\n'
        '[calendars.freeze]\ndates = ["2027-01-01"]\n[defaults]\ntask_timeout = "5m"\n'
    )
    found = read(chronex=common, a=JOB.format("one") + 'except = ["freeze"]\n')
    (job,) = found.jobs
    assert (found.settings.max_concurrent_jobs, job.timezone, job.task_timeout_ms) == (7, "Asia/Seoul", 300_000)
    assert job.calendars is not None
    assert [calendar.name for calendar in found.calendars] == ["freeze"]


def test_the_files_of_a_directory_know_its_channels() -> None:
    """Without them a list of names would be read as a command of that name, and nobody would be told."""
    common = '[notify.ops]\nmail = "ops@example.com"\n'
    found = read(chronex=common, a=JOB.format("one") + 'notify = ["ops"]\n')
    (job,) = found.jobs
    assert job.notify is not None
    assert [channel.name for channel in job.notify.channels] == ["ops"]
    assert [channel.name for channel in found.channels] == ["ops"]
    (problem,) = problems(chronex=common, a=JOB.format("one") + 'notify = ["opps"]\n')
    assert problem == "/conf/a.toml:4:11: there is no channel 'opps'; did you mean ops?"


def test_the_defaults_of_a_file_go_before_those_of_the_directory_key_by_key() -> None:
    common = '[defaults]\ntask_timeout = "5m"\nretry = { max = 4, interval = "9s" }\nenv = { A = "1", B = "2" }\n'
    own = '[defaults]\nretry = { max = 2 }\nenv = { B = "3" }\n'
    one, two = read(chronex=common, a=own + JOB.format("one"), b=JOB.format("two")).jobs
    assert (one.task_timeout_ms, one.retry.max, one.retry.interval_ms) == (300_000, 2, 9_000)
    assert one.tasks[0].env == {"A": "1", "B": "3"}
    assert (two.retry.max, two.tasks[0].env) == (4, {"A": "1", "B": "2"})


@pytest.mark.parametrize("table", ["scheduler", "calendars", "verify", "tui", "lint"])
def test_what_holds_for_all_stands_in_the_common_file_alone(table: str) -> None:
    (problem,) = problems(a=f"[{table}]\n" + JOB.format("one"))
    assert problem.startswith("/conf/a.toml:1:2: ")
    assert problem.endswith("write it into chronex.toml of the same directory")


@pytest.mark.parametrize(
    ("second", "words"), [("one", "is in a.toml too"), ("ONE", "differs only by case from 'one'")]
)
def test_a_name_in_two_files_is_refused(second: str, words: str) -> None:
    (problem,) = problems(a=JOB.format("one"), b="# more\n" + JOB.format("two") + JOB.format(second))
    assert problem.startswith("/conf/b.toml:5:7: ")
    assert words in problem


def test_the_mistakes_of_all_files_are_told_at_once_each_with_its_place() -> None:
    found = problems(a="[jobs.x]\nschedule = 5\n", b="broken =", c=JOB.format("fine"))
    assert [line.split(": ")[0] for line in found] == ["/conf/a.toml:1:7", "/conf/a.toml:2:12", "/conf/b.toml:1:9"]


def test_advice_has_its_place_in_the_file_it_is_about() -> None:
    found = read(a="# one\n" + JOB.format("one"), b='[jobs.two]\nschedule = "0 0 30 2 *"\nrun = ["true"]\n')
    assert {(warning.path, warning.line) for warning in found.warnings} == {("/conf/b.toml", 2)}


def test_of_a_directory_as_many_warnings_are_kept_as_of_a_file() -> None:
    """A hundred thousand jobs can have one warning each. Behind the last that is kept a mistake is still told."""
    never = '[jobs.{}]\nschedule = "0 0 30 2 *"\nrun = ["true"]\n'
    files = {f"f{number:04}": never.format(f"job-{number}") for number in range(MAX_PROBLEMS + 5)}
    found = read(**files)
    assert len(found.jobs) == MAX_PROBLEMS + 5
    assert [warning.path for warning in found.warnings] == [f"/conf/f{n:04}.toml" for n in range(MAX_PROBLEMS)]
    bad = "[jobs.bad]\nschedule = 5\n"
    assert [line.split(": ")[0] for line in problems(**files, z=bad)] == ["/conf/z.toml:1:7", "/conf/z.toml:2:12"]


@pytest.mark.parametrize("count", [1, 2_000])
def test_a_long_text_is_read_as_a_short_one_is(count: int) -> None:
    """Its places are looked for only where something is wrong, and then they are right."""
    text = "".join(JOB.format(f"job-{number}") for number in range(count))
    assert (len(text) > _LONG) == (count > 1)
    assert len(read_job_file(text, "x.toml", "UTC").jobs) == count
    with pytest.raises(JobFileError) as refused:
        read_job_file(text + "[jobs.bad]\nschedule = 5\n", "x.toml", "UTC")
    assert [(one.line, one.column) for one in refused.value.problems] == [(3 * count + 1, 7), (3 * count + 2, 12)]


@pytest.mark.parametrize("deep", ["a." * 40 + "a = 1", "a = " + "[" * 40 + "]" * 40])
def test_a_long_text_may_lie_no_deeper_than_a_short_one(deep: str) -> None:
    text = deep + "\n" + "#" * _LONG
    with pytest.raises(JobFileError, match="more than 32 levels deep"):
        read_job_file(text, "x.toml", "UTC")
