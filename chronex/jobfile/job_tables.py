"""Jobs and their tasks, with the cascade defaults → job → task resolved.

What the model lets a task inherit stays None there unless the task says it; everything else is resolved here.
"""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import asdict, replace

from chronex.expr.diagnostics import Diagnostic, ValidationResult
from chronex.expr.parser import DIALECTS
from chronex.jobfile import inherited_tables, values
from chronex.jobfile.calendar_tables import (
    CALENDAR_DEFAULTS,
    CALENDAR_KEYS,
    calendar_rules,
    check_moves,
    named_calendars,
)
from chronex.jobfile.entries import Entry, Reader, RefusedError, WrittenSchedule, read_each, read_table
from chronex.jobfile.graph_tables import (
    TASK_GRAPH,
    TASK_GRAPH_FIELDS,
    after,
    check_chains,
    check_mode,
    check_needs,
    check_without_schedule,
    combinations,
    warn_unknown_parents,
)
from chronex.jobfile.group_tables import GROUP_KEYS, task_check
from chronex.jobfile.inherited_tables import ENVIRONMENT, TaskEnvironment, work
from chronex.jobfile.notify_table import notify, notify_policy
from chronex.jobfile.parameter_table import parameters
from chronex.jobfile.process_table import OF_COMMANDS
from chronex.jobfile.spread_table import check_backlog_limit, spread
from chronex.jobfile.values import filled_text, refuse_duplicates
from chronex.model.calendars import CalendarRules
from chronex.model.job import SCHEDULES_APART, Call, Job, Task, Work
from chronex.model.policies import (
    Cadence,
    DstSetting,
    FailureStrategy,
    LeftoverPolicy,
    OverlapPolicy,
    RecoveryPolicy,
    RetryPolicy,
    RunOn,
    TaskMode,
)
from chronex.storage.ports import MAX_VALUE_BYTES
from chronex.text.terminal import quoted
from chronex.timing import parse, validate

# -- the schedule of a job --------------------------------------------------------------------------------


# Each plan asks every one of them.
MOST_SCHEDULES = 20


class CheckedSchedule(NamedTuple):
    """The text as written, the zone that applies, what kind of schedule it is, and the tags that stand in it.

    `shared` are the options that hold for every start of a job.
    """

    text: str
    timezone: str
    kind: str
    tags: tuple[str, ...] = ()
    shared: tuple[int | None, ...] = ()


class _InvalidScheduleError(Exception):
    def __init__(self, verdict: ValidationResult) -> None:
        self.verdict = verdict


def schedule(entry: Entry, dialect: str, zone: str) -> CheckedSchedule:
    """The expression; a zone written in it wins over the job's."""
    text = filled_text(entry)
    try:
        found, warnings = _validated(text, dialect, zone)
    except _InvalidScheduleError as refused:
        for finding in refused.verdict.errors:
            span = entry.span_inside(finding.start, finding.end)
            entry.report(finding.labelled_problem, _hint(finding), finding.code, span)
        found, warnings = None, refused.verdict.warnings
    for finding in warnings:
        span = entry.span_inside(finding.start, finding.end)
        entry.warn(finding.labelled_problem, _hint(finding), finding.code, span)
    if found is None:
        raise RefusedError
    return found


@lru_cache(maxsize=4096)
def _validated(text: str, dialect: str, zone: str) -> tuple[CheckedSchedule, tuple[Diagnostic, ...]]:
    """A file of ten thousand jobs has far fewer schedules. A refusal is not kept: zone data may come later."""
    verdict = validate(text, dialect, zone)
    if verdict.errors:
        raise _InvalidScheduleError(verdict)
    expression = parse(text, dialect, zone)
    options = expression.options
    shared = (options.jitter, options.stagger, options.window, options.max)
    found = CheckedSchedule(text, expression.timezone or zone, expression.kind, options.tags, shared)
    return found, tuple(verdict.warnings)


def _hint(finding: Diagnostic) -> str:
    if finding.hint:
        return finding.hint
    if finding.fix is not None:
        return f"write {finding.fix}" if finding.fix else "remove it"
    return "try it: chronex explain '…'"


# -- the keys of each level -------------------------------------------------------------------------------

ONLY_TASK = "main"
USUAL = "usual"
# The engine's own fields of a job (cursor, counters, who paused it) must still fit beside what the file says.
MAX_JOB_BYTES = MAX_VALUE_BYTES - 2_048


def _unread(entry: Entry) -> Entry:
    """Kept as it is, to be read when the levels above are known."""
    return entry


