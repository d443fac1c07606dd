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
    assert less.text.rstrip() == text.rstrip()


def test_the_line_of_a_job() -> None:
    assert TEXT.splitlines()[line_of_job(TEXT, "hello") - 1] == "[jobs.hello]"
    assert TEXT.splitlines()[line_of_job(TEXT, "dump") - 1] == "[jobs.dump]"
    assert line_of_job(TEXT, "fake") == 1
