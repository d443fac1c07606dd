"""`@start`: one occurrence of each such job for every boot of the machine, asked for by its first daemon.

The mark on the job and the occurrence are one transaction, so that a daemon which is killed in between, and the next
one, ask once together. A job that is applied while a daemon has been at work since the boot waits for the next boot.
"""

from __future__ import annotations

from random import Random

from msgspec.structs import replace

from chronex.engine.commands.actor import Actor, record_command
from chronex.engine.commands.trigger import enter, manual_occurrence
from chronex.expr.meaning import AtStart
from chronex.model.job import Job
from chronex.model.occurrence import Occurrence, ProcessIdentity
from chronex.model.placement import fits_node
from chronex.model.records import Node
from chronex.storage.records import Reading, Records
from chronex.timing import read
from chronex.timing.job_schedule import options_of

_ALL_JOBS = 1_000_000
_WORD = "@start"


def runs_at_start(job: Job) -> bool:
    if _WORD not in job.schedule.lower() or job.dialect != "chronex":
        return False
    meanings = (read(text).meaning for text in job.schedules)
    return any(meaning is not None and isinstance(meaning.body, AtStart) for meaning in meanings)


def is_first_of_boot(reading: Reading, host_id: str, process: ProcessIdentity) -> bool:
    """Whether no scheduler of this machine has begun since it was started."""
    nodes = reading.nodes()
    return not any(node.host_id == host_id and node.process.boot_id == process.boot_id for node in nodes)


def _delayed(wanted: Occurrence, job: Job, boot: str) -> Occurrence:
    """Later by the jitter of the job, drawn by the boot, so that a transaction which runs again draws the same."""
    most = options_of(job).jitter or 0
    jitter_ms = Random(f"{boot}:{job.id}").randrange(most) if most else 0  # noqa: S311  spreading load
    return replace(wanted, due_ms=wanted.due_ms + jitter_ms, jitter_ms=jitter_ms)


def start_jobs_of_boot(records: Records, node: Node) -> list[str]:
    """Ask for a run of each `@start` job, and mark it as answered for this boot. The names of those that run."""
    if not is_first_of_boot(records, node.host_id, node.process):
        return []
    actor, boot = Actor("boot", "run", node.host), node.process.boot_id
    asked: list[str] = []
    for job in records.jobs(limit=_ALL_JOBS):
        if not runs_at_start(job) or job.progress.boots.get(node.host_id) == boot:
            continue
        records.put(replace(job.progress, boots={**job.progress.boots, node.host_id: boot}))
        if not job.enabled or job.progress.is_paused_at(records.now_ms) or not fits_node(job, node):
            continue
        wanted = _delayed(manual_occurrence(records, job, actor), job, boot)
        record_command(records, "JobTriggered", actor, job.id, wanted.nominal_ms, data={"boot": boot})
        enter(records, job, wanted)
        asked.append(job.id)
    return asked
