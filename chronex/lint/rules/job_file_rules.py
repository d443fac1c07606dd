"""The rules on chronex.toml: J001 to J110, which the reader of job files applies, and W151 to W153 on its jobs.

docs/job-file.md lists the keys.
"""

# ruff: noqa: E501  # prose and examples, one rule a paragraph

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from chronex.expr.diagnostics import ERROR, INFO, WARNING, Example, Message, Rule
from chronex.jobfile.entries import Problem
from chronex.jobfile.reader import Inspection
from chronex.lint.findings import Edit, Fix, LintFinding, ScheduleSite, finding
from chronex.lint.host_schedules import CronSchedule, schedule_of
from chronex.lint.rules import job_file, trigger
from chronex.lint.rules.host_rules import shortest_distance, spread_fix
from chronex.lint.source_files import Document
from chronex.model.policies import RetryPolicy, retry_pause
from chronex.text.durations import DAY_MS, format_duration
from chronex.text.suggestions import is_respelling

_WORDS = ("J010", "J013", "J016")  # keys, words and zones: in another case or with other separators still the same
_MOST_AT_ONCE = 10
_MOST_STARTS = 48
_MOST_RETRIES = 1_000

# -- what the reader of job files finds -------------------------------------------------------------------

_JOB = '[jobs.backup]\nschedule = "17 3 * * *"\nrun = "backup"\n'


def _rule(code: str, title: str, explanation: str, bad: str, good: str, severity: str = ERROR) -> Rule:
    return Rule(code, title, severity, explanation, job_file(bad), job_file(good))


def _without_example(code: str, title: str, explanation: str) -> Rule:
    return Rule(code, title, ERROR, explanation, None, None)


def _job(code: str, title: str, explanation: str, bad: str, good: str) -> Rule:
    return _rule(code, title, explanation, f"{_JOB}{bad}\n", f"{_JOB}{good}\n")


J102 = Rule("J102", "a key that Chronex does not read", INFO,
            "A trigger definition may carry keys of other programs. Chronex leaves them out: no task sees them.",
            trigger('{ "id": "poll", "expression": "@every 15m", "owner": "ops" }\n'),
            trigger('{ "id": "poll", "expression": "@every 15m", "metadata": { "owner": "ops" } }\n'))  # fmt: skip
