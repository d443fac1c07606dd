"""Previews never lie, those of a text too: what the language server and `chronex next` say is what the engine does
once the file is applied."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from random import Random
from typing import NamedTuple

import pytest

from chronex.cli.commands.next_runs import next_runs
from chronex.jobfile import read_job_file
from chronex.lint.findings import Assumptions, ZoneNote
from chronex.lint.host_schedules import schedule_of
from chronex.lint.linter import Analysis, lint_document
from chronex.lint.source_files import open_document
from chronex.lsp.hovers import coming_starts, hints, hover_at
from chronex.model.states import OccurrenceState
from chronex.testing import DAY, SimulatedMachine
from chronex.text.instants import rfc3339
from chronex.timing.zones import load_zone
from tests.views.test_coming_runs import BEGIN, END, START, happened

ZONE = "Europe/Berlin"
FIRST_DAY = date(2027, 3, 20)
EXPRESSIONS = (
    "0 9 * * *",
    "30 */4 * * *",
    "0 2,3 * * *",
    "15 12 * * MON-FRI",
    "@every 5h",
    "0 */6 * * * {max:3}",
    "0 */6 * * * {stagger:2h}",
    "0 9 L * *",
    "0 */6 * * * {from:2027-03-24T02:30}",
    "30 2 * * * {until:2027-03-28}",
    "30 2 * * * {from:2027-03-28T02:30}",
    "0 */6 * * * {stagger:2h, window:50m}",
    "*/20 1-3 * * *",
    "@every 5h {from:2027-03-22}",
    "@once 2027-03-28T02:30:00",
    "0 9 * * MON#4",
)
# Keys that `next` does not know, of which a job may have several.
KEYS = (
    'timezone = "America/New_York"',
    'dst = { gap = "skip", overlap = "both" }',
    'dst = { gap = "skip" }',
    'only = ["dark"]',
    'spread = { duration = "26h", mode = "before" }',
    'spread = { duration = "3h", mode = "around", only = "between=00:00-12:00" }',
)


class DrawnJob(NamedTuple):
    expression: str
    calendar: str  # as `next --calendar` takes it; empty for none
    on_excluded: str
    workday: tuple[int, ...]
    more: str  # keys that `next` does not know

    @property
    def table(self) -> str:
        keys = [f'schedule = "{self.expression}"', 'run = "true"', 'overlap = "allow"', self.more]
        if self.calendar:
            keys += ['except = ["off"]', f'on_excluded = "{self.on_excluded}"']
        if self.workday:
            keys.append(f"workday = {list(self.workday)}")
        return "\n".join(keys)


def days(random: Random) -> list[str]:
    first = FIRST_DAY + timedelta(days=random.randrange(12))
    return [f"{first}..{first + timedelta(days=random.randrange(3))}", str(first + timedelta(days=5))]


def drawn(random: Random, off: str) -> DrawnJob:
    expression = random.choice(EXPRESSIONS)
    is_interval = "@every" in expression
    workday = random.choice(((), (), (1, -1), (2, -3)))
    moves = "skip" if is_interval or workday else random.choice(("skip", "next_workday", "previous_workday"))
    spread = 'spread = { duration = "2h", mode = "after", only = "dow=MON-FRI" }'
    more = random.choice(("", "", "", "enabled = false", "" if is_interval else spread))
    if not more and random.random() < 0.5:
        known = KEYS[:4] if expression.startswith("@") else KEYS
        keys = random.sample(known, random.choice((1, 2)))
        more = "\n".join({key.partition(" ")[0]: key for key in keys}.values())
    return DrawnJob(expression, off if random.random() < 0.6 else "", moves, workday, more)


def a_file(random: Random) -> tuple[str, list[DrawnJob]]:
    listed = days(random)
    off = f"dates={','.join(listed)}" if random.random() < 0.7 else "weekdays=SAT,SUN,TUE"
    kind, _, value = off.partition("=")
    calendars = f"[calendars.off]\n{kind} = {value.split(',')}\n[calendars.dark]\ndates = {days(random)}\n"
    blackout = 'blackout = ["dark"]\n' if random.random() < 0.4 else ""
    jobs = [drawn(random, off) for _ in range(6)]
    tables = (f"[jobs.job-{number}]\n{job.table}\n" for number, job in enumerate(jobs))
    return f'[scheduler]\ntimezone = "{ZONE}"\n{blackout}{calendars}{"".join(tables)}', jobs


def analysed(text: str) -> Analysis:
    document = open_document("chronex.toml", text)
    return lint_document(document, Assumptions(ZoneNote(ZONE, "from --tz"), BEGIN))


@pytest.mark.parametrize("seed", range(4))
def test_what_an_editor_and_next_say_of_a_file_is_what_happens(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    check(seed, capsys)


@pytest.mark.torture
@pytest.mark.parametrize("first", range(1_000, 2_000, 50))
def test_what_they_say_of_many_files_is_what_happens(first: int, capsys: pytest.CaptureFixture[str]) -> None:
    for seed in range(first, first + 50):
        check(seed, capsys)


def check(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    random = Random(f"file {seed}")
    text, jobs = a_file(random)
    applied = read_job_file(text, "chronex.toml", ZONE, BEGIN).jobs
    machine = SimulatedMachine(applied, start=START, seed=seed, slots=500)
    machine.run_until(END + 3 * DAY)
    analysis = analysed(text)
    for number, job in enumerate(jobs):
        real = happened(machine, f"job-{number}")
        ran = sorted(one.due_ms for one in real.values() if one.state is OccurrenceState.COMPLETED)
        site = analysis.sites[number]
        schedule = schedule_of(site, BEGIN)
        assert schedule is not None
        said = [one.due_ms for one in coming_starts(analysis, site, schedule, BEGIN, 5).starts]
        assert said[: len(ran)] == ran[:5], f"{job}"
        assert len(said) <= len(ran) or all(due > END - 2 * DAY for due in said[len(ran) :]), "the rest comes later"
        if not job.more:
            instants = sorted(real)[:5]
            shown = shown_by_next(job, len(instants), capsys)[: len(instants)]
            assert shown == instants[: len(shown)]
            # `max` counts what starts, and of a blackout of the file `next` knows nothing.
            assert len(shown) == len(instants) or "max" in job.expression


def shown_by_next(job: DrawnJob, count: int, capsys: pytest.CaptureFixture[str]) -> list[int]:
    capsys.readouterr()
    next_runs(
        job.expression, max(count, 1), rfc3339(BEGIN), ZONE,
        calendar=[job.calendar] if job.calendar else None,
        on_excluded=job.on_excluded if job.calendar else "skip", workday=list(job.workday) or None,
    )  # fmt: skip
    return [round(datetime.fromisoformat(line).timestamp() * 1000) for line in capsys.readouterr().out.split()]


HOVERED = {
    'enabled = false\nschedule = "0 9 * * *"': ["It does not run: `enabled = false`."],
    'schedule = "0 9 * * SAT"\nexcept = ["off"]\non_excluded = "next_workday"': [
        "- Mon 22 Mar 2027 09:00 CET (in 2d), moved by `off` from Sat 20 Mar 2027 09:00 CET",
        "- Sat 27 Mar 2027 09:00 CET (in 7d)",
    ],
    'schedule = "0 9 * * * {jitter:40m}"\ngroups = ["db"]\nafter = "etl"': [
        "- Sat 20 Mar 2027 09:00 CET (in 2h30m), or up to 40m later",
        "Each may wait for `job etl`, `group db`.",
    ],
    'schedule = "0 9 * * *"\nspread = { duration = "1h", only = "between=22:00-23:00" }': [
        "It does not start before Sun 23 Apr 2028 08:59:59 CEST; what comes then was not looked at."
    ],
    'schedule = "0 9 * * * {stagger:1h, window:1s}"': ["It will not run again."],
    # Where the job cannot be read, its expression can.
    'schedule = "0 9 * * *"\noverlap = "sometimes"': ["- Sat 20 Mar 2027 09:00 CET (in 2h30m)"],
}


@pytest.mark.parametrize("keys", HOVERED)
def test_an_editor_says_what_keeps_a_job_from_its_schedule(keys: str) -> None:
    head = '[groups.db]\nlimit = 1\n[calendars.off]\ndates = ["2027-03-20"]\n[jobs.a]\nrun = "true"\n'
    analysis = analysed(head + keys)
    found = hover_at(analysis, analysis.sites[0].start + 1, BEGIN, load_zone(ZONE))
    assert found is not None
    for words in HOVERED[keys]:
        assert words in found.markdown, found.markdown
    hinted = [hint.label for hint in hints(analysis, 0, len(head + keys), BEGIN)]
    assert bool(hinted) == ("- " in HOVERED[keys][0])


def test_an_editor_counts_max_by_starts_and_not_by_instants() -> None:
    """A spread may put a later instant first, and what `max` leaves is what starts first."""
    spread = 'spread = { duration = "26h", mode = "around" }'
    text = f'[scheduler]\ntimezone = "{ZONE}"\n[jobs.a]\nschedule = "30 */2 * * * {{max:4}}"\nrun = "true"\noverlap = "allow"\n{spread}\n'
    machine = SimulatedMachine(read_job_file(text, "chronex.toml", ZONE, BEGIN).jobs, start=START, slots=500)
    machine.run_until(END)
    began = sorted(one.due_ms for one in happened(machine, "a").values() if one.started_ms is not None)
    analysis = analysed(text)
    site = analysis.sites[0]
    schedule = schedule_of(site, BEGIN)
    assert schedule is not None
    said = coming_starts(analysis, site, schedule, BEGIN, 5).starts
    assert [one.due_ms for one in said] == began
    assert [one.due_ms for one in coming_starts(analysis, site, schedule, BEGIN, 2).starts] == began[:2]
