"""The programs that read schedules: which language each one takes, and what its clock changes do.

Chronex's own files are read by Chronex's own rules. All others are read as their program reads them, so that a
finding is true of the machine on which the file will run.
"""

from __future__ import annotations

from typing import NamedTuple

from chronex.expr.fields import FieldSet
from chronex.expr.meaning import ALIASES, Cron, Meaning
from chronex.lint.cron_programs import BCRON, BUSYBOX, CRON_PROGRAMS, DEBIAN, SUPERCRONIC, CronProgram
from chronex.timing.dst import DstPolicy


class ScheduleHost(NamedTuple):
    """`is_plain`: five fields of `*`, numbers, names, lists, ranges and steps, and nothing else of our language."""

    key: str
    title: str
    why: str
    is_plain: bool = True
    nicknames: frozenset[str] = frozenset()
    takes_question_mark: bool = False
    takes_seven: bool = True
    takes_wrapped_ranges: bool = False
    policy: DstPolicy | None = None
    dialect: str = "chronex"
    is_in_yaml: bool = False
    program: CronProgram | None = None  # which cron, for crontabs


_NICKNAMES = frozenset(ALIASES)

CHRONEX = ScheduleHost("chronex", "Chronex", "it is read by Chronex", is_plain=False)
POSIX = CHRONEX._replace(title="Chronex (posix)", why='it says dialect = "posix"', dialect="posix")
GITHUB = ScheduleHost(
    "github",
    "GitHub Actions",
    "a workflow is read by GitHub Actions",
    takes_seven=False,
    policy=DstPolicy(gap="end", overlap="first"),
    is_in_yaml=True,
)
KUBERNETES = ScheduleHost(
    "kubernetes",
    "Kubernetes",
    "a CronJob is read by the Kubernetes controller",
    nicknames=_NICKNAMES | {"@every"},
    takes_question_mark=True,
    takes_seven=False,
    policy=DstPolicy(gap="skip", overlap="both"),
    is_in_yaml=True,
)
ARGO = KUBERNETES._replace(title="Argo Workflows", why="a CronWorkflow is read by the controller of Argo Workflows")
AZURE = GITHUB._replace(
    key="azure", title="Azure Pipelines", why="schedules of a pipeline are read by Azure Pipelines", policy=None
)
DEPENDABOT = GITHUB._replace(
    key="dependabot", title="Dependabot", why="a cronjob is read by Dependabot", takes_seven=True, policy=None
)
SYSTEMD = ScheduleHost(
    "systemd",
    "systemd",
    "OnCalendar= is read by systemd",
    policy=DstPolicy(gap="skip", overlap="first"),
)
CRON_HOSTS = {
    key: ScheduleHost(
        "crontab",
        program.title,
        f"a crontab is read by {program.title}",
        nicknames=program.nicknames,
        takes_question_mark=program is SUPERCRONIC,
        program=program,
    )
    for key, program in CRON_PROGRAMS.items()
}
CRONTAB = CRON_HOSTS[DEBIAN.key]
_FOLLOWS_THE_CLOCK = DstPolicy("skip", "both")
_CATCHES_UP = DstPolicy("end", "first")


def policy_for(host: ScheduleHost, meaning: Meaning) -> DstPolicy | None:
    """What the host does with a wall time that is missing or comes twice; None: Chronex's own rule."""
    if host.program is None or not isinstance(meaning.body, Cron):
        return host.policy
    # cron catches a fixed time up after a gap and does not repeat it; a schedule with * simply follows the clock.
    follows_clock = host.program.follows_the_clock or meaning.body.is_interval
    return _FOLLOWS_THE_CLOCK if follows_clock else _CATCHES_UP


def as_read_by(host: ScheduleHost, meaning: Meaning) -> Meaning:
    """The meaning the host gives to fields that Chronex reads otherwise."""
    body = meaning.body
    if host.program is None or not isinstance(body, Cron):
        return meaning
    minute, hour = _by_its_star(body.minute), _by_its_star(body.hour)
    if minute is body.minute and hour is body.hour:
        return meaning  # as nearly always
    return meaning._replace(body=body._replace(minute=minute, hour=hour))


def _by_its_star(field: FieldSet) -> FieldSet:
    is_interval = field.text[0] == "*"
    return field if field.is_interval == is_interval else field._replace(is_interval=is_interval)


def needs_both_days(host: ScheduleHost, meaning: Meaning) -> bool:
    """In Vixie's crons a day field that begins with * joins the other by AND, `*/2` and `*/100,1-7` too; in bcron any
    does."""
    body = meaning.body
    if host.program in (None, BUSYBOX, SUPERCRONIC) or not isinstance(body, Cron):
        return False
    days = (body.day_of_month, body.day_of_week)
    return not any(f.is_star for f in days) and (host.program is BCRON or any(f.text[0] == "*" for f in days))
