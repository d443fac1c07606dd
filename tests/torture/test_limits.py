"""Limits under a kernel that has every controller of control groups (version 2), which a container mostly has not.

User-mode Linux runs Debian's kernel as a process, on this machine's own files, which it sees and cannot change; nothing is
installed or built for it. What commands with limits do there is told by tests/torture/limits_in_guest.py.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
KERNEL = os.environ.get("CHRONEX_USER_MODE_LINUX") or shutil.which("linux.uml") or ""
WITHIN_S = 3_600
INIT = """\
#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/run TMPDIR=/run LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH={path}
mount -t proc none /proc
mount -t sysfs none /sys
mount -t cgroup2 none /sys/fs/cgroup
mount -t tmpfs none /run
mkdir /run/place /run/disk /run/out
mount -t ext4 /dev/ubda /run/disk
mount -t hostfs none /run/out -o {place}
cd /run
{python} -m tests.torture.limits_in_guest /run/place /run/disk /run/out/report.json > /run/out/said 2>&1
echo o > /proc/sysrq-trigger
sleep 60
"""


def why_not() -> str | None:
    if not KERNEL:
        return "no linux.uml here (apt install user-mode-linux, or name it with CHRONEX_USER_MODE_LINUX)"
    if shutil.which("mkfs.ext4") is None:
        return "mkfs.ext4 is not installed (apt install e2fsprogs)"
    return None if os.geteuid() == 0 else "only root sees all of the machine's files"


pytestmark = [pytest.mark.torture, pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]


def run_guest(place: Path) -> Mapping[str, Any]:
    """Boot, try, power off: the facts that were found."""
    init, disk = place / "init", place / "disk"
    words = {"path": shlex.quote(str(ROOT)), "place": shlex.quote(str(place)), "python": shlex.quote(sys.executable)}
    init.write_text(INIT.format(**words))
    init.chmod(0o755)
    with disk.open("wb") as file:
        file.truncate(64 << 20)
    subprocess.run(["mkfs.ext4", "-q", str(disk)], check=True)
    command = [
        KERNEL, "mem=1G", f"ubd0={disk}", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", f"init={init}",
        "con=null", "con0=null,fd:1", "con1=null,fd:1", "quiet",
    ]  # fmt: skip
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, timeout=WITHIN_S, check=False,
        env={"PATH": os.environ["PATH"], "TMPDIR": "/dev/shm", "HOME": str(place)},
    )  # fmt: skip
    said = (place / "said").read_text() if (place / "said").exists() else done.stdout.decode("utf-8", "replace")
    assert (place / "report.json").exists(), said
    facts: Mapping[str, Any] = json.loads((place / "report.json").read_text())
    problems = {
        name: found["problem"] for name, found in facts.items() if isinstance(found, dict) and "problem" in found
    }
    assert problems == {}, (said, facts["log"])
    return facts


@pytest.mark.timeout(WITHIN_S + 60)
def test_limits_hold_are_told_and_leave_no_group_behind(tmp_path: Path) -> None:
    facts = run_guest(tmp_path)

    memory = facts["memory"]
    too_much = "main: killed: it wanted more than its 64MB of memory"
    assert [(memory[name]["state"], memory[name]["reason"]) for name in ("greedy", "greedy_child")] == [
        ("failed", too_much), ("failed", too_much),
    ]  # fmt: skip
    assert memory["modest"]["state"] == "completed", "the one beside them is left alone"
    assert too_much.removeprefix("main: ") in memory["why"]
    assert too_much in memory["logged"]
    assert 0.5 < memory["greedy"]["usage"]["peak_kib"] / (64_000_000 / 1024) <= 1
    assert all(memory[name]["usage"]["limits_by"] == "cgroup" for name in ("greedy", "greedy_child", "modest"))

    (slow,) = facts["processor"]["slow"]["attempts"]
    assert slow["usage"]["cpu_ms"] / (slow["ended_ms"] - slow["started_ms"]) < 0.25, "of the 20% that it may have"
    assert facts["processes"]["most"] <= 30
    assert facts["processes"]["bomb"]["state"] == "completed"
    assert facts["disk"]["writer"]["usage"]["written_bytes"] >= 8 << 20

    assert len(facts["daemon_killed"]["during"]) == 1
    assert facts["daemon_killed"]["end"]["attempts"][0]["exit_code"] == 3
    killed = facts["keeper_killed"]
    assert (killed["keepers"], len(killed["during"])) == (1, 2)
    assert killed["keeper_killed"]["attempts"][0]["state"] == "crashed"
    assert killed["keeper_killed"]["usage"]["limits_by"] == "cgroup"
    assert killed["keeper_killed_greedy"]["attempts"][0]["reason"] == too_much.removeprefix("main: ")
    assert killed["left"] == []
    assert facts["groups_left"] == []
