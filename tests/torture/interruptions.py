"""Daemons that are interrupted again and again, and commands that write down themselves what became of them.

The checker knows what the commands wrote, and what `chronex history`, `events` and `logs` say of them; it uses nothing
of the engine.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from chronex_store.daemon_lock import is_daemon_alive
from tests.daemon.machine import LoggedDaemon, Machine
from tests.kit.processes import processes_of
from tests.kit.waits import DEADLINE_S, until

ROOT = Path(__file__).parents[2]
# LINES SECONDS CODE: says its lines, waits, notes its end and ends. A code of "later" is 3 for the first two attempts.
WORK = r"""#!/bin/sh
id="$CHRONEX_ATTEMPT"
echo "start $id $$" >> "$WITNESS"
code=$3
if [ "$code" = later ]; then
    code=3
    case "$(grep -c "^try $CHRONEX_OCCURRENCE " "$WITNESS")" in 2) code=0 ;; esac
    echo "try $CHRONEX_OCCURRENCE -" >> "$WITNESS"
fi
n=0
while [ $n -lt $1 ]; do
    n=$((n + 1))
    echo "line $n"
done
[ $2 = 0 ] || sleep $2
echo "last"
now=0
[ $CHRONEX_JOB = long ] && now=$(date +%s%3N)
echo "end $id $code $now" >> "$WITNESS"
exit $code
"""
HOOK = """#!/bin/sh
echo "hook $CHRONEX_OCCURRENCE -" >> "WITNESS_PATH"
"""
JOBS = """
[scheduler]
grace_period = "1s"
catch_up = { spacing = "20ms", share = 1.0 }

[defaults]
env = { WITNESS = "WITNESS_PATH" }
on_crash = "fail"

[jobs.plain]
overlap = "allow"
run = ["./work", "3", "0.05", "0"]
on_complete = "./hook"

[jobs.long]
overlap = "allow"
run = ["./work", "200", "2.2", "7"]
retry = { max = 0 }

[jobs.again]
overlap = "allow"
run = ["./work", "2", "0.1", "later"]
retry = { max = 3, interval = "1s", jitter = 0 }

[jobs.three]
overlap = "allow"
mode = "parallel"
on_failure = "continue"
tasks = [
    { name = "one", run = ["./work", "1", "0.3", "0"] },
    { name = "two", run = ["./work", "1", "1.1", "5"], retry = { max = 0 } },
    { name = "three", run = ["./work", "1", "0", "0"] },
]

[jobs.late]
overlap = "allow"
task_timeout = "400ms"
retry = { max = 0 }
run = ["./work", "1", "60", "0"]

