"""A simulated machine with drawn jobs, on a store that fails on purpose and watches every commit."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from chronex.engine.update import apply_jobs
from chronex.engine.update.sources import JobSource
from chronex.model.groups import GroupSettings
from chronex.storage.ports import Transaction
from chronex.storage.records import Records
from chronex.testing import HOUR, MINUTE, SECOND, FakeClock, SimulatedMachine
from chronex_store.fault_injection import FaultyStore, PlannedFault
from tests.engine.simulator.faults import KILL_POINTS, MachineFault, PlannedMachineFault
from tests.engine.simulator.group_rules import WatchedLines
from tests.engine.simulator.observed_store import ObservedStore
from tests.engine.simulator.workload import DrawnJob, DrawnOutcomes


class FaultyMachine(SimulatedMachine):
    """`rows` is the store below the injected faults, for the checker and for what must not fail."""

    def __init__(
        self, random: Random, drawn: list[DrawnJob], start: int, slots: int, store_faults: Iterable[PlannedFault],
        groups: Iterable[GroupSettings] = (),
    ) -> None:  # fmt: skip
        self.random = random
        self.drawn = drawn
        clock = FakeClock(start)
        self.rows = ObservedStore(clock)
        outcomes = DrawnOutcomes(random)
        jitter = Random(random.randrange(1 << 30))
        self.groups = tuple(groups)
        self.lines = WatchedLines(self.rows)
        source = JobSource("", groups=self.groups)
        apply_jobs(self.rows, [each.job for each in drawn], start, owns=source)
        super().__init__(
            start=start,
            slots=slots,
            seed=jitter,
            outcome=outcomes.run,
            stop_time=outcomes.stop_time,
            clock=clock,
            store=FaultyStore(self.rows, store_faults),
        )

    def restart_after_kill(self) -> None:
        downtime = self.random.choice((SECOND, MINUTE, HOUR))
        chance = self.random.random()
        self.go_down(downtime, orphans_survive=chance < 0.6, keeper_survives=chance < 0.3)

    def inject(self, planned: PlannedMachineFault) -> None:
        match planned.fault:
            case MachineFault.KILL:
                orphans, keeper = planned.chance < 0.6, planned.chance < 0.3
                self.go_down(planned.length, orphans_survive=orphans, keeper_survives=keeper)
            case MachineFault.SLEEP:
                self.sleep(planned.length)
            case MachineFault.STEP:
                self.set_clock(planned.length)
            case MachineFault.PAUSE:
                name = self.drawn[int(planned.chance * len(self.drawn))].job.id
                self._pause(name, by="operator")
                self.run_for(planned.length)
                self._pause(name, by="")
            case fault:
                self.kill_at(KILL_POINTS[fault])

    def _pause(self, name: str, by: str) -> None:
        def write(tx: Transaction) -> None:
            records = Records(tx, self.now)
            job = records.job(name)
            assert job is not None
            records.put(job.progressed(paused=bool(by), paused_by=by))

        self.rows.update(write)
