"""A machine whose daemon is killed, commands that note their starts, and what must be true afterwards."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate, pairwise
from pathlib import Path
from random import Random

from chronex.clock import wall_ms
from chronex.failpoints import POINTS
from chronex.model.groups import GroupSettings
from chronex.model.occurrence import Attempt, Occurrence
from chronex.model.states import AttemptState, OccurrenceState, RunState, is_final
from chronex.storage.records import Reading
from chronex_store import LmdbStore
from tests.daemon.machine import EVERY_SECOND, Machine
from tests.engine.simulator.group_rules import rates_exceeded
from tests.kit.waits import until

SECOND = 1000
# Each command writes its own line in one go when it begins; a line is one start that really happened.
NOTE_START = 'echo \\"$CHRONEX_ATTEMPT $$\\" >> starts'
# The kernel's own word for who has the place of a group: a lock that ends with the process, however that ends.
NOT_ALONE = 99
ALONE = f"exec flock -n -E {NOT_ALONE} place sleep 0.3"

WORKLOADS: dict[str, str] = {
    "tick": f'[jobs.plain]\n{EVERY_SECOND}run = "{NOTE_START}"\n',
    "retry": f'[jobs.failing]\n{EVERY_SECOND}overlap = "queue"\nretry = {{ max = 2, interval = "100ms" }}\n'
    f'run = "{NOTE_START}; exit 3"\n',
    "overlap": f'[jobs.slow]\n{EVERY_SECOND}overlap = "queue_one"\nrun = "{NOTE_START}; sleep 1.3"\n',
    "cancel": f'[jobs.endless]\n{EVERY_SECOND}overlap = "cancel_running"\nrun = "{NOTE_START}; exec sleep 60"\n',
    "steps": f'[jobs.two]\n{EVERY_SECOND}overlap = "queue"\n[[jobs.two.tasks]]\nname = "one"\nrun = "{NOTE_START}"\n'
    f'[[jobs.two.tasks]]\nname = "two"\nrun = "{NOTE_START}"\n',
    "flood": f'[jobs.loud]\n{EVERY_SECOND}overlap = "queue"\nlog_limit = "64KiB"\n'
    f'run = "{NOTE_START}; head -c 300000 /dev/zero"\n',
    "once": f'[jobs.careful]\n{EVERY_SECOND}on_crash = "fail"\nrun = "{NOTE_START}"\n',
    "timeout": f'[jobs.stuck]\n{EVERY_SECOND}overlap = "queue"\ntask_timeout = "300ms"\nretry = 1\n'
    f'run = "{NOTE_START}; exec sleep 60"\n',
    "peers": f'[jobs.peers]\n{EVERY_SECOND}mode = "parallel"\non_failure = "fail_fast"\n'
    f'[[jobs.peers.tasks]]\nname = "one"\nrun = "{NOTE_START}; sleep 0.2; exit 3"\n'
    f'[[jobs.peers.tasks]]\nname = "two"\nrun = "{NOTE_START}; exec sleep 60"\n',
    "keyed": f'[jobs.keyed]\n{EVERY_SECOND}overlap = "allow"\n[[jobs.keyed.tasks]]\nname = "one"\n'
    f'idempotency_key = "{{job}}"\nidempotency_ttl = "2s"\nrun = "{NOTE_START}; sleep 0.5"\n',
    "chain": f'[jobs.parent]\n{EVERY_SECOND}overlap = "queue"\n'
    f'run = "{NOTE_START}; echo n=$CHRONEX_SCHEDULED_TIME >> \\"$CHRONEX_OUTPUT\\""\n'
    f'[jobs.follower]\nafter = "parent"\noverlap = "queue"\n'
    f'run = "{NOTE_START}; test \\"$CHRONEX_FROM_PARENT_MAIN_N\\" = \\"$CHRONEX_SCHEDULED_TIME\\""\n',
    "graph": f'[jobs.graph]\n{EVERY_SECOND}overlap = "queue"\n'
    f'[[jobs.graph.tasks]]\nname = "one"\nrun = "{NOTE_START}"\nneeds = []\n'
    f'[[jobs.graph.tasks]]\nname = "two"\nrun = "{NOTE_START}"\nneeds = ["one"]\nmatrix = {{ n = [1, 2, 3] }}\nat_most = 2\n'
    f'[[jobs.graph.tasks]]\nname = "bad"\nrun = "{NOTE_START}; exit 3"\nneeds = ["one"]\non_failure = "continue"\n'
    f'[[jobs.graph.tasks]]\nname = "end"\nrun = "{NOTE_START}"\nneeds = ["two", "bad"]\nwhen = "done"\n',
    "groups": f'[groups.place]\nlimit = 1\n[groups.pair]\nlimit = 2\nrate = "3/2s"\n'
    f'[jobs.alone]\n{EVERY_SECOND}overlap = "queue_one"\ngroups = ["place"]\npriority = 5\nrun = "{NOTE_START}; {ALONE}"\n'
    f'[jobs.both]\n{EVERY_SECOND}overlap = "queue"\ngroups = ["place", "pair"]\nrun = "{NOTE_START}; {ALONE}"\n'
    f'[jobs.heavy]\n{EVERY_SECOND}overlap = "skip"\ngroups = {{ pair = 2 }}\nrun = "{NOTE_START}; exec sleep 0.3"\n',
    "hooked": f'[jobs.hooked]\n{EVERY_SECOND}overlap = "queue"\non_start = "sleep 0.1"\non_complete = "sleep 0.1"\n'
    f'run = "{NOTE_START}"\n',
}

# These come only where there is something to take up, to call, to trim, or to stop.
ELSEWHERE = {
    "adopted",
    "check due",
    "hook ended",
    "notice delivered",
    "history trimmed",
    "stop asked",
    "node leaving",
}
# These are the keeper's own: it dies there, and the daemon goes on.
OF_KEEPER = {
    "before spawn", "spawned", "identified", "start recorded", "barrier opened", "process ended", "log finished", "end kept",
}  # fmt: skip
# These too, once in the life of each keeper.
OF_KEEPER_S_BEGIN = {"keeper begins", "keeper listens"}
# These come only where machines share a database: tests/daemon/test_machines.py kills there.
OF_DATABASE = {"shared update written", "shared update committed"}
ON_THE_WAY = [point for point in POINTS if point not in ELSEWHERE | OF_KEEPER | OF_KEEPER_S_BEGIN | OF_DATABASE]


class KilledDaemon:
    """One store, killed daemons, and at last one that may end in good order."""

    def __init__(self, machine: Machine, *workloads: str) -> None:
        self.machine = machine
        self.describe("".join(WORKLOADS[name] for name in workloads))

    def describe(self, jobs: str, settings: str = "") -> None:
        self.machine.write(f'[scheduler]\ngrace_period = "1s"\non_stop = "cancel"\n{settings}{jobs}')

    @property
    def store(self) -> Path:
        return self.machine.directory / "store"

    def killed(self, point: str, *arguments: str) -> bool:
        """Run a daemon that dies at `point`; False where it never came there and ended by itself."""
        daemon = self.machine.start(*(arguments or ("--for", "2m")), quiet=True, fail_at=point)
        daemon.wait(timeout=300)
        assert daemon.returncode in (0, -9), f"the daemon ended with {daemon.returncode}"
        return daemon.returncode == -9

    def run_to_end(self) -> None:
        """A daemon that may live takes everything up, runs every job once more, and stops in good order."""
        began_ms = wall_ms()
        daemon = self.machine.start()
        daemon.until_logged("SchedulerStarted")
        until(lambda: self._has_run_everything_since(began_ms), "a run of every job")
        assert daemon.stopped() == 0

    def _has_run_everything_since(self, began_ms: int) -> bool:
        with LmdbStore.open(self.store, create=False) as store:
            occurrences, _ = store.view(lambda tx: _everything(Reading(tx)))
            jobs = store.view(lambda tx: {job.id for job in Reading(tx).jobs()})
        return jobs == {
            one.job for one in occurrences if one.started_ms is not None and (one.finished_ms or 0) >= began_ms
        }

    def check(self, *, trimmed: bool = False) -> list[Occurrence]:
        """What was promised: every instant one outcome, every start on record first and once, nothing left behind.

        Of what is `trimmed`, the starts are no longer known.
        """
        with LmdbStore.open(self.store, create=False) as store:
            occurrences, attempts = store.view(lambda tx: _everything(Reading(tx)))
            waiting = store.view(lambda tx: _waiting(Reading(tx), occurrences))
            exceeded = store.view(lambda tx: list(_groups_exceeded(Reading(tx), occurrences)))
        assert exceeded == []
        _assert_every_instant_is_decided_once(occurrences)
        unended = [one for one in occurrences if not is_final(one.state) and one.id not in waiting]
        assert not unended, f"without an outcome: {unended}"
        by_id = {attempt.id: attempt for attempt in attempts}
        starts = self._starts()
        for attempt_id, times in Counter(attempt for attempt, _ in starts).items():
            assert times == 1, f"{attempt_id} was started {times} times"
        for attempt_id, pid in starts:
            if trimmed and attempt_id not in by_id:
                continue
            attempt = by_id[attempt_id]
            assert attempt.process is not None, f"{attempt_id} ran without a record"
            assert attempt.process.pid == pid, f"{attempt_id} ran as {pid}, not as {attempt.process.pid}"
        seen = {attempt for attempt, _ in starts}
        for attempt in attempts:
            assert attempt.state is not AttemptState.SUCCESS or attempt.id in seen, f"{attempt.id} never ran"
            assert attempt.started_ms is not None or attempt.id not in seen
            assert attempt.exit_code != NOT_ALONE, f"{attempt.id} found another one in its place"
        _assert_a_living_key_has_one_run(attempts)
        _assert_children_have_the_outcome_of_their_parents(occurrences)
        done = self.machine.chronex("doctor")
        assert done.returncode == 0, done.stdout
        self._assert_nobody_is_left()
        return occurrences

    def _starts(self) -> list[tuple[str, int]]:
        path = self.machine.directory / "starts"
        lines = path.read_text().splitlines() if path.exists() else []
        return [(line.split()[0], int(line.split()[1])) for line in lines]

    def _assert_nobody_is_left(self) -> None:
        until(
            lambda: not self._processes(), lambda: f"the end of processes that were left behind: {self._processes()}"
        )

    def _processes(self) -> list[str]:
        """Every process with this store in its environment: a daemon, a command, or a start barrier that was not opened."""
        found = []
        mark = f"CHRONEX_STORE={self.store}".encode()
        for name in os.listdir("/proc"):
            try:
                if name.isdigit() and mark in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                    found.append(Path(f"/proc/{name}/cmdline").read_bytes().decode(errors="replace"))
            except OSError:
                continue
        return found


def kill_at_random(machine: Machine, chance: Random, kills: int, jobs: int) -> None:
    """As many jobs as asked for, of every workload in turn, and daemons killed at random times."""
    killed = KilledDaemon(machine)
    killed.describe(of_every_kind(jobs))
    for _ in range(kills):
        daemon = machine.start(quiet=True)
        time.sleep(chance.uniform(0.3, 2.5))  # at a random time on purpose
        daemon.kill()
        daemon.wait()
    killed.run_to_end()
    killed.check()


def of_every_kind(count: int) -> str:
    kinds = list(WORKLOADS.values())
    return "".join(_numbered(kinds[number % len(kinds)], number) for number in range(count))


def _numbered(workload: str, number: int) -> str:
    """The same with names of its own, for its jobs and groups, wherever they are written."""
    for name in re.findall(r"^\[(?:jobs|groups)\.(\w+)\]$", workload, re.MULTILINE):
        workload = re.sub(rf"\b{name}\b", f"{name}{number}", workload)
        workload = workload.replace(f"_FROM_{name.upper()}_", f"_FROM_{name.upper()}{number}_")
    return workload


def _everything(reading: Reading) -> tuple[list[Occurrence], list[Attempt]]:
    occurrences = [one for job in reading.jobs() for one in reading.occurrences(job.id, limit=100_000)]
    attempts = [one for found in occurrences for one in reading.attempts(found.job, found.nominal_ms)]
    return sorted(occurrences, key=lambda one: (one.job, one.nominal_ms)), attempts


def _waiting(reading: Reading, occurrences: list[Occurrence]) -> set[str]:
    """What the last daemon left to the next on purpose: in its queue, or with a try that is due, and nothing running."""
    found = {one.id for one in occurrences if one.state is OccurrenceState.QUEUED}
    found |= {one.id for one in occurrences if one.state is OccurrenceState.PENDING and one.parents}
    for one in occurrences:
        runs = reading.runs(one.job, one.nominal_ms)
        active = any(run.state in (RunState.CLAIMED, RunState.RUNNING) for run in runs)
        if not active and any(run.next_attempt_ms is not None for run in runs):
            found.add(one.id)
    return found


def _assert_every_instant_is_decided_once(occurrences: list[Occurrence]) -> None:
    """A child has the instants of those of its parents that have ended, and is held against them: of a parent that was
    late, the next may have ended while one still waits in the line of what is made up for."""
    assert occurrences, "nothing ever happened"
    children = {one.job for one in occurrences if one.parents}
    for job in {one.job for one in occurrences} - children:
        instants = [one.nominal_ms for one in occurrences if one.job == job]
        assert instants == list(range(instants[0], instants[-1] + 1, SECOND)), f"{job} lost or doubled an instant"


def _assert_children_have_the_outcome_of_their_parents(occurrences: list[Occurrence]) -> None:
    """One for each that ended, in the same transaction: whenever the daemon was killed, there is no third case."""
    for parent in {one.job for one in occurrences if one.job.startswith("parent")}:
        child = parent.replace("parent", "follower")
        ended = {one.nominal_ms: one.state for one in occurrences if one.job == parent and is_final(one.state)}
        followers = {one.nominal_ms: one for one in occurrences if one.job == child}
        assert set(followers) == set(ended), "a child was lost or came from nowhere"
        for nominal_ms, state in ended.items():
            is_skipped = followers[nominal_ms].reason.code.startswith("parent_")
            assert is_skipped == (state is not OccurrenceState.COMPLETED), followers[nominal_ms]
            assert followers[nominal_ms].state is not OccurrenceState.FAILED, (
                "it did not find the value of its parent"
            )


def _groups_exceeded(reading: Reading, occurrences: list[Occurrence]) -> Iterator[str]:
    """From its first start to its end an occurrence has its places, whoever was killed in between."""
    jobs = {job.id: job for job in reading.jobs()}
    ran = [(one, jobs[one.job]) for one in occurrences if one.started_ms is not None]
    for group in reading.groups():
        held = [(one, job.groups[group.name]) for one, job in ran if group.name in job.groups]
        edges = [(one.started_ms or 0, weight) for one, weight in held]
        edges += [(one.finished_ms, -weight) for one, weight in held if one.finished_ms is not None]
        places = list(accumulate(change for _, change in sorted(edges)))
        if group.limit is not None and max(places, default=0) > group.limit:
            yield f"{max(places)} places of {group.name} were taken at once, and it has {group.limit}"
    settings = [GroupSettings(group.name, group.limit, group.rate) for group in reading.groups()]
    yield from rates_exceeded(settings, ran)


def _assert_a_living_key_has_one_run(attempts: list[Attempt]) -> None:
    """Every attempt takes the key anew for two seconds, and until then it is another run's turn in no case."""
    keyed = sorted((one for one in attempts if "keyed" in one.job), key=lambda one: (one.job, one.created_ms))
    for earlier, later in pairwise(keyed):
        if earlier.job == later.job and earlier.nominal_ms != later.nominal_ms:
            assert later.created_ms - earlier.created_ms >= 2 * SECOND, (
                f"{earlier.id} has the key, and {later.id} ran"
            )
