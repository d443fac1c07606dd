"""`chronex lint`: findings in files, directories and expressions, in the form that was asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from chronex.cli.options import Dialect, UsageError, choose, choose_zone, read_instant
from chronex.cli.output import err, out
from chronex.text.terminal import terminal_safe

if TYPE_CHECKING:
    from chronex.cli.lint_io import LintSource
    from chronex.lint.findings import Assumptions, LintFinding
    from chronex.lint.formats import Item
    from chronex.lint.lint_config import LintConfig
    from chronex.lint.source_files import Document


Targets = Annotated[
    list[str] | None,
    typer.Argument(
        help="Files, directories or expressions; - reads standard input; none: the files below this directory.",
        metavar="PATH|EXPR…",
    ),
]
LintForm = Annotated[
    str, typer.Option("--format", help="text, json, gcc, github, gitlab or sarif.", metavar="FORMAT")
]
Select = Annotated[
    list[str] | None, typer.Option(help="Only these codes or their beginnings (W11,E).", metavar="CODE,…")
]
IgnoreCodes = Annotated[list[str] | None, typer.Option(help="Not these codes or their beginnings.", metavar="CODE,…")]
Shown = Annotated[str, typer.Option(help="Show from info, warning or error on.", metavar="SEVERITY")]
Failing = Annotated[str, typer.Option(help="Exit 1 from info, warning or error on.", metavar="SEVERITY")]
ApplyFixes = Annotated[bool, typer.Option("--fix", help="Apply every safe fix; all other bytes stay.")]
Suggestions = Annotated[
    bool, typer.Option("--unsafe-fixes", help="With --fix or --diff: suggestions too, which may be wrong.")
]
ShowDiff = Annotated[bool, typer.Option("--diff", help="Show what --fix would change.")]
ExitZero = Annotated[bool, typer.Option("--exit-zero", help="Exit 0 whatever is found.")]
StdinName = Annotated[str | None, typer.Option(help="The name of the file that - reads.", metavar="NAME")]
FileKind = Annotated[
    str | None,
    typer.Option(
        "--as",
        help="chronex, crontab, cron.d, github, k8s, azure, dependabot, systemd, trigger or python.",
        metavar="KIND",
    ),
]
LintZone = Annotated[
    str | None, typer.Option("--tz", help="Zone where a file names none (default: the host's).", metavar="ZONE")
]
WhichCron = Annotated[
    str | None,
    typer.Option(
        "--cron", help="debian, cronie, bsd, busybox, supercronic or bcron reads the crontabs.", metavar="CRON"
    ),
]
LintNow = Annotated[str | None, typer.Option(help="Judge dates from this ISO 8601 time.", metavar="TIME")]
Isolated = Annotated[bool, typer.Option("--isolated", help="Read no settings from files.")]
Statistics = Annotated[bool, typer.Option("--statistics", help="Count the findings of each rule instead.")]
ExplainRule = Annotated[
    str | None, typer.Option(help="Show the page of a rule: what is bad, what is good.", metavar="CODE")
]
ListRules = Annotated[bool, typer.Option("--list-rules", help="List every rule.")]


def lint(
    targets: Targets = None,
    form: LintForm = "text",
    select: Select = None,
    ignore: IgnoreCodes = None,
    min_severity: Shown = "warning",
    fail_on: Failing = "warning",
    fix: ApplyFixes = False,
    unsafe_fixes: Suggestions = False,
    diff: ShowDiff = False,
    exit_zero: ExitZero = False,
    stdin_filename: StdinName = None,
    as_kind: FileKind = None,
    tz: LintZone = None,
    cron: WhichCron = None,
    now: LintNow = None,
    dialect: Dialect = "chronex",
    isolated: Isolated = False,
    statistics: Statistics = False,
    explain: ExplainRule = None,
    list_rules: ListRules = False,
) -> int:
    """Find mistakes and surprises in job files, crontabs, workflows, CronJobs, timers and expressions.

    Exit 0: nothing found, 1: found, 2: bad usage or a file that cannot be read.

    Example: chronex lint "0 0 13 * *" --tz UTC
    """
    options = LintOptions(
        targets=tuple(targets or ()), form=form, select=tuple(select or ()), ignore=tuple(ignore or ()),
        min_severity=min_severity, fail_on=fail_on, fix=fix, diff=diff, unsafe_fixes=unsafe_fixes,
        exit_zero=exit_zero, stdin_filename=stdin_filename, as_kind=as_kind, tz=tz, cron=cron, now=now,
        dialect=dialect, isolated=isolated, statistics=statistics, explain=explain, list_rules=list_rules,
    )  # fmt: skip
    return run_lint(options)


class LintOptions(NamedTuple):
    targets: tuple[str, ...]
    form: str
    select: tuple[str, ...]
    ignore: tuple[str, ...]
    min_severity: str
    fail_on: str
    fix: bool
    diff: bool
    unsafe_fixes: bool
    exit_zero: bool
    stdin_filename: str | None
    as_kind: str | None
    tz: str | None
    cron: str | None
    now: str | None
    dialect: str
    isolated: bool
    statistics: bool
    explain: str | None
    list_rules: bool


def run_lint(options: LintOptions) -> int:
    from chronex.cli.lint_io import print_findings, print_rule, print_rules, print_statistics, read_sources
    from chronex.lint.cron_programs import CRON_PROGRAMS, program_of_machine
    from chronex.lint.findings import assumptions
    from chronex.lint.formats import LintOutput
    from chronex.lint.source_files import Document

    _check(options)
    if options.list_rules:
        print_rules(options.form)
        return 0
    if options.explain is not None:
        print_rule(options.explain, "--explain")
        return 0
    choice = choose_zone(options.tz)
    reference = read_instant(options.now, choice.zone, "--now")
    cron = CRON_PROGRAMS[options.cron] if options.cron else None
    assume = assumptions(choice.zone.name, choice.source, reference, cron, program_of_machine())
    run = _LintRun(options, assume)
    changed, printed = 0, False
    for source in read_sources(
        options.targets, options.as_kind, options.stdin_filename, options.dialect, run.is_excluded
    ):
        if isinstance(source, Document) and (options.fix or options.diff):
            changed += run.fix(source)
            printed = printed or (options.fix and _is_output(source, options))
        else:
            run.add(source)
    show = err if printed else out
    if options.statistics:
        print_statistics(options.form, run.items, show)
    elif not options.diff:
        print_findings(options.form, LintOutput(run.items, reference), show)
    return _exit_code(run.items, changed, options)


def _check(options: LintOptions) -> None:
    from chronex.expr.parser import DIALECTS
    from chronex.lint.cron_programs import CRON_PROGRAMS
    from chronex.lint.findings import SEVERITIES
    from chronex.lint.formats import WRITERS
    from chronex.lint.source_files import KINDS

    choose("--format", options.form, ("text", *WRITERS))
    choose("--fail-on", options.fail_on, SEVERITIES)
    choose("--min-severity", options.min_severity, SEVERITIES)
    choose("--dialect", options.dialect, DIALECTS)
    if options.as_kind is not None:
        choose("--as", options.as_kind, KINDS)
    if options.cron is not None:
        choose("--cron", options.cron, tuple(CRON_PROGRAMS))
    if options.fix and options.diff:
        raise UsageError("--fix writes and --diff only shows; give one of them")
    if options.unsafe_fixes and not (options.fix or options.diff):
        raise UsageError("--unsafe-fixes goes with --fix, which writes, or with --diff, which shows")
    if options.stdin_filename is not None and "-" not in options.targets:
        raise UsageError("--stdin-filename names what - reads; write: chronex lint - --stdin-filename NAME")
    for option, codes in (("--select", options.select), ("--ignore", options.ignore)):
        _check_codes(option, _codes(codes))


def _codes(given: Sequence[str]) -> tuple[str, ...]:
    return tuple(code.strip().upper() for text in given for code in text.split(",") if code.strip())


def _check_codes(option: str, codes: Sequence[str]) -> None:
    if not codes:
        return
    from chronex.lint.rules import is_named, rules

    for code in codes:
        if not any(is_named(known, (code,)) for known in rules()):
            raise UsageError(
                f"{option}: no rule begins with {terminal_safe(code)!r}; chronex lint --list-rules shows them"
            )


class _LintRun:
    """The findings so far, each file judged by the settings above it and by the options."""

    def __init__(self, options: LintOptions, assume: Assumptions) -> None:
        self.options = options
        self.items: list[Item] = []
        self._assume = assume
        self._select, self._ignore = _codes(options.select), _codes(options.ignore)
        self._configs: dict[str, LintConfig] = {}

    def is_excluded(self, path: str) -> bool:
        return self._config(path).excludes(path)

    def add(self, source: LintSource) -> None:
        from chronex.lint.source_files import Document

        if isinstance(source, Document):
            self.items.extend((source, finding) for finding in self._findings(source))
        else:
            self.items.append((source.document, source.finding))

    def fix(self, document: Document) -> bool:
        """Fix one document, and lint the result again. True when something changed."""
        from chronex.cli.lint_io import print_diff, print_fixed, write_fixed
        from chronex.lint.findings import UNREADABLE
        from chronex.lint.linter import fixed

        keeps, is_bold = self._keeps(document), self.options.unsafe_fixes
        better = fixed(document, self._assume_for(document), keeps, with_suggestions=is_bold)
        if self.options.diff:
            print_diff(document, better)
            self.items.extend((document, found) for found in self._findings(document) if found.code == UNREADABLE)
            return better.text != document.text
        if _is_output(document, self.options):
            print_fixed(better)
        elif better.text != document.text:
            write_fixed(better)
        self.add(better)
        return better.text != document.text

    def _findings(self, document: Document) -> list[LintFinding]:
        from chronex.lint.linter import lint_document

        keeps = self._keeps(document)
        return [found for found in lint_document(document, self._assume_for(document)).findings if keeps(found)]

    def _keeps(self, document: Document) -> Callable[[LintFinding], bool]:
        from chronex.lint.findings import SEVERITIES, is_at_least
        from chronex.lint.lint_config import RuleChoice

        config = self._config(document.path)
        select = self._select or config.settings.select
        ignore = (*(self._ignore or config.settings.ignore), *config.ignored_in(document.path))
        choice = RuleChoice(select, ignore)
        threshold = max(self.options.min_severity, self.options.fail_on, key=SEVERITIES.index)
        return lambda finding: choice.keeps(finding) and is_at_least(finding.severity, threshold)

    def _assume_for(self, document: Document) -> Assumptions:
        from chronex.lint.lint_config import with_config

        return with_config(self._assume, self._config(document.path))

    def _config(self, path: str) -> LintConfig:
        from chronex.lint.lint_config import InvalidLintConfigError, LintConfig, config_above

        if self.options.isolated:
            return LintConfig()
        folder = "." if path.startswith("<") else os.path.dirname(path) or "."
        if folder not in self._configs:
            try:
                found = config_above(folder)
            except InvalidLintConfigError as error:
                raise UsageError(str(error)) from None
            _check_settings(found)
            self._configs[folder] = found
        return self._configs[folder]


def _check_settings(config: LintConfig) -> None:
    """The reader of the file does not know the rules; a code that names none would do nothing without a word."""
    name = terminal_safe(str(config.path))
    settings = config.settings
    for key, codes in (("select", settings.select), ("ignore", settings.ignore), *settings.per_file_ignores):
        _check_codes(f"{name}: {key}", codes)


def _exit_code(items: list[Item], changed: int, options: LintOptions) -> int:
    from chronex.lint.findings import UNREADABLE, is_at_least

    if any(finding.code == UNREADABLE for _, finding in items):
        return 2
    if options.exit_zero:
        return 0
    if options.diff:
        return 1 if changed else 0
    return 1 if any(is_at_least(finding.severity, options.fail_on) for _, finding in items) else 0


# -- fixes ------------------------------------------------------------------------------------------------


def _is_output(document: Document, options: LintOptions) -> bool:
    """True where the fixed text itself is the output; the remaining findings then go to standard error."""
    return document.path.startswith("<") or ("-" in options.targets and document.path == options.stdin_filename)
