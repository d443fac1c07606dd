"""One job in full: what it does now, what it means, what comes next, how it went."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chronex.text.durations import format_duration

from chronex.expr.describe import describe
from chronex.model.reasons import short_text, text_of
from chronex.model.records import Attempt, Call, Command, Job, Run
from chronex.timing.job_schedule import timing_of
from chronex.timing.zones import Zone
from chronex.views.jobs import Outcome, Row, Situation
from chronex_tui.model.cells import Line, crop, shown, width, wrap
from chronex_tui.model.glyphs import STYLES, sign, word
from chronex_tui.model.jobs import clock_note, next_words
from chronex_tui.model.look import Look, job_zone
from chronex_tui.model.snapshot import Detail, Firing
from chronex_tui.model.wording import (
    abbreviation,
    clock,
    countdown,
    day_of,
    duration,
    elapsed,
    exact_clock,
    full_stamp,
    stamp,
)

_LABEL = 7
# Situations in which the last occurrence is worth telling try by try.
_TOLD = (Situation.RUNNING, Situation.RETRYING, Situation.FAILED)


def detail_lines(detail: Detail, look: Look, cells: int, rows: int = 99, *, daemon_lives: bool = True) -> list[Line]:
    """The panel beside the table; in a low panel the parts that matter most come first."""
    if rows < 12:
        return list(_strip(detail, look, cells, daemon_lives=daemon_lives))
    parts = [list(_now(detail, look, cells, daemon_lives=daemon_lives)), list(_meaning(detail, look, cells))]
    upcoming = list(_upcoming(detail, look, most=3 if rows < 24 else 5))
    parts += [upcoming + list(_clock(detail, look, cells)), list(_past(detail, look, cells))]
    if rows >= 16:
        parts.append(list(_command(detail.row.job, cells)))
    return [line for part in parts if part for line in (*part, ())][:-1]


def _strip(detail: Detail, look: Look, cells: int, *, daemon_lives: bool) -> Iterator[Line]:
    """Below the table of a small terminal: a line for each question."""
    row = detail.row
    yield ((look.glyphs.situation[row.situation] + " ", STYLES[row.situation]),
           *_headline(row, look, daemon_lives=daemon_lives))  # fmt: skip
    if detail.firing is not None and row.situation in _TOLD:
        yield from _tries(detail.firing, look, row.job, with_reason=True)
    elif row.last is not None and not row.last.is_good:
        yield (("why    ", "label"), (shown(text_of(row.last.reason)), STYLES[row.last.state]))
    yield next(iter(_meaning(detail, look, cells)))
    yield _next_line(detail, look, cells)
    yield next(iter(_clock(detail, look, cells * 3)))
    newest = next((line for line in reversed(detail.log) if line.strip()), "")
    if newest:
        yield (("output ", "label"), (shown(newest.strip()), "dim"))


def _labelled(label: str, text: str, style: str, cells: int) -> Iterator[Line]:
    """A label, then the text over as many lines as it needs, indented."""
    for number, piece in enumerate(wrap(text, max(cells - _LABEL, 10))):
        yield ((f"{label if number == 0 else '':{_LABEL}}", "label"), (piece, style))


# -- now ------------------------------------------------------------------------------------------------------


def _now(detail: Detail, look: Look, cells: int, *, daemon_lives: bool) -> Iterator[Line]:
    row = detail.row
    style = STYLES[row.situation]
    head = (look.glyphs.situation[row.situation] + " ", style)
    yield (head, *_headline(row, look, daemon_lives=daemon_lives))
    if detail.firing is not None and row.situation in _TOLD:
        yield from firing_lines(detail.firing, look, row.job, cells)
    elif row.last is not None and not row.last.is_good:
        yield from _labelled("why", shown(text_of(row.last.reason)), STYLES[row.last.state], cells)


def _headline(row: Row, look: Look, *, daemon_lives: bool) -> Line:
    """The situation as a sentence."""
    style = STYLES[row.situation]
    zone = look.zone_of(row.job)
    match row.situation:
        case Situation.RUNNING if row.running_since_ms is not None:
            since = row.running_since_ms
            text = f"running for {elapsed(look.now_ms - since)}"
            return ((text, style), (f"  since {exact_clock(since, zone)} {abbreviation(since, zone)}", "dim"))
        case Situation.RETRYING if row.retry is not None:
            retry = row.retry
            of = f" of {retry.most}" if retry.most else ""
            left = retry.at_ms - look.now_ms
            when = f"in {countdown(left)}" if left > 0 else "is due"
            return (
                (f"retrying: attempt {retry.attempt}{of} {when}", style),
                (f"  {'at' if left > 0 else 'since'} {exact_clock(retry.at_ms, zone)}", "dim"),
            )
        case Situation.PAUSED:
            by = f" by {shown(row.job.paused_by)}" if row.job.paused_by else ""
            until = row.job.paused_until_ms
            end = "until it is resumed" if until is None else f"until {stamp(until, look.now_ms, zone)}"
            return ((f"paused{by}", style), (f"  its runs are skipped {end}", "dim"))
        case Situation.FAILED:
            in_a_row = row.job.counters.failures_in_a_row
            often = f" {in_a_row} times in a row" if in_a_row > 1 else ""
            when = f"  {stamp(row.last.finished_ms or row.last.nominal_ms, look.now_ms, zone)}" if row.last else ""
            return ((f"failed{often}", style), (when, "dim"))
    return ((f"{row.situation}", style), ("  next ", "dim"), *next_words(row, look, daemon_lives=daemon_lives))


def firing_lines(firing: Firing, look: Look, job: Job, cells: int) -> Iterator[Line]:
    """Its tasks, each with its tries and why the last one failed."""
    for run, line in zip(firing.runs, _tries(firing, look, job, with_reason=False), strict=True):
        yield line
        if _is_bad(run):
            yield from _labelled("why", shown(text_of(run.reason)), STYLES[run.state], cells)


def _tries(firing: Firing, look: Look, job: Job, *, with_reason: bool) -> Iterator[Line]:
    for run in firing.runs:
        tries = firing.attempts_of(run.task)
        name = shown(run.task) if len(firing.runs) > 1 else "tries"
        spans: list[tuple[str, str]] = [(f"{crop(name, 14):{_LABEL - 1}} ", "label")]
        spans += [(_try(attempt, look, job) + "  ", STYLES[attempt.state]) for attempt in tries[-6:]]
        if run.next_attempt_ms is not None and run.state == "retry":
            at = exact_clock(run.next_attempt_ms, look.zone_of(job))
            spans.append((f"{look.glyphs.down}{at}  ", "dim"))
        if not tries:
            spans.append((word(run.state), STYLES[run.state]))
        if with_reason and _is_bad(run):
            spans.append((shown(text_of(run.reason)), STYLES[run.state]))
        yield tuple(spans)


def _is_bad(run: Run) -> bool:
    return bool(run.reason) and run.state in ("retry", "dlq", "failed", "canceled")


def _try(attempt: Attempt, look: Look, job: Job) -> str:
    at = attempt.started_ms or attempt.created_ms
    return f"{sign(attempt.state, look.glyphs)}{exact_clock(at, look.zone_of(job))}"


# -- what it means ----------------------------------------------------------------------------------------


def _meaning(detail: Detail, look: Look, cells: int) -> Iterator[Line]:
    job = detail.row.job
    timing = timing_of(job)
    words = describe(timing.meaning) if timing is not None else "a schedule of the program's own"
    short = f"{shown(job.schedule)}  {job_zone(job).name}"
    if width(short) + width(words) + 3 <= cells:
        yield ((shown(job.schedule), "bold"), (f"  {job_zone(job).name}", "dim"), (f"  {words}", ""))
        return
    yield ((crop(shown(job.schedule), cells), "bold"), (f"  {job_zone(job).name}", "dim"))
    for piece in wrap(shown(words), cells):
        yield ((piece, ""),)


def _next_line(detail: Detail, look: Look, cells: int) -> Line:
    """As many of the next runs as one line holds."""
    dot, zone = f" {look.glyphs.dot} ", look.zone_of(detail.row.job)
    stamps = [_both(run.due_ms, zone, detail.row.job) for run in detail.upcoming[:3]]
    while len(stamps) > 1 and width(dot.join(stamps)) > cells - _LABEL:
        stamps.pop()
    return (("next   ", "label"), (dot.join(stamps), "") if stamps else ("no further run", "dim"))


def _upcoming(detail: Detail, look: Look, most: int) -> Iterator[Line]:
    job = detail.row.job
    zone = look.zone_of(job)
    if not detail.upcoming:
        yield (("next   ", "label"), ("no further run", "dim"))
        return
    for number, run in enumerate(detail.upcoming[:most]):
        note = clock_note(job, run.nominal_ms)
        mark = f"  {look.glyphs.clock} {note}" if note else ""
        jitter = "" if run.is_drawn else "  or a little later (jitter)"
        yield (
            ("next   " if number == 0 else "       ", "label"),
            (_both(run.due_ms, zone, job), "clock" if note else ""),
            (mark or jitter, "clock" if note else "dim"),
        )


def _both(ms: int, zone: Zone, job: Job) -> str:
    """By the viewer's clock, and by the job's own where that tells another time."""
    own = job_zone(job)
    if own.offset_at(ms // 1000) == zone.offset_at(ms // 1000):
        return full_stamp(ms, zone)
    return f"{full_stamp(ms, zone)} ({clock(ms, own)} {abbreviation(ms, own)})"


def _clock(detail: Detail, look: Look, cells: int) -> Iterator[Line]:
    job = detail.row.job
    if detail.change is None or detail.effect is None:
        yield (("clock  ", "label"), (f"{job_zone(job).name} does not change its clock", "dim"))
        return
    day = day_of(detail.change.at * 1000 - 1000, job_zone(job))
    style = "clock" if detail.effect.touches else "dim"
    yield from _labelled("clock", f"{day}: {detail.effect.text}", style, cells)


# -- how it went ------------------------------------------------------------------------------------------


def _past(detail: Detail, look: Look, cells: int) -> Iterator[Line]:
    if not detail.outcomes:
        yield (("last   ", "label"), ("never ran", "dim"))
        return
    shown_ones = detail.outcomes[: max(min(40, cells - 30), 8)]
    yield (
        ("last   ", "label"),
        *((sign(outcome.state, look.glyphs), STYLES[outcome.state]) for outcome in reversed(shown_ones)),
        (f"  {_tally(shown_ones)}", "dim"),
    )
    times = [o.duration_ms for o in shown_ones if o.duration_ms is not None and o.state == "completed"]
    if times:
        middle = sorted(times)[len(times) // 2]
        yield (
            ("took   ", "label"),
            (sparks(list(reversed([o.duration_ms for o in shown_ones])), look.glyphs.sparks), "day"),
            (f"  p50 {duration(middle)}  max {duration(max(times))}", "dim"),
        )


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
        name = f"{shown(task.name)}: " if len(job.tasks) > 1 else ""
        text = crop(name + shown(command_text(task.run)), cells - _LABEL)
        yield ((f"{label:{_LABEL}}", "label"), (text, ""))
    facts = [f"overlap {job.overlap}", f"recovery {job.recovery.strategy}"]
    if job.execution_timeout_ms is not None:
        facts.append(f"timeout {format_duration(job.execution_timeout_ms)}")
    if job.tags:
        facts.append("tags " + ", ".join(shown(tag) for tag in job.tags))
    yield from _labelled("policy", ", ".join(facts), "dim", cells)
    if job.source:
        yield from _labelled("from", shown(job.source), "dim", cells)


def command_text(command: Command | Call) -> str:
    """As it would be typed; for showing only, nothing is ever run from this text."""
    if isinstance(command, str):
        return command
    if isinstance(command, Call):
        return f"python {command.target}"
    import shlex

    return shlex.join(command)


def outcome_reason(outcome: Outcome) -> str:
    return shown(short_text(outcome.reason))
