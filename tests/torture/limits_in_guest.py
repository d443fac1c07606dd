"""What a kernel with control groups does to commands with limits: run as root inside of a guest, which it divides itself.

It is started by tests/torture/test_limits.py under another kernel; the facts that it finds are written as JSON, and judged
there.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

GROUPS = Path("/sys/fs/cgroup")
SERVICE = GROUPS / "chronex.service"
CHRONEX = [sys.executable, "-m", "chronex"]
_PATIENCE_S = 300.0
JOBS = """
[scheduler]
timezone = "UTC"
[defaults]
retry = {{ max = 0 }}
directory = "{place}"
[jobs.greedy]
schedule = "@monthly"
run = [{python}, "-c", "bytes(bytearray(300 << 20))"]
limits = {{ memory = "64M" }}
[jobs.greedy-child]
schedule = "@monthly"
run = "{python_plain} -c 'b = bytes(bytearray(300 << 20))' | sleep 600"
limits = {{ memory = "64M" }}
[jobs.modest]
schedule = "@monthly"
run = "while [ ! -e release-modest ]; do sleep 0.1; done; echo modest"
limits = {{ memory = "64M" }}
[jobs.slow]
schedule = "@monthly"
run = "touch slow-runs; while [ ! -e release-slow ]; do :; done"
limits = {{ cpu = "20%" }}
[jobs.bomb]
schedule = "@monthly"
run = "bomb() {{ bomb | bomb & }}; touch bomb-runs; bomb; while [ ! -e release-bomb ]; do sleep 0.1; done"
limits = {{ tasks = 30 }}
leftovers = "kill"
[jobs.writer]
schedule = "@monthly"
run = "dd if=/dev/zero of={disk}/file bs=1M count=8 conv=fsync 2>&1"
limits = {{ memory = "256M" }}
[jobs.daemon-killed]
schedule = "@monthly"
run = "touch daemon-killed-runs; while [ ! -e release-daemon-killed ]; do sleep 0.1; done; exit 3"
limits = {{ memory = "64M" }}
[jobs.keeper-killed]
schedule = "@monthly"
run = "touch keeper-killed-runs; while [ ! -e release-keeper-killed ]; do sleep 0.1; done"
limits = {{ memory = "64M" }}
[jobs.keeper-killed-greedy]
schedule = "@monthly"
run = "touch keeper-killed-greedy-runs; while [ ! -e release-keeper-killed-greedy ]; do sleep 0.1; done; exec {python_plain} -c 'bytes(bytearray(300 << 20))'"
limits = {{ memory = "64M" }}
"""


def until(condition: Callable[[], object], what: str) -> None:
    end = time.monotonic() + _PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"waited in vain for {what}")
        time.sleep(0.05)


class Guest:
    """A daemon on a store of its own, in a part of a group that is marked as delegated."""

    def __init__(self, place: Path, disk: Path) -> None:
        self.place = place
        self.file = place / "chronex.toml"
        python = sys.executable
        self.file.write_text(JOBS.format(place=place, disk=disk, python=json.dumps(python), python_plain=python))
        for name in ("memory", "cpu", "pids", "io"):
            (GROUPS / "cgroup.subtree_control").write_text(f"+{name}")
        (SERVICE / "scheduler").mkdir(parents=True)
        os.setxattr(SERVICE, "trusted.delegate", b"1")
        self.chronex("apply", str(self.file))
        self.daemon = self.start()

    def chronex(self, *words: str) -> str:
        done = subprocess.run(
            [*CHRONEX, *words, "--store", str(self.place / "store")], capture_output=True, text=True, check=False
        )
        if done.returncode not in (0, 1):
            raise RuntimeError(f"{words}: {done.stdout}{done.stderr}")
        return done.stdout

    def start(self) -> subprocess.Popen[bytes]:
        enter = f'echo $$ > {SERVICE}/scheduler/cgroup.procs && exec "$@"'
        command = [*CHRONEX, "run", "--headless", "--config", str(self.file), "--store", str(self.place / "store")]
        return subprocess.Popen(["sh", "-c", enter, "sh", *command], stderr=(self.place / "log").open("ab"))

    def trigger(self, *names: str) -> None:
        for name in names:
            self.chronex("trigger", name)

    def newest(self, job: str) -> dict[str, Any]:
        listed = json.loads(self.chronex("history", job, "-n", "1", "--format", "json"))
        found = listed["occurrences"] if isinstance(listed, dict) else listed
        return dict(found[0]) if found else {}

    def end_of(self, job: str) -> dict[str, Any]:
        """What became of it; its end is in the daemon's log, and recorded before."""
        until(lambda: f"attempt ended job={job} " in (self.place / "log").read_text(), f"the end of {job}")
        until(lambda: self.newest(job).get("ended"), f"the record of the end of {job}")
        return self.newest(job)

    def has_keeper_or_none(self, offset: int) -> bool:
        """It listens, or the log says behind `offset` that it could not be started."""
        return self.has_keeper() or b"no keeper" in (self.place / "log").read_bytes()[offset:]

    def has_keeper(self) -> bool:
        return bool(self.keeper_pids()) and any(self.place.glob("store/keepers/*/socket"))

    def release(self, job: str) -> None:
        (self.place / f"release-{job}").touch()

    def begun(self, *jobs: str) -> None:
        self.trigger(*jobs)
        for job in jobs:
            until((self.place / f"{job}-runs").exists, f"{job} to run")

    def keeper_pids(self) -> list[int]:
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().split(b"\0")
            except OSError:
                continue
            if b"chronex.keeper.keeper_process" in b" ".join(words):
                found.append(int(path.parent.name))
        return found

    def attempt_groups(self) -> list[str]:
        return sorted(path.name for path in SERVICE.glob("*.scope"))


