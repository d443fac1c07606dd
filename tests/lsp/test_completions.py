"""What is offered where: the cursor stands at ¦, and the rest of the file may be half typed."""

from __future__ import annotations

import pytest

from chronex.lint.source_files import open_document
from chronex.lsp.completions import completions_at


def offered(path: str, marked: str) -> dict[str, str]:
    """Each label with the text that would stand there once it is taken."""
    offset = marked.index("¦")
    text = marked.replace("¦", "")
    kind = {"x.yaml": "k8s", "x.py": "python"}.get(path)
    items = completions_at(open_document(path, text, kind), offset)
    return {item.label: text[: item.start] + item.label + text[item.end :] for item in items}


@pytest.mark.parametrize(
    ("path", "text", "some", "never"),
    [
        ("chronex.toml", '[jobs.a]\nschedule = "¦', {"@daily", "*/15", "TZ=", "@every 30m"}, {"MON"}),
        ("chronex.toml", '[jobs.a]\nschedule = "0 ¦', {"9-17", "*/2"}, {"@daily", "MON"}),
        ("chronex.toml", '[jobs.a]\nschedule = "TZ=UTC 0 9 * * M¦"', {"MON-FRI", "SUN"}, {"JAN", "@daily"}),
        ("chronex.toml", '[jobs.a]\nschedule = "0 9 * * * {j¦', {"jitter:", "max:"}, {"MON"}),
        ("chronex.toml", '[jobs.a]\nschedule = "0 9 * * * {max:3, ¦}"', {"tag:", "until:"}, {"MON"}),
        ("chronex.toml", '[jobs.a]\nschedule = "TZ=Eur¦', {"Europe/Berlin"}, {"MON"}),
        ("chronex.toml", '[jobs.a]\ntimezone = "¦', {"Asia/Tokyo"}, {"schedule"}),
        ("chronex.toml", "[jobs.a]\nsch¦", {"schedule", "overlap", "retry"}, {"max_concurrent_jobs"}),
        ("chronex.toml", "[scheduler]\n¦", {"timezone", "metrics"}, {"schedule"}),
        ("chronex.toml", "[[jobs.a.tasks]]\n¦", {"name", "run", "idempotency_key"}, {"schedule"}),
        ("chronex.toml", "[jobs.a.retry]\n¦", {"max", "backoff"}, {"schedule"}),
        ("chronex.toml", "[jobs.a]\nretry = { ¦", {"max", "backoff"}, {"schedule"}),
        ("chronex.toml", "[jobs.a]\nspread = { duration = '2h', see¦ }", {"seed", "only"}, {"schedule"}),
        ("chronex.toml", "[[verify.property]]\n¦", {"name", "rule"}, {"schedule"}),
        ("chronex.toml", "[notify.x]\n¦", {"mail", "webhook", "healthchecks", "template"}, {"schedule"}),
        ("chronex.toml", '[notify.x]\n[jobs.a]\nnotify = ["¦', {"x"}, {"schedule", "MON"}),
        ("chronex.toml", '[notify.x]\n[jobs.a]\nnotify = { to = ["¦', {"x"}, {"schedule", "run"}),
        ("chronex.toml", "[jobs.a]\nnotify = { ¦", {"to", "run", "after_failures", "long_after"}, {"schedule"}),
        ("chronex.toml", "[scheduler.smtp]\n¦", {"host", "starttls", "from"}, {"schedule"}),
        ("chronex.toml", "[calendars.x]\n¦", {"holidays", "dates", "ics", "weekdays"}, {"schedule"}),
        ("chronex.toml", '[calendars.x]\ndates = []\n[jobs.a]\nexcept = ["¦', {"x"}, {"schedule", "MON"}),
        ("chronex.toml", '[calendars.x]\n[calendars.y]\n[scheduler]\nblackout = ["x", "¦"]', {"x", "y"}, {"MON"}),
        ("chronex.toml", "[groups.x]\n¦", {"limit", "rate"}, {"schedule"}),
        ("chronex.toml", '[groups.x]\n[groups.y]\n[jobs.a]\ngroups = ["x", "¦', {"x", "y"}, {"schedule", "MON"}),
        ("chronex.toml", '[jobs.a]\nwait_for = ["¦', {"mains", "network", "tcp:", "path:", "command:"}, {"schedule"}),
        ("chronex.toml", "[jobs.a]\ncheck = { ¦", {"file", "min_size", "newer"}, {"schedule"}),
        ("chronex.toml", "[scheduler]\ncatch_up = { ¦", {"spacing", "share"}, {"schedule"}),
        ("chronex.toml", "[jobs.a]\n¦", {"groups", "priority", "wait_for", "wait_at_most", "check"}, {"limit"}),
        ("chronex.toml", '[jobs.a]\nschedule = ["@daily", "0 9 * * M¦"]', {"MON-FRI", "SUN"}, {"JAN", "@daily"}),
        ("chronex.toml", "[[jobs.a.tasks]]\nna¦", {"needs", "when", "matrix", "at_most"}, {"after"}),
        (
            "chronex.toml",
            '[[jobs.a.tasks]]\nname = "x"\n[[jobs.b.tasks]]\nname = "y"\n[[jobs.a.tasks]]\nneeds = ["¦',
            {"x"},
            {"y"},
        ),
        ("chronex.toml", '[[jobs.a.tasks]]\nwhen = "¦"', {"success", "failure", "done", "always"}, {"x"}),
        ("chronex.toml", '[jobs.a]\non_excluded = "¦"', {"skip", "next_workday", "previous_workday"}, {"x"}),
        ("chronex.toml", '[defaults]\noverlap = "que¦', {"queue", "queue_one"}, {"schedule"}),
        ("chronex.toml", '[jobs.a]\nrecovery = "¦"', {"execute_all", "bounded"}, {"retry"}),
        ("chronex.toml", '[jobs.a]\nrecovery = { strategy = "¦', {"execute_all", "bounded"}, {"retry"}),
        ("chronex.toml", '[jobs.a]\ndst = { gap = "end", overlap = "¦" }', {"first", "both", "by-kind"}, {"queue"}),
        ("chronex.toml", '[jobs.a.parameters]\nlevel = { type = "¦', {"integer", "choice"}, {"schedule"}),
        ("chronex.toml", '[jobs.a]\ndescription = "¦"', set(), {"schedule"}),
        ("chronex.toml", '[jobs.a]\n[jobs.b]\nafter = "¦"', {"a"}, {"schedule", "b"}),
        ("chronex.toml", '[jobs.a]\n[jobs.b]\nafter = ["b", "¦', {"a"}, {"schedule"}),
        ("chronex.toml", "[jobs.a]\n¦", {"after", "parameters"}, {"needs"}),
        (
            "chronex.toml",
            "[jobs.a.parameters]\nlevel = { ¦",
            {"type", "default", "choices", "required"},
            {"schedule"},
        ),
        ("chronex.toml", "[jobs.a.nonsense]\n¦", set(), {"schedule"}),
        ("chronex.toml", "¦", {"scheduler", "defaults", "jobs"}, {"schedule"}),
        ("crontab", "¦", {"@reboot", "*/5"}, {"TZ=", "@every 30m"}),
        ("crontab", "0 4 * ¦", {"JAN", "*"}, {"MON", "@daily"}),
        ("crontab", "0 4 * * 1 /usr/bin/¦", set(), {"*", "MON"}),
        ("crontab", "CRON_TZ=¦", {"Europe/Berlin"}, {"*/5"}),
        ("crontab", "# a comment ¦", set(), {"*/5"}),
        (".github/workflows/a.yml", "on:\n  schedule:\n    - cron: '¦", {"*/15"}, {"@daily", "TZ="}),
        (".github/workflows/a.yml", "on:\n  schedule:\n    - timezone: Am¦", {"America/New_York"}, {"*"}),
        ("x.yaml", 'kind: CronJob\nspec:\n  schedule: "¦', {"@daily", "*/15"}, {"@reboot", "TZ="}),
        ("x.yaml", "kind: CronJob\nspec:\n  timeZone: ¦", {"Etc/UTC"}, {"*"}),
        ("x.timer", "[Timer]\nOnCalendar=¦", {"daily", "weekly"}, {"@daily"}),
        ("triggers.json", '{"id": "a", "expression": "¦', {"@hourly"}, {"@reboot"}),
        ("x.py", "import chronex\nchronex.parse('¦", {"@hourly", "TZ="}, {"@reboot"}),
        ("notes.txt", "schedule = ¦", set(), {"*"}),
    ],
)
def test_completions(path: str, text: str, some: set[str], never: set[str]) -> None:
    found = set(offered(path, text))
    assert some <= found
    assert not never & found
    assert bool(found) == bool(some)


def test_what_is_taken_replaces_what_was_typed() -> None:
    assert offered("chronex.toml", "[jobs.a]\n  sch¦")["schedule"] == "[jobs.a]\n  schedule"
    assert offered("crontab", "0 4 * * mo¦")["MON-FRI"] == "0 4 * * MON-FRI"
    assert offered("chronex.toml", 'timezone = "Europe/Ber¦"')["Europe/Berlin"] == 'timezone = "Europe/Berlin"'
