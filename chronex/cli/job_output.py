"""One job in full, as `show` prints it: what it is doing, its coming and past runs, its policies and tasks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from chronex.cli.output import paint, timed, wants_unicode
from chronex.cli.process_output import (
    HELD_BY,
    process_json,
    process_lines,
    refused_memory,
    usage_json,
    usage_text,
    usual_json,
    usual_lines,
)
from chronex.cli.record_output import (
    MARKS,
    SITUATION_COLOURS,
    attempt_json,
    outcome_json,
    plain_values,
    situation_json,
    state_text,
)
from chronex.engine.admit import DROPPING
from chronex.engine.plan import CATCHING_UP
from chronex.expr.describe import describe
from chronex.model.job import Call, Job, Task, TaskCheck, Work
from chronex.model.placement import describe_placement
from chronex.model.policies import CrashCheck, CrashPolicy, NotifyPolicy, OverlapPolicy, RecoveryPolicy, RunOn
from chronex.model.reasons import shown_text, text_of
from chronex.model.states import OccurrenceState
from chronex.text.durations import brief_duration, format_duration
from chronex.text.sizes import size_text
from chronex.text.terminal import terminal_safe
from chronex.timing import read
from chronex.timing.calendar_days import calendar_in_words, day_text, rules_in_words
from chronex.timing.job_schedule import CUSTOM
from chronex.timing.zones import Zone
from chronex.views.coming_runs import next_instant
from chronex.views.filters import command_text
from chronex.views.jobs import MEANING, Detail, NextRun, Retry, Situation, counts_from_its_run
from chronex.views.nodes import WATCHED, Watch
from chronex.views.wording import full, retry_words, state_words, upcoming_if


def detail_lines(detail: Detail, now_ms: int, zone: Zone, watch: Watch = WATCHED) -> Iterator[str]:
    job, row = detail.job, detail.row
    colours = SITUATION_COLOURS.get(row.situation, ())
    yield f"{paint(terminal_safe(job.shown_name), 'bold')}  {paint(state_text(row, watch), *colours)}"
    yield f"  {_meaning(detail, now_ms, zone, watch)}"
    if job.description:
        yield f"  {terminal_safe(job.description)}"
    yield ""
    yield f"schedule   {terminal_safe(job.shown_schedule)}"
    yield f"           {terminal_safe(described(job))}"
    yield from _parameters(job)
    yield f"zone       {terminal_safe(job.timezone)}"
    yield from _calendars(job)
    yield from _upcoming(detail, now_ms, zone, watch)
    yield from _may_wait(detail)
    yield from _not_over(detail, now_ms, zone)
    yield from _now(detail, now_ms, zone, watch)
    yield from _past(detail, zone)
    yield ""
    for task in job.tasks:
        yield from _task(job, task)
    by = detail.last_usage.limits_by if detail.last_usage is not None else ""
    if by and any(task.limits is not None for task in job.tasks):
        yield f"           limits of the last run: {HELD_BY.get(by, terminal_safe(by))}"
        yield from refused_memory(job, detail.last_usage)
    yield ""
    yield from (f"{key:10} {terminal_safe(value)}" for key, value in _policies(job))


def _meaning(detail: Detail, now_ms: int, zone: Zone, watch: Watch) -> str:
    job, row = detail.job, detail.row
    if row.situation is Situation.RUNNING and watch.left_of(job.id):
        return "begun by a scheduler that is gone"
    if row.situation is Situation.PAUSED:
        who = f" by {terminal_safe(job.progress.paused_by)}" if job.progress.paused_by else ""
        until = (
            "until it is resumed"
            if job.progress.paused_until_ms is None
            else f"until {full(job.progress.paused_until_ms, zone)}"
        )
        return f"paused{who}: its runs are skipped {until}"
    if row.situation is Situation.FAILED and detail.last_problem is not None:
        times = job.progress.counters.failures_in_a_row
        often = "" if times == 1 else f" {times} times in a row"
        return f"failed{often}: {terminal_safe(shown_text(detail.last_problem.reason))}"
    return MEANING[row.situation]


def _parameters(job: Job) -> Iterator[str]:
    for number, (name, one) in enumerate(job.parameters.items()):
        kind = ", ".join(one.choices) or one.type.value
        default = "" if one.default is None else f", {one.default or 'empty'} by default"
        must = ", a trigger must name it" if one.required else ""
        words = f": {one.description}" if one.description else ""
        yield terminal_safe(f"{'' if number else 'parameters':10} {name} ({kind}{default}{must}){words}")


def described(job: Job) -> str:
    if job.follows:
        return f"once for each time at which {' and '.join(job.after)} completed"
    if job.dialect == CUSTOM:
        return "decided by the program that uses Chronex as a library"
    meanings = (read(text, job.dialect).meaning for text in job.schedules)
    return "; or ".join(describe(meaning) for meaning in meanings if meaning is not None)


def _calendars(job: Job) -> Iterator[str]:
    if job.calendars is None:
        return
    yield f"calendars  {terminal_safe(rules_in_words(job.calendars))}"
    for calendar in dict.fromkeys(job.calendars.all):
        yield f"           {terminal_safe(calendar_in_words(calendar))}"


def _upcoming(detail: Detail, now_ms: int, zone: Zone, watch: Watch) -> Iterator[str]:
    if not detail.upcoming:
        yield f"next       {_no_run(detail, now_ms, zone)}"
    for number, run in enumerate(detail.upcoming):
        start = _start(run, number, now_ms, zone, watch)
        yield f"{'next' if number == 0 else '':10} {full(run.nominal_ms, zone)}{start}"


def _no_run(detail: Detail, now_ms: int, zone: Zone) -> str:
    if detail.row.is_paused and detail.job.enabled:
        would_run = None if detail.job.follows else next_instant(detail.job, now_ms)
        return "none until it is resumed" if would_run is None else f"paused; would run {full(would_run, zone)}"
    if counts_from_its_run(detail.row):
        return "counted from the end of its run"
    if detail.row.not_before_ms is not None:
        return f"not before {full(detail.row.not_before_ms, zone)}; what comes then was not looked at"
    return "when those have completed" if detail.job.follows else "never"


def _may_wait(detail: Detail) -> Iterator[str]:
    if detail.may_wait and detail.upcoming:
        yield f"           each may wait for {terminal_safe(', '.join(detail.may_wait))}"


# What becomes of the coming runs while an earlier one is not over: how long that takes nobody knows.
_BESIDE = {
    OverlapPolicy.SKIP: "each is skipped if {} is not over by then",
    OverlapPolicy.QUEUE: "each waits until {} is over",
    OverlapPolicy.QUEUE_ONE: "the first waits until {} is over, and the others are skipped until then",
    OverlapPolicy.CANCEL_RUNNING: "the first cancels {} if it is not over by then",
}

_QUEUE_IS_FULL = "each is skipped while {} waits"


def _not_over(detail: Detail, now_ms: int, zone: Zone) -> Iterator[str]:
    if detail.not_over is None or not detail.upcoming:
        return
    earlier = f"that of {full(detail.not_over.nominal_ms, zone)}"
    is_full = detail.job.overlap is OverlapPolicy.QUEUE_ONE and detail.not_over.state is OccurrenceState.QUEUED
    yield f"           {(_QUEUE_IS_FULL if is_full else _BESIDE[detail.job.overlap]).format(earlier)}"
    was_missed = detail.upcoming[0].due_ms <= now_ms and detail.job.recovery.strategy in CATCHING_UP
    if was_missed and detail.job.overlap in DROPPING:
        yield f"           those that were missed wait for it ({detail.job.recovery.strategy.value})"


def _start(run: NextRun, number: int, now_ms: int, zone: Zone, watch: Watch) -> str:
    when = upcoming_if(run.due_ms, now_ms, zone, has_scheduler=watch.has_scheduler)
    once = "" if watch.has_scheduler or run.due_ms <= now_ms else " once a scheduler runs"
    away = f"   {when}{once}" if number == 0 else ""
    if run.due_ms != run.nominal_ms:
        away = f"   {'starts' if watch.has_scheduler else 'would start'} {full(run.due_ms, zone)}"
    if run.moved is not None:
        away += f"   moved by {run.moved.calendar} from {full(run.moved.nominal_ms, zone)}"
    return away + ("" if run.is_drawn else " or later")


def _now(detail: Detail, now_ms: int, zone: Zone, watch: Watch) -> Iterator[str]:
    left = watch.left_of(detail.job.id)
    for one in left:
        since = full(one.attempt.started_ms or one.attempt.created_ms, zone)
        where = f" by {one.attempt.owner}" if one.attempt.owner else ""
        yield f"left       {one.attempt.task}, attempt {one.attempt.number}, begun {since}{where}"
        yield f"           {one.words}"
    for running in detail.running if not left else ():
        for attempt in running.attempts:
            since = brief_duration(max(0, now_ms - (attempt.started_ms or attempt.created_ms)))
            where = f" on {attempt.owner}" if attempt.owner else ""
            pid = f", pid {attempt.process.pid}" if attempt.process is not None else ""
            yield f"running    {attempt.task}, attempt {attempt.number}, for {since}{where}{pid}"
    for retry in detail.retries:
        reason = terminal_safe(shown_text(retry.reason))
        when = upcoming_if(retry.at_ms, now_ms, zone, has_scheduler=watch.has_scheduler)
        yield f"retry      {_retry_text(retry)} {when}: {reason}"
    if detail.queued:
        yield f"queued     {len(detail.queued)}: {terminal_safe(shown_text(detail.waits_for))}"


def _retry_text(retry: Retry) -> str:
    of = "" if retry.most is None else f" of {retry.most}"
    return f"{retry.task}, attempt {retry.attempt}{of}"


def _past(detail: Detail, zone: Zone) -> Iterator[str]:
    if not detail.outcomes:
        yield f"last       {detail.row.without_last}"
        return
    last = detail.outcomes[0]
    took = "" if last.duration_ms is None else f" after {brief_duration(last.duration_ms)}"
    why = f": {terminal_safe(shown_text(last.reason))}" if last.reason else ""
    where = f" on {last.node}" if last.node else ""
    yield f"last       {full(last.nominal_ms, zone)} {state_words(last.state.value, last.errors)}{took}{where}{why}"
    symbol = 0 if wants_unicode() else 1
    drawn = (
        paint(MARKS[one.state][symbol], "yellow" if one.errors else MARKS[one.state][2])
        for one in reversed(detail.outcomes)
    )
    counters = detail.job.progress.counters
    yield f"last {len(detail.outcomes):2}    {''.join(drawn)}"
    totals = {
        "completed": counters.completed - counters.completed_with_errors,
        "completed with errors": counters.completed_with_errors,
        "failed": counters.failed,
        "skipped": counters.skipped,
        "missed": counters.missed,
        "canceled": counters.canceled,
    }
    if detail.last_usage is not None:
        yield f"took       {usage_text(detail.last_usage)}"
    if detail.usual is not None:
        yield from (f"{'usual' if not n else '':10} {line}" for n, line in enumerate(usual_lines(detail.usual)))
    yield f"in all     {', '.join(f'{count} {what}' for what, count in totals.items() if count)}"


def _task(job: Job, task: Task) -> Iterator[str]:
    yield f"task       {paint(task.name, 'bold')}  {terminal_safe(command_text(task.run))}"
    policies = [
        f"timeout {_duration(job.timeout_for(task))}",
        f"retry {retry_words(job.retry_for(task))}",
        f"on failure {job.failure_for(task).value}",
    ]
    if task.needs:
        policies.insert(0, f"needs {', '.join(task.needs)} ({task.when.value})")
    if task.at_most is not None:
        policies.append(f"at most {task.at_most} of {task.matrix_of} at once")
    if task.idempotency_key:
        policies.append(f"key {terminal_safe(task.idempotency_key)}")
    yield f"           {', '.join(policies)}"
    if task.directory:
        yield f"           in {terminal_safe(task.directory)}"
    if task.check is not None:
        yield f"           done only if {terminal_safe(check_words(task.check))}"
    yield from (f"           {terminal_safe(line)}" for line in process_lines(task))


def check_words(check: TaskCheck) -> str:
    """What must be so after its command has ended well."""
    if check.run:
        return f"{command_text(check.run)} ends with 0"
    parts = [f"{check.file} is there"]
    if check.min_size:
        parts.append(f"has at least {size_text(check.min_size)}")
    if check.newer:
        parts.append("was written by the run")
    return " and ".join(parts)


def _on_crash(policy: CrashPolicy | CrashCheck) -> str:
    return f"as its check says: {command_text(policy.check)}" if isinstance(policy, CrashCheck) else policy.value


def _policies(job: Job) -> Iterator[tuple[str, str]]:
    yield "overlap", job.overlap.value
    yield "recovery", _recovery(job.recovery)
    yield "tasks", "by their needs" if job.has_needs else job.mode.value
    yield "timeout", f"{_duration(job.execution_timeout_ms)} for all tasks together"
    yield "on crash", _on_crash(job.on_crash)
    yield from _waiting_policies(job)
    if job.pause_after_failures is not None:
        yield "pause", f"after {job.pause_after_failures} failures in a row, until it is resumed"
    if job.spread is not None:
        yield "spread", f"{job.spread.distribution} over {format_duration(job.spread.duration_ms)} {job.spread.mode}"
    for key, hook in (("on start", job.on_start), ("on end", job.on_complete)):
        if hook is not None:
            yield key, command_text(hook)
    if job.expect_within_ms is not None:
        yield "expect", f"completed {format_duration(job.expect_within_ms)} after its time"
    if job.expect_usual:
        yield "expect", "no longer than usual"
    if job.tags:
        yield "tags", ", ".join(job.tags)
    placed = describe_placement(job)
    if job.run_on is RunOn.EACH and not job.target:
        yield "runs on", f"each node that fits{': ' if placed else ''}{placed}, with a history of its own for each"
    elif placed:
        yield "runs on", placed
    if job.wait_for_node_ms is not None:
        yield "waits", f"at most {format_duration(job.wait_for_node_ms)} for a node that can run it"
    yield "version", f"{job.version}, from {job.source}" if job.source else str(job.version)


def _waiting_policies(job: Job) -> Iterator[tuple[str, str]]:
    """What its runs may have to wait for, and who goes first."""
    if job.groups:
        yield "groups", ", ".join(_weighed(name, places) for name, places in sorted(job.groups.items()))
    if job.priority:
        earlier = "earlier" if job.priority > 0 else "later"
        yield "priority", f"{job.priority}, as if it came {abs(job.priority)} minutes {earlier}"
    if job.wait_for:
        yield "waits for", f"{', '.join(job.wait_for)}; at most {format_duration(job.wait_at_most_ms)}"


def _weighed(name: str, places: int) -> str:
    return name if places == 1 else f"{name} ({places} places)"


def _duration(ms: int | None) -> str:
    return "none" if ms is None else format_duration(ms)


def _recovery(policy: RecoveryPolicy) -> str:
    bounds = [] if policy.max_count is None else [f"at most {policy.max_count}"]
    bounds += [] if policy.max_age_ms is None else [f"none older than {format_duration(policy.max_age_ms)}"]
    return policy.strategy.value + (f" ({', '.join(bounds)})" if bounds else "")


# -- a job in full: JSON ------------------------------------------------------------------------------------------


def detail_json(detail: Detail) -> dict[str, Any]:
    job, row = detail.job, detail.row
    return {
        **situation_json(row),
        "next_run": None if row.next is None else _run_json(row.next),
        **timed("next_not_before", row.not_before_ms),
        "next_runs": [_run_json(run) for run in detail.upcoming],
        "may_wait_for": list(detail.may_wait),
        "description": job.description,
        "schedule": job.schedule,
        "after": list(job.after),
        "parameters": {name: msgspec.to_builtins(one) for name, one in job.parameters.items()},
        "dialect": job.dialect,
        "timezone": job.timezone,
        "meaning": described(job),
        "schedules": list(job.schedules),
        "calendars": _calendars_json(job),
        "tags": list(job.tags),
        "nodes": list(job.nodes),
        "node_labels": dict(job.node_labels),
        "run_on": job.run_on.value,
        "target": job.target or None,
        "wait_for_node_ms": job.wait_for_node_ms,
        "metadata": dict(job.metadata),
        "version": job.version,
        "source": job.source,
        "paused": {"by": job.progress.paused_by, **timed("until", job.progress.paused_until_ms)}
        if row.is_paused
        else None,
        "policies": _policies_json(job),
        "tasks": [_task_json(job, task) for task in job.tasks],
        "running": [
            {"occurrence": running.occurrence.id, "attempts": [attempt_json(a) for a in running.attempts]}
            for running in detail.running
        ],
        "queued": [occurrence.id for occurrence in detail.queued],
        "waits_for": text_of(detail.waits_for) or None,
        "retries": [_retry_json(retry) for retry in detail.retries],
        "last": [outcome_json(outcome) for outcome in detail.outcomes],
        "last_usage": usage_json(detail.last_usage),
        "usual": usual_json(detail.usual),
        "counters": msgspec.structs.asdict(job.progress.counters),
    }


def _run_json(run: NextRun) -> dict[str, Any]:
    found = {**timed("nominal", run.nominal_ms), **timed("due", run.due_ms), "is_drawn": run.is_drawn}
    if run.moved is not None:
        found |= {**timed("moved_from", run.moved.nominal_ms), "moved_by": run.moved.calendar}
    return found


def _calendars_json(job: Job) -> dict[str, Any] | None:
    """The rules by the names of their calendars, and of each calendar where its days come from."""
    rules = job.calendars
    if rules is None:
        return None
    return {
        "except": [calendar.name for calendar in rules.excluded],
        "only": [calendar.name for calendar in rules.only],
        "on_excluded": rules.on_excluded.value,
        "workday": list(rules.workday),
        "blackout": [calendar.name for calendar in rules.blackout],
        "sources": {
            calendar.name: {
                "source": calendar.source.value,
                "origin": calendar.origin or None,
                "data": calendar.data or None,
                "until": None if calendar.until_day is None else day_text(calendar.until_day),
            }
            for calendar in rules.all
        },
    }


def _retry_json(retry: Retry) -> dict[str, Any]:
    return {
        "task": retry.task,
        **timed("nominal", retry.nominal_ms),
        "attempt": retry.attempt,
        "most": retry.most,
        **timed("at", retry.at_ms),
        "reason": text_of(retry.reason),
    }


def _policies_json(job: Job) -> dict[str, Any]:
    return {
        "overlap": job.overlap.value,
        "recovery": plain_values(job.recovery),
        "mode": job.mode.value,
        "on_failure": job.failure.value,
        "on_crash": plain_values(job.on_crash) if isinstance(job.on_crash, CrashCheck) else job.on_crash.value,
        "cadence": job.cadence.value,
        "execution_timeout_ms": job.execution_timeout_ms,
        "grace_ms": job.grace_ms,
        "leftovers": job.leftovers.value,
        "log_limit": job.log_limit,
        "spread": None if job.spread is None else plain_values(job.spread),
        "dst": None if job.dst is None else plain_values(job.dst),
        "notify": None if job.notify is None else _notify_json(job.notify),
        "expect_within_ms": job.expect_within_ms,
        "expect": "usual" if job.expect_usual else None,
        "pause_after_failures": job.pause_after_failures,
        "groups": dict(job.groups),
        "priority": job.priority,
        "wait_for": list(job.wait_for),
        "wait_at_most_ms": job.wait_at_most_ms if job.wait_for else None,
        "on_start": _work_json(job.on_start),
        "on_complete": _work_json(job.on_complete),
    }


def _notify_json(notify: NotifyPolicy) -> dict[str, Any]:
    """Without the paths of web addresses, which may be all that keeps strangers out."""
    return {
        "run": notify.run,
        "to": [{"channel": one.name, "kind": one.kind.value, "target": one.shown_target} for one in notify.channels],
        "on": sorted(event.value for event in notify.events),
        "after_failures": notify.after_failures,
        "on_recovery": notify.on_recovery,
        "on_errors": notify.on_errors,
        "long_after_ms": notify.long_after_ms,
    }


def _task_json(job: Job, task: Task) -> dict[str, Any]:
    """What holds for the task: its own setting, else the setting of its job."""
    return {
        "name": task.name,
        "run": _work_json(task.run),
        "timeout_ms": job.timeout_for(task),
        # With the longest pause that holds where the policy names none.
        "retry": {**plain_values(job.retry_for(task)), "max_interval_ms": job.retry_for(task).longest_ms},
        "on_failure": job.failure_for(task).value,
        "needs": None if task.needs is None else list(task.needs),
        "when": task.when.value,
        "matrix_of": task.matrix_of or None,
        "combination": dict(task.combination),
        "at_most": task.at_most,
        "directory": task.directory,
        "env": dict(task.env),
        "secrets": list(task.secrets),
        **process_json(task),
        "success_codes": list(task.success_codes),
        "retry_codes": None if task.retry_codes is None else list(task.retry_codes),
        "idempotency_key": task.idempotency_key,
        "idempotency_ttl_ms": task.idempotency_ttl_ms,
        "metadata": dict(task.metadata),
        "check": None if task.check is None else plain_values(task.check),
    }


def _work_json(work: Work | None) -> Any:
    if isinstance(work, Call):
        return {"call": work.target, "args": list(work.args), "kwargs": dict(work.kwargs)}
    return list(work) if isinstance(work, tuple) else work
