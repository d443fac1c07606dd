"""trigger and replay: occurrences that a person requests. They are due at once and obey the overlap policy."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from random import Random
from typing import Any, NamedTuple

from msgspec import to_builtins
from msgspec.structs import replace

from chronex.engine.admit import MOST_QUEUED, Verdict, admit
from chronex.engine.chains import free_instant
from chronex.engine.commands.actor import Actor, record_command
from chronex.engine.commands.names import job_named, occurrence_named
from chronex.engine.lifecycle import Lifecycle
from chronex.engine.retries import waiting_first
from chronex.engine.update.targets import make_targets
from chronex.errors import NotPossibleError
from chronex.model.event import Event
from chronex.model.job import Job
from chronex.model.job_parameters import Parameter, ParameterType, normal_text, problem_with
from chronex.model.occurrence import Occurrence, ProcessIdentity
from chronex.model.placement import fits_node
from chronex.model.policies import Overrides, RunOn
from chronex.model.reasons import NO_REASON, Reason, ReasonCode
from chronex.model.records import Idempotency, Node
from chronex.model.states import OccurrenceState, is_final
from chronex.storage.journal import append
from chronex.storage.records import Reading, Records
from chronex.text.suggestions import nearest
from chronex.timing.job_schedule import options_of, runs_at_start

DEFAULT_TTL_MS = 86_400_000
MOST_PARAMETERS = 100
_MOST_KEY = 512


class TriggerAnswer(StrEnum):
    """What the transaction that wrote the request made of it; a daemon starts what is pending."""

    PENDING = "pending"
    QUEUED = "queued"
    SKIPPED = "skipped"


class Triggered(NamedTuple):
    """The occurrence as it was written; `reason` says why it waits or is skipped."""

    occurrence: Occurrence
    answer: TriggerAnswer
    reason: Reason = NO_REASON


class Replayed(NamedTuple):
    """The new occurrence, and the one that it repeats."""

    occurrence: Occurrence
    answer: TriggerAnswer
    original: Occurrence
    reason: Reason = NO_REASON


class AsOf(StrEnum):
    """Replay with the version that the original ran, or with the present one."""

    THEN = "then"
    NOW = "now"


class TriggerRequest(NamedTuple):
    """What is given with a trigger: see `trigger`."""

    parameters: Mapping[str, str] | None = None
    idempotency_key: str = ""
    ttl_ms: int | None = None
    only: tuple[str, ...] = ()
    overrides: Overrides | None = None


def trigger(
    records: Records,
    job_id: str,
    actor: Actor,
    *,
    parameters: Mapping[str, str] | None = None,
    idempotency_key: str = "",
    ttl_ms: int | None = None,
    only: tuple[str, ...] = (),
    overrides: Overrides | None = None,
) -> Triggered:
    """Request one run of the job now: of the tasks in `only`, or of all, with policies of its own where given.

    A key that is still held makes the answer `skipped`, with its holder. Of a job that runs on each node each is
    asked, and the answer is that of the first; `trigger_all` gives all of them.
    """
    return trigger_all(records, job_id, actor, TriggerRequest(parameters, idempotency_key, ttl_ms, only, overrides))[
        0
    ]


def trigger_all(records: Records, job_id: str, actor: Actor, request: TriggerRequest) -> list[Triggered]:
    """The same, with an answer for each node where the job runs on each; each of them has a key of its own."""
    job = job_named(records, job_id)
    targets = records.targets(job.id) or _first_targets(records, job)
    if not targets:
        return [_trigger(records, job, actor, request)]
    key = request.idempotency_key
    own = {one.id: request._replace(idempotency_key=f"{key}:{one.target}" if key else "") for one in targets}
    return [_trigger(records, one, actor, own[one.id]) for one in targets]


def _first_targets(records: Records, job: Job) -> list[Job]:
    """It runs on each node and no instant of its schedule has come yet, by which its nodes would have jobs of it."""
    sharing = [node for node in records.nodes() if node.lease_ms]
    return make_targets(records, job, sharing) if job.run_on is RunOn.EACH and not job.target and sharing else []


def _trigger(records: Records, job: Job, actor: Actor, request: TriggerRequest) -> Triggered:
    wanted = replace(
        manual_occurrence(records, job, actor),
        parameters=_checked(job, request.parameters or {}),
        only=_known_tasks(job, request.only),
        overrides=request.overrides,
    )
    holder = _claim_key(records, wanted, request.idempotency_key, request.ttl_ms)
    data = _request_data(wanted, request.idempotency_key)
    record_command(records, "JobTriggered", actor, job.id, wanted.nominal_ms, data=data)
    if holder:
        return enter(records, job, wanted, Reason(ReasonCode.IDEMPOTENT, holder))
    return enter(records, job, wanted)


def _request_data(wanted: Occurrence, idempotency_key: str) -> dict[str, Any]:
    """What was asked for, for the journal; of parameters the names alone, because a value may be a secret."""
    data: dict[str, Any] = {"parameters": sorted(wanted.parameters)} if wanted.parameters else {}
    if wanted.only:
        data["only"] = list(wanted.only)
    if wanted.overrides is not None:
        data["overrides"] = to_builtins(wanted.overrides)
    if idempotency_key:
        data["idempotency_key"] = idempotency_key
    return data


def _known_tasks(job: Job, names: tuple[str, ...]) -> tuple[str, ...]:
    """The names, each once, in the order of the job. Raises NotPossibleError for one that the job does not have."""
    for name in names:
        if job.task(name) is None:
            listed = ", ".join(task.name for task in job.tasks)
            raise NotPossibleError(f"version {job.version} of {job.id} has no task {name!r}; it has {listed}")
    return tuple(task.name for task in job.tasks if task.name in names)


def replay(
    records: Records,
    occurrence_id: str | Occurrence,
    actor: Actor,
    reason: str,
    *,
    as_of: str = AsOf.THEN,
    only: tuple[str, ...] = (),
    with_children: bool = False,
) -> Replayed:
    """Run an occurrence again: a new one, at the scheduled time of the old, linked to it, with a key of its own.

    With `only`, these tasks of it; `with_children`, the jobs that follow it run again too, once it has completed.
    """
    original = occurrence_id if isinstance(occurrence_id, Occurrence) else occurrence_named(records, occurrence_id)
    original = records.occurrence(original.job, original.nominal_ms) or original
    if only:
        job = job_named(records, original.job)
        version = _version(records, job, original, AsOf(as_of))
        only = _known_tasks(records.job_version(job.id, version) or job, only)
    return repeat(records, original, actor, reason, as_of=as_of, only=only, with_children=with_children)


def repeat(
    records: Records,
    original: Occurrence,
    actor: Actor,
    reason: str,
    *,
    as_of: str = AsOf.THEN,
    only: tuple[str, ...] = (),
    with_children: bool = False,
) -> Replayed:
    """`replay` of the tasks named in `only`, or of all."""
    if not is_final(original.state):
        raise NotPossibleError(f"{original.id} is still {original.state}; cancel it, or wait for its end")
    job = job_named(records, original.job)
    if with_children and only:
        raise NotPossibleError("the jobs that follow start when all of it has completed; replay the whole of it")
    number = _version(records, job, original, AsOf(as_of))
    version = job if number == job.version else records.job_version(job.id, number) or job
    wanted = replace(
        manual_occurrence(records, job, actor),
        version=number,
        parameters=_checked(version, _known_only(version, original.parameters)),
        parents=original.parents,
        with_children=with_children,
        span_start_ms=original.span_start_ms,
        span_end_ms=original.span_end_ms,
        replay_of=original.id,
        stands_for_ms=original.scheduled_ms,
        repeats_ms=original.nominal_ms,
        only=only or original.only,
        overrides=original.overrides,
        asked_for=reason,
    )
    data: dict[str, Any] = {"replay_of": original.id, "version": wanted.version}
    if only:
        data["only"] = list(only)
    if with_children:
        data["with_children"] = True
    record_command(records, "OccurrenceReplayed", actor, job.id, wanted.nominal_ms, reason, data=data)
    entered = enter(records, job, wanted)
    return Replayed(entered.occurrence, entered.answer, original, entered.reason)


def _known_only(job: Job, parameters: Mapping[str, str]) -> Mapping[str, str]:
    """The defaults of then are a part of what was given; a required one that is new has its default too."""
    required = {name: one.default for name, one in job.parameters.items() if one.required and one.default is not None}
    return {**required, **parameters}


def _version(records: Records, job: Job, original: Occurrence, as_of: AsOf) -> int:
    if as_of is AsOf.NOW or original.version == job.version:
        return job.version
    if records.job_version(job.id, original.version) is None:
        raise NotPossibleError(
            f"version {original.version} of {job.id} is no longer kept; replay with the version of now (--as-of now)"
        )
    return original.version


def manual_occurrence(records: Records, job: Job, actor: Actor) -> Occurrence:
    return Occurrence(
        job=job.id,
        nominal_ms=free_instant(records, job, records.now_ms),
        due_ms=records.now_ms,
        version=job.version,
        manual=True,
        triggered_by=str(actor),
        created_ms=records.now_ms,
    )


def _checked(job: Job, parameters: Mapping[str, str]) -> dict[str, str]:
    """What is given, as the job's parameters have it. A job that names none takes any."""
    if len(parameters) > MOST_PARAMETERS:
        raise NotPossibleError(f"{len(parameters)} parameters are too many; at most {MOST_PARAMETERS}")
    for name, value in parameters.items():
        if not name or "\0" in name + value:
            raise NotPossibleError(f"the parameter {name[:40]!r} needs a name, and no NUL in it or its value")
    if not job.parameters:
        return dict(parameters)
    for name, one in job.parameters.items():
        if one.required and name not in parameters:
            raise NotPossibleError(f"{job.id} needs the parameter {name} ({_takes(one)}); give it: {name}=…")
    return {name: _checked_value(job, name, value) for name, value in parameters.items()}


