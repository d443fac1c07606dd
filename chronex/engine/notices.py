"""Notices, which wait in the store until they are taken: those for the job's `notify` command and for its channels
(it fails again and again, has recovered, is late, is on time again, or has errors), and those for its hooks.

A notice is written in the transaction that finds it out, so it survives any crash; the daemon hands it over and only
then removes it, and tries again after a pause where that failed. The counters and `late_ms` of the job say which
notices were written already. The lifecycle writes those that follow from a start or an end; what is late is found
here, by the time. A hook is called at once by the node that ordered it; where that node is gone, by another one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from chronex.engine.execution_report import report_of
from chronex.engine.orders import RunHook
from chronex.engine.outbox import enqueue
from chronex.engine.plan import Planned, is_missed
from chronex.engine.usual import slow_run
from chronex.errors import CustomScheduleError
from chronex.model.channels import Channel, ChannelKind, NoticeEvent
from chronex.model.event import Event
from chronex.model.job import Call, Job, Work
from chronex.model.occurrence import Occurrence, occurrence_id
from chronex.model.policies import NotifyPolicy
from chronex.model.reasons import NO_REASON, Reason, ReasonCode, free_text
from chronex.model.records import Notice
from chronex.model.states import OccurrenceState
from chronex.storage import keys
from chronex.storage.journal import append
from chronex.storage.keys import key_of
from chronex.storage.ports import Transaction, UpdateFn
from chronex.storage.records import Reading, Records
from chronex.text.durations import brief_duration
from chronex.timing.job_schedule import schedule_of

FAILING, RECOVERED, LATE, ON_TIME, SLOW = "failing", "recovered", "late", "on_time", "slow"
WITH_ERRORS, SUCCESS, LONG, MISSED, OUTPUT = "completed_with_errors", "success", "long", "missed", "output"
# What checks alone are told: every start, and every end that is no success.
STARTED, FAILED = "started", "failed"
EVENT_OF = {
    FAILING: NoticeEvent.FAILED,
    RECOVERED: NoticeEvent.RECOVERED,
    ON_TIME: NoticeEvent.RECOVERED,
    LATE: NoticeEvent.LATE,
    SLOW: NoticeEvent.SLOW,
    LONG: NoticeEvent.LONG,
    MISSED: NoticeEvent.MISSED,
    WITH_ERRORS: NoticeEvent.ERRORS,
    SUCCESS: NoticeEvent.SUCCESS,
    OUTPUT: NoticeEvent.OUTPUT,
}
_OF_CHECKS = (STARTED, SUCCESS, FAILED)
_ENDED_BADLY = (OccurrenceState.FAILED, OccurrenceState.FAILED_STALE)
# A command that is broken for ever takes no notice; so many of them wait at most, so that they do not fill the store.
MOST_WAITING = 1_000
# Hooks come with every run, so they never take the whole of it. One more is called once and not kept.
MOST_HOOKS = 500
# After these pauses it is tried again; then it is given up and the journal says so.
PAUSES_MS = (10_000, 60_000, 300_000, 1_800_000)
# What fails when it is as old as this is not tried again, however few the tries were.
LONGEST_KEPT_MS = 86_400_000
# A node that calls a hook has this long to say how that ended; a hook has half a minute.
HANDED_OUT_MS = 120_000
_CALLED_AT_ONCE = 10
_FURTHEST_BACK = 1_000


def overdue(reading: Reading, job: Job, now_ms: int) -> int | None:
    """The latest instant whose work should be done by now and is not: neither it nor a later one has completed.

    A pause, a downtime and a skipped run make a job late like anything else, because the work is not done.
    A job that is disabled is never late, and no version is late for an instant before it was applied.
    """
    if job.expect_within_ms is None or not job.enabled or job.progress.late_ms is not None:
        return None
    try:
        expected = schedule_of(job).previous(now_ms - job.expect_within_ms + 1)
    except CustomScheduleError:
        return None
    if expected is None or expected <= job.updated_ms:
        return None
    for occurrence in reading.occurrences(job.id, limit=_FURTHEST_BACK):
        if occurrence.nominal_ms < expected:
            break
        if occurrence.state is OccurrenceState.COMPLETED:
            return None
    return expected


def note_late(records: Records, job_id: str) -> bool:
    """Record that the job is late, if it still is. True where it was recorded."""
    job = records.job(job_id)
    expected = overdue(records, job, records.now_ms) if job is not None else None
    if job is None or expected is None:
        return False
    records.put(replace(job.progress, late_ms=expected))
    event = Event(name="JobLate", at_ms=records.now_ms, job=job.id, nominal_ms=expected)
    append(records.tx, event)
    add_notices(records, job, LATE, expected, Reason(ReasonCode.LATE), job.progress.counters.failures_in_a_row)
    return True


def note_slow(records: Records, job_id: str) -> bool:
    """Record that a run of the job is slow, if one is that was not told yet. True where it was recorded."""
    job = records.job(job_id)
    found = slow_run(records, job, records.now_ms) if job is not None else None
    if job is None or found is None:
        return False
    nominal_ms = found.occurrence.nominal_ms
    records.put(replace(job.progress, slow_ms=nominal_ms))
    usual = f"{brief_duration(found.usual.median)}, 19 of 20 within {brief_duration(found.usual.p95)}"
    reason = Reason(ReasonCode.SLOW, f"{brief_duration(found.running_ms)} so far; usual is {usual}")
    data = {"running_ms": found.running_ms, "median_ms": found.usual.median, "p95_ms": found.usual.p95}
    event = Event(
        name="JobSlow", at_ms=records.now_ms, job=job.id, nominal_ms=nominal_ms, reason=reason, data=dict(data)
    )
    append(records.tx, event)
    add_notices(records, job, SLOW, nominal_ms, reason, job.progress.counters.failures_in_a_row)
    return True


def long_run(reading: Reading, job: Job, now_ms: int) -> Occurrence | None:
    """The run that takes longer than `long_after` and was not told yet."""
    limit_ms = None if job.notify is None else job.notify.long_after_ms
    if limit_ms is None:
        return None
    noted_ms = job.progress.long_ms
    for one in reading.active(job.id):
        if (
            one.started_ms is not None
            and now_ms - one.started_ms > limit_ms
            and (noted_ms is None or one.nominal_ms > noted_ms)
        ):
            return one
    return None


def note_long(records: Records, job_id: str) -> bool:
    """Record that a run of the job takes long, if one does that was not told yet. True where it was recorded."""
    job = records.job(job_id)
    found = long_run(records, job, records.now_ms) if job is not None else None
    if job is None or found is None or job.notify is None:
        return False
    records.put(replace(job.progress, long_ms=found.nominal_ms))
    running_ms = records.now_ms - (found.started_ms or records.now_ms)
    asked = brief_duration(job.notify.long_after_ms or 0)
    reason = Reason(ReasonCode.LONG, f"{brief_duration(running_ms)} so far; long_after is {asked}")
    data = {"running_ms": running_ms}
    append(
        records.tx,
        Event(
            name="JobLong", at_ms=records.now_ms, job=job.id, nominal_ms=found.nominal_ms, reason=reason, data=data
        ),
    )
    add_notices(records, job, LONG, found.nominal_ms, reason, job.progress.counters.failures_in_a_row)
    return True


# -- what follows from a start or an end --------------------------------------------------------------------------


def note_start(records: Records, job: Job, started: Occurrence) -> None:
    add_notices(records, job, STARTED, started.nominal_ms, NO_REASON, job.progress.counters.failures_in_a_row)


def note_end(records: Records, job: Job, ended: Occurrence) -> None:
    """The notices of failures in a row, of the recovery from them, and of errors; `ended` is not counted yet."""
    if job.notify is None:
        return
    nominal_ms = ended.nominal_ms
    failures, limit = job.progress.counters.failures_in_a_row, job.notify.after_failures
    if ended.state is not OccurrenceState.COMPLETED:
        add_notices(records, job, FAILED, nominal_ms, ended.reason, failures)
    if ended.errors:
        add_notices(records, job, WITH_ERRORS, nominal_ms, ended.reason, 0)
    is_failing = ended.state in _ENDED_BADLY and failures + 1 == limit
    if _asks_for_output(job.notify) and _has_printed(records, ended):
        # One message for one end: that of a failure has the output too.
        add_notices(records, job, OUTPUT, nominal_ms, ended.reason, 0, unless=FAILING if is_failing else "")
    if is_failing:
        add_notices(records, job, FAILING, nominal_ms, ended.reason, failures + 1)
    elif ended.state is OccurrenceState.COMPLETED:
        if failures >= limit:
            add_notices(records, job, RECOVERED, nominal_ms, NO_REASON, failures)
        add_notices(records, job, SUCCESS, nominal_ms, ended.reason, 0)


def _asks_for_output(notify: NotifyPolicy) -> bool:
    return any(NoticeEvent.OUTPUT in events for events in (notify.events, *(one.on or () for one in notify.channels)))


def _has_printed(reading: Reading, ended: Occurrence) -> bool:
    return any(attempt.log_bytes for attempt in reading.attempts(ended.job, ended.nominal_ms))


def note_on_time(records: Records, job: Job, ended: Occurrence) -> None:
    """A job that was late is on time again when the late occurrence, or a later one, completes."""
    late_ms = job.progress.late_ms
    if late_ms is None or ended.state is not OccurrenceState.COMPLETED or ended.nominal_ms < late_ms:
        return
    records.put(replace(job.progress, late_ms=None))
    add_notices(records, job, ON_TIME, ended.nominal_ms, NO_REASON, 0)


def note_missed(records: Records, job: Job, planned: Sequence[Planned]) -> None:
    """One notice for all instants at which nothing ran; none where a later run makes up for them."""
    missed = [(one.nominal_ms, way.reason) for one, way in planned if is_missed(way)]
    if missed and not any(way.runs for one, way in planned if one.recovery):
        add_notices(records, job, MISSED, *missed[-1], len(missed))


def add_notices(
    records: Records, job: Job, kind: str, nominal_ms: int, reason: Reason, failures: int, *, unless: str = ""
) -> None:
    """A notice for the job's command and one for each channel, as far as they are told of this.

    Whoever is told of the kind `unless` at the same time is not told of this one.
    """
    notify = job.notify
    if notify is None:
        return
    events = notify.events
    if notify.run is not None and EVENT_OF.get(kind) in events and EVENT_OF.get(unless) not in events:
        put_notice(records, job, kind, nominal_ms, reason, failures)
    notice = Notice(
        job=job.id, kind=kind, at_ms=records.now_ms, nominal_ms=nominal_ms, reason=reason, failures=failures
    )
    for channel in notify.channels:
        if _wants(channel, notify, kind) and not (unless and _wants(channel, notify, unless)):
            enqueue(records, replace(notice, channel=channel.name))


def _wants(channel: Channel, notify: NotifyPolicy, kind: str) -> bool:
    if channel.kind is ChannelKind.HEALTHCHECKS:
        return kind in _OF_CHECKS
    return EVENT_OF.get(kind) in (notify.events if channel.on is None else channel.on)


def waiting(reading: Reading, now_ms: int, limit: int) -> list[Notice]:
    """Notices for `notify` whose next try is due."""
    return [notice for notice in _waiting(reading) if not notice.is_hook and _is_due(notice, now_ms)][:limit]


def claim(records: Records, node: str, limit: int) -> list[Notice]:
    """The notices whose next try is due, from now on this node's: no other sends them before that try is over."""
    taken: list[Notice] = []
    for notice in waiting(records, records.now_ms, limit):
        ours = replace(notice, owner=node, next_ms=records.now_ms + HANDED_OUT_MS)
        records.put(ours)
        taken.append(ours)
    return taken