_FAILURE: dict[str, Reader] = {
    "on_failure": values.choice_of(FailureStrategy),
    "failure": values.choice_of(FailureStrategy),
}
DEFAULTS: dict[str, Reader] = {
    "dialect": values.one_of(*DIALECTS),
    "overlap": values.choice_of(OverlapPolicy),
    "recovery": inherited_tables.recovery,
    "execution_timeout": values.duration_or_off,
    "task_timeout": values.duration_or_off,
    "grace_period": values.duration,
    "leftovers": values.choice_of(LeftoverPolicy),
    "log_limit": values.size,
    "retry": inherited_tables.retry,
    **_FAILURE,
    "mode": values.choice_of(TaskMode),
    "on_crash": inherited_tables.on_crash,
    "cadence": values.choice_of(Cadence),
    "spread": spread,
    "notify": notify,
    "expect_within": values.duration_or_off,
    "expect": values.one_of(USUAL, values.OFF),
    "pause_after_failures": values.whole_number(1, 1_000),
    "dst": inherited_tables.dst,
    "nodes": values.texts,
    "node_labels": values.text_table,
    "run_on": values.choice_of(RunOn),
    "wait_for_node": values.positive_duration,
    **CALENDAR_DEFAULTS,
    **GROUP_KEYS,
    **ENVIRONMENT,
}
JOB: dict[str, Reader] = {
    "schedule": _unread,
    "after": after,
    "parameters": parameters,
    "timezone": values.zone,
    "enabled": values.yes_or_no,
    "description": values.text,
    "tags": values.texts,
    "metadata": values.text_table,
    **DEFAULTS,
    **CALENDAR_KEYS,
    "on_start": work,
    "on_complete": work,
    "check": task_check,
    "run": work,
    "tasks": _unread,
}
TASK: dict[str, Reader] = {
    "name": values.name,
    "run": work,
    "timeout": values.positive_duration,
    "retry": inherited_tables.retry,
    **_FAILURE,
    "idempotency_key": values.key_template,
    "idempotency_ttl": values.positive_duration,
    "metadata": values.text_table,
    **TASK_GRAPH,
    "check": task_check,
    **ENVIRONMENT,
}
# Keys that go into the job's field of the second name as they are.
JOB_FIELDS = {
    "enabled": "enabled",
    "after": "after",
    "parameters": "parameters",
    "description": "description",
    "tags": "tags",
    "metadata": "metadata",
    "nodes": "nodes",
    "node_labels": "node_labels",
    "groups": "groups",
    "priority": "priority",
    "wait_for": "wait_for",
    "wait_at_most": "wait_at_most_ms",
    "run_on": "run_on",
    "wait_for_node": "wait_for_node_ms",
    "dialect": "dialect",
    "overlap": "overlap",
    "execution_timeout": "execution_timeout_ms",
    "task_timeout": "task_timeout_ms",
    "grace_period": "grace_ms",
    "leftovers": "leftovers",
    "log_limit": "log_limit",
    "on_failure": "failure",
    "mode": "mode",
    "on_crash": "on_crash",
    "spread": "spread",
    "expect_within": "expect_within_ms",
    "pause_after_failures": "pause_after_failures",
    "on_start": "on_start",
    "on_complete": "on_complete",
}
TASK_FIELDS = {
    "name": "name",
    "run": "run",
    "timeout": "timeout_ms",
    "on_failure": "on_failure",
    "idempotency_key": "idempotency_key",
    "idempotency_ttl": "idempotency_ttl_ms",
    "metadata": "metadata",
    **TASK_GRAPH_FIELDS,
    "check": "check",
}


# -- the cascade ------------------------------------------------------------------------------------------


class Defaults(msgspec.Struct, frozen=True):
    """What every job starts from."""

    given: dict[str, Any] = {}
    retry: RetryPolicy = RetryPolicy()
    recovery: RecoveryPolicy = RecoveryPolicy()
    task_environment: TaskEnvironment = TaskEnvironment()


class FileZone(NamedTuple):
    """The zone for schedules that name none, and where it comes from: "scheduler", "host" or "job"."""

    name: str
    source: str


class JobKeys(NamedTuple):
    """A job's own keys, and the defaults' where it has none."""

    name: str
    entry: Entry
    own: dict[str, Any]
    layered: dict[str, Any]

    def has(self, key: str) -> bool:
        """Is the key written, whatever became of its value?"""
        return key in self.entry.expect_table()


