"""What all monitors of one trace share: who is active, what is known of each job, and the record of each property."""

from __future__ import annotations

from collections.abc import Iterator

from chronex.verify.lags import Lags
from chronex.verify.nodes import Nodes
from chronex.verify.runs import JobTrace, OccurrenceTrace, RunTrace
from chronex.verify.verdicts import TITLES, Docket, Line


class World:
    """`is_complete` says that the trace begins where the journal began: then what was not seen did not happen; else
    it may have happened before. What happened before `since_ms` is followed and not reported."""

    def __init__(self, *, is_complete: bool, since_ms: int | None = None) -> None:
        self.is_complete, self.since_ms = is_complete, since_ms
        self.dockets = {name: Docket(name, title, since_ms=since_ms) for name, title in TITLES.items()}
        self.nodes = Nodes(self.dockets)
        self.jobs: dict[str, JobTrace] = {}
        self.start_lag = Lags("P1", "from due to start")
        self.restart_lag = Lags("P2", "from initialization to restart after a crash")

    def forget(self) -> None:
        """Events are missing: what was in flight may have gone anywhere. Nothing before counts any more."""
        self.is_complete = False
        self.jobs.clear()
        self.nodes.forget()

    def job(self, name: str) -> JobTrace:
        found = self.jobs.get(name)
        if found is None:
            found = self.jobs[name] = JobTrace()
        return found

    def run(self, line: Line) -> RunTrace | None:
        event = line[1]
        job = self.jobs.get(event.job)
        occurrence = job.open.get(event.nominal_ms or 0) if job is not None else None
        return occurrence.runs.get(event.task) if occurrence is not None else None

    def open_runs(self, node: str) -> Iterator[tuple[OccurrenceTrace, RunTrace]]:
        """What that scheduler has in flight."""
        for job in self.jobs.values():
            for occurrence in job.open.values():
                for run in occurrence.runs.values():
                    if run.is_open and run.node == node:
                        yield occurrence, run

    def is_reported(self, line: Line) -> bool:
        return self.since_ms is None or line[1].at_ms >= self.since_ms