def _checked_value(job: Job, name: str, value: str) -> str:
    known = job.parameters.get(name)
    if known is None:
        meant = nearest(name, job.parameters)
        hint = f"did you mean {meant}?" if meant else f"it has {', '.join(job.parameters)}"
        raise NotPossibleError(f"{job.id} has no parameter {name[:40]!r}; {hint}")
    if problem := problem_with(known, value):
        raise NotPossibleError(f"the parameter {name} of {job.id}: {value[:40]!r} {problem}")
    return normal_text(known, value)


_KINDS = {
    ParameterType.STRING: "a text",
    ParameterType.INTEGER: "a whole number",
    ParameterType.NUMBER: "a number",
    ParameterType.BOOLEAN: "true or false",
}


def _takes(parameter: Parameter) -> str:
    return _KINDS.get(parameter.type) or f"one of {', '.join(parameter.choices)}"


def _claim_key(records: Records, wanted: Occurrence, key: str, ttl_ms: int | None) -> str:
    """Take the key for this occurrence. The id of its holder where it is taken already, else empty."""
    if not key:
        return ""
    if len(key.encode()) > _MOST_KEY:
        raise NotPossibleError(f"an idempotency key has at most {_MOST_KEY} bytes")
    # With a prefix, because the same text as the key of a task must not keep that task from running.
    key = f"trigger:{wanted.job}:{key}"
    held = records.idempotency(key, records.now_ms)
    if held is not None and not _never_ran(records, held):
        return held.holder or "somebody"
    expires = records.now_ms + (DEFAULT_TTL_MS if ttl_ms is None else ttl_ms)
    records.put(
        Idempotency(
            key=key,
            expires_ms=expires,
            holder=wanted.id,
            job=wanted.job,
            nominal_ms=wanted.nominal_ms,
            created_ms=records.now_ms,
        )
    )
    return ""


