"""fmt: expressions in canonical form."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Chronex

pytestmark = pytest.mark.binary


def test_fmt_prints_the_canonical_text(chronex: Chronex) -> None:
    done = chronex("fmt", "0  09 * * mon-fri <jitter:90s>", "@DAILY", "@once +90m")
    assert done.out.splitlines() == ["0 9 * * MON-FRI {jitter:1m30s}", "@daily", "@once +1h30m"]


def test_fmt_goes_on_after_a_bad_one_and_exits_2(chronex: Chronex) -> None:
    done = chronex("fmt", "nonsense", "@daily")
    assert (done.code, done.out) == (2, "@daily\n")


def test_fmt_in_json_has_a_row_for_each_text(chronex: Chronex) -> None:
    done = chronex("fmt", "0  09 * * mon-fri", "0 25 * * *", "--format", "json")
    good, bad = json.loads(done.out)
    assert (done.code, done.err) == (2, "")
    assert good == {"expression": "0  09 * * mon-fri", "canonical": "0 9 * * MON-FRI", "diagnostics": []}
    assert (bad["canonical"], bad["diagnostics"][0]["code"]) == (None, "E003")
