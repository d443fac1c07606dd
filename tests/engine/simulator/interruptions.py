"""Minutes of per-second jobs in which people and kills come between: `interrupted(seed)`.

The scheduler is stopped for seconds and goes on, is killed anywhere, and is started again, while jobs are edited, paused,
resumed, and their occurrences canceled.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from msgspec.structs import replace

from chronex.engine.commands import cancel, pause, resume
from chronex.engine.update import Policy, apply_jobs
from chronex.errors import NotPossibleError
from chronex.model.job import Job, Task
from chronex.model.policies import OverlapPolicy, RecoveryPolicy, RecoveryStrategy, RetryPolicy
from chronex.storage.ports import Transaction
from chronex.storage.records import Records
from chronex.testing import MINUTE, SECOND, KillPoint
from tests.engine.simulator.expected_schedule import Cron
from tests.engine.simulator.faulty_machine import FaultyMachine
from tests.engine.simulator.workload import NEW_YEAR, DrawnJob
from tests.kit.machine import ANN

LENGTH = 3 * MINUTE


class InterruptedMachine(FaultyMachine):
    """A machine with per-second jobs; `act` does the next thing to it."""

    def __init__(self, seed: int) -> None:
        random = Random(seed)
        self.edits = 0
        super().__init__(random, _jobs(random), NEW_YEAR, random.choice((1, 2, 50)), store_faults=())
        self.acts: tuple[Callable[[], None], ...] = (
            self._stop_and_go_on,
            self._kill,
            self._kill_somewhere,
            self._edit,
            self._pause_or_resume,
            self._cancel_one,
        )

    def restart_after_kill(self) -> None:
        self._kill()

    def act(self) -> None:
        self.random.choice(self.acts)()

    def _stop_and_go_on(self) -> None:
        """SIGSTOP, and SIGCONT: its processes go on meanwhile."""
        self.clock.advance(self.random.randrange(200, 20_000))

    def _kill(self) -> None:
        self.go_down(self.random.randrange(100, 6_000), orphans_survive=self.random.random() < 0.5)

    def _kill_somewhere(self) -> None:
        self.kill_at(self.random.choice(list(KillPoint)))

    def _edit(self) -> None:
        """What a job does changes, not when it is due; every other time nothing changes at all."""
        self.edits += 1
        jobs = [replace(job, description=str(self.edits // 2)) for job, _ in self.drawn]
        apply_jobs(self.rows, jobs, self.now, policy=self.random.choice(list(Policy)))

    def _pause_or_resume(self) -> None:
        name = self.random.choice(self.drawn).job.id

        def write(tx: Transaction) -> None:
            records = Records(tx, self.now)
            job = records.job(name)
            assert job is not None
            if job.progress.is_paused_at(self.now):
                resume(records, name, ANN)
            else:
                pause(records, name, ANN)

        self.rows.update(write)

    def _cancel_one(self) -> None:
        name = self.random.choice(self.drawn).job.id

        def write(tx: Transaction) -> None:
            records = Records(tx, self.now)
            for occurrence in (*records.active(name), *records.queued(name))[:1]:
                try:
                    cancel(records, occurrence, ANN)
                except NotPossibleError:
                    return

        self.rows.update(write)


def interrupted(seed: int) -> InterruptedMachine:
    """Acts at random moments, then a minute without any, in which every pause is over."""
    machine = InterruptedMachine(seed)
    while machine.clock.boot < NEW_YEAR + LENGTH:
        machine.run_for(machine.random.randrange(100, 8_000))
        machine.act()

    def resume_all(tx: Transaction) -> None:
        for job, _ in machine.drawn:
            resume(Records(tx, machine.now), job.id, ANN)

    machine.rows.update(resume_all)
    boots = -1
    while boots != machine.boots:
        boots = machine.boots
        machine.run_for(MINUTE)
    return machine


def _jobs(random: Random) -> list[DrawnJob]:
    """One that cancels what runs, beside another that may take its slot."""
    others = [policy for policy in OverlapPolicy if policy is not OverlapPolicy.CANCEL_RUNNING]
    policies = (OverlapPolicy.CANCEL_RUNNING, random.choice(others))
    return [_job(random, f"job-{number}", policy) for number, policy in enumerate(policies)]


def _job(random: Random, name: str, overlap: OverlapPolicy) -> DrawnJob:
    cron = Cron(random.choice(("* * * * * *", "*/2 * * * * *", "*/15 * * * * *")))
    strategies = [strategy for strategy in RecoveryStrategy if strategy is not RecoveryStrategy.BOUNDED]
    job = Job(
        id=name,
        schedule=cron.fields,
        tasks=tuple(Task(name=f"task-{number}", run=("true",)) for number in range(random.choice((1, 1, 2)))),
        overlap=overlap,
        recovery=RecoveryPolicy(random.choice(strategies)),
        retry=RetryPolicy(random.choice((0, 2)), SECOND),
    )
    return DrawnJob(job, cron)