def _never_ran(records: Records, held: Idempotency) -> bool:
    """The holder was skipped or canceled before it started, so what the key stands for has not been done."""
    holder = records.occurrence(held.job, held.nominal_ms) if held.nominal_ms is not None else None
    return holder is not None and is_final(holder.state) and holder.started_ms is None


def enter(records: Records, job: Job, wanted: Occurrence, refusal: Reason = NO_REASON) -> Triggered:
    """Write the occurrence, and apply the overlap policy at once where the store alone decides it.

    The daemon decides whether the pool has a free slot, and stops what gives way.
    """
    records.create(wanted)
    events: list[Event] = []
    lifecycle = Lifecycle(records, "", Random(0), [], events)  # noqa: S311  nothing is drawn
    running, retry_ms = waiting_first(records, records.active(job.id))
    waiting = records.queued_before(wanted, MOST_QUEUED + 1)
    answer, reason = admit(job, wanted, running, waiting, 1, records.now_ms, None, retry_ms)
    if refusal:
        answer, reason = Verdict.SKIP, refusal
    result = Triggered(wanted, TriggerAnswer.PENDING)
    if answer is Verdict.SKIP:
        lifecycle.end_unstarted(wanted, OccurrenceState.SKIPPED, reason)
        result = Triggered(wanted, TriggerAnswer.SKIPPED, reason)
    elif answer is Verdict.QUEUE:
        moved = records.advance(wanted, OccurrenceState.QUEUED, reason=reason)
        lifecycle.emit("OccurrenceQueued", moved, reason)
        result = Triggered(wanted, TriggerAnswer.QUEUED, reason)
    append(records.tx, *events)
    now = records.occurrence(job.id, wanted.nominal_ms)
    return result._replace(occurrence=now or wanted)


# `@start`: one occurrence of each such job for every boot of the machine, asked for by its first daemon.
#
# The mark on the job and the occurrence are one transaction, so that a daemon which is killed in between, and the
# next one, ask once together. A job that is applied while a daemon has been at work since the boot waits for the
# next boot.

_ALL_JOBS = 1_000_000


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