def _waiting(reading: Reading) -> list[Notice]:
    return reading.scan(keys.NOTICE, Notice, None, MOST_WAITING)


def _is_due(notice: Notice, now_ms: int) -> bool:
    """Also one that waits longer than any pause: the clock was set back since."""
    return notice.next_ms <= now_ms or notice.next_ms > now_ms + PAUSES_MS[-1]


def put_notice(records: Records, job: Job, kind: str, nominal_ms: int, reason: Reason, failures: int) -> None:
    """Write the notice, unless too many wait already."""
    if records.count_notices(MOST_WAITING) >= MOST_WAITING:
        return
    at_ms = records.now_ms
    records.put(Notice(job=job.id, kind=kind, at_ms=at_ms, nominal_ms=nominal_ms, reason=reason, failures=failures))


def after_try(notice: Notice, problem: str, now_ms: int) -> UpdateFn[None]:
    """An update that records how a try ended. Taken: gone. Not taken: later again, or never, as the journal tells."""

    def write(tx: Transaction) -> None:
        records = Records(tx, now_ms)
        found = records.get(key_of(notice), Notice)
        if found is None or (problem and found.owner != notice.owner):
            return  # it has been taken since, or another node tries now
        again = bool(problem) and notice.tries < len(PAUSES_MS) and now_ms - notice.at_ms < LONGEST_KEPT_MS
        if again:
            pause_ms = PAUSES_MS[notice.tries]
            records.put(replace(notice, tries=notice.tries + 1, next_ms=now_ms + pause_ms, owner=""))
        else:
            records.delete(key_of(notice))
        if notice.is_hook:
            if problem:
                append(tx, hook_failed(notice, problem, now_ms, is_given_up=not again))
        elif not again:
            name = "NotificationFailed" if problem else "NotificationSent"
            data = {"kind": notice.kind, "tries": notice.tries + 1}
            append(tx, Event(name=name, at_ms=now_ms, job=notice.job, nominal_ms=notice.nominal_ms,
                             reason=free_text(problem), data=data))  # fmt: skip

    return write


