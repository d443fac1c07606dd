"""A headless Neovim as a real client: diagnostics, hover, hints, and a fix applied to the buffer."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import program
from tests.lint.golden import NOW, ZONE

ROOT = Path(__file__).parent.parent.parent
PROBE = Path(__file__).parent / "probe.lua"
TEXT = (
    '[jobs.nightly]\nschedule = "17 4 * * MNO"\nrun = "x" # 😀\n\n[jobs.hourly]\nschedule = "7 * * * *"\nrun = "x"\n'
    '[defaults]\ntask_timeout = "1h"\n'
)

pytestmark = [
    pytest.mark.binary,
    pytest.mark.skipif(shutil.which("nvim") is None, reason="nvim is not installed"),
]


def test_neovim_gets_findings_hover_hints_and_applies_a_fix(tmp_path: Path) -> None:
    job_file, result = tmp_path / "chronex.toml", tmp_path / "result.json"
    job_file.write_text(TEXT)
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'store'}",
        "XDG_STATE_HOME": str(tmp_path),
        "CHRONEX_LSP": json.dumps([*program(), "lsp", "--tz", ZONE, "--now", NOW]),
        "CHRONEX_FILE": str(job_file),
        "CHRONEX_RESULT": str(result),
    }
    command = ["nvim", "--headless", "-u", "NONE", "-i", "NONE", "-c", f"luafile {PROBE}", "-c", "qa!"]
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert result.exists(), done.stderr
    found = json.loads(result.read_text())
    assert "error" not in found, found
    assert found["before"] == [{"code": "E006", "line": 2, "column": 22}]
    assert "unknown" not in found["hover"]
    assert found["hover"].startswith("`17 4 * * MNO` has no next run.")
    assert found["hints"] == ["Fri 01:07 CET (in 7m)"]
    assert found["after"] in ([], {})
    assert found["text"] == TEXT.replace("MNO", "MON").rstrip("\n")
