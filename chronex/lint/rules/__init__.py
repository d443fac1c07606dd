"""Every rule of the linter, each one value in one place: its texts, its examples and, below it, its check.

The rules that a parser gives stand beside it: those on expressions in chronex/expr (syntax_rules.py,
advice_rules.py), the one on calendar events in chronex/lint/systemd_calendar.py. The pages in docs/rules are made
from all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from chronex.expr.diagnostics import Example, Rule


@lru_cache(maxsize=1)
def rules() -> dict[str, Rule]:
    """Every rule by its code, in the order of the codes."""
    from chronex.expr.advice_rules import ADVICE_RULES
    from chronex.expr.syntax_rules import SYNTAX_RULES
    from chronex.lint.rules.crontab_rules import CRONTAB_RULES
    from chronex.lint.rules.file_rules import FILE_RULES
    from chronex.lint.rules.host_rules import HOST_RULES
    from chronex.lint.rules.job_file_rules import JOB_FILE_RULES
    from chronex.lint.rules.refusals import REFUSAL_RULES
    from chronex.lint.rules.zone_rules import ZONE_RULES
    from chronex.lint.systemd_calendar import SYSTEMD_RULES

    listed = (
        *SYNTAX_RULES, *ADVICE_RULES, *ZONE_RULES, *REFUSAL_RULES, *HOST_RULES, *CRONTAB_RULES, *FILE_RULES,
        *JOB_FILE_RULES, *SYSTEMD_RULES,
    )  # fmt: skip
    return {rule.code: rule for rule in sorted(listed, key=lambda rule: rule.code)}


# Rules whose severity is error had codes with a W once; comments and settings that name those still hold.
FORMER_CODES = {
    "W130": "E130", "W133": "E133", "W136": "E136", "W137": "E137", "W140": "E140", "W161": "E161",
}  # fmt: skip


def is_named(code: str, wanted: Iterable[str]) -> bool:
    """Is the rule named by one of these codes, their beginnings, or a code that it had before?"""
    return any(code.startswith(each) or FORMER_CODES.get(each) == code for each in wanted)


def rule_named(code: str) -> Rule | None:
    """The rule of a code, in any case, also of one that it had before."""
    upper = code.strip().upper()
    return rules().get(FORMER_CODES.get(upper, upper))


def title_of(code: str) -> str:
    rule = rules().get(code)
    return rule.title if rule else code


def explanation_of(code: str) -> str:
    rule = rules().get(code)
    return rule.explanation if rule else ""


# -- the files that stand as bad and good examples in the rules -----------------------------------------------

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


def trigger(text: str) -> Example:
    return Example(text, "trigger.json")