# -- hooks --------------------------------------------------------------------------------------------------------


def order_hook(records: Records, job: Job, occurrence: Occurrence, work: Work, hook: str, node: str) -> RunHook:
    """The order to call that hook, with a notice that outlives this node."""
    notice = Notice(
        job=occurrence.job,
        kind=hook,
        at_ms=records.now_ms,
        nominal_ms=occurrence.nominal_ms,
        next_ms=records.now_ms + HANDED_OUT_MS,
        owner=node,
    )
    is_kept = records.count_notices(MOST_HOOKS) < MOST_HOOKS
    if is_kept:
        records.put(notice)
    return _order(records, job, occurrence, work, notice)._replace(notice=notice if is_kept else None)


def _order(reading: Reading, job: Job, occurrence: Occurrence, work: Work, notice: Notice) -> RunHook:
    delivery = f"{occurrence.id}/{notice.kind}"
    report = replace(report_of(reading, job, occurrence), hook=notice.kind, delivery=delivery, call=notice.tries + 1)
    return RunHook(job, occurrence, work, report, notice)


def _work_of(job: Job | None, hook: str) -> Work | None:
    if job is None:
        return None
    return job.on_start if hook == "on_start" else job.on_complete


def hooks_waiting(reading: Reading, node: str, now_ms: int) -> tuple[bool, bool]:
    """Whether `hooks_left` would find one, read without a write; and whether there is any notice, of any kind."""
    waiting = _waiting(reading)
    return any(_is_left(reading, notice, node, now_ms) for notice in waiting), bool(waiting)


