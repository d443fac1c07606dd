"""What an editor offers at a place, and what becomes of the file."""

from __future__ import annotations

import pytest

from chronex.lint.linter import apply_edits, lint_document
from chronex.lint.source_files import open_document
from chronex.lsp.code_actions import actions_between
from chronex.lsp.hovers import distance, hints, hover_at
from chronex.timing.zones import load_zone
from tests.lint.golden import CASES, NOW_MS, Case
from tests.lint.linting import assume


def offered(path: str, text: str) -> dict[str, str]:
    analysis = lint_document(open_document(path, text), assume())
    actions = actions_between(analysis, 0, len(text), NOW_MS)
    return {action.title: apply_edits(text, action.edits) for action in actions}


@pytest.mark.parametrize(
    ("path", "text", "title", "after"),
    [
        ("a.crontab", "30 2 * * * /a\n", "Move 02:30 to 03:30, outside the clock change", "30 3 * * * /a\n"),
        ("a.crontab", "30 02 * * * /a\n", "Move 02:30 to 03:30, outside the clock change", "30 03 * * * /a\n"),
        ("a.crontab", "0 4 * * * /a\n", "Spread to minute 13", "13 4 * * * /a\n"),
        ("a.crontab", "  */7 * * * * /a\n", "Ignore W103 here", "  # chronex: ignore[W103]\n  */7 * * * * /a\n"),
        ("a.crontab", "17 4 * * * root /a\n", "Remove the user", "17 4 * * * /a\n"),
        ("cron.d/a", "17 4 * * * /a\n", "Run it as root", "17 4 * * * root /a\n"),
        ("a.crontab", "* 4 * * * /a\n", "Write 0", "0 4 * * * /a\n"),
        (
            "a.timer",
            "[Timer]\nOnCalendar=Sun 02:30 Europe/Berlin\n",
            "Move 02:30 to 03:30, outside the clock change",
            "[Timer]\nOnCalendar=Sun 03:30 Europe/Berlin\n",
        ),
        (
            "chronex.toml",
            '[jobs.a]\r\nschedule = "TZ=America/New_York 30 1 * * * {jitter:1m}"\r\nrun = "x"\r\n',
            "Move 01:30 to 03:30, outside the clock change",
            '[jobs.a]\r\nschedule = "TZ=America/New_York 30 3 * * * {jitter:1m}"\r\nrun = "x"\r\n',
        ),
    ],
)
def test_actions(path: str, text: str, title: str, after: str) -> None:
    found = offered(path, text)
    assert title in found, list(found)
    assert found[title] == after


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.path)
def test_to_ignore_a_finding_silences_it_and_nothing_else(case: Case) -> None:
    analysis = lint_document(open_document(case.path, case.text), assume())
    actions = actions_between(analysis, 0, len(case.text), NOW_MS)
    for action in actions:
        if not action.title.startswith("Ignore"):
            continue
        assert action.finding is not None
        better = open_document(case.path, apply_edits(case.text, action.edits))
        left = [f.code for f in lint_document(better, assume()).findings if f.code != "W141"]
        line, _ = analysis.document.position(action.finding.start)
        silenced = [
            f.code
            for f in analysis.findings
            if not (f.code == action.finding.code and analysis.document.position(f.start)[0] == line)
        ]
        if action.finding.code != "J002":  # a comment cannot mend the syntax, but it can silence it
            assert left == [code for code in silenced if code != "W141"]


def test_a_place_that_is_fine_offers_nothing() -> None:
    assert offered("a.crontab", "17 4 * * * /a\n") == {}
    assert offered("triggers.json", '{"id": "a", "expression": "0 25 * * *"}') == {}


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0, "0s"), (59_000, "59s"), (60_000, "1m"), (5_400_000, "1h30m"), (86_400_000, "1d"), (30 * 3_600_000, "1d6h"),
     (100 * 86_400_000 + 5, "100d")],
)  # fmt: skip
def test_distances_have_two_units_at_most(ms: int, text: str) -> None:
    assert distance(ms) == text


CALENDARS = """\
[scheduler]
timezone = "UTC"
blackout = ["dark"]
[calendars.off]
dates = ["2026-12-30..2027-01-04"]
[calendars.dark]
dates = ["2027-01-05"]
[jobs.a]
schedule = ["0 9 * * *", "0 9 2 * *"]
except = ["off"]
run = "x"
"""


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("a.crontab", "0 9 */2 * MON /a\n", "only when the day of week is MON too"),
        ("a.crontab", "@reboot /a\n", "`@reboot` has no next run."),
        ("a.crontab", "0 9 30 2 * /a\n", "It will not run again."),
        ("k.yaml", "kind: CronJob\nspec: {timeZone: Europe/Berlin, schedule: 30 2 * * *}\n", "1 run skipped"),
        (
            "a.timer",
            "[Timer]\nOnCalendar=Mon 02:30 Europe/Berlin\n",
            "Language: systemd, because OnCalendar= is read",
        ),
        (
            "chronex.toml",
            '[jobs.a]\nschedule = "TZ=Asia/Tokyo 0 9 * * *"\nrun = "x"\n',
            "JST (in 1d), Sat 02 Jan 2027 01:00 CET here",
        ),
        (
            "chronex.toml",
            CALENDARS,
            "**At 09:00; except off; nothing starts during dark**\n\n- Wed 06 Jan 2027 09:00",
        ),
    ],
)
def test_hover_shows_what_the_host_will_do(path: str, text: str, expected: str) -> None:
    analysis = lint_document(open_document(path, text), assume())
    hover = hover_at(analysis, analysis.sites[0].start + 1, NOW_MS, load_zone("Europe/Berlin"))
    assert hover is not None
    assert expected in hover.markdown


def test_both_days_of_a_crontab_are_joined_by_and() -> None:
    """`0 9 */2 * MON`: Mondays that are odd days of the month, as cron has it."""
    analysis = lint_document(open_document("a.crontab", "0 9 */2 * MON /a\n"), assume())
    (hint,) = hints(analysis, 0, 20, NOW_MS)
    assert hint.label == "Mon 11 Jan 2027 09:00 CET (in 10d)"