READER_RULES = (
    _without_example("J001", "the file cannot be read as text", "A job file is UTF-8 of at most 16 MiB."),
    _rule("J002", "not valid TOML or JSON", "The text breaks the rules of its format, so that nothing in it counts.",
          "[jobs.backup]\nschedule = 17 3 * * *\n", _JOB),
    _rule("J003", "nested too deeply", "No setting lies deeper than a few levels.",
          f"x = {'[' * 33}{']' * 33}\n", _JOB),
    _job("J010", "unknown key", "A key that nobody reads would do nothing without a word, so it is refused.",
         'overlab = "skip"', 'overlap = "skip"'),
    _job("J011", "wrong type", "Durations and schedules are text, counts are numbers, switches are true or false.",
         "task_timeout = 30", 'task_timeout = "30s"'),
    _rule("J012", "a key is missing", "A job needs a schedule and something to run.",
          '[jobs.backup]\nrun = "backup"\n', _JOB),
    _job("J013", "not one of the possible values", "The value must be one of a few words.",
         'overlap = "skipp"', 'overlap = "skip"'),
    _job("J014", "number out of range", "The number is too small or too large.", "retry = -1", "retry = 3"),
    _job("J015", "not a duration, or too long", "A duration is a number and ms, s, m, h or d, also joined as 1h30m.",
         'execution_timeout = "1 hour"', 'execution_timeout = "1h"'),
    _job("J016", "unknown time zone", "A zone is an IANA name, or local for the host's.",
         'timezone = "Europe/Berln"', 'timezone = "Europe/Berlin"'),
    _rule("J017", "not a name", "Names of jobs and tasks become keys and file names: letters, digits, _ and -.",
          '[jobs."my backup"]\nschedule = "17 3 * * *"\nrun = "backup"\n', _JOB),
    _job("J018", "given twice", "The second of two would silently win or lose.",
         'tags = ["db", "db"]', 'tags = ["db", "nightly"]'),
    _rule("J019", "not a command", "A command is a list of arguments, or a line for the shell, and not empty.",
          '[jobs.backup]\nschedule = "17 3 * * *"\nrun = ""\n', _JOB),
    _job("J020", "not for the environment of a task", "Chronex sets these variables itself, or no process can have them.",
         'env = { CHRONEX_JOB = "x" }', 'env = { PGUSER = "app" }'),
    _job("J021", "the spread is not valid", "The window, the distribution or the clauses are not understood.",
         'spread = { duration = "2h", only = "dow=FUNDAY" }', 'spread = { duration = "2h", only = "dow=MON-FRI" }'),
    _rule("J022", "not an address", "Metrics are served at an address and a port.",
          '[scheduler]\nmetrics = "9464"\n', '[scheduler]\nmetrics = "127.0.0.1:9464"\n'),
    _without_example("J023", "too large for the store", "A job with all its tasks must fit into one record of the store; "
                     "large data belongs into files of its own."),
    _rule("J024", "keys that do not go together", "Each of the keys is fine, but they contradict each other.",
          f'{_JOB}cadence = "fixed_delay"\n', '[jobs.backup]\nschedule = "@every 1h"\nrun = "backup"\ncadence = "fixed_delay"\n'),
    _rule("J025", "not a rule", "A property of [[verify.property]] says what must never happen, or what must follow.",
          '[[verify.property]]\nname = "calm"\nrule = "never ever"\n',
          '[[verify.property]]\nname = "calm"\nrule = "expect OccurrenceCompleted(backup) after OccurrenceStarted(backup) within 2h"\n'),
    _rule("J026", "an order that cannot be kept", "needs names tasks of the same job, after names jobs, and nobody waits for "
          "himself, directly or by way of others.",
          '[[jobs.etl.tasks]]\nname = "load"\nrun = "load"\nneeds = ["extrat"]\n\n[[jobs.etl.tasks]]\nname = "extract"\nrun = "extract"\n\n'
          '[jobs.etl]\nschedule = "17 3 * * *"\n',
          '[[jobs.etl.tasks]]\nname = "load"\nrun = "load"\nneeds = ["extract"]\n\n[[jobs.etl.tasks]]\nname = "extract"\nrun = "extract"\n\n'
          '[jobs.etl]\nschedule = "17 3 * * *"\n'),
    _rule("J030", "unknown calendar", "A job and [scheduler] name calendars of the same file, which stand under [calendars].",
          f'[calendars.freeze]\ndates = ["2026-12-24..2027-01-02"]\n\n{_JOB}except = ["frieze"]\n',
          f'[calendars.freeze]\ndates = ["2026-12-24..2027-01-02"]\n\n{_JOB}except = ["freeze"]\n'),
    _rule("J031", "a calendar that cannot be made", "Its dates, its holiday code or its file of events cannot be read, or are "
          "more than a calendar may have.",
          f'[calendars.freeze]\ndates = ["24.12.2026"]\n\n{_JOB}except = ["freeze"]\n',
          f'[calendars.freeze]\ndates = ["2026-12-24"]\n\n{_JOB}except = ["freeze"]\n'),
    _rule("J032", "unknown group", "A job names groups of the same file, which stand under [groups].",
          f'[groups.database]\nlimit = 1\n\n{_JOB}groups = ["databse"]\n',
          f'[groups.database]\nlimit = 1\n\n{_JOB}groups = ["database"]\n'),
    _rule("J033", "a group that cannot be kept", "Its rate is none, or a run would take more places than the group has.",
          f'[groups.api]\nrate = "0/m"\n\n{_JOB}groups = ["api"]\n',
          f'[groups.api]\nrate = "30/m"\n\n{_JOB}groups = ["api"]\n'),
    _job("J034", "not a condition", "A job can wait for the mains, the network, a port, a path or a command.",
         'wait_for = ["tcp:db"]', 'wait_for = ["tcp:db:5432"]'),
    _rule("J040", "unknown channel", "A job names the channels that it is told by; they stand under [notify] in the same file.",
          f'[notify.ops]\nmail = "ops@example.com"\n\n{_JOB}notify = ["opps"]\n',
          f'[notify.ops]\nmail = "ops@example.com"\n\n{_JOB}notify = ["ops"]\n'),
    _rule("J041", "a channel that leads nowhere", "Its mail address, its web address or its server cannot be one.",
          f'[notify.ops]\nmail = "ops at example.com"\n\n{_JOB}notify = ["ops"]\n',
          f'[notify.ops]\nmail = "ops@example.com"\n\n{_JOB}notify = ["ops"]\n'),
    _rule("J101", "a setting that another one overrides", "One of two settings has no effect.",
          '[jobs.backup]\nschedule = "TZ=UTC 17 3 * * *"\ntimezone = "Europe/Berlin"\nrun = "backup"\n',
          '[jobs.backup]\nschedule = "17 3 * * *"\ntimezone = "Europe/Berlin"\nrun = "backup"\n', WARNING),
    J102,
    _rule("J104", "a job to follow that is not in this file", "Neither this file nor one beside it has the job. A job may "
          "follow one of another source, which must then be applied before it; where there is none, applying this file is refused.",
          f'{_JOB}\n[jobs.report]\nafter = "backups"\nrun = "report"\n',
          f'{_JOB}\n[jobs.report]\nafter = "backup"\nrun = "report"\n', WARNING),
    _rule("J103", "a pause shorter than a second", "The next attempt comes a second after a failed one at the earliest: "
          "shorter pauses would be hundreds of attempts before anything can have changed.",
          f'{_JOB}retry = {{ max = 5, interval = "50ms" }}\n', f'{_JOB}retry = {{ max = 5, interval = "1s" }}\n', WARNING),
    _rule("J110", "an address that is a secret", "The address of a webhook lets whoever has it send messages. Written here it is also "
          "in the store, in its backups and in the history of the file; kept in a file of its own it is read when it is needed.",
          f'[notify.chat]\nwebhook = "https://hooks.example.com/T0000/abcdefghijklmnopqrstuvwx"\n\n{_JOB}notify = ["chat"]\n',
          f'[notify.chat]\nwebhook = "file:/etc/chronex/chat-url"\n\n{_JOB}notify = ["chat"]\n', WARNING),
)  # fmt: skip


