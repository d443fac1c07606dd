"""The status of a store on one screen: what runs, what comes, what failed, and the last outage."""

from __future__ import annotations

from shlex import quote
from typing import NamedTuple

from chronex.model.job import Job
from chronex.model.occurrence import Occurrence
from chronex.model.placement import describe_placement, fits_node
from chronex.model.reasons import Severity, TroubleCode
from chronex.model.records import HOOKS
from chronex.model.states import OccurrenceState
from chronex.storage import journal, keys
from chronex.storage.records import Reading
from chronex.text.durations import brief_duration
from chronex.timing.job_schedule import CUSTOM, schedule_of
from chronex.views.coming_runs import MOST_BARRED, next_instant
from chronex.views.group_rows import GroupRow, groups_of
from chronex.views.jobs import IsAlive, Row, Situation, Summary, lacking_functions, named, rows_of, summary_of
from chronex.views.nodes import WATCHED, NodeHealth, NodeRow, Watch, concern_words, nodes_of, watch_of
from chronex.views.troubles import (
    ChannelRow,
    Trouble,
    channel_rows,
    no_scheduler,
    of_channels,
    of_nodes,
    start_command,
)
from chronex.views.why.evidence import Outage, last_sign, outage_ended_by

MOST_LISTED = 10
_FALLEN_MS = 86_400_000
_MOST_EVENTS = 5_000
_MOST_JOBS = 2_000
_MOST_OCCURRENCES = 200
_NOT_RUN = (OccurrenceState.SKIPPED, OccurrenceState.MISSED, OccurrenceState.CANCELED)


class OutageCard(NamedTuple):
    """The last outage, and how many of its instants were run or skipped; with `is_more` there are more than these."""

    outage: Outage
    occurrences: int
    run: int
    skipped: int
    is_more: bool = False


class StoreStatus(NamedTuple):
    summary: Summary
    running: tuple[Row, ...]
    running_removed: tuple[Occurrence, ...]  # of jobs that are gone; what runs keeps its slot and its timeouts
    upcoming: tuple[Row, ...]
    failing: tuple[Row, ...]
    with_errors: tuple[Row, ...]
    retrying: tuple[Row, ...]
    late: tuple[Job, ...]
    notices: int
    card: OutageCard | None
    # Jobs whose functions no living scheduler has, with those functions; empty where no scheduler lives.
    unserved: tuple[tuple[Job, tuple[str, ...]], ...] = ()
    unplaced: tuple[Job, ...] = ()  # jobs that may run on none of the nodes that live
    nodes: tuple[NodeRow, ...] = ()  # that live
    fallen: tuple[NodeRow, ...] = ()  # that were given up within the last day, whether or not they came back
    hooks: int = 0  # that are being called, or wait for another try
    with_calendars: tuple[Job, ...] = ()  # enabled jobs whose instants depend on calendars
    groups: tuple[GroupRow, ...] = ()
    is_full: bool = False  # a scheduler found no free space and has claimed nothing since
    channels: tuple[ChannelRow, ...] = ()
    watch: Watch = WATCHED
    start: str = "chronex run"  # what starts a daemon where none runs
    never: tuple[
        Row, ...
    ] = ()  # enabled jobs that have never run and never will, or of which nothing starts for long

    def troubles(self, now_ms: int) -> list[Trouble]:
        """All that the records tell; a full disk, files and calendar data are the reader's own to look at."""
        found = [no_scheduler(self.start)] if self.summary.daemon is None and self.summary.jobs else []
        found += self._of_silent()
        found += [_error(TroubleCode.NODE_SILENT, words) for words in self._of_nodes()]
        found += of_nodes(row.node for row in self.nodes)
        found += of_channels(self.channels, now_ms)
        found += self._of_jobs(now_ms)
        if self.summary.dead_letters:
            words = f"{self.summary.dead_letters} in the dead-letter queue"
            found.append(_error(TroubleCode.DEAD_LETTERS, words, "chronex dlq list"))
        return found

    def attention(self, now_ms: int = 0) -> list[str]:
        """One sentence for each problem that needs a person; empty when there is none."""
        return [one.sentence for one in self.troubles(now_ms)]

    def _of_silent(self) -> list[Trouble]:
        found = []
        for one in self.nodes:
            if one.state is NodeHealth.SILENT and one.running:
                beat = f"has given no heartbeat for {brief_duration(one.silent_ms)} and runs {one.running}"
                words = f"{one.node.id} (pid {one.node.process.pid}) {beat}"
                found.append(_error(TroubleCode.NODE_SILENT, words, "it hangs, or was stopped by a signal"))
        return found

    def _of_jobs(self, now_ms: int) -> list[Trouble]:
        found = []
        for row in self.failing:
            name, often = row.job.shown_name, row.job.progress.counters.failures_in_a_row
            times = f" {often} times in a row" if often > 1 else ""
            found.append(
                _error(TroubleCode.JOB_FAILING, f"{name} failed{times}", f"chronex why {quote(name)}", row.job.id)
            )
        for job, functions in self.unserved:
            words = (
                f"{job.shown_name} waits: no scheduler has {named(functions)}; start the program that registers it"
            )
            found.append(_error(TroubleCode.NO_FUNCTION, words, job=job.id))
        for job in self.unplaced:
            words = f"{job.shown_name} waits: it may run on {describe_placement(job)}, and no such node works here"
            found.append(_error(TroubleCode.NO_NODE, words, job=job.id))
        found += [_error(TroubleCode.JOB_LATE, f"{job.shown_name} is late", job=job.id) for job in self.late]
        for row in self.never:
            words, hint = _words_of_never(row, now_ms), f"chronex show {quote(row.job.shown_name)}"
            found.append(Trouble(Severity.WARNING, TroubleCode.JOB_NEVER_RUNS, words, hint, row.job.id))
        return found

    def _of_nodes(self) -> list[str]:
        """Clocks, versions and machines of a shared store that somebody has to look after."""
        found = [f"{row.name} {concern_words(row, one)}" for row in self.nodes for one in row.needs_person]
        back = {row.node.host_id for row in self.nodes}
        for row in self.fallen:
            if row.node.forgotten_ms is None and row.node.host_id not in back:
                advice = f"start it again, or: chronex nodes forget {quote(row.name)}"
                found.append(f"{row.name} gave no sign of life and was given up; {advice}")
        return found


