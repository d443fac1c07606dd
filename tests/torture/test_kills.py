"""kill -9 of the real daemon, at every fail-point and in the middle of its recovery."""

from __future__ import annotations

import json
import time
from functools import partial
from pathlib import Path
from random import Random

import pytest

from chronex.failpoints import KEEPER_VARIABLE
from chronex.jobfile import read_job_file
from tests.daemon.machine import EVERY_SECOND, Machine
from tests.kit.waits import until
from tests.torture.in_parallel import drawn_for, run_in_parallel
from tests.torture.killed_daemon import (
    NOTE_START,
    OF_KEEPER,
    OF_KEEPER_S_BEGIN,
    ON_THE_WAY,
    KilledDaemon,
    of_every_kind,
)

# Every commit kills at every point, one after the other on a store for each workload: each daemon recovers from the
# death of the one before. Torture takes all points and workloads with each other (test_campaign.py).
QUICK = {
    "steps": ("update begun:9", "end recorded:1"),
    "retry": ("update committed:8", "update written:9"),
    "tick": ("node registered:1", "taken over:1"),
    "overlap": ("tick decided:3", "opening asked:2"),
    "once": ("start asked:1", "held told:2", "before opening:1"),
    "flood": ("end told:1",),
    "chain": ("end recorded:1", "update committed:9", "end told:2"),
    "graph": ("end recorded:2", "update written:12"),
    "groups": ("update committed:9", "end recorded:2"),
}


QUICK_OF_KEEPER = {"start recorded"}


def one_after_the_other(workload: str, machine: Machine) -> None:
    killed = KilledDaemon(machine, workload)
    for point in QUICK[workload]:
        assert killed.killed(point), f"the daemon never came to {point}"
    killed.run_to_end()
    killed.check()


@pytest.mark.parametrize("half", [0, 1])
def test_a_daemon_killed_at_any_point_loses_and_doubles_nothing(tmp_path: Path, half: int) -> None:
    run_in_parallel(tmp_path, ((name, partial(one_after_the_other, name)) for name in list(QUICK)[half::2]))


def test_fifty_jobs_of_every_kind_are_a_job_file() -> None:
    """A copy of a job that follows another one must follow its own parent: else no daemon of that campaign starts."""
    jobs = {job.id: job for job in read_job_file(of_every_kind(50), "chronex.toml", "UTC").jobs}
    assert jobs["follower24"].after == ("parent24",)
    assert jobs["both26"].groups == {"place26": 1, "pair26": 1}


def test_a_command_that_was_not_recorded_has_not_run(machine: Machine) -> None:
    """With `on_crash = "fail"` a repeated command would be the worst there is; one that never ran is tried again."""
    killed = KilledDaemon(machine, "once")
    assert killed.killed("held told")
    assert not (machine.directory / "starts").exists()
    killed.run_to_end()
    occurrences = killed.check()
    assert occurrences[0].state == "completed", occurrences[0].reason


def test_a_command_that_may_have_run_is_not_repeated_where_the_job_forbids_it(machine: Machine) -> None:
    """Its keeper dies with its exit code; nothing else can make an end unknown but the death of the machine."""
    killed = KilledDaemon(machine, "once")
    assert machine.chronex("apply").returncode == 0
    machine.env[KEEPER_VARIABLE] = "process ended"
    daemon = machine.start(quiet=True)
    until(lambda: any(row["state"] == "failed" for row in machine.history()), "an end that nobody saw")
    assert daemon.stopped() == 0
    del machine.env[KEEPER_VARIABLE]
    killed.run_to_end()
    killed.check()
    (failed,) = {row["reason"] for row in machine.history() if row["state"] == "failed"}
    assert failed.startswith("main: ended, and its exit code is not known")


@pytest.mark.parametrize(
    "point",
    [
        f"{point}:{1 if point in OF_KEEPER_S_BEGIN else 2}"
        if point in QUICK_OF_KEEPER
        else pytest.param(f"{point}:{1 if point in OF_KEEPER_S_BEGIN else 2}", marks=pytest.mark.torture)
        for point in sorted(OF_KEEPER | OF_KEEPER_S_BEGIN)
    ],
)
def test_a_keeper_killed_at_any_point_doubles_nothing_and_its_daemon_goes_on(machine: Machine, point: str) -> None:
    killed = KilledDaemon(machine, "steps", "once")
    machine.env[KEEPER_VARIABLE] = point
    daemon = machine.start(quiet=True)
    until(lambda: len(keepers_started(machine)) >= 2, "a keeper in the place of the one that died")
    assert daemon.stopped() == 0
    del machine.env[KEEPER_VARIABLE]
    killed.run_to_end()
    killed.check()


def keepers_started(machine: Machine) -> set[str]:
    """By their directories: each has a number of its own, and the last one is there as long as it lives."""
    names = {path.name for path in (machine.directory / "store" / "keepers").glob("*")}
    return {str(number) for name in names for number in range(1, int(name.rpartition(".")[2]) + 1)}


def test_killed_again_and_again_while_it_recovers(machine: Machine) -> None:
    """Three deep: the recovery, the recovery of that, and the recovery of that."""
    killed = KilledDaemon(machine, "overlap", "steps")
    assert killed.killed("opening asked:2")
    for point in ("node registered", "taken over", "tick decided"):
        assert killed.killed(point)
    killed.run_to_end()
    killed.check()


