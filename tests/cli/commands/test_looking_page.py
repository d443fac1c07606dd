"""docs/looking.md names exactly what the JSON of list, show, history, report and events holds."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from chronex.cli.commands.events import events
from chronex.cli.commands.history import history
from chronex.cli.commands.list_jobs import run_list
from chronex.cli.commands.report import run_report
from chronex.cli.commands.show import run_show
from chronex.views.jobs import Situation
from tests.cli.past import Past

PAGE = (Path(__file__).parents[3] / "docs" / "looking.md").read_text()


def documented(section: str) -> set[str]:
    """The keys in the first column of the section's table."""
    body = PAGE.partition(f"## {section}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]*) \|", body, flags=re.MULTILINE)
    return {key for row in rows for key in re.findall(r"`([^`]+)`", row)}


def untwinned(row: dict[str, Any]) -> set[str]:
    """Every time has a twin in milliseconds, which the page says once for all."""
    return {key for key in row if not (key.endswith("_ms") and key[:-3] in row)}


def test_the_page_names_exactly_the_keys_of_the_json(past: Past, printed: Callable[..., str]) -> None:
    place = str(past.place)
    row = json.loads(printed(run_list, place, "json", ""))[0]
    shown = json.loads(printed(run_show, "flaky", place, "json"))
    told = json.loads(printed(history, "hello", store=str(past.place), form="json"))[1]
    report = json.loads(printed(run_report, told["id"], place, "json"))
    assert documented("list --format json") == untwinned(row)
    assert documented("show --format json") == untwinned(shown)
    assert documented("history --format json") == untwinned(told)
    event = json.loads(printed(events, "hello", store=place, form="json"))[0]
    assert documented("events") == untwinned(event)
    assert documented("report") == untwinned(report)
    parts = (report["tasks"][0], report["tasks"][0]["tries"][0], report["totals"])
    for nested in (*parts, row["last"], shown["policies"], shown["tasks"][0], shown["next_run"], told["attempts"][0]):
        assert all(f"`{key}`" in PAGE for key in untwinned(nested)), nested


def test_the_page_explains_every_state() -> None:
    assert documented("The state of a job") == {situation.value for situation in Situation}