def store_status(reading: Reading, now_ms: int, is_alive: IsAlive, boot_id: str = "") -> StoreStatus:
    rows = rows_of(reading, now_ms)
    coming = sorted((row for row in rows if row.is_active), key=lambda row: row.next.due_ms if row.next else 0)
    summary = summary_of(reading, rows, is_alive, now_ms)
    listed = nodes_of(reading, now_ms, is_alive)
    kinds = [keys.notice_kind(key) for key, _ in reading.tx.scan(keys.NOTICE)]
    return StoreStatus(
        summary=summary,
        running=tuple(row for row in rows if row.is_running),
        running_removed=tuple(one for one in reading.active() if reading.job(one.job) is None),
        upcoming=tuple(coming[:MOST_LISTED]),
        failing=tuple(row for row in rows if row.job.progress.counters.failures_in_a_row and row.job.enabled),
        with_errors=tuple(row for row in rows if row.last is not None and row.last.errors and row.job.enabled),
        retrying=tuple(row for row in rows if row.situation is Situation.RETRYING),
        late=tuple(row.job for row in rows if row.job.progress.late_ms is not None and row.job.enabled),
        notices=sum(kind not in HOOKS for kind in kinds),
        hooks=sum(kind in HOOKS for kind in kinds),
        nodes=tuple(row for row in listed if row.is_alive),
        fallen=tuple(row for row in listed if now_ms - (row.node.lost_ms or 0) < _FALLEN_MS),
        card=last_outage_card(reading, [row.job.id for row in rows]),
        unserved=_unserved(rows, summary),
        unplaced=_unplaced(rows, summary),
        with_calendars=tuple(row.job for row in rows if row.job.calendars is not None and row.job.enabled),
        groups=tuple(groups_of(reading, now_ms)),
        is_full=_is_full(reading),
        channels=tuple(channel_rows(reading)),
        watch=watch_of(reading, now_ms, is_alive, boot_id),
        start="chronex run" if summary.daemon is not None else start_command(reading),
        never=tuple(row for row in rows if _never_runs(row)),
    )


