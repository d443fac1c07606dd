"""Jobs that a program writes, read by the readers of the job file: the same keys, checks and sentences.

A job is a table here, as it would stand under [jobs]: what a program gave as keywords, or what `table_of` makes of a
Job. Instead of a line and a column a problem has its place in words: "job 'backup', task 'dump', retry".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from enum import Enum
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from chronex.errors import ChronexError
from chronex.expr.diagnostics import with_hint
from chronex.jobfile.calendar_tables import check_moves
from chronex.jobfile.entries import Entry, Reader, RefusedError, Sheet, TooManyProblemsError, read_table
from chronex.jobfile.group_tables import check_table
from chronex.jobfile.inherited_tables import CRASH, DST, ENVIRONMENT, RECOVERY, RETRY, UNLIMITED
from chronex.jobfile.job_tables import (
    JOB,
    JOB_FIELDS,
    ONLY_TASK,
    TASK,
    TASK_FIELDS,
    USUAL,
    Defaults,
    FileZone,
    build_job,
    check_case,
)
from chronex.jobfile.notify_table import NOTIFY, read_channels
from chronex.jobfile.parameter_table import PARAMETER
from chronex.jobfile.positions import TextNode, TextSpan
from chronex.jobfile.process_table import limits_table
from chronex.jobfile.spread_table import SPREAD
from chronex.jobfile.values import check_name, filled_text
from chronex.model.calendars import CalendarRules
from chronex.model.channels import Channel
from chronex.model.job import SCHEDULES_APART, Call, Job, Task, TaskCheck
from chronex.model.job_parameters import Parameter
from chronex.model.policies import (
    CrashCheck,
    DstSetting,
    NotifyPolicy,
    RecoveryPolicy,
    ResourceLimits,
    RetryPolicy,
    SpreadPolicy,
)
from chronex.text.terminal import quoted
from chronex.timing.job_schedule import CUSTOM

Table = dict[str, Any]
# What a job of one task may say of that task.
TASK_KEYS = frozenset(TASK) - frozenset(JOB)
# A schedule of the program's own is known by its name alone; the rest of its job is checked with this one.
_ANY_SCHEDULE = "@daily"
_MILLISECOND = timedelta(milliseconds=1)


class JobProblem(NamedTuple):
    """What is wrong with a job of a program, where, and what to do."""

    place: str
    message: str
    hint: str
    code: str

    def __str__(self) -> str:
        return f"{self.place}: {with_hint(self.message, self.hint)}"


class InvalidJobError(ChronexError, ValueError):
    """A job of this program is not valid; nothing was changed."""

    def __init__(self, problems: Iterable[JobProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


def one_task_table(schedule: str, run: object, keys: Mapping[str, Any]) -> Table:
    """The table of a job with one task: what only a task can say, such as its idempotency key, is said there.

    One that is `after` others needs no schedule.
    """
    own = {key: value for key, value in keys.items() if key in TASK_KEYS}
    rest = {key: value for key, value in keys.items() if key not in TASK_KEYS}
    timing = {"schedule": schedule} if schedule else {}
    return {**timing, **rest, "tasks": [{"name": ONLY_TASK, "run": run, **own}]}


# -- reading ------------------------------------------------------------------------------------------------


def read_program_channels(tables: Mapping[str, Any]) -> dict[str, Channel]:
    """The channels of a program by their names: the keys are those of [notify.NAME] in a job file, and so are the
    checks. Raises InvalidJobError with every problem."""
    entry = _entry("the channels", _plain_table(tables), "UTC")
    with suppress(RefusedError, TooManyProblemsError):
        read_channels(entry)
    places = entry.sheet.text.split("\n")
    problems = [JobProblem(places[one.line - 1], one.message, one.hint, one.code) for one in entry.sheet.problems]
    if problems:
        raise InvalidJobError(problems)
    return {name: channel for name, channel in entry.sheet.channels.items() if channel is not None}


def read_program_job(
    name: str, table: Mapping[str, Any], zone: str = "UTC", channels: Mapping[str, Channel] | None = None
) -> Job:
    """The job of these keys, which are those of the job file. Raises InvalidJobError with every problem.

    Beside a command `run` may be a Call. Durations may be timedeltas, choices members of their enumeration, and
    policies the values of chronex.model. `zone` is for a schedule that names none, `channels` are what `notify` may
    name.
    """
    reading = _Reading(zone, channels=channels)
    job = reading.job(name, dict(table), table.get("notify"))
    if reading.problems or job is None:
        raise InvalidJobError(reading.problems)
    return job


def check_jobs(jobs: Iterable[Any], beside: Iterable[str] = ()) -> list[Job]:
    """These jobs, of which a job file would accept each beside those of the names given.

    Raises InvalidJobError with every problem of all of them. Words in the place of members of an enumeration, and
    lists in the place of tuples, are made what they should be.
    """
    reading = _Reading("UTC", beside)
    checked: list[Job] = []
    for job in jobs:
        if not isinstance(job, Job):
            what = f"a job is a chronex.model.Job, not {type(job).__name__}"
            reading.problems.append(
                JobProblem("the jobs", what, 'write Job(id="tidy", schedule="@daily", …)', "J011")
            )
            continue
        read = reading.job(job.id, table_of(job), job.notify)
        if read is not None:
            checked.append(_in_right_types(job, read))
    if reading.problems:
        raise InvalidJobError(reading.problems)
    return checked


def _in_right_types(given: Job, read: Job) -> Job:
    """What was given, unless it has another type than what a job file would have made of it."""
    # Calendars are values that no file could name here, so they are taken as they are.
    kept = ("tasks", "source", "progress", "calendars")
    fields = (field for field in read.__struct_fields__ if field not in kept)
    other = {
        name: getattr(read, name) for name in fields if type(getattr(read, name)) is not type(getattr(given, name))
    }
    tasks = tuple(_with_own_retry(one, task) for one, task in zip(read.tasks, given.tasks, strict=True))
    return replace(given, tasks=tasks, **other)


def _with_own_retry(read: Task, given: Task) -> Task:
    """A file cannot say that a task has no longest pause where its job has one; a program can."""
    return replace(read, retry=given.retry) if isinstance(given.retry, RetryPolicy) else read


class _Reading:
    """Reads one job after the other, and knows the names of those before."""

    def __init__(self, zone: str, beside: Iterable[str] = (), channels: Mapping[str, Channel] | None = None) -> None:
        self.zone = zone
        self._channels = dict(channels or {})
        self.problems: list[JobProblem] = []
        self._names: dict[str, str] = {name.lower(): name for name in beside}

    def job(self, name: object, table: Table, notify: object = None) -> Job | None:
        """`notify` names channels of the program, or has channels of its own as values."""
        entry = _entry(f"job {quoted(str(name))}", _plain_table(table), self.zone)
        sheet = entry.sheet
        sheet.channels = dict(self._channels)
        if isinstance(notify, NotifyPolicy):
            sheet.channels |= {channel.name: channel for channel in notify.channels}
        try:
            found = self._read(name, entry)
        except (RefusedError, TooManyProblemsError):
            found = None
        places = sheet.text.split("\n")
        self.problems += [
            JobProblem(places[one.line - 1], one.message, one.hint, one.code) for one in dict.fromkeys(sheet.problems)
        ]
        return None if sheet.problems else found

    def _read(self, name: object, entry: Entry) -> Job:
        if not isinstance(name, str):
            entry.refuse(f"the id of a job is text, not {type(name).__name__}", 'write for example "tidy"', "J011")
        check_name(entry, name, "the job")
        check_case(entry, name, self._names, "job")
        custom = _custom_schedule(entry)
        if custom is not None:
            entry = _with(entry, schedule=_ANY_SCHEDULE)
        calendars = _calendars(entry)
        if calendars is not None:
            entry = _without(entry, "calendars")
        job = build_job(name, entry, read_table(entry, JOB), Defaults(), FileZone(self.zone, "scheduler"))
        job = replace(job, source="", calendars=calendars or job.calendars)
        check_moves(entry, job)
        return job if custom is None else replace(job, schedule=custom, dialect=CUSTOM)


def _custom_schedule(entry: Entry) -> str | None:
    table = entry.expect_table()
    if table.get("dialect") != CUSTOM:
        return None
    if "schedule" not in table:
        return None
    name = filled_text(entry.child("schedule"))
    check_name(entry.child("schedule"), name, "schedule")
    return name


def _calendars(entry: Entry) -> CalendarRules | None:
    """The rules that a program gives as a value; a program has no [calendars] to name."""
    given = entry.expect_table().get("calendars")
    if given is not None and not isinstance(given, CalendarRules):
        entry.child("calendars").refuse_type("chronex.model.calendars.CalendarRules", "calendars=CalendarRules(…)")
    return given


def _without(entry: Entry, key: str) -> Entry:
    table = {name: value for name, value in entry.expect_table().items() if name != key}
    return Entry(table, entry.node, entry.label, entry.sheet)


def _with(entry: Entry, **changes: object) -> Entry:
    """The same place with a custom schedule and its dialect taken out."""
    table = {key: value for key, value in entry.expect_table().items() if key != "dialect"}
    return Entry({**table, **changes}, entry.node, entry.label, entry.sheet)


def _entry(place: str, table: Table, zone: str) -> Entry:
    """The table with a line of the sheet for each of its tables, so that the line of a problem names its place."""
    lines: list[str] = []
    root = _node(table, place, lines, [0])
    return Entry(table, root, "the job", Sheet("", "\n".join(lines), zone))


def _node(value: object, place: str, lines: list[str], offset: list[int]) -> TextNode:
    span = TextSpan(offset[0], offset[0] + len(place))
    node = TextNode(span, span)
    lines.append(place)
    offset[0] += len(place) + 1
    if isinstance(value, dict):
        for key, child in value.items():
            inner = f"{place}, {quoted(key)[1:-1]}" if isinstance(child, dict) else place
            if isinstance(child, dict | list):
                node.children[key] = _node(child, inner, lines, offset)
            else:
                node.children[key] = TextNode(span, span)
    elif isinstance(value, list):
        for index, child in enumerate(value):
            if isinstance(child, dict):
                shown = quoted(str(child.get("name", index + 1)))
                node.children[index] = _node(child, f"{place}, task {shown}", lines, offset)
            else:
                node.children[index] = TextNode(span, span)
    return node


# -- Python values as a table -----------------------------------------------------------------------------------


def _plain_table(table: Mapping[Any, Any]) -> Table:
    return {str(key): _plain(value) for key, value in table.items()}


def _plain(value: object) -> Any:
    """As a file would have it; what no file can have is left for the readers to refuse."""
    if isinstance(value, Call):
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, timedelta):
        return f"{value // _MILLISECOND}ms"
    if isinstance(value, Struct):
        return _policy_table(value)
    if isinstance(value, Mapping):
        return _plain_table(value)
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(one) for one in value]
    return value


_POLICIES: dict[type[Struct], Mapping[str, Reader]] = {
    Parameter: PARAMETER,
    RetryPolicy: RETRY,
    RecoveryPolicy: RECOVERY,
    SpreadPolicy: SPREAD,
    DstSetting: DST,
    NotifyPolicy: NOTIFY,
    CrashCheck: CRASH,
}


def _policy_table(policy: Struct) -> Any:
    """A policy with all its keys; the value itself where it is none that a job has."""
    if isinstance(policy, Task):
        return _task_table(policy)
    if isinstance(policy, ResourceLimits):
        return limits_table(policy)
    if isinstance(policy, TaskCheck):
        return check_table(policy)
    keys = _POLICIES.get(type(policy))
    if keys is None:
        return policy
    fields = {key: key if hasattr(policy, key) else f"{key}_ms" for key in keys}
    found = _written(policy, {key: field for key, field in fields.items() if hasattr(policy, field)})
    if isinstance(policy, Parameter) and not policy.choices:
        del found["choices"]
    if isinstance(policy, RetryPolicy) and policy.max is None:
        found["max"] = UNLIMITED
    if isinstance(policy, NotifyPolicy) and policy.channels:
        found["to"] = [channel.name for channel in policy.channels]
    return found


def _written(record: Struct, fields: Mapping[str, str]) -> Table:
    """The fields of a record under their keys; what is None is left out."""
    values = {key: (field, getattr(record, field)) for key, field in fields.items()}
    return {key: _in_words(field, value) for key, (field, value) in values.items() if value is not None}


def _in_words(field: str, value: object) -> Any:
    is_duration = field.endswith("_ms") and isinstance(value, int) and not isinstance(value, bool)
    return f"{value}ms" if is_duration else _plain(value)


def table_of(job: Job) -> Table:
    """The job as it would be written: every key that has a value."""
    policies = {name: name for name in ("retry", "recovery", "dst", "notify", "cadence")}
    table = _written(job, {"schedule": "schedule", "timezone": "timezone", **JOB_FIELDS, **policies})
    if job.written:
        table["schedule"] = job.written
    if job.follows:
        table = {key: value for key, value in table.items() if key not in ("schedule", "cadence", "recovery")}
    table = {key: value for key, value in table.items() if key not in ("after", "parameters") or value}
    if job.expect_usual:
        table["expect"] = USUAL
    if SCHEDULES_APART in str(table.get("schedule", "")) and job.dialect != CUSTOM:
        table["schedule"] = str(table["schedule"]).split(SCHEDULES_APART)
    if job.calendars is not None:
        table["calendars"] = job.calendars
    tasks = job.tasks if isinstance(job.tasks, list | tuple) else [job.tasks]
    if any(isinstance(task, Task) and task.needs is not None for task in tasks):
        table = {key: value for key, value in table.items() if key != "mode"}
    return {**table, "tasks": list(_task_tables(tasks))}


def _task_tables(tasks: Iterable[Any]) -> Iterator[Any]:
    """Each task as it was written; of a matrix one table for all combinations."""
    groups: dict[str, list[Task]] = {}
    for task in tasks:
        if isinstance(task, Task) and task.matrix_of:
            groups.setdefault(task.matrix_of, []).append(task)
    for task in tasks:
        name = task.matrix_of if isinstance(task, Task) else ""
        if not name:
            yield _plain(task)
        elif group := groups.pop(name, []):
            values = {key: list(dict.fromkeys(one.combination[key] for one in group)) for key in task.combination}
            at_most = {} if task.at_most is None else {"at_most": task.at_most}
            yield {**_task_table(replace(task, name=name)), "matrix": values, **at_most}


def _task_table(task: Task) -> Table:
    environment = {key: key for key in ENVIRONMENT if key != "env_file" or task.env_file}
    table = _written(task, {**TASK_FIELDS, **environment, "retry": "retry"})
    # The reader has made the combinations of a matrix already, and a task that needs nothing is after nothing.
    left_out = {"at_most"} if task.needs else {"at_most", "when"}
    table = {key: value for key, value in table.items() if key not in left_out}
    if task.secret_sources:
        table["secrets"] = {name: task.secret_sources.get(name, f"env:{name}") for name in task.secrets}
    return table
