"""What a job file says of the order of tasks and jobs: `needs`, `when`, `matrix` and `at_most` of a task, and `after`
of a job."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from msgspec.structs import replace

from chronex.jobfile import values
from chronex.jobfile.entries import Entry, JobFileError, Reader, read_each
from chronex.jobfile.parsing import open_json, open_toml
from chronex.jobfile.values import filled_text, name, refuse_duplicates, whole_number
from chronex.model.circles import circle_in, no_such_parent
from chronex.model.job import MAX_NAME, Job, Task
from chronex.model.policies import RunOn, When
from chronex.text.suggestions import nearest
from chronex.text.terminal import escaped, quoted

# So many runs of one task still fit the record of their job, and the screen of who looks at them.
MOST_COMBINATIONS = 100
MOST_PARENTS = 20
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}", re.ASCII)
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_]+", re.ASCII)
# Other programs may read a longer number as another one.
_LEAST_UNWRITTEN = 1e15
_LONGEST_VALUE = 200

Matrix = dict[str, tuple[str, ...]]


# -- readers -----------------------------------------------------------------------------------------------


def needs(entry: Entry) -> tuple[str, ...]:
    """Names of tasks of the same job; of a matrix all of its combinations."""
    entry.expect_list(entry.assignment('["extract"]'))
    found: list[str] = read_each(entry, name)
    refuse_duplicates(entry, found)
    return tuple(found)


def after(entry: Entry) -> tuple[str, ...]:
    """The name of a job, or several."""
    if isinstance(entry.value, str):
        return (name(entry),)
    if not isinstance(entry.value, list):
        entry.refuse_type("the name of a job, or a list of them", entry.assignment('"etl"'))
    if not 1 <= len(entry.value) <= MOST_PARENTS:
        entry.refuse(f"{entry.label} names {len(entry.value)} jobs", f"name 1 to {MOST_PARENTS}", "J014")
    return needs(entry)


def matrix(entry: Entry) -> Matrix:
    """Lists of values; the task runs once for each combination of them."""
    table = entry.expect_table(entry.assignment('{ region = ["eu", "us"] }'))
    if not table:
        entry.refuse(f"{entry.label} is empty", 'write for example { region = ["eu", "us"] }', "J013")
    found: Matrix = {}
    refuse_one_variable(entry, "CHRONEX_MATRIX_")
    for key in table:
        child = entry.child(key)
        if not _VARIABLE.fullmatch(key):
            hint = "use letters, digits and _, as in the name of a variable"
            child.refuse(f"{quoted(key)} cannot name the values of a matrix", hint, "J017", child.key_span)
        found[key] = _matrix_values(child)
    count = 1
    for one in found.values():
        count *= len(one)
    if count > MOST_COMBINATIONS:
        hint = f"at most {MOST_COMBINATIONS}; leave some out, or loop over them in the command"
        entry.refuse(f"the matrix has {count} combinations", hint, "J014")
    return found


def _matrix_values(entry: Entry) -> tuple[str, ...]:
    listed = entry.expect_list(entry.assignment('["eu", "us"]'))
    if not listed:
        entry.refuse(f"{entry.label} is empty", 'write for example ["eu", "us"]', "J013")
    found: list[str] = read_each(entry, plain_value)
    refuse_duplicates(entry, found)
    return tuple(found)


def refuse_one_variable(entry: Entry, prefix: str) -> None:
    """Names of which a command would find one alone in its environment: `level` and `LEVEL`, `a-b` and `a_b`."""
    seen: dict[str, str] = {}
    for key in entry.expect_table():
        variable = prefix + key.upper().replace("-", "_")
        if seen.setdefault(variable, key) != key:
            child = entry.child(key)
            message = f"{quoted(seen[variable])} and {quoted(key)} would both be {variable}"
            child.refuse(message, "give one of them another name", "J018", child.key_span)


def plain_value(entry: Entry) -> str:
    """A text, a number, or true or false, as a command finds it in its environment."""
    value = entry.value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        if not abs(value) < _LEAST_UNWRITTEN:  # which is no order of nan
            hint = 'write it as text, such as "1e300"'
            entry.refuse(f"{entry.label} is no number that every program reads alike", hint, "J014")
        return str(value)
    if not isinstance(value, str):
        entry.refuse_type("text or a number", entry.assignment('"eu"'))
    found = filled_text(entry)
    if len(found) > _LONGEST_VALUE:
        entry.refuse(f"{entry.label} has {len(found)} characters", f"at most {_LONGEST_VALUE}", "J014")
    return found


TASK_GRAPH: dict[str, Reader] = {
    "needs": needs,
    "when": values.choice_of(When),
    "matrix": matrix,
    "at_most": whole_number(1, MOST_COMBINATIONS),
}
TASK_GRAPH_FIELDS = {"needs": "needs", "when": "when", "at_most": "at_most"}


# -- a matrix ----------------------------------------------------------------------------------------------


def combinations(entry: Entry, task: Task, given: Matrix | None) -> list[Task]:
    """The task itself, or one for each combination of its matrix."""
    if given is None:
        if task.at_most is not None and "matrix" not in entry.expect_table():
            place = entry.child("at_most")
            hint = 'add matrix = { region = ["eu", "us"] }, or remove it'
            place.report("at_most is for the runs of a matrix, and there is none", hint, "J024", place.key_span)
        return [task]
    found: dict[str, Task] = {}
    for chosen in product(*given.values()):
        own = combination_name(task.name, chosen)
        if len(own) > MAX_NAME:
            entry.child("matrix").refuse(f"{own[:40]}… has {len(own)} characters", f"at most {MAX_NAME} fit", "J017")
        if own.lower() in found:
            hint = "only letters, digits and _ of a value count in it: choose values that differ in them"
            entry.child("matrix").refuse(f"two combinations would be called {own}", hint, "J018")
        found[own.lower()] = replace(
            task, name=own, matrix_of=task.name, combination=dict(zip(given, chosen, strict=True))
        )
    return list(found.values())


def combination_name(task: str, chosen: Sequence[str]) -> str:
    """`load-eu-1`: what is no part of a name becomes a hyphen."""
    return "-".join((task, *(_NOT_IN_A_NAME.sub("-", one).strip("-") or "_" for one in chosen)))


# -- the order of tasks ------------------------------------------------------------------------------------


def check_needs(listed: Entry, tasks: Sequence[Task]) -> None:
    """Each need is a task of the job, none needs itself or runs in a circle, and `when` has something to be after."""
    known = {*_written_names(listed), *(task.name for task in tasks)}
    order = {task.step: task.needs or () for task in tasks}
    steps = {task.name: task.step for task in tasks}
    _check_distinct(listed, tasks)
    for child in listed.children():
        table = child.value
        if not isinstance(table, dict):
            continue
        if isinstance(table.get("needs"), list):
            _check_names(child, str(table.get("name", "")), known)
        if "when" in table and not table.get("needs"):
            place = child.child("when")
            hint = 'add needs = ["…"], or remove it'
            place.report("when says how the needs must have ended, and there are none", hint, "J024", place.key_span)
    others = {step: [steps.get(need, need) for need in found] for step, found in order.items()}
    _check_circle(listed, {step: [need for need in found if need != step] for step, found in others.items()})


def _check_distinct(listed: Entry, tasks: Sequence[Task]) -> None:
    """A combination of a matrix has no name that another task has."""
    seen: dict[str, Task] = {}
    for task in tasks:
        other = seen.setdefault(task.name.lower(), task)
        if other is not task and (
            task.matrix_of or other.matrix_of
        ):  # of two as they are written somebody else tells
            listed.report(f"two tasks would be called {task.name}", "give one of them another name", "J018")


def _written_names(listed: Entry) -> Iterator[str]:
    return (str(table.get("name", "")) for table in listed.expect_list() if isinstance(table, dict))


def _check_names(task: Entry, own: str, known: set[str]) -> None:
    for need in task.child("needs").children():
        if need.value == own:
            need.report(f"{quoted(own)} needs itself", "remove it", "J026")
        elif isinstance(need.value, str) and need.value not in known:
            meant = nearest(need.value, known - {own})
            hint = f"did you mean {meant}?" if meant else f"the tasks here are {', '.join(sorted(known))}"
            need.report(f"no task is called {quoted(need.value)}", hint, "J026")


def _check_circle(listed: Entry, order: Mapping[str, Sequence[str]]) -> None:
    circle = circle_in(order)  # one that needs itself is reported where it says so
    if circle is None:
        return
    for child in listed.children():
        if isinstance(child.value, dict) and child.value.get("name") == circle[0]:
            hint = "one of them must not need the next"
            child.child("needs").report(f"the tasks wait for each other: {' -> '.join(circle)}", hint, "J026")


# -- the order of jobs -------------------------------------------------------------------------------------

# What says when the instants of a schedule start, or which of them do: a job that follows another has none.
_OF_SCHEDULES = (
    "cadence", "spread", "dst", "recovery", "except", "only", "on_excluded", "workday", "expect_within",
)  # fmt: skip


def check_without_schedule(entry: Entry) -> None:
    """A job that only follows others starts when those have completed, and at no time of its own."""
    for key in _OF_SCHEDULES:
        if key in entry.expect_table():
            place = entry.child(key)
            message = f"{key} is for schedules, and this job follows another one"
            place.report(message, "remove it, or write a schedule", "J024", place.key_span)
    if entry.expect_table().get("run_on") == RunOn.EACH:
        place = entry.child("run_on")
        message = "a job that runs on each node needs a schedule, and this one follows another"
        place.report(message, "remove it, or write a schedule", "J024", place.key_span)


def check_mode(entry: Entry, tasks: Sequence[Task]) -> None:
    """The needs of the tasks say in what order they run."""
    if any(task.needs is not None for task in tasks) and "mode" in entry.expect_table():
        place = entry.child("mode")
        place.report("the tasks say by needs in what order they run", "remove mode", "J024", place.key_span)


def check_chains(jobs_entry: Entry, jobs: Sequence[Job]) -> None:
    """No job of the file follows itself. A parent may be in another file: whether it exists is known when applied."""
    circle = circle_in({job.id: job.after for job in jobs})
    if circle is None:
        return
    entry = jobs_entry.child(circle[0]).child("after")
    entry.report(f"the jobs follow each other: {' -> '.join(circle)}", "one of them must not follow the next", "J026")


def warn_unknown_parents(jobs_entry: Entry, jobs: Sequence[Job]) -> None:
    """A parent may be of another source: whether it exists is known when this file is applied."""
    table: Mapping[str, Any] = jobs_entry.expect_table()
    for job in jobs:
        for parent in job.after:
            place = None if parent in table else _parent_in(jobs_entry.child(job.id), parent)
            if place is not None:
                place.warn(*no_such_parent(job.id, parent, table, " in this file"), "J104")


# Where a job file says that a job follows another one.
#
# Whether that one exists is known only when the file is applied, because it may be of another source. So the place
# is looked for then, in the text, and only where the update was refused.

FileText = tuple[str, bytes]


def position_of_parent(files: Iterable[FileText], job: str, parent: str) -> str:
    """`FILE:LINE:COLUMN` of the name of the parent; empty where none of the files has it."""
    for path, text in files:
        if job.encode() not in text:
            continue  # most files of a directory are about other jobs, and need not be read
        try:
            root = (open_json if path.endswith(".json") else open_toml)(text, path, "UTC")
        except JobFileError:
            continue
        for table in _tables_of(root, job):
            if (entry := _parent_in(table, parent)) is not None:
                line, column = entry.sheet.lines.line_and_column(entry.node.value.start)
                return f"{escaped(path)}:{line}:{column}"
    return ""


def _tables_of(root: Entry, job: str) -> Iterable[Entry]:
    """The table of the job in a job file, or its trigger definition."""
    if isinstance(root.value, list):
        return (one for one in root.children() if isinstance(one.value, dict) and one.value.get("id") == job)
    if not isinstance(root.value, dict):
        return ()
    if root.value.get("id") == job:
        return (root,)
    jobs = root.value.get("jobs")
    return (root.child("jobs").child(job),) if isinstance(jobs, dict) and job in jobs else ()


def _parent_in(table: Entry, parent: str) -> Entry | None:
    if not isinstance(table.value, dict) or "after" not in table.value:
        return None
    after = table.child("after")
    if after.value == parent:
        return after
    named = after.children() if isinstance(after.value, list) else ()
    return next((one for one in named if one.value == parent), None)