def memory(guest: Guest) -> dict[str, Any]:
    """Two that want too much, beside one that does not."""
    guest.trigger("modest", "greedy", "greedy-child")
    facts: dict[str, Any] = {"greedy": guest.end_of("greedy"), "greedy_child": guest.end_of("greedy-child")}
    facts["why"] = guest.chronex("why", "greedy")
    facts["logged"] = guest.chronex("history", "greedy", "--wide")
    guest.release("modest")
    facts["modest"] = guest.end_of("modest")
    return facts


def processor(guest: Guest) -> dict[str, Any]:
    guest.begun("slow")
    time.sleep(5)
    guest.release("slow")
    return {"slow": guest.end_of("slow")}


def processes(guest: Guest) -> dict[str, Any]:
    guest.begun("bomb")
    time.sleep(3)
    (group,) = [path for path in SERVICE.glob("*.scope") if (path / "pids.max").read_text().strip() == "30"]
    facts: dict[str, Any] = {"most": 0, "refused": (group / "pids.events").read_text()}
    for _ in range(20):
        facts["most"] = max(facts["most"], int((group / "pids.current").read_text()))
        subprocess.run(["/bin/true"], check=True)  # the rest of the machine can still start programs
    guest.release("bomb")
    facts["bomb"] = guest.end_of("bomb")
    return facts


def disk(guest: Guest) -> dict[str, Any]:
    guest.trigger("writer")
    return {"writer": guest.end_of("writer")}


def daemon_killed(guest: Guest) -> dict[str, Any]:
    guest.begun("daemon-killed")
    guest.daemon.kill()
    guest.daemon.wait()
    during = guest.attempt_groups()
    guest.daemon = guest.start()
    guest.release("daemon-killed")
    facts = {"during": during, "end": guest.end_of("daemon-killed")}
    until(lambda: not guest.attempt_groups(), "the groups to be removed")
    return facts


def keeper_killed(guest: Guest) -> dict[str, Any]:
    names = ("keeper-killed", "keeper-killed-greedy")
    until(partial(guest.has_keeper_or_none, 0), "a keeper")
    while not guest.has_keeper():  # on a busy machine it may not have begun in time
        guest.daemon.terminate()
        guest.daemon.wait()
        guest.daemon = guest.start()
        until(partial(guest.has_keeper_or_none, (guest.place / "log").stat().st_size), "a keeper")
    guest.begun(*names)
    facts: dict[str, Any] = {"keepers": len(guest.keeper_pids()), "during": guest.attempt_groups()}
    for pid in guest.keeper_pids():
        os.kill(pid, signal.SIGKILL)
    for name in names:
        guest.release(name)
    facts |= {name.replace("-", "_"): guest.end_of(name) for name in names}
    facts["left"] = guest.attempt_groups()
    return facts


TRIALS = (memory, processor, processes, disk, daemon_killed, keeper_killed)


def main(place: Path, disk_place: Path, report: Path) -> None:
    facts: dict[str, Any] = {}
    guest = Guest(place, disk_place)
    wanted = os.environ.get("TRIALS", "").split()
    for trial in TRIALS:
        if wanted and trial.__name__ not in wanted:
            continue
        try:
            facts[trial.__name__] = trial(guest)
        except Exception as problem:  # the others are worth knowing too
            facts[trial.__name__] = {"problem": f"{type(problem).__name__}: {problem}"}
        facts["log"] = (place / "log").read_text()[-4_000:]
        report.write_text(json.dumps(facts, indent=1))
    subprocess.run([*CHRONEX, "stop", "--store", str(place / "store")], check=False, capture_output=True)
    guest.daemon.wait(60)
    facts["groups_left"] = guest.attempt_groups()
    report.write_text(json.dumps(facts, indent=1))


if __name__ == "__main__":
    main(*(Path(word) for word in sys.argv[1:4]))