def _never_runs(row: Row) -> bool:
    """A schedule without a time. A job that follows others has none of its own. One that has run is done, unless its
    schedule was edited since to one that no time ever matches."""
    job = row.job
    if row.not_before_ms is not None:
        return not row.is_paused
    if not job.enabled or row.is_paused or row.next is not None or row.situation is not Situation.DONE:
        return False
    if not job.progress.counters.fired:
        return bool(job.schedule)
    is_plain = bool(job.schedule) and job.dialect != CUSTOM and job.calendars is None
    return is_plain and schedule_of(job).next(0) is None


def _words_of_never(row: Row, now_ms: int) -> str:
    name = row.job.shown_name
    if row.not_before_ms is not None:
        return f"{name} does not run: none of its next {MOST_BARRED} times can start"
    if next_instant(row.job, now_ms) is not None:
        return f"{name} never runs: none of its times can start"
    why = "its calendars leave no time of its schedule" if row.job.calendars else "no time matches its schedule"
    return f"{name} never runs: {why}"


def _error(code: TroubleCode, words: str, hint: str = "", job: str = "") -> Trouble:
    return Trouble(Severity.ERROR, code, words, hint, job)


def _unserved(rows: list[Row], summary: Summary) -> tuple[tuple[Job, tuple[str, ...]], ...]:
    living = [listed.node for listed in summary.nodes if listed.is_alive]
    if not living:
        return ()
    found = ((row.job, lacking_functions(row.job, living)) for row in rows if row.job.enabled)
    return tuple((job, lacking) for job, lacking in found if lacking)


def _unplaced(rows: list[Row], summary: Summary) -> tuple[Job, ...]:
    living = [listed.node for listed in summary.nodes if listed.is_alive]
    chosen = (row.job for row in rows if row.job.enabled and (row.job.nodes or row.job.node_labels))
    return tuple(job for job in chosen if living and not any(fits_node(job, node) for node in living))


def _is_full(reading: Reading) -> bool:
    """A decision that needs more room than is left fails again and again, also where the store is not quite full."""
    for _, event in journal.backward(reading.tx, None, _MOST_EVENTS):
        if event.name == "StoreRoomLow" and "so" in event.data:
            return True
        if event.name in ("StoreRoomBack", "SchedulerStarted"):
            return False
    return False


def last_outage_card(reading: Reading, jobs: list[str]) -> OutageCard | None:
    """The newest outage that any instant fell into; an outage without an instant is not shown."""
    for _, event in journal.backward(reading.tx, None, _MOST_EVENTS):
        outage = outage_ended_by(event)
        if event.name == "SchedulerStarted":
            node = reading.node(event.data.get("node", ""))
            began = event.at_ms if node is None else node.started_ms
            outage = Outage("down", last_sign(reading, began), began)
        if outage is not None and outage.from_ms is not None and (card := _card(reading, outage, jobs)) is not None:
            return card
    return None


def _card(reading: Reading, outage: Outage, jobs: list[str]) -> OutageCard | None:
    found = [o for job in jobs[:_MOST_JOBS] for o in _within(reading, job, outage)]
    if not found:
        return None
    skipped = sum(1 for o in found if o.state in _NOT_RUN)
    older = [o.older for o in found if o.older is not None]
    unlisted = sum(span.count for span in older)
    is_more = any(span.is_more for span in older) or len(found) >= _MOST_OCCURRENCES or len(jobs) > _MOST_JOBS
    return OutageCard(outage, len(found) + unlisted, len(found) - skipped, skipped + unlisted, is_more)


def _within(reading: Reading, job: str, outage: Outage) -> list[Occurrence]:
    """What was due in the outage and decided after it."""
    listed = reading.occurrences(job, outage.until_ms, _MOST_OCCURRENCES)
    begun = outage.from_ms or 0
    return [o for o in listed if o.nominal_ms >= begun and o.recovery and o.created_ms >= (outage.until_ms or 0)]
