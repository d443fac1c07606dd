"""The examples of the expression language, typed at a shell: each command reads them as the library does."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

import chronex as library
from tests.cli.conftest import Chronex

FROM = datetime(2025, 1, 1, tzinfo=UTC)
EXAMPLES = (
    "*/5 * * * *", "0 9 * * MON-FRI", "0 0 1 * *", "30 4 1,15 * *", "0 22 * * 1-5", "0 */5 * * * *", "30 0 * * * *",
    "*/10 * * * * *", "TZ=Asia/Seoul 0 9 * * *", "TZ=America/New_York 0 17 * * MON-FRI", "TZ=UTC 0 0 * * *", "0 0 L * *",
    "0 0 LW * *", "0 0 L-3 * *", "0 0 15W * *", "0 0 * * 5L", "0 0 * * MON#2", "@every 30m", "@every 2h", "@every 1h30m",
    "@every 45s", "@every 1h-2h", "@once 2025-03-01T09:00:00+09:00", "@once 2025-12-31T23:59:59Z",
    "@daily", "@hourly", "@weekly", "@YEARLY", "0 9 * * * {jitter:30s}", "0 * * * * {stagger:5m}",
    "0 9 * * * {stagger:3m, jitter:10s}", "0 9 * * * {window:15m}", "*/10 * * * * {until:2025-12-31}", "@every 1h {max:10}",
    "@every 5m {from:2025-06-01, until:2025-12-31}", "TZ=Asia/Seoul 0 9 * * MON-FRI {jitter:30s, until:2025-12-31}",
    "TZ=UTC @every 15m {window:5m, max:100, tag:health-check}", "TZ=America/Chicago 0 0 L * * {jitter:1m, tag:monthly+report}",
    "0 * * * * {stagger:5m, tag:hourly+batch}", "@once 2025-04-01T02:00:00+09:00 {tag:migration}",
)  # fmt: skip
RELATIVE = ("@once +20m", "@once +1h30m", "@once +30m {tag:reminder}")


@pytest.mark.parametrize("text", EXAMPLES)
def test_next_prints_what_the_library_says(chronex: Chronex, text: str) -> None:
    done = chronex("next", text, "-n", "3", "--from", "2025-01-01", "--tz", "UTC", "--format", "json")
    expected = [at.isoformat() for at in library.parse(text).upcoming(FROM, limit=3)]
    assert (done.code, json.loads(done.out)) == (0, expected), done.err
    assert expected


@pytest.mark.parametrize("text", [*EXAMPLES, *RELATIVE])
def test_explain_describes_what_the_library_describes(chronex: Chronex, text: str) -> None:
    done = chronex("explain", text, "-n", "1", "--from", "2025-01-01", "--tz", "UTC", "--format", "json")
    assert done.code == 0, done.err
    told, expected = json.loads(done.out), library.parse(text, reference=FROM)
    assert told["kind"] == expected.kind
    if text in EXAMPLES:  # what is relative counts from the moment of the question
        assert told["description"] == expected.describe()


def test_fmt_prints_their_canonical_texts(chronex: Chronex) -> None:
    done = chronex("fmt", *EXAMPLES)
    assert (done.code, done.out.splitlines()) == (0, [str(library.parse(text)) for text in EXAMPLES])


def test_lint_finds_no_error_in_them(chronex: Chronex) -> None:
    done = chronex("lint", *EXAMPLES, *RELATIVE, "--format", "json")
    findings = json.loads(done.out)
    assert [one for one in findings if one.get("severity") == "error"] == []
