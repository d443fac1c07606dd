"""One job in full: what it does now, what its schedule means, what comes next, how it went, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from chronex.engine.usual import LEAST_RUNS, Usual
from chronex.expr.describe import describe
from chronex.model.job import Call, Command, Job
from chronex.model.occurrence import Attempt, Run
from chronex.model.reasons import ReasonCode, shown_text
from chronex.text.durations import countdown, format_duration, rounded_duration
from chronex.text.terminal import cell_safe, cell_width
from chronex.timing.calendar_days import rules_in_words
from chronex.timing.job_schedule import timings_of
from chronex.timing.zones import Zone
from chronex.views.jobs import Outcome, Row, Situation, counts_from_its_run
from chronex.views.wording import retry_words
from chronex_tui.model.display import (
    STYLES,
    DisplaySettings,
    abbreviation,
    band_words,
    clock_time,
    day_of,
    exact_clock_time,
    full_stamp,
    have_seconds,
    job_zone,
    local_time,
    memory_words,
    sign,
    stamp,
    usage_words,
    word,
)
from chronex_tui.model.jobs_table import clock_note, next_words, no_time_words
from chronex_tui.model.layout import Line, Span, crop, wrap, wrap_line
from chronex_tui.model.snapshot import Firing, JobDetail

if TYPE_CHECKING:
    from chronex.views.why.answer import WhyAnswer

_LABEL = 7
_TIME_WIDTH = 18
# Why a task is a dead letter no longer.
_OFF_THE_LIST = (ReasonCode.DROPPED, ReasonCode.DROPPED_BY_LIMIT, ReasonCode.REPLAYED)
# Situations in which every try of the last occurrence is shown.
_WITH_TRIES = (Situation.RUNNING, Situation.RETRYING, Situation.FAILED)


def detail_lines(
    detail: JobDetail, display: DisplaySettings, cells: int, rows: int = 99, *, is_daemon_alive: bool = True
) -> list[Line]:
    """The panel beside the table; in a low panel the parts that matter most come first."""
    if rows < 12:
        return list(_strip(detail, display, cells, is_daemon_alive=is_daemon_alive))
    parts = [
        list(_now(detail, display, cells, is_daemon_alive=is_daemon_alive)),
        list(_meaning(detail, display, cells)),
    ]
    upcoming = list(_upcoming(detail, display, most=3 if rows < 24 else 5))
    parts += [upcoming + list(_clock(detail, display, cells)), list(_past(detail, display, cells))]
    if rows >= 16:
        parts.append(list(_command(detail.row.job, cells)))
    return [line for part in parts if part for line in (*part, ())][:-1]


def _strip(detail: JobDetail, display: DisplaySettings, cells: int, *, is_daemon_alive: bool) -> Iterator[Line]:
    """The few lines below the table of a small terminal."""
    row = detail.row
    yield ((display.sign_of_job(row.situation) + " ", STYLES[row.situation]),
           *_headline(row, display, is_daemon_alive=is_daemon_alive))  # fmt: skip
    if detail.firing is not None and row.situation in _WITH_TRIES:
        yield from tries_lines(detail.firing, display, row.job, with_reason=True)
    elif row.last is not None and not row.last.is_good:
        yield (("why    ", "label"), (_last_words(row.last), STYLES[row.last.state]))
    yield next(iter(_meaning(detail, display, cells)))
    yield _next_line(detail, display, cells)
    yield next(iter(_clock(detail, display, cells * 3)))
    newest = next((line for line in reversed(detail.log) if line.strip()), "")
    if newest:
        yield (("output ", "label"), (cell_safe(newest.strip()), "dim"))


def _labelled(label: str, text: str, style: str, cells: int) -> Iterator[Line]:
    """A label, then the text over as many lines as it needs, indented."""
    for number, piece in enumerate(wrap(text, max(cells - _LABEL, 10))):
        yield ((f"{label if number == 0 else '':{_LABEL}}", "label"), (piece, style))


# -- now ------------------------------------------------------------------------------------------------------


def _now(detail: JobDetail, display: DisplaySettings, cells: int, *, is_daemon_alive: bool) -> Iterator[Line]:
    row = detail.row
    head = (display.sign_of_job(row.situation) + " ", STYLES[row.situation])
    yield from wrap_line((head, *_headline(row, display, is_daemon_alive=is_daemon_alive)), max(cells, 10))
    if detail.firing is not None and row.situation in _WITH_TRIES:
        yield from firing_lines(detail.firing, display, row.job, cells)
    elif row.last is not None and not row.last.is_good:
        yield from _labelled("why", _last_words(row.last), STYLES[row.last.state], cells)


def _last_words(last: Outcome) -> str:
    """Of a job that is fine otherwise, or paused: that it is the last run which was skipped, missed or failed."""
    return cell_safe(f"last run {word(last.state)}: {shown_text(last.reason)}")


def _headline(row: Row, display: DisplaySettings, *, is_daemon_alive: bool) -> Line:
    """The situation as a sentence."""
    style = STYLES[row.situation]
    zone = display.zone_of(row.job)
    match row.situation:
        case Situation.RUNNING if row.running_since_ms is not None:
            since = row.running_since_ms
            began = f"{exact_clock_time(since, zone)} {abbreviation(since, zone)}"
            if not display.is_watched:
                return ((f"began at {began}; no scheduler runs, so its outcome is not known yet", "retry"),)
            return ((f"running for {display.spent_since(since)}", style), (f"  since {began}", "dim"))
        case Situation.RETRYING if row.retry is not None:
            retry = row.retry
            of = f" of {retry.most}" if retry.most else ""
            left = retry.at_ms - display.now_ms
            when = f"in {countdown(left)}" if left > 0 else "is due"
            return (
                (f"retrying: attempt {retry.attempt}{of} {when}", style),
                (f"  {'at' if left > 0 else 'since'} {exact_clock_time(retry.at_ms, zone)}", "dim"),
            )
        case Situation.PAUSED:
            by = f" by {cell_safe(row.job.progress.paused_by)}" if row.job.progress.paused_by else ""
            until = row.job.progress.paused_until_ms
            end = "until it is resumed" if until is None else f"until {stamp(until, display.now_ms, zone)}"
            return ((f"paused{by}", style), (f"  its runs are skipped {end}", "dim"))
        case Situation.FAILED:
            in_a_row = row.job.progress.counters.failures_in_a_row
            often = f" {in_a_row} times in a row" if in_a_row > 1 else ""
            when = f"  {stamp(row.last.finished_ms or row.last.nominal_ms, display.now_ms, zone)}" if row.last else ""
            return ((f"failed{often}", style), (when, "dim"))
    words_of_next = next_words(row, display, is_daemon_alive=is_daemon_alive)
    says_itself = row.next is None or not is_daemon_alive  # "would run 07:30", "was due 07:30", "no further run"
    return ((f"{row.situation}", style), ("  " if says_itself else "  next ", "dim"), *words_of_next)


def firing_lines(firing: Firing, display: DisplaySettings, job: Job, cells: int) -> Iterator[Line]:
    """Its tasks, each with its tries and why the last one failed."""
    for run, line in zip(
        ordered_runs(firing, job), tries_lines(firing, display, job, with_reason=False), strict=True
    ):
        yield line
        if _is_bad(run):
            yield from _labelled("why", cell_safe(_why(run, firing)), STYLES[run.state], cells)


def ordered_runs(firing: Firing, job: Job | None) -> list[Run]:
    """In the order in which the job has its tasks; those of an older version of the job come last."""
    places = {task.name: number for number, task in enumerate(job.tasks)} if job is not None else {}
    return sorted(firing.runs, key=lambda run: places.get(run.task, len(places)))


def tries_lines(firing: Firing, display: DisplaySettings, job: Job, *, with_reason: bool) -> Iterator[Line]:
    """A line for each task: when it was tried, or the state that it is in without a try."""
    for run in ordered_runs(firing, job):
        tries = firing.attempts_of(run.task)
        name = cell_safe(run.task) if len(firing.runs) > 1 else "tries"
        spans: list[tuple[str, str]] = [(f"{crop(name, 14):{_LABEL - 1}} ", "label")]
        spans += [(_try(attempt, display, job) + "  ", STYLES[attempt.state]) for attempt in tries[-6:]]
        if run.next_attempt_ms is not None and run.state == "retry":
            at = exact_clock_time(run.next_attempt_ms, display.zone_of(job))
            spans.append((f"{display.glyphs.down}{at}  ", "dim"))
        if not tries:
            spans.append((f"{word(run.state)}  ", STYLES[run.state]))
        if with_reason and _is_bad(run):
            spans.append((cell_safe(_why(run, firing)), STYLES[run.state]))
        yield tuple(spans)


def _why(run: Run, firing: Firing) -> str:
    """Why it did not go well. A dead letter that was taken off the list still failed for a reason of its own."""
    tries = firing.attempts_of(run.task)
    if run.reason.code in _OFF_THE_LIST and tries and tries[-1].reason:
        return f"{shown_text(tries[-1].reason)}; {shown_text(run.reason)}"
    return shown_text(run.reason)


def _is_bad(run: Run) -> bool:
    return bool(run.reason) and run.state in ("retry", "dlq", "failed", "canceled")


def _try(attempt: Attempt, display: DisplaySettings, job: Job) -> str:
    at = attempt.started_ms or attempt.created_ms
    return f"{display.sign_of(attempt.state)}{exact_clock_time(at, display.zone_of(job))}"


# -- what it means ----------------------------------------------------------------------------------------


def _without_expression(job: Job) -> str:
    return "when those have completed" if job.follows else "a schedule of the program's own"


def _meaning(detail: JobDetail, display: DisplaySettings, cells: int) -> Iterator[Line]:
    job = detail.row.job
    words = "; or ".join(describe(timing.meaning) for timing in timings_of(job)) or _without_expression(job)
    if job.calendars is not None:
        words += f"; {rules_in_words(job.calendars)}"
    short = f"{cell_safe(job.shown_schedule)}  {job_zone(job).name}"
    if cell_width(short) + cell_width(words) + 3 <= cells:
        yield ((cell_safe(job.shown_schedule), "bold"), (f"  {job_zone(job).name}", "dim"), (f"  {words}", ""))
        return
    yield ((crop(cell_safe(job.shown_schedule), cells), "bold"), (f"  {job_zone(job).name}", "dim"))
    for piece in wrap(cell_safe(words), cells):
        yield ((piece, ""),)


def _next_line(detail: JobDetail, display: DisplaySettings, cells: int) -> Line:
    """As many of the next runs as one line holds."""
    dot, zone = f" {display.glyphs.dot} ", display.zone_of(detail.row.job)
    is_exact = have_seconds(run.due_ms for run in detail.upcoming)
    stamps = [
        _both(run.due_ms, zone, detail.row.job, display.now_ms, is_exact=is_exact) for run in detail.upcoming[:3]
    ]
    while len(stamps) > 1 and cell_width(dot.join(stamps)) > cells - _LABEL:
        stamps.pop()
    return (("next   ", "label"), (dot.join(stamps), "") if stamps else _no_run(detail, display))


def _no_run(detail: JobDetail, display: DisplaySettings) -> Span:
    if detail.would_run_ms is not None:
        job = detail.row.job
        return (f"paused; would run {_both(detail.would_run_ms, display.zone_of(job), job, display.now_ms)}", "dim")
    if counts_from_its_run(detail.row):
        return ("counted from the end of its run", "dim")
    return (no_time_words(detail.row, display), "dim")


def _upcoming(detail: JobDetail, display: DisplaySettings, most: int) -> Iterator[Line]:
    job = detail.row.job
    zone = display.zone_of(job)
    if not detail.upcoming:
        yield (("next   ", "label"), _no_run(detail, display))
        return
    is_exact = have_seconds(run.due_ms for run in detail.upcoming)
    for number, run in enumerate(detail.upcoming[:most]):
        note = clock_note(job, run.nominal_ms)
        mark = f"  {display.glyphs.clock} {note}" if note else ""
        jitter = "" if run.is_drawn else "  or a little later (jitter)"
        yield (
            ("next   " if number == 0 else "       ", "label"),
            (_both(run.due_ms, zone, job, display.now_ms, is_exact=is_exact), "clock" if note else ""),
            (mark or jitter, "clock" if note else "dim"),
        )


def _both(ms: int, zone: Zone, job: Job, now_ms: int, *, is_exact: bool = False) -> str:
    """On the viewer's clock, and on the job's own where that shows another time."""
    own = job_zone(job)
    if own.offset_at(ms // 1000) == zone.offset_at(ms // 1000):
        return full_stamp(ms, zone, is_exact=is_exact, now_ms=now_ms)
    return f"{full_stamp(ms, zone, is_exact=is_exact, now_ms=now_ms)} ({clock_time(ms, own)} {abbreviation(ms, own)})"


def _clock(detail: JobDetail, display: DisplaySettings, cells: int) -> Iterator[Line]:
    job = detail.row.job
    if detail.change is None or detail.effect is None:
        yield (("clock  ", "label"), (f"{job_zone(job).name} does not change its clock", "dim"))
        return
    day = day_of(detail.change.at * 1000 - 1000, job_zone(job))
    style = "clock" if detail.effect.touches else "dim"
    yield from _labelled("clock", f"{day}: {detail.effect.text}", style, cells)


# -- how it went ------------------------------------------------------------------------------------------


def _past(detail: JobDetail, display: DisplaySettings, cells: int) -> Iterator[Line]:
    if not detail.outcomes:
        yield (("last   ", "label"), (detail.row.without_last, "dim"))
        return
    shown_ones = detail.outcomes[: max(min(40, cells - 30), 8)]
    yield (
        ("last   ", "label"),
        *((sign(outcome.state, display.glyphs), STYLES[outcome.state]) for outcome in reversed(shown_ones)),
        (f"  {_tally(shown_ones)}", "dim"),
    )
    times = [o.duration_ms for o in shown_ones if o.duration_ms is not None and o.state == "completed"]
    if times:
        middle = sorted(times)[len(times) // 2]
        yield (
            ("took   ", "label"),
            (sparks(list(reversed([o.duration_ms for o in shown_ones])), display.glyphs.sparks), "day"),
            (f"  p50 {rounded_duration(middle)}  max {rounded_duration(max(times))}", "dim"),
        )
    yield from usual_lines(detail, cells)


def usual_lines(detail: JobDetail, cells: int) -> Iterator[Line]:
    """What runs usually take of time, processor and memory, and what the newest attempt took of the machine."""
    usual = detail.usual
    bands = [] if usual is None or usual.runs < LEAST_RUNS else [
        band_words("", usual.duration_ms, rounded_duration),
        band_words("cpu ", usual.cpu_ms, rounded_duration),
        band_words("", usual.peak_kib, memory_words),
    ]  # fmt: skip
    if words_of_next := ", ".join(words for words in bands if words):
        yield from _labelled("usual", words_of_next, "dim", cells)
    newest = detail.firing.newest_log if detail.firing is not None else None
    if newest is not None and (words := usage_words(newest.usage)):
        yield from _labelled("used", f"{words} by the newest attempt{_beyond(newest, usual)}", "dim", cells)


def _beyond(attempt: Attempt, usual: Usual | None) -> str:
    """What of it is more than 19 of 20 runs take."""
    usage = attempt.usage
    if usage is None or usual is None or usual.runs < LEAST_RUNS:
        return ""
    found = []
    if usual.cpu_ms is not None and usage.cpu_ms > usual.cpu_ms.p95:
        found.append("processor")
    if usual.peak_kib is not None and (usage.peak_kib or 0) > usual.peak_kib.p95:
        found.append("memory")
    return f"; more {' and '.join(found)} than usual" if found else ""


def _tally(outcomes: Sequence[Outcome]) -> str:
    good = sum(1 for outcome in outcomes if outcome.is_good)
    return f"{good} of {len(outcomes)} ok"


def sparks(values: Sequence[int | None], levels: str) -> str:
    """A bar for each value; a space where there is none."""
    highest = max((value for value in values if value is not None), default=0) or 1
    last = len(levels) - 1
    return "".join(" " if value is None else levels[min(value * last // highest, last)] for value in values)


def _command(job: Job, cells: int) -> Iterator[Line]:
    for number, task in enumerate(job.tasks[:4]):
        label = "runs" if number == 0 else ""
        name = f"{cell_safe(task.name)}: " if len(job.tasks) > 1 else ""
        text = crop(name + cell_safe(command_text(task.run)), cells - _LABEL)
        yield ((f"{label:{_LABEL}}", "label"), (text, ""))
    facts = [f"overlap {job.overlap}", f"recovery {job.recovery.strategy}"]
    facts += _retries(job)
    if job.execution_timeout_ms is not None:
        facts.append(f"timeout {format_duration(job.execution_timeout_ms)}")
    if job.tags:
        facts.append("tags " + ", ".join(cell_safe(tag) for tag in job.tags))
    yield from _labelled("policy", ", ".join(facts), "dim", cells)
    if job.source:
        yield from _labelled("from", cell_safe(job.source), "dim", cells)


def _retries(job: Job) -> Iterator[str]:
    """How failed tasks are tried again: once where all are tried alike, else for each that is."""
    policies = {task.name: job.retry_for(task) for task in job.tasks}
    if len(set(policies.values())) == 1:
        policies = {"": next(iter(policies.values()))}
    for name, policy in policies.items():
        if policy.max != 0:
            yield f"retry {f'of {cell_safe(name)} ' if name else ''}{retry_words(policy)}"


def command_text(command: Command | Call) -> str:
    """As it would be typed. It is only shown: nothing is ever run from this text."""
    if isinstance(command, str):
        return command
    if isinstance(command, Call):
        return f"python {command.text if command.args or command.kwargs else command.target}"
    import shlex

    return shlex.join(command)


# -- why ------------------------------------------------------------------------------------------------------


def why_lines(answers: Sequence[WhyAnswer], cells: int) -> list[Line]:
    """Why something ran, ran late or did not run: the chain of `chronex why`."""
    return [line for answer in answers for line in (*_answer_lines(answer, cells), ())][:-1]


def _answer_lines(answer: WhyAnswer, cells: int) -> Iterator[Line]:
    zone = answer.zone
    named = "" if abbreviation(answer.instant_ms, zone) == zone.name else f"  {zone.name}"
    yield (
        (full_stamp(answer.instant_ms, zone), "bold"),
        (f"{named}  ", "dim"),
        (answer.cause.value.replace("_", " "), "key"),
    )
    for piece in wrap(cell_safe(answer.summary), max(cells - 2, 10)):
        yield ((f"  {piece}", ""),)
    day = local_time(answer.instant_ms, zone).date()
    for link in answer.links:
        at = ""
        if link.at_ms is not None:
            is_that_day = local_time(link.at_ms, zone).date() == day
            at = exact_clock_time(link.at_ms, zone) if is_that_day else full_stamp(link.at_ms, zone)[4:20].strip()
        for number, piece in enumerate(wrap(cell_safe(link.fact), max(cells - _TIME_WIDTH, 10))):
            yield ((f"  {at if number == 0 else '':{_TIME_WIDTH - 2}}", "label"), (piece, "dim"))