def _is_left(reading: Reading, notice: Notice, node: str, now_ms: int) -> bool:
    if not notice.is_hook:
        return False
    if notice.owner in ("", node) or _is_due(notice, now_ms):
        return _is_due(notice, now_ms)
    owner = reading.node(notice.owner)
    return owner is None or owner.stopped_ms is not None


def hooks_left(records: Records, node: str, can_call: Callable[[str], bool]) -> list[RunHook]:
    """Orders for hooks whose node is gone, and for those whose next try is due; they are this node's from now on.

    Those of starts come first and all at once, because tasks wait for them; of the others a few. A hook whose
    function this node has not is left to one that has it, until it is too old.
    """
    left = [notice for notice in _waiting(records) if _is_left(records, notice, node, records.now_ms)]
    left.sort(key=lambda notice: (notice.kind != "on_start", notice.at_ms))
    orders: list[RunHook] = []
    for notice in left:
        if notice.kind != "on_start" and len(orders) >= _CALLED_AT_ONCE:
            break
        occurrence = records.occurrence(notice.job, notice.nominal_ms or 0)
        job = None if occurrence is None else records.version_run(occurrence)
        work = _work_of(job, notice.kind)
        if occurrence is None or job is None or work is None:
            _give_up(records, notice, "its occurrence, or the version that it ran, is kept no longer")
        elif isinstance(work, Call) and not can_call(work.target):
            if records.now_ms - notice.at_ms >= LONGEST_KEPT_MS:
                _give_up(records, notice, f"no scheduler has the function {work.target!r}")
        else:
            ours = replace(notice, owner=node, next_ms=records.now_ms + HANDED_OUT_MS)
            records.put(ours)
            orders.append(_order(records, job, occurrence, work, ours))
    return orders


def _give_up(records: Records, notice: Notice, problem: str) -> None:
    records.delete(key_of(notice))
    append(records.tx, hook_failed(notice, problem, records.now_ms, is_given_up=True))


def hook_failed(notice: Notice, problem: str, now_ms: int, *, is_given_up: bool) -> Event:
    nominal_ms = notice.nominal_ms or 0
    return Event(
        name="HookFailed",
        at_ms=now_ms,
        job=notice.job,
        nominal_ms=nominal_ms,
        reason=free_text(problem),
        data={
            "hook": notice.kind,
            "occurrence": occurrence_id(notice.job, nominal_ms),
            "try": notice.tries + 1,
            "given_up": is_given_up,
        },
    )
