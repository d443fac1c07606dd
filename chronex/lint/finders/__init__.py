"""Finders: where the expressions of a file stand. One for each kind of file, in one table.

A finder is imported when a file of its kind comes: YAML alone takes as long to load as all the rest.
"""

from __future__ import annotations

from collections.abc import Callable

from chronex.lint.findings import Assumptions, FinderResult
from chronex.lint.source_files import Document

Finder = Callable[[Document, Assumptions], FinderResult]


def _job_file(document: Document, assume: Assumptions) -> FinderResult:
    from chronex.lint.finders.chronex_files import find_jobs

    return find_jobs(document, assume)


def _triggers(document: Document, assume: Assumptions) -> FinderResult:
    from chronex.lint.finders.chronex_files import find_triggers

    return find_triggers(document, assume)


def _crontab(document: Document, assume: Assumptions) -> FinderResult:
    from chronex.lint.finders.line_files import find_crontab

    return find_crontab(document, assume, has_user=False)


def _system_crontab(document: Document, assume: Assumptions) -> FinderResult:
    from chronex.lint.finders.line_files import find_crontab

    return find_crontab(document, assume, has_user=True)


def _timer(document: Document, assume: Assumptions) -> FinderResult:
    from chronex.lint.finders.line_files import find_timer

    return find_timer(document, assume)


def _expressions(document: Document, assume: Assumptions) -> FinderResult:
    from chronex.lint.finders.line_files import find_expressions

    return find_expressions(document, assume, is_posix=False)


def _posix_expressions(document: Document, assume: Assumptions) -> FinderResult:
    from chronex.lint.finders.line_files import find_expressions

    return find_expressions(document, assume, is_posix=True)


def _workflow(document: Document, assume: Assumptions) -> FinderResult:
    from chronex.lint.finders.yaml_files import find_workflow

    return find_workflow(document, assume)


def _cronjobs(document: Document, assume: Assumptions) -> FinderResult:
    from chronex.lint.finders.yaml_files import find_cronjobs

    return find_cronjobs(document, assume)


def _pipeline(document: Document, assume: Assumptions) -> FinderResult:
    from chronex.lint.finders.yaml_files import find_pipeline

    return find_pipeline(document, assume)


def _dependabot(document: Document, assume: Assumptions) -> FinderResult:
    from chronex.lint.finders.yaml_files import find_dependabot

    return find_dependabot(document, assume)


def _python_calls(document: Document, assume: Assumptions) -> FinderResult:
    from chronex.lint.finders.chronex_files import find_calls

    return find_calls(document, assume)


FINDERS: dict[str, Finder] = {
    "chronex": _job_file,
    "trigger": _triggers,
    "crontab": _crontab,
    "cron.d": _system_crontab,
    "systemd": _timer,
    "expressions": _expressions,
    "posix": _posix_expressions,
    "github": _workflow,
    "k8s": _cronjobs,
    "azure": _pipeline,
    "dependabot": _dependabot,
    "python": _python_calls,
}
