"""A job more or a job less in a text that is somebody's: every other byte stays."""

from __future__ import annotations

import pytest

from chronex.jobfile import read_job_file
from chronex.jobfile.text_edits import line_of_job, with_job, without_job

TEXT = """\
# The jobs of ann.
[scheduler]
timezone = "UTC"   # everywhere

# Hello is said often,
# and to all.
[jobs.hello]
schedule = "@every 20s"
run = ["echo", "[jobs.fake]"]

[jobs.hello.env]
A = "1"

# The night.
[jobs.dump]
schedule = "0 3 * * *"

[[jobs.dump.tasks]]
name = "one"
run = "a"

[[jobs.dump.tasks]]   # the second
name = "two"
run = '''
[jobs.hello]
b'''

[defaults]
task_timeout = "1h"
# the end
"""


def names(text: str) -> list[str]:
    return [job.id for job in read_job_file(text, "x.toml", "UTC").jobs]


def test_a_job_goes_with_its_tables_and_the_comment_above() -> None:
    found = without_job(TEXT, "hello")
    assert found is not None
    assert found.text + "" == TEXT.replace(found.removed, "")
    assert found.removed.startswith("# Hello is said often,\n")
    assert found.removed.endswith('A = "1"\n\n')
    assert names(found.text) == ["dump"]


def test_a_job_with_tasks_goes_whole_and_what_stands_below_stays() -> None:
    found = without_job(TEXT, "dump")
    assert found is not None
    assert names(found.text) == ["hello"]
    assert found.text.endswith('[defaults]\ntask_timeout = "1h"\n# the end\n')
    assert "# The night." not in found.text


@pytest.mark.parametrize(
    "text", ['jobs.x = { schedule = "@daily", run = "a" }\n', '[jobs]\nx.schedule = "@daily"\nx.run = "a"\n']
)
def test_a_job_without_a_table_of_its_own_is_left_to_its_author(text: str) -> None:
    assert names(text) == ["x"]
    assert without_job(text, "x") is None


@pytest.mark.parametrize("text", ["", TEXT, TEXT.rstrip("\n"), TEXT.replace("\n", "\r\n"), "# only a comment\n"])
def test_a_job_comes_at_the_end_and_goes_without_a_trace(text: str) -> None:
    table = {"schedule": "0 9 * * *", "run": ["echo", 'it\'s "new"\n']}
    more = with_job(text, "new", table)
    assert more.startswith(text)
    before = names(text) if text.strip() else []
    assert names(more) == [*before, "new"]
    assert read_job_file(more, "x.toml", "UTC").jobs[-1].tasks[0].run == ("echo", 'it\'s "new"\n')
    less = without_job(more, "new")
    assert less is not None
    assert names(less.text) == before
    assert less.text == text if text.endswith("\n") or not text else less.text == f"{text}\n"


HEAD, JOB = "[scheduler]\n\n", '[jobs.a]\nschedule = "@daily"\nrun = "x"\n'


@pytest.mark.parametrize(
    ("below", "stays"),
    [
        ("\n# === the others ===\n\n[jobs.b]\n", "# === the others ===\n\n[jobs.b]\n"),
        ("\n# about b\n[jobs.b]\n", "# about b\n[jobs.b]\n"),
        ("# retry = 3\n\n[jobs.b]\n", "[jobs.b]\n"),
        ("# retry = 3\n\n# apart\n\n# more\n\n[jobs.b]\n", "# apart\n\n# more\n\n[jobs.b]\n"),
        ("\n\n# vim: ft=toml\n", "# vim: ft=toml\n"),
        ("\n[jobs.a.env]\n# none\n\n# apart\n", "# apart\n"),
        ("\n# between\n\n[jobs.a.env]\nA = '''\n# text\n'''\n\n# apart\n", "# apart\n"),
        ("\n[jobs.a.env]\nA = '''\n\n# text'''\n\n[jobs.b]\n", "[jobs.b]\n"),
    ],
)  # fmt: skip
def test_a_comment_that_stands_apart_is_not_the_jobs(below: str, stays: str) -> None:
    """A heading for what follows went with the job above it."""
    found = without_job(f"{HEAD}{JOB}{below}", "a")
    assert found is not None
    assert found.text == f"{HEAD}{stays}"


def test_the_line_of_a_job() -> None:
    assert TEXT.splitlines()[line_of_job(TEXT, "hello") - 1] == "[jobs.hello]"
    assert TEXT.splitlines()[line_of_job(TEXT, "dump") - 1] == "[jobs.dump]"
    assert line_of_job(TEXT, "fake") == 1