def read_defaults(entry: Entry, base: Defaults | None = None) -> Defaults:
    """The table over `base`, which are the defaults of the directory that the file is part of."""
    base = base or Defaults()
    given = _one_failure_key(entry, read_table(entry, DEFAULTS, "[defaults] and its keys below it"))
    retry, recovery = _policies(entry, given, base)
    for key in ("except", "only"):
        if key in given:
            named_calendars(entry.child(key), given[key])
    return Defaults(_over(base.given, given), retry, recovery, base.task_environment.within(entry, given))


def _over(base: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """What is written further in wins; of a table, each of its keys."""
    merged = {**base, **given}
    for key, value in given.items():
        if isinstance(value, dict) and isinstance(base.get(key), dict):
            merged[key] = {**base[key], **value}
    return merged


def read_jobs(entry: Entry, defaults: Defaults, zone: FileZone) -> tuple[Job, ...]:
    """The jobs under [jobs]; those with problems are left out."""
    jobs: list[Job] = []
    known: dict[str, str] = {}
    for name in entry.expect_table("[jobs.NAME] and its keys below it"):
        child = entry.child(name)
        with suppress(RefusedError):  # the rest of a job with a bad name is read all the same
            values.check_name(child, name, f"job {quoted(name)}", at_key=True)
        try:
            check_case(child, name, known, "job")
            own = read_table(child, JOB, f"[jobs.{child.label}] and its keys below it")
            jobs.append(build_job(name, child, own, defaults, zone))
        except RefusedError:
            continue
    if any(job.after for job in jobs):
        check_chains(entry, jobs)
        warn_unknown_parents(entry, jobs)
    return tuple(jobs)


def check_case(entry: Entry, name: str, known: dict[str, str], what: str) -> None:
    """Report names that differ only in case: log files have these names, and some file systems ignore case."""
    earlier = known.get(name.lower())
    if earlier is None:
        known[name.lower()] = name
        return
    message = f"{what} {quoted(name)} differs from {quoted(earlier)} only by case"
    if earlier == name:
        message = f"{what} {quoted(name)} is given twice"
    entry.report(message, "give it another name", "J018", entry.key_span if what == "job" else None)


def build_job(
    name: str, entry: Entry, own: dict[str, Any], defaults: Defaults, zone: FileZone, *, needs_tasks: bool = True
) -> Job:
    """The job of these keys. Raises RefusedError when what it needs is missing or bad."""
    own = _one_failure_key(entry, own)
    has_calendars = entry.sheet.blackout or any(key in own or key in defaults.given for key in CALENDAR_KEYS)
    calendars = calendar_rules(entry, own, defaults.given, entry.sheet.blackout) if has_calendars else None
    if "schedule" in own:
        note_schedule(name, entry, own["schedule"], own, defaults, zone, calendars)
    found = JobKeys(name, entry, own, {**defaults.given, **own})
    retry, recovery = _policies(entry, own, defaults)
    task_environment = defaults.task_environment.within(entry, own)
    tasks = _tasks(found, retry, task_environment, needs_tasks=needs_tasks)
    timing = _schedule(found, own.get("timezone", zone.name))
    fields = {field: found.layered[key] for key, field in JOB_FIELDS.items() if key in found.layered}
    if tags := tuple(dict.fromkeys((*fields.get("tags", ()), *timing.tags))):
        fields["tags"] = tags
    if "dst" in found.layered:
        fields["dst"] = _dst(own, defaults)
    if "expect" in found.layered:
        fields["expect_usual"] = found.layered["expect"] == USUAL
    fields["calendars"] = calendars
    if "notify" in found.layered:
        own_entry = entry.child("notify") if found.has("notify") else entry
        fields["notify"] = notify_policy(own_entry, own.get("notify", {}), defaults.given.get("notify", {}))
    if retry != RetryPolicy():
        fields["retry"] = retry
    if recovery != RecoveryPolicy():
        fields["recovery"] = recovery
    job = Job(
        id=name,
        schedule=timing.text,
        timezone=timing.timezone,
        tasks=tasks,
        cadence=_cadence(found, timing),
        source=entry.sheet.path,
        **fields,
    )
    _check_size(entry, job)
    check_backlog_limit(entry, job)
    if calendars is not None:
        check_moves(entry, job)
    return job


def _dst(own: dict[str, Any], defaults: Defaults) -> DstSetting:
    given = {**defaults.given.get("dst", {}), **own.get("dst", {})}
    dialect = own.get("dialect", defaults.given.get("dialect", DIALECTS[0]))
    return inherited_tables.dst_policy(given, dialect)


def note_schedule(
    name: str,
    entry: Entry,
    written: Entry,
    own: dict[str, Any],
    defaults: Defaults,
    zone: FileZone,
    calendars: CalendarRules | None = None,
) -> None:
    """Keep where the schedule stands and how it is to be read, whatever else is wrong with the job."""
    if isinstance(written.value, list):
        for one in written.children():
            note_schedule(name, entry, one, own, defaults, zone, calendars)
    if not isinstance(written.value, str):
        return
    layered = {**defaults.given, **own}
    applies = zone
    if "timezone" in own:
        is_local = entry.expect_table()["timezone"] == values.LOCAL
        applies = FileZone(own["timezone"], "host" if is_local else "job")
    entry.sheet.schedules.append(
        WrittenSchedule(
            job=name,
            text=written.value,
            node=written.node,
            dialect=layered.get("dialect", DIALECTS[0]),
            zone=applies.name,
            zone_source=applies.source,
            dst=_dst(own, defaults) if "dst" in layered else None,
            retry=replace(defaults.retry, **own.get("retry", {})),
            has_spread="spread" in layered,
            has_timeout=_has_timeout(entry.value, layered),
            calendars=calendars,
        )
    )


def _has_timeout(table: Any, layered: dict[str, Any]) -> bool:
    """Of the job, of its tasks together, or of each of them; what is switched off was thought of."""
    if "execution_timeout" in layered or "task_timeout" in layered:
        return True
    tasks = table.get("tasks") if isinstance(table, dict) else None
    return isinstance(tasks, list) and bool(tasks) and all(isinstance(t, dict) and "timeout" in t for t in tasks)


def _policies(entry: Entry, own: dict[str, Any], base: Defaults) -> tuple[RetryPolicy, RecoveryPolicy]:
    retry, recovery = base.retry, base.recovery
    if "retry" in own:
        retry = inherited_tables.merged_retry(retry, own["retry"], entry.child("retry"))
    if "recovery" in own:
        recovery = inherited_tables.merged_recovery(recovery, own["recovery"], entry.child("recovery"))
    return retry, recovery


def _one_failure_key(entry: Entry, own: dict[str, Any]) -> dict[str, Any]:
    """`failure` is another name of on_failure."""
    if "failure" not in own:
        return own
    if "on_failure" in own:
        place = entry.child("failure")
        place.report("failure and on_failure mean the same", "remove one of them", "J018", place.key_span)
    return {"on_failure": own["failure"], **own}


def _schedule(found: JobKeys, zone: str) -> CheckedSchedule:
    if "schedule" not in found.own:
        if found.has("after"):
            check_without_schedule(found.entry)
            return CheckedSchedule("", zone, "none")
        hint = 'write for example schedule = "0 3 * * *", or after = "JOB"'
        found.entry.refuse(f"job {quoted(found.name)} has no schedule", hint, "J012", found.entry.key_span)
    timing = _united(found.own["schedule"], found.layered.get("dialect", DIALECTS[0]), zone)
    if "timezone" in found.own and timing.timezone != found.own["timezone"]:
        message = f"the schedule's own TZ={timing.timezone} wins over this zone"
        found.entry.child("timezone").warn(message, "remove one of them", "J101")
    return timing


def _united(entry: Entry, dialect: str, zone: str) -> CheckedSchedule:
    """One expression, or a list of them whose instants are united."""
    if not isinstance(entry.value, list):
        return schedule(entry, dialect, zone)
    if not entry.value or len(entry.value) > MOST_SCHEDULES:
        hint = f"write 1 to {MOST_SCHEDULES} expressions"
        entry.refuse(f"{entry.label} has {len(entry.value)} expressions", hint, "J014")
    parts: list[CheckedSchedule] = read_each(entry, lambda child: schedule(child, dialect, zone))
    refuse_duplicates(entry, [part.text for part in parts])
    if len(parts) == 1:
        return parts[0]
    for index, part in enumerate(parts):
        if part.kind == "interval" and "-" in part.text.split("{")[0].split("<")[0]:
            hint = "give it a job of its own"
            entry.child(index).report("a random interval cannot stand beside other schedules", hint, "J024")
        if part.shared != parts[0].shared:
            hint = "write the same jitter, stagger, window and max in all of them, or make two jobs"
            entry.child(index).report("the expressions of a job share their options", hint, "J024")
    zones = {part.timezone for part in parts}
    text = SCHEDULES_APART.join(part.text for part in parts)
    tags = tuple(dict.fromkeys(tag for part in parts for tag in part.tags))
    return CheckedSchedule(text, zones.pop() if len(zones) == 1 else zone, "several", tags)


def _cadence(found: JobKeys, timing: CheckedSchedule) -> Cadence:
    """Only intervals have one; as a default it leaves other schedules alone."""
    cadence: Cadence = found.layered.get("cadence", Cadence.FIXED_RATE)
    if timing.kind == "interval":
        return cadence
    if found.own.get("cadence") is Cadence.FIXED_DELAY:
        hint = 'write schedule = "@every 15m", or remove cadence'
        found.entry.child("cadence").report("fixed_delay is for intervals only", hint, "J024")
    return Cadence.FIXED_RATE


def _tasks(found: JobKeys, retry: RetryPolicy, inherited: TaskEnvironment, *, needs_tasks: bool) -> tuple[Task, ...]:
    entry = found.entry
    if found.has("run"):
        if found.has("tasks"):
            place = entry.child("tasks")
            place.report("a job has run or tasks, not both", "move run into a task", "J024", place.key_span)
        _check_is_command(entry, found.own.get("run"))
        own = {"run": found.own.get("run", ()), "check": found.own.get("check")}
        return (Task(name=ONLY_TASK, **own, **asdict(inherited)),)
    if found.has("check"):
        place = entry.child("check")
        hint = "move it into the task that it is about"
        place.report("check is for a job with run, and this one has tasks", hint, "J024", place.key_span)
    tasks: list[Task] = []
    known: dict[str, str] = {}
    if found.has("tasks"):
        listed = entry.child("tasks")
        listed.expect_list(f"[[jobs.{quoted(found.name)[1:-1]}.tasks]] and its keys below it")
        for child in listed.children():
            try:
                tasks += _task(child, retry, inherited, known)
            except RefusedError:
                continue
        check_needs(listed, tasks)
        check_mode(entry, tasks)
        needs_tasks = needs_tasks and not listed.value
    if needs_tasks:
        hint = f'write run = ["echo", "hello"], or add [[jobs.{quoted(found.name)[1:-1]}.tasks]]'
        entry.report(f"job {quoted(found.name)} has no tasks", hint, "J012", entry.key_span)
    return tuple(tasks)


def _task(entry: Entry, retry: RetryPolicy, inherited: TaskEnvironment, known: dict[str, str]) -> list[Task]:
    """The task, or the combinations of its matrix."""
    own = _one_failure_key(entry, read_table(entry, TASK, 'tasks = [{ name = "…", run = "…" }]', above=JOB))
    fields = {field: own[key] for key, field in TASK_FIELDS.items() if key in own}
    if "retry" in own:
        fields["retry"] = inherited_tables.merged_retry(retry, own["retry"], entry.child("retry"))
    task_environment = inherited.within(entry, own)
    if "idempotency_ttl" in own and "idempotency_key" not in entry.expect_table():
        place = entry.child("idempotency_ttl")
        hint = 'add idempotency_key = "{job}:{scheduled}", or remove it'
        place.report("idempotency_ttl says how long a key lives, and there is none", hint, "J024", place.key_span)
    if "name" in own:
        check_case(entry.child("name"), own["name"], known, "task")
    missing = [key for key in ("name", "run") if key not in entry.expect_table()]
    for key in missing:
        example = {"name": 'name = "dump"', "run": 'run = ["echo", "hello"]'}[key]
        entry.report(f"a task has no {key}", f"write for example {example}", "J012")
    _check_is_command(entry, own.get("run"))
    if "name" not in fields:
        raise RefusedError
    return combinations(entry, Task(**fields, **asdict(task_environment)), own.get("matrix"))


def _check_is_command(entry: Entry, run: Work | None) -> None:
    """A function is a part of its scheduler's program, and cannot be another user or have limits of its own."""
    if isinstance(run, Call):
        for key in OF_COMMANDS:
            if key in entry.expect_table():
                place = entry.child(key)
                place.report(f"{key} is for commands, and this is a function", "remove it", "J024", place.key_span)


def _check_size(entry: Entry, job: Job) -> None:
    size = len(msgspec.msgpack.encode(job))
    if size > MAX_JOB_BYTES:
        message = f"job {quoted(job.id)} takes {size} bytes in the store; at most {MAX_JOB_BYTES} fit"
        entry.report(message, "keep long scripts and data in files of their own", "J023", entry.key_span)
