"""version in both forms."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Chronex

pytestmark = pytest.mark.binary


def test_the_version_in_json(chronex: Chronex) -> None:
    told = json.loads(chronex("version", "--format", "json").out)
    assert f"chronex {told['version']}\n" == chronex("version").out == chronex("--version").out