[jobs.replaced]
overlap = "cancel_running"
run = ["./work", "1", "1.4", "0"]
"""
# The only jobs whose commands are ended before they end themselves, by their own rules.
ENDED_BY_RULE = {"late": "timeout", "replaced": "canceled"}
LINES = {"plain": 3, "long": 200, "again": 2, "three": 1, "late": 1, "replaced": 1}
ON_RECORD_WITHIN_MS = 5_000


def job_file(witness: Path) -> str:
    return JOBS.replace("WITNESS_PATH", str(witness)).replace("overlap =", 'schedule = "* * * * * *"\noverlap =')


def another_version(directory: Path) -> Path:
    """The same program with another version number, in a place of its own, as an upgrade puts it there."""
    place = directory / "other-version"
    for name in ("chronex", "chronex_tui"):
        shutil.copytree(ROOT / name, place / name)  # with what is compiled: most of a first start is to compile
    shutil.copytree(ROOT / "store" / "chronex_store", place / "chronex_store")
    version = place / "chronex" / "version.py"
    version.write_text(version.read_text().replace('__version__ = "', '__version__ = "99.'))
    return place


class Interrupted:
    """One machine with its jobs. `interrupt` does one thing to its daemon; afterwards a daemon lives."""

    def __init__(
        self, machine: Machine, chance: Random, other: Path | None = None, *, kills_keepers: bool = False
    ) -> None:
        self.machine, self.chance, self.kills_keepers = machine, chance, kills_keepers
        self.paths = [
            machine.env["PYTHONPATH"],
            *([f"{other}{os.pathsep}{machine.env['PYTHONPATH']}"] if other else []),
        ]
        self.witness = machine.directory / "witness"
        self.witness.touch()
        for name, text in (("work", WORK), ("hook", HOOK.replace("WITNESS_PATH", str(self.witness)))):
            (machine.directory / name).write_text(text)
            (machine.directory / name).chmod(0o700)
        machine.write(job_file(self.witness))
        self.away: list[tuple[int, int]] = []  # from when until when no daemon could record anything, in wall time
        self.done: Counter[str] = Counter()
        self.daemon = self._begin()

    def _begin(self) -> LoggedDaemon:
        self.machine.env["PYTHONPATH"] = self.chance.choices(self.paths, weights=(3, 1)[: len(self.paths)])[0]
        daemon = self.machine.start(quiet=True)
        if self.chance.random() < 0.8:  # else it may be interrupted before it has begun
            until(lambda: self._has_begun(daemon), "a daemon")
        return daemon

    def _has_begun(self, daemon: LoggedDaemon) -> bool:
        assert daemon.poll() is None, f"the daemon ended with {daemon.returncode}"
        return is_daemon_alive(self.machine.directory / "store")

    def interrupt(self) -> None:
        time.sleep(self.chance.choice((0.0, 0.05, 0.2, 0.6)) * self.chance.random())  # in any phase, on purpose
        ways: dict[str, Callable[[], None]] = {
            "KILL": self._kill, "TERM": self._terminate, "STOP": self._freeze, "restart": self._restart,
            "slow keeper": self._slow_keeper,
        }  # fmt: skip
        way = self.chance.choices(list(ways), weights=(3, 2, 6, 1, 1))[0]
        if self.kills_keepers and self.chance.random() < 0.5 and (keepers := self._keepers()):
            _signal(self.chance.choice(keepers), signal.SIGKILL)  # one that has ended meanwhile is none to kill
            way = "keeper"
        self.done[way] += 1
        if way in ways:
            ways[way]()

    def _keepers(self) -> list[int]:
        return [pid for pid in processes_of(self.machine.directory / "store") if is_keeper(pid)]

    def _kill(self) -> None:
        self._replace(self.daemon.kill)

    def _terminate(self) -> None:
        self._replace(self.daemon.terminate)

    def _replace(self, end: Callable[[], None]) -> None:
        since = _now_ms()
        end()
        self.daemon.wait(DEADLINE_S)
        time.sleep(self.chance.choice((0.0, 0.0, 0.8)) * self.chance.random())
        self.daemon = self._begin()
        self.away.append((since, _now_ms()))

    def _freeze(self) -> None:
        since = _now_ms()
        self.daemon.send_signal(signal.SIGSTOP)
        time.sleep(self.chance.choice((0.01, 0.05, 0.3)))
        self.daemon.send_signal(signal.SIGCONT)
        self.away.append((since, _now_ms()))

    def _slow_keeper(self) -> None:
        """One keeper stands still, as on a machine that has no time for it, while the daemon is replaced."""
        since, keepers = _now_ms(), self._keepers()
        keeper = self.chance.choice(sorted(keepers)) if keepers else None
        end = self.chance.choice((self.daemon.kill, self.daemon.terminate))
        if keeper is not None:
            _signal(keeper, signal.SIGSTOP)
        try:
            time.sleep(self.chance.choice((0.0, 0.05)))
            self._replace(end)
            time.sleep(self.chance.choice((0.0, 0.3, 1.2)))  # some are looked for meanwhile, and given time to answer
        finally:
            if keeper is not None:
                _signal(keeper, signal.SIGCONT)
        self.away.append((since, _now_ms()))

    def _restart(self) -> None:
        since = _now_ms()
        done = self.machine.chronex("restart")
        # A daemon that was replaced a moment ago may not have begun yet, and the first one may not have made its store.
        reasons = ("try again", "no daemon runs", "no store in", "no store at")
        assert done.returncode == 0 or any(reason in done.stderr for reason in reasons), done.stderr
        self.away.append((since, _now_ms()))

    def end(self) -> None:
        """Nothing begins any more, and what runs is waited for.

        A daemon that was ended before its keeper was there leaves claims behind, which the next one tries again; one
        that is told to begin nothing would leave them in turn, as it should. It has found them, and what was missed,
        when it has decided an instant that comes only now.
        """
        now_ms = _now_ms()
        until(lambda: self._has_decided(now_ms), "the last daemon to take up what the others left")
        until(lambda: not self._tried_again(), "what was claimed and never began to be tried again")
        until(lambda: not self._queued(), "what was missed to be made up for")
        until(lambda: "stopped" in self.machine.chronex("stop", "--drain").stdout, "the last daemon to be asked")
        assert self.daemon.wait(DEADLINE_S) == 0
        until(lambda: not processes_of(self.machine.directory / "store"), "the end of every process of the store")

    def _has_decided(self, since_ms: int) -> bool:
        return any(row["scheduled_ms"] > since_ms for row in self.machine.history())

    def _tried_again(self) -> bool:
        """Is any occurrence about to be tried again, after an attempt that never began?"""
        return any(
            row["state"] == "running" and row["attempts"] and row["attempts"][-1]["state"] == "crashed"
            for row in self.machine.history()
        )

    def _queued(self) -> int:
        """Missed runs are started one after the other, and wait for that in a queue."""
        done = self.machine.chronex("status", "--format", "json")
        assert done.returncode == 0, done.stderr
        return int(json.loads(done.stdout)["queued"])


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


# -- what must be true afterwards ----------------------------------------------------------------------------------


class Seen(NamedTuple):
    """What one command wrote of itself."""

    starts: int
    code: int | None
    ended_ms: int


@dataclass
class Told:
    """One attempt as the record has it."""

    job: str
    task: str
    state: str
    exit_code: int | None
    log: str
    reason: str
    recorded_ms: int | None = field(default=None)


def is_keeper(pid: int) -> bool:
    with contextlib.suppress(OSError):  # it may have ended meanwhile
        return b"chronex-keeper" in Path(f"/proc/{pid}/comm").read_bytes()
    return False


class Checker:
    """Compares what the commands wrote with what is on record."""

    def __init__(self, interrupted: Interrupted, within_ms: int = ON_RECORD_WITHIN_MS) -> None:
        self.may_be_unknown, self.within_ms = interrupted.kills_keepers, within_ms
        self.machine, self.away = interrupted.machine, interrupted.away
        self.witness = interrupted.witness.read_text().splitlines()
        self.rows = self._json("history", "-n", "100000")
        self.seen = self._seen()
        self.told = self._told()

    def _json(self, *arguments: str) -> list[dict[str, Any]]:
        done = self.machine.chronex(*arguments, "--format", "json")
        assert done.returncode == 0, done.stderr
        found: list[dict[str, Any]] = json.loads(done.stdout)
        return found

    def _seen(self) -> dict[str, Seen]:
        found: dict[str, Seen] = {}
        for line in self.witness:
            what, name, *rest = line.split()
            before = found.get(name, Seen(0, None, 0))
            if what == "start":
                found[name] = before._replace(starts=before.starts + 1)
            elif what == "end":
                found[name] = before._replace(code=int(rest[0]), ended_ms=int(rest[1]))
        return found

    def _told(self) -> dict[str, Told]:
        found = {
            one["id"]: Told(row["job"], one["task"], one["state"], one["exit_code"], one["log"], one["reason"])
            for row in self.rows
            for one in row["attempts"]
        }
        ids = {(row["id"], one["task"], one["number"]): one["id"] for row in self.rows for one in row["attempts"]}
        for event in self._json("events", "-n", "100000"):
            if event["name"] in ("TaskRunCompleted", "TaskRunFailed"):
                found[ids[event["occurrence"], event["task"], event["attempt"]]].recorded_ms = event["at_ms"]
        return found

    def findings(self) -> Iterator[str]:
        yield from self._attempts()
        yield from self._instants()
        yield from self._hooks()
        yield from self._files()

    def _attempts(self) -> Iterator[str]:
        for name, seen in self.seen.items():
            if seen.starts == 0:
                continue
            if seen.starts > 1:
                yield f"{name} was started {seen.starts} times"
            told = self.told.get(name)
            if told is None:
                yield f"{name} ran, and no record says so"
                continue
            was_late = self.may_be_unknown and told.job in ("late", "replaced")  # stopped by its own rules, unseen
            if seen.code is None and told.state != ENDED_BY_RULE.get(told.job) and not was_late:
                yield f"{name} of {told.job} was ended by nobody knows whom, and is told as {told.state}: {told.reason}"
            if told.job == "replaced" and told.state == "canceled":
                continue  # by the next instant, as its policy says; it may have ended in the same moment
            if self.may_be_unknown and told.state == "crashed":
                continue  # with its keeper, what it said last and how it ended may be lost, and is told as unknown
            if seen.code is not None and (told.exit_code, told.state) != (seen.code, _state_of(seen.code)):
                yield f"{name} of {told.job} ended with {seen.code}, and is told as {told.state}, {told.exit_code}"
            if seen.code is not None and (wrong := self._wrong_log(told)):
                yield f"{name} of {told.job}: {wrong}"
            if seen.code is not None and told.recorded_ms is None:
                yield f"the end of {name} of {told.job} is not in the journal"
            elif seen.ended_ms and told.recorded_ms is not None:
                yield from self._late(name, seen.ended_ms, told.recorded_ms)
        for name, told in self.told.items():
            began = self.seen.get(name, Seen(0, None, 0)).starts
            # One that timed out may have been killed, on a busy machine, before it could write its first line.
            if not began and told.state == "success":
                yield f"{name} of {told.job} is told as a success, and never ran"
            if began and told.state == "crashed" and not self.may_be_unknown:
                yield f"{name} of {told.job} ran, and its end is told as unknown: {told.reason}"
            if told.state == "running":
                yield f"{name} of {told.job} is still told as running"

    def _wrong_log(self, told: Told) -> str:
        wanted = "".join(f"line {number}\n" for number in range(1, LINES[told.job] + 1)) + "last\n"
        path = self.machine.directory / "store" / "logs" / told.log
        said = path.read_text() if told.log and path.exists() else ""
        return "" if said == wanted else f"its log lacks lines: {len(said)} characters, {len(wanted)} wanted"

    def _late(self, name: str, ended_ms: int, recorded_ms: int) -> Iterator[str]:
        """From the end of the command, or from when a daemon could record it."""
        from_ms = ended_ms
        for since, until_ms in sorted(self.away):
            if since <= from_ms + self.within_ms and until_ms > from_ms:
                from_ms = until_ms
        if recorded_ms > from_ms + self.within_ms:
            yield f"the end of {name} was on record {recorded_ms - from_ms} ms after a daemon could have recorded it"

    def _instants(self) -> Iterator[str]:
        by_job: dict[str, list[int]] = defaultdict(list)
        for row in self.rows:
            by_job[row["job"]].append(row["scheduled_ms"])
            if (older := row["older"]) is not None:  # a daemon that is far behind lists few, and the others as a span
                by_job[row["job"]] += range(older["from_ms"], older["to_ms"] + 1, 1_000)
            waits_for_retry = row["attempts"] and row["attempts"][-1]["state"] == "failed" and row["job"] == "again"
            if row["state"] in ("running", "pending", "queued") and not waits_for_retry:
                yield f"{row['job']} at {row['scheduled_ms']} has no outcome"
        for job, instants in by_job.items():
            instants.sort()
            around = [pair for pair in pairwise(instants) if pair[1] - pair[0] != 1_000]
            if around:
                yield f"{job} lost or doubled an instant: between {around[:5]}"

    def _hooks(self) -> Iterator[str]:
        called = {line.split()[1] for line in self.witness if line.startswith("hook ")}
        for row in self.rows:
            if row["job"] == "plain" and row["state"] == "completed" and row["id"] not in called:
                yield f"the hook of {row['id']} was never called"

    def _files(self) -> Iterator[str]:
        store = self.machine.directory / "store"
        if not self.may_be_unknown and (left := list((store / "keepers").rglob("*"))):
            yield f"left behind: {[str(path.relative_to(store)) for path in left]}"
        logs = {path.name for path in (store / "logs").iterdir()}
        if strangers := logs - {told.log for told in self.told.values()}:
            yield f"logs that belong to no attempt: {sorted(strangers)[:3]}"


def _state_of(code: int) -> str:
    return "failed" if code else "success"


def interrupt_often(interrupted: Interrupted, count: int, within_ms: int = ON_RECORD_WITHIN_MS) -> None:
    for _ in range(count):
        interrupted.interrupt()
    interrupted.end()
    checker = Checker(interrupted, within_ms)
    findings = list(checker.findings())
    assert not findings, f"{len(findings)} findings, {dict(interrupted.done)}\n" + "\n".join(findings[:10])
    assert sum(one.starts for one in checker.seen.values()) > 0, "nothing ever ran"
