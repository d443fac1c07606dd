"""The rules on files: zones, what hosts refuse or do differently, comments, systemd."""

# ruff: noqa: E501  # prose and examples, one rule a paragraph

from __future__ import annotations

from chronex.expr.codes import TITLES
from chronex.expr.diagnostics import ERROR, WARNING
from chronex.lint.catalogue.rule import Example, Rule
from chronex.lint.findings import INFO

_WORKFLOW = ".github/workflows/nightly.yml"
_CRONJOB = "cronjob.yaml"


def _rule(code: str, severity: str, text: str, bad: Example, good: Example) -> Rule:
    return Rule(code, TITLES[code], severity, text, bad, good)


def _workflow(cron: str) -> Example:
    return Example(f"on:\n  schedule:\n    - cron: {cron}\n", _WORKFLOW)


def _cronjob(schedule: str, zone: str = "Etc/UTC") -> Example:
    text = f"apiVersion: batch/v1\nkind: CronJob\nmetadata:\n  name: report\nspec:\n  schedule: {schedule}\n"
    return Example(text + (f"  timeZone: {zone}\n" if zone else ""), _CRONJOB)


def _crontab(text: str) -> Example:
    return Example(text, "crontab")


def _timer(event: str) -> Example:
    return Example(f"[Timer]\nOnCalendar={event}\n", "backup.timer")


def _jobs(text: str) -> Example:
    return Example(text, "chronex.toml")


def _many_jobs(minutes: list[int]) -> Example:
    return _jobs("".join(f'[jobs.j{n}]\nschedule = "{m} 4 * * *"\nrun = "true"\n' for n, m in enumerate(minutes)))


RULES = (
    _rule("W113", WARNING, "An abbreviation such as EST is a fixed offset or an alias that zone data may change; it "
          "does not follow the clocks of any place. Etc/GMT+5 lies west of Greenwich, against all expectation.",
          _cronjob('"30 9 * * *"', "EST"), _cronjob('"30 9 * * *"', "America/New_York")),
    _rule("W114", INFO, "A CronJob without timeZone is read in the zone of the cluster's controller manager. That is "
          "mostly UTC, but nothing in the file says so.",
          _cronjob('"30 9 * * *"', ""), _cronjob('"30 9 * * *"')),
    _rule("W130", ERROR, "The expression is valid elsewhere, but the program that reads this file refuses it: L, W and "
          "#, ranges that run backwards, seconds, options, nicknames, a Sunday written as 7.",
          _workflow('"17 4 * * FRI-MON"'), _workflow('"17 4 * * FRI,SAT,SUN,MON"')),
    _rule("W131", WARNING, "GitHub runs a workflow at most once in five minutes; what is asked for in between is "
          "dropped.", _workflow('"* * * * *"'), _workflow('"*/5 * * * *"')),
    _rule("W132", INFO, "Everybody's workflows start at minute 0. GitHub delays them then, and drops some under high "
          "load; any other minute is safer.", _workflow('"0 4 * * *"'), _workflow('"17 4 * * *"')),
    _rule("W133", ERROR, "The Kubernetes API server refuses a CronJob with TZ= or CRON_TZ= in its schedule; timeZone "
          "is the place for it.", _cronjob('"TZ=Europe/Berlin 0 4 * * *"', ""), _cronjob('"0 4 * * *"', "Europe/Berlin")),
    _rule("W134", WARNING, "cron ends a command at the first % that has no backslash, gives the rest to it as standard "
          "input, and turns every further % into a newline. `date +%F` never gets its format.",
          _crontab("17 3 * * * tar czf /backup/$(date +%F).tgz /srv\n"),
          _crontab("17 3 * * * tar czf /backup/$(date +\\%F).tgz /srv\n")),
    _rule("W135", WARNING, "cron reads lines that end with a newline. Without one the last entry is ignored, or the "
          "whole file is refused.", _crontab("17 3 * * * /usr/local/bin/backup"),
          _crontab("17 3 * * * /usr/local/bin/backup\n")),
    _rule("W136", ERROR, "A system crontab (/etc/crontab, cron.d) has a user between schedule and command, a user's "
          "own crontab has none; and both need a command.",
          Example("17 3 * * * /usr/local/bin/backup\n", "cron.d/backup"),
          Example("17 3 * * * root /usr/local/bin/backup\n", "cron.d/backup")),
    _rule("W137", ERROR, "In YAML a value that begins with * is an alias, so that the file is refused, or worse, the "
          "schedule is something else. Put it in quotes.", _workflow("*/15 * * * *"), _workflow('"*/15 * * * *"')),
    _rule("W138", INFO, "TZ in a crontab is a variable for the commands; cron itself reads the times in the machine's "
          "zone. cronie has CRON_TZ for that, Debian's cron has nothing.",
          _crontab("TZ=Europe/Berlin\n17 3 * * * /usr/local/bin/backup\n"),
          _crontab("CRON_TZ=Europe/Berlin\n17 3 * * * /usr/local/bin/backup\n")),
    _rule("W140", ERROR, "The file cannot be read: not UTF-8, not valid YAML, or too large. Exit code 2.",
          Example("on:\n  schedule: [\n", _WORKFLOW), Example("on:\n  schedule: []\n", _WORKFLOW)),
    _rule("W141", INFO, "An ignore without a code also silences what is found here in a year.",
          _crontab("# chronex: ignore\n*/7 * * * * /usr/local/bin/poll\n"),
          _crontab("# chronex: ignore[W103]\n*/7 * * * * /usr/local/bin/poll\n")),
    _rule("W142", WARNING, "The comment silences nothing: the mistake is gone, or stands elsewhere.",
          _crontab("# chronex: ignore[W103]\n*/5 * * * * /usr/local/bin/poll\n"),
          _crontab("*/5 * * * * /usr/local/bin/poll\n")),
    _rule("W151", WARNING, "A run that keeps failing is still being tried again when the next ones are due, and "
          "overlap decides what becomes of them.",
          _jobs('[jobs.poll]\nschedule = "*/5 * * * *"\nrun = "poll"\nretry = { max = 5, interval = "2m" }\n'),
          _jobs('[jobs.poll]\nschedule = "*/5 * * * *"\nrun = "poll"\nretry = { max = 2, interval = "30s" }\n')),
    _rule("W152", INFO, "More than ten jobs that start in the same minute compete for the machine; spread, stagger or "
          "other minutes keep them apart.", _many_jobs([0] * 12), _many_jobs(list(range(12)))),
    _rule("W161", ERROR, "systemd refuses the calendar event, and with it the timer: weekdays, date, time and zone, in "
          "this order, as systemd.time(7) has them.", _timer("Mon..Fri 25:00"), _timer("Mon..Fri 09:00")),
)  # fmt: skip
