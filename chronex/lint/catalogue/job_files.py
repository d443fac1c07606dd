"""The rules on chronex.toml, as the reader of job files applies them; docs/job-file.md lists the keys."""

# ruff: noqa: E501  # prose and examples, one rule a paragraph

from __future__ import annotations

from chronex.expr.diagnostics import ERROR, WARNING
from chronex.lint.catalogue.rule import Example, Rule

_JOB = '[jobs.backup]\nschedule = "17 3 * * *"\nrun = "backup"\n'


def _rule(code: str, title: str, text: str, bad: str, good: str, severity: str = ERROR) -> Rule:
    return Rule(code, title, severity, text, Example(bad, "chronex.toml"), Example(good, "chronex.toml"))


def _job(code: str, title: str, text: str, bad: str, good: str) -> Rule:
    return _rule(code, title, text, f"{_JOB}{bad}\n", f"{_JOB}{good}\n")


RULES = (
    Rule("J001", "the file cannot be read as text", ERROR, "A job file is UTF-8 of at most 1 MiB.", None, None),
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
    Rule("J023", "too large for the store", ERROR, "A job with all its tasks must fit into one record of the store; "
         "large data belongs into files of its own.", None, None),
    _rule("J024", "keys that do not go together", "Each of the keys is fine, but they contradict each other.",
          f'{_JOB}cadence = "fixed_delay"\n', '[jobs.backup]\nschedule = "@every 1h"\nrun = "backup"\ncadence = "fixed_delay"\n'),
    _rule("J025", "not a rule", "A property of [[verify.property]] says what must never happen, or what must follow.",
          '[[verify.property]]\nname = "calm"\nrule = "never ever"\n',
          '[[verify.property]]\nname = "calm"\nrule = "expect OccurrenceCompleted(backup) after OccurrenceStarted(backup) within 2h"\n'),
    _rule("J101", "a setting that another one overrides", "One of two settings has no effect.",
          '[jobs.backup]\nschedule = "TZ=UTC 17 3 * * *"\ntimezone = "Europe/Berlin"\nrun = "backup"\n',
          '[jobs.backup]\nschedule = "17 3 * * *"\ntimezone = "Europe/Berlin"\nrun = "backup"\n', WARNING),
)  # fmt: skip