def job_file_findings(document: Document, inspected: Inspection) -> Iterator[LintFinding]:
    """What the reader found; its findings on expressions are left out, which are judged here with the date."""
    for problem in inspected.problems:
        if problem.code[0] == "J":
            yield _at_its_place(document, problem, ERROR)
    for problem in inspected.warnings:
        if problem.code[0] == "J":
            yield _at_its_place(document, problem, INFO if problem.code == J102.code else WARNING)


def _at_its_place(document: Document, problem: Problem, severity: str) -> LintFinding:
    start = document.lines.start_of_line(problem.line) + problem.column - 1
    start = min(start, len(document.text))
    end = min(start + problem.end_column - problem.column, document.lines.end_of_line(problem.line))
    fix = None
    if problem.fix is not None:
        is_same_word = problem.code in _WORDS and is_respelling(document.text[start:end], problem.fix)
        fix = Fix(f"write {problem.fix}", (Edit(start, end, problem.fix),), is_same_word)
    return LintFinding(problem.code, severity, problem.text, start, max(start, end), fix)


# -- what only several settings together show -------------------------------------------------------------


def _poll(retry: str) -> Example:
    return job_file(f'[jobs.poll]\nschedule = "*/5 * * * *"\nrun = "poll"\nretry = {{ {retry} }}\n')


def _many_jobs(minutes: Sequence[int]) -> Example:
    jobs = (f'[jobs.j{n}]\nschedule = "{m} 4 * * *"\nrun = "true"\n' for n, m in enumerate(minutes))
    return job_file("".join(jobs))


W151 = Rule(
    "W151",
    "retries outlast the interval",
    WARNING,
    "A run that keeps failing is still being tried again when the next ones are due, and "
    "overlap decides what becomes of them.",
    bad=_poll('max = 5, interval = "2m"'),
    good=_poll('max = 2, interval = "30s"'),
    messages={
        "": Message(
            "the retries of '{job}' wait up to {total} in all, but it runs every {distance}: "
            "a run that keeps failing meets the next ones"
        ),
    },
)


def slow_retries(site: ScheduleSite, retry: RetryPolicy, reference_ms: int) -> Iterator[LintFinding]:
    total = _total_pause(retry)
    schedule = schedule_of(site, reference_ms) if total else None
    if not isinstance(schedule, CronSchedule):
        return
    shortest = shortest_distance(schedule)
    if shortest is not None and total > shortest:
        shown = {"job": site.name, "total": format_duration(total), "distance": format_duration(shortest)}
        yield finding(W151, site.start, site.end, fix=None, site=site, severity=None, **shown)