def test_killed_while_it_adopts(machine: Machine) -> None:
    """The command lives through two daemons, and the third records its end; it is not run again."""
    release = machine.directory / "release"
    machine.write(
        f'[scheduler]\ngrace_period = "1s"\n[jobs.slow]\n{EVERY_SECOND}overlap = "queue_one"\n'
        f'run = "{NOTE_START}; while [ ! -e release ]; do sleep 0.05; done"\n'
    )
    first = machine.start()
    until((machine.directory / "starts").exists, "the first start")
    first.kill()
    first.wait()
    for _ in range(2):
        second = machine.start(fail_at="adopted")
        assert second.ended() == -9
    assert len((machine.directory / "starts").read_text().splitlines()) == 1, "nothing runs beside the orphan"
    release.touch()
    third = machine.start(quiet=True)
    until(lambda: "completed" in {row["state"] for row in machine.history()}, "the end of the command")
    assert third.stopped() == 0
    starts = [line.split()[0] for line in (machine.directory / "starts").read_text().splitlines()]
    assert len(starts) == len(set(starts)), "an attempt was started twice"
    assert {attempt["number"] for row in machine.history() for attempt in row["attempts"]} == {1}


@pytest.mark.parametrize("point", [pytest.param("stop asked", marks=pytest.mark.torture), "node leaving"])
def test_killed_while_it_stops(machine: Machine, point: str) -> None:
    killed = KilledDaemon(machine, "cancel")
    assert killed.killed(point, "--for", "1500ms")
    killed.run_to_end()
    killed.check()


def test_the_quick_table_has_every_point() -> None:
    assert {point.split(":")[0] for points in QUICK.values() for point in points} == set(ON_THE_WAY)


# The command of whoever holds the one place makes a directory for as long as it runs; one more at once cannot.
ONE_AT_ONCE = "mkdir held || echo >> exceeded; sleep 0.2; rmdir held"
GROUPED = "".join(
    f'[jobs.{name}]\n{EVERY_SECOND}overlap = "queue_one"\ngroups = ["one"]\npriority = {priority}\n'
    f'run = "{NOTE_START}; {ONE_AT_ONCE}"\n'
    for name, priority in (("a", 0), ("b", 1), ("c", -1))
)
ONCE_IN_A_LIFE = ("node registered", "taken over")
POINTS_OF_GROUPS = ("tick decided:2", "update committed:9", "end told:2", "end recorded:2")


def limits_after(machine: Machine, points: tuple[str, ...]) -> None:
    killed = KilledDaemon(machine)
    killed.describe(f"[groups.one]\nlimit = 1\n{GROUPED}")
    for point in points:
        assert killed.killed(point), f"the daemon never came to {point}"
        assert not (machine.directory / "exceeded").exists(), point
    killed.run_to_end()
    killed.check()
    assert not (machine.directory / "exceeded").exists()
    assert json.loads(machine.chronex("groups", "--format", "json").stdout)[0]["held"] == 0


def test_the_limit_of_a_group_holds_over_daemons_that_are_killed(machine: Machine) -> None:
    limits_after(machine, POINTS_OF_GROUPS[:2])


@pytest.mark.torture
def test_the_limit_of_a_group_holds_at_every_point(tmp_path: Path) -> None:
    def at(point: str, machine: Machine) -> None:
        passing = 1 if point in ONCE_IN_A_LIFE else 3
        limits_after(machine, (f"{point}:1", f"{point}:{passing}"))

    points = [*POINTS_OF_GROUPS, *ON_THE_WAY]
    run_in_parallel(tmp_path, ((point.replace(" ", "-"), partial(at, point.partition(":")[0])) for point in points))


# All in one group: a parent, who follows it, and a graph. Whoever runs too early, or lost a value, fails.
SAME_N = 'test \\"$CHRONEX_FROM_{}_N\\" = \\"$CHRONEX_SCHEDULED_TIME\\"'
HAND_OVER = 'echo n=$CHRONEX_SCHEDULED_TIME >> \\"$CHRONEX_OUTPUT\\"'
TOGETHER = (
    f'[groups.one]\nlimit = 1\n[jobs.parent]\n{EVERY_SECOND}overlap = "queue_one"\ngroups = ["one"]\n'
    f'run = "{NOTE_START}; {ONE_AT_ONCE}; {HAND_OVER}"\n'
    f'[jobs.follower]\nafter = "parent"\noverlap = "queue"\ngroups = ["one"]\npriority = 3\n'
    f'run = "{NOTE_START}; {ONE_AT_ONCE}; {SAME_N.format("PARENT_MAIN")}"\n'
    f'[jobs.graph]\n{EVERY_SECOND}overlap = "queue_one"\ngroups = ["one"]\n'
    f'[[jobs.graph.tasks]]\nname = "one"\nneeds = []\nrun = "{NOTE_START}; {ONE_AT_ONCE}; {HAND_OVER}"\n'
    f'[[jobs.graph.tasks]]\nname = "two"\nneeds = ["one"]\nrun = "{NOTE_START}; {ONE_AT_ONCE}; {SAME_N.format("ONE")}"\n'
)


def together_after(chance: Random, kills: int, machine: Machine) -> None:
    killed = KilledDaemon(machine)
    killed.describe(TOGETHER)
    for _ in range(kills):
        daemon = machine.start(quiet=True)
        time.sleep(chance.uniform(0.3, 2.5))  # at a random time on purpose
        daemon.kill()
        daemon.wait()
    killed.run_to_end()
    occurrences = killed.check()
    assert not (machine.directory / "exceeded").exists()
    failed = {one.reason for one in occurrences if one.state == "failed"}
    assert not failed, "a task or a job began before what it needs had ended, or a value was lost"
    verified = machine.chronex("verify")
    assert verified.returncode == 0, verified.stdout


@pytest.mark.torture
@pytest.mark.parametrize("part", range(10))
def test_groups_and_graphs_hold_over_daemons_killed_at_any_time(tmp_path: Path, part: int) -> None:
    names = [f"together, {part}, {number}" for number in range(4)]
    run_in_parallel(tmp_path, ((name, partial(together_after, drawn_for(name), 12)) for name in names))
