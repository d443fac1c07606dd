"""The files that stand as bad and good examples in the rules."""

from __future__ import annotations

from chronex.expr.diagnostics import Example

WORKFLOW = ".github/workflows/nightly.yml"


def workflow(cron: str) -> Example:
    return Example(f"on:\n  schedule:\n    - cron: {cron}\n", WORKFLOW)


def cronjob(schedule: str, zone: str = "Etc/UTC") -> Example:
    text = f"apiVersion: batch/v1\nkind: CronJob\nmetadata:\n  name: report\nspec:\n  schedule: {schedule}\n"
    return Example(text + (f"  timeZone: {zone}\n" if zone else ""), "cronjob.yaml")


def crontab(text: str) -> Example:
    return Example(text, "crontab")


def system_crontab(text: str) -> Example:
    return Example(text, "cron.d/backup")


def timer(event: str) -> Example:
    return Example(f"[Timer]\nOnCalendar={event}\n", "backup.timer")


def job_file(text: str) -> Example:
    return Example(text, "chronex.toml")
