"""The examples are valid, and docs/job-file.md lists exactly the keys that the reader knows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from chronex.jobfile import read_job_file, read_triggers
from chronex.jobfile.calendar_tables import CALENDAR
from chronex.jobfile.group_tables import CATCH_UP, CHECK, GROUP
from chronex.jobfile.inherited_tables import DST, RECOVERY, RETRY
from chronex.jobfile.job_tables import DEFAULTS, JOB, TASK
from chronex.jobfile.keymap import KEYS
from chronex.jobfile.lint_table import LINT
from chronex.jobfile.notify_table import CHANNEL, HEARTBEAT, NOTIFY, SMTP
from chronex.jobfile.otlp_table import OTLP
from chronex.jobfile.process_table import LIMITS
from chronex.jobfile.properties import PROPERTY
from chronex.jobfile.reader import TRIGGER
from chronex.jobfile.settings import HISTORY, LOGS, SCHEDULER
from chronex.jobfile.spread_table import SPREAD

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "job-file.md").read_text()
EXAMPLES = sorted((ROOT / "examples").glob("*.toml"))
SECTIONS = {
    "[scheduler]": set(SCHEDULER),
    "catch_up": set(CATCH_UP),
    "history": set(HISTORY),
    "logs": set(LOGS),
    "smtp": set(SMTP),
    "heartbeat": set(HEARTBEAT),
    "otlp": set(OTLP),
    "[calendars.NAME]": set(CALENDAR),
    "[groups.NAME]": set(GROUP),
    "[notify.NAME]": set(CHANNEL),
    "[defaults]": set(DEFAULTS),
    "limits": set(LIMITS),
    "retry": set(RETRY),
    "recovery": set(RECOVERY),
    "spread": set(SPREAD),
    "notify": set(NOTIFY),
    "dst": set(DST),
    "[jobs.NAME]": set(JOB) - set(DEFAULTS),
    "[[jobs.NAME.tasks]]": set(TASK),
    "check": set(CHECK),
    "[[verify.property]]": set(PROPERTY),
    "[lint]": set(LINT),
    "[tui.keys]": set(KEYS),
    "trigger": set(TRIGGER) - set(JOB),
}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples(path: Path) -> None:
    found = read_job_file(path.read_bytes(), path.name, "Europe/Berlin")
    assert found.jobs
    assert found.warnings == ()


def test_the_example_of_a_trigger() -> None:
    path = ROOT / "examples" / "trigger.json"
    found = read_triggers(path.read_bytes(), path.name, "UTC", needs_tasks=True)
    assert [job.id for job in found.jobs] == ["health-check"]
    assert found.warnings == ()


def documented() -> dict[str, list[str]]:
    """The keys in the first column of each section's table."""
    found: dict[str, list[str]] = {}
    for part in re.split(r"^#{2,3} ", PAGE, flags=re.MULTILINE)[1:]:
        title, _, body = part.partition("\n")
        if keys := re.findall(r"^\| `([^`]+)` \|", body, flags=re.MULTILINE):
            found[title] = keys
    return found


def test_the_page_lists_every_key_once_and_no_other() -> None:
    tables = documented()
    assert set(tables) == set(SECTIONS)
    for title, keys in tables.items():
        assert sorted(keys) == sorted(SECTIONS[title]), title


def test_every_row_says_type_default_and_meaning() -> None:
    for row in re.findall(r"^\| `.*$", PAGE, flags=re.MULTILINE):
        _, key, kind, _, meaning, _ = row.split("|")
        assert key.strip()
        assert kind.strip()
        assert meaning.strip()


def test_the_examples_of_the_page_are_valid() -> None:
    blocks = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)
    assert len(blocks) >= 6
    for block in blocks:
        told = read_job_file(block, "docs/job-file.md", "UTC").warnings
        assert [one for one in told if one.code != "J104"] == []  # the job that it follows is in another example
    (block,) = re.findall(r"```json\n(.*?)```", PAGE, flags=re.DOTALL)
    assert read_triggers(block, "docs/job-file.md", "UTC").jobs