def _total_pause(retry: RetryPolicy) -> int:
    """All pauses of a run that never succeeds, in milliseconds; 0 where their number is not limited."""
    if retry.max is None or retry.max > _MOST_RETRIES:
        return 0
    return sum(retry_pause(retry, attempt) for attempt in range(1, retry.max + 1))


W152 = Rule(
    "W152",
    "many jobs in the same minute",
    INFO,
    "More than ten jobs that start in the same minute compete for the machine; spread, stagger or "
    "other minutes keep them apart.",
    bad=_many_jobs([0] * 12),
    good=_many_jobs(range(12)),
    messages={
        "": Message("{count} jobs start in the same minute as this one", "spread or {{stagger:…}} keeps them apart"),
    },
)


def many_jobs_in_a_minute(sites: Sequence[ScheduleSite], reference_ms: int) -> Iterator[LintFinding]:
    """W152 for the busiest minute of the coming day; jobs with jitter or stagger do not start on the minute."""
    starts: Counter[int] = Counter()
    surplus: dict[int, ScheduleSite] = {}
    exact = [site for site in sites if "{" not in site.text and "<" not in site.text]
    for site in exact if len(exact) > _MOST_AT_ONCE else ():
        schedule = schedule_of(site, reference_ms)
        upcoming = schedule.upcoming(reference_ms, _MOST_STARTS) if schedule is not None else []
        for minute in {ms // 60_000 for ms in upcoming if ms < reference_ms + DAY_MS}:
            starts[minute] += 1
            if starts[minute] == _MOST_AT_ONCE + 1:
                surplus.setdefault(minute, site)
    if surplus:
        minute = max(surplus, key=lambda minute: (starts[minute], -minute))
        site = surplus[minute]
        yield finding(W152, site.start, site.end, fix=spread_fix(site), site=site, count=starts[minute])


W153 = Rule(
    "W153",
    "a job without any timeout",
    INFO,
    "A command that hangs is never stopped: its job is skipped or queued behind it until somebody looks. A timeout of "
    "each attempt (`task_timeout`, also in `[defaults]`) or of the whole run (`execution_timeout`) ends it; "
    '`"off"` says that it is meant. The fix is never applied by itself, because only you know how long a run may take.',
    bad=job_file('[jobs.sync]\nschedule = "17 * * * *"\nrun = "sync"\n'),
    good=job_file('[defaults]\ntask_timeout = "1h"\n\n[jobs.sync]\nschedule = "17 * * * *"\nrun = "sync"\n'),
    messages={
        "": Message(
            "'{job}' has no timeout: a command that hangs holds it until somebody looks", 'task_timeout = "1h"'
        ),
        "more": Message(
            "'{job}' and {more} more have no timeout: a command that hangs holds its job until somebody looks",
            'task_timeout = "1h" under [defaults]',
        ),
    },
)
_DEFAULTS_HEADER = re.compile(r"^\[defaults\][ \t]*(#.*)?\r?\n", re.MULTILINE)
_DEFAULTS_ELSEWHERE = re.compile(r"^\s*\[?\s*[\"']?defaults\b", re.MULTILINE)
_FIRST_JOB_HEADER = re.compile(r"^\[\[?jobs\.", re.MULTILINE)
_OFFERED = 'task_timeout = "1h"'


def jobs_without_timeout(document: Document, sites: Sequence[ScheduleSite]) -> Iterator[LintFinding]:
    """One finding for the file, at the first of these jobs: in an editor one hint is read, and thirty are not."""
    if not sites:
        return
    first, more = sites[0], len(sites) - 1
    fix = _timeout_fix(document.text)
    case = "more" if more else ""
    yield finding(W153, first.start, first.end, case, fix=fix, site=first, job=first.name, more=more)


def _timeout_fix(text: str) -> Fix | None:
    """A default for every job; none where the file has another layout than a header for each table."""
    title = 'add task_timeout = "1h" to [defaults]'
    end = "\r\n" if "\r\n" in text else "\n"
    if (header := _DEFAULTS_HEADER.search(text)) is not None:
        return Fix(title, (Edit(header.end(), header.end(), _OFFERED + end),))
    first = _FIRST_JOB_HEADER.search(text)
    if first is None or _DEFAULTS_ELSEWHERE.search(text) is not None:
        return None
    return Fix(title, (Edit(first.start(), first.start(), f"[defaults]{end}{_OFFERED}{end}{end}"),))


JOB_FILE_RULES = (*READER_RULES, W151, W152, W153)
