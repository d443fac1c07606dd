"""No false alarm: files as people write them, and files that are none of ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from chronex.expr.diagnostics import INFO
from chronex.lint.linter import lint_document
from chronex.lint.source_files import open_document
from tests.lint.linting import assume, codes

REAL = Path(__file__).parent / "real"
ROOT = REAL.parent.parent.parent
FILES = sorted(path for path in REAL.rglob("*") if path.is_file())
UNRELATED = {
    "compose.yaml": "services:\n  cron:\n    schedule: '99 99 * * *'\n    cron: '* * *'\n",
    "values.yaml": "cronjob:\n  schedule: 99\n  kind: CronJobs\n",
    "docs/kind.yaml": "text: |\n  kind: Deployment\n  schedule: 99 99\n",
    ".gitlab-ci.yml": "job:\n  rules:\n    - if: $CI_PIPELINE_SOURCE == 'schedule'\n",
    "renovate.json": '{"schedule": ["before 5am"], "id": "x", "expression": "0 99 * * *"}',
    "package.json": '{"id": "a", "expression": "99"}',
    "triggers.json": '{"hooks": ["post-merge"], "expression": 5}',
    "pyproject.toml": '[tool.jobs.a]\nschedule = "0 99 * * *"\n[jobs.b]\nschedule = "99"\n',
    "Cargo.toml": '[package]\nname = "cron"\n[jobs.x]\nschedule = "nope"\n',
    "a.py": "from croniter import croniter\ncroniter.parse('0 99 * * *')\n",
    "b.py": "import chronex\nprint('chronex.parse(\"0 99 * * *\")')\n",
    "c.py": "def half(:\n  chronex.parse('0 99 * * *'\n",
    "src/crontab.py": "import os\nprint('not a crontab')\n",
    "docs/crontab.md": "# How to write a crontab\n",
    "cron.d/app.j2": "{{ minute }} {{ hour }} * * * root /srv/app\n",
    "cron.d/install.sh": "echo hello world\n",
    "templated.crontab": "{{ minute }} {{ hour }} * * * /a\n${M} ${H} * * * /b\n@MINUTE@ 5 * * * /c\n",
    "templated.timer": "[Timer]\nOnCalendar=${WHEN}\nOnCalendar={{ when }}\n",
    "k8s-env.yaml": "kind: CronJob\nspec:\n  schedule: ${SCHEDULE}\n  timeZone: $(ZONE)\n",
    ".github/workflows/alias.yml": "x: &n '17 4 * * *'\non:\n  schedule:\n    - cron: *n\n",
    "cron.d/.placeholder": "# DO NOT EDIT OR REMOVE\nnot a crontab\n",
    "cron.d/README": "This is not a crontab.\n",
    "a.service": "[Timer]\nOnCalendar=nonsense\n",
    "a.timer": "[Unit]\nOnCalendar=nonsense\n[Service]\nOnCalendar=nonsense\n",
    "empty.crontab": "",
    "notes.md": "0 99 * * * /usr/bin/a\n",
}


def name_of(path: Path) -> str:
    """Our own tools should not take a sample for one of our modules."""
    return str(path).removesuffix(".sample")


def test_the_set_is_large_enough() -> None:
    assert len(FILES) >= 30


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(REAL)))
def test_files_as_people_write_them_have_no_finding(path: Path) -> None:
    document = open_document(name_of(path), path.read_bytes().decode("utf-8"))
    analysis = lint_document(document, assume("UTC"))
    assert document.kind is not None or "template" in path.name
    assert [f for f in analysis.findings if f.severity != INFO] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(REAL)))
def test_their_schedules_are_found(path: Path) -> None:
    text = path.read_bytes().decode("utf-8")
    sites = lint_document(open_document(name_of(path), text), assume("UTC")).sites
    has_none = path.name in ("ci.yml", "reusable.yml", "chart-template.yaml")
    assert bool(sites) != has_none
    assert all(site.content is None or text.startswith(site.text, site.content) for site in sites)


@pytest.mark.parametrize(("path", "text"), UNRELATED.items(), ids=UNRELATED)
def test_other_files_are_none_of_our_business(path: str, text: str) -> None:
    assert codes(path, text) == []


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.toml")), ids=lambda path: path.name)
def test_our_own_examples_have_no_error(path: Path) -> None:
    findings = lint_document(open_document("chronex.toml", path.read_text()), assume()).findings
    assert [f for f in findings if f.severity == "error"] == []
