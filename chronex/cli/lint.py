"""lint: files, directories and expressions to findings, in the form that was asked for."""

from __future__ import annotations

import difflib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from chronex.cli.arguments import UsageError, choose_zone, read_instant
from chronex.cli.expressions import choose
from chronex.cli.lint_sources import Source, read_sources
from chronex.cli.lint_text import as_text, list_rules
from chronex.cli.terminal import err, inert, out
from chronex.expr.parser import DIALECTS
from chronex.lint.document import BYTE_ORDER_MARK, KINDS, Document
from chronex.lint.findings import SEVERITIES, UNREADABLE, Assumptions, LintFinding, ZoneNote, is_at_least
from chronex.lint.fixes import fixed
from chronex.lint.formats import WRITERS, Item, LintOutput
from chronex.lint.linter import lint_document


class LintOptions(NamedTuple):
    targets: tuple[str, ...]
    form: str
    select: tuple[str, ...]
    ignore: tuple[str, ...]
    min_severity: str
    fail_on: str
    fix: bool
    diff: bool
    exit_zero: bool
    stdin_filename: str | None
    as_kind: str | None
    tz: str | None
    now: str | None
    dialect: str
    explain: str | None
    list_rules: bool


def run_lint(options: LintOptions) -> int:
    _check(options)
    if options.list_rules:
        return list_rules(options.form)
    if options.explain is not None:
        return _explain(options.explain)
    choice = choose_zone(options.tz)
    reference = read_instant(options.now, choice.zone, "--now")
    assume = assumptions(choice.zone.name, choice.source, reference)
    items: list[Item] = []
    changed, printed = 0, False
    for source in read_sources(options.targets, options.as_kind, options.stdin_filename, options.dialect):
        if isinstance(source, Document) and (options.fix or options.diff):
            changed += _fix(source, assume, options, items)
            printed = printed or (options.fix and _is_answer(source, options))
        else:
            items.extend(_findings(source, assume, options))
    if not options.diff:
        _show(options.form, LintOutput(items, reference), err if printed else out)
    return _exit_code(items, changed, options)


def _show(form: str, output: LintOutput, show: Callable[[str], None]) -> None:
    """JSON and SARIF go to programs as they are; whatever a person may look at has no control characters."""
    if form == "text":
        for line in as_text(output.items):
            show(line)
        return
    is_for_programs = form in ("json", "sarif") and not sys.stdout.isatty()
    for text in WRITERS[form](output):
        for line in [text] if is_for_programs else text.split("\n"):
            show(line if is_for_programs else inert(line))


def _check(options: LintOptions) -> None:
    choose("--format", options.form, ("text", *WRITERS))
    choose("--fail-on", options.fail_on, SEVERITIES)
    choose("--min-severity", options.min_severity, SEVERITIES)
    choose("--dialect", options.dialect, DIALECTS)
    if options.as_kind is not None:
        choose("--as", options.as_kind, KINDS)
    if options.fix and options.diff:
        raise UsageError("--fix writes and --diff only shows; give one of them")
    if options.stdin_filename is not None and "-" not in options.targets:
        raise UsageError("--stdin-filename names what - reads; write: chronex lint - --stdin-filename NAME")
    for option, codes in (("--select", options.select), ("--ignore", options.ignore)):
        _check_codes(option, _codes(codes))


def _codes(given: Sequence[str]) -> tuple[str, ...]:
    return tuple(code.strip().upper() for text in given for code in text.split(",") if code.strip())


def _check_codes(option: str, codes: Sequence[str]) -> None:
    if not codes:
        return
    from chronex.lint.rules import rules

    for code in codes:
        if not any(known.startswith(code) for known in rules()):
            raise UsageError(f"{option}: no rule begins with {inert(code)!r}; chronex lint --list-rules shows them")


def _findings(source: Source, assume: Assumptions, options: LintOptions) -> Iterator[Item]:
    if isinstance(source, Document):
        yield from (
            (source, finding) for finding in lint_document(source, assume).findings if _shows(finding, options)
        )
    else:
        yield source.document, source.finding


def _shows(finding: LintFinding, options: LintOptions) -> bool:
    select, ignore = _codes(options.select), _codes(options.ignore)
    if select and not finding.code.startswith(select):
        return False
    if ignore and finding.code.startswith(ignore):
        return False
    threshold = max(options.min_severity, options.fail_on, key=SEVERITIES.index)
    return is_at_least(finding.severity, threshold)


def _exit_code(items: list[Item], changed: int, options: LintOptions) -> int:
    if any(finding.code == UNREADABLE for _, finding in items):
        return 2
    if options.exit_zero:
        return 0
    if options.diff:
        return 1 if changed else 0
    return 1 if any(is_at_least(finding.severity, options.fail_on) for _, finding in items) else 0


# -- fixes ------------------------------------------------------------------------------------------------


def _is_answer(document: Document, options: LintOptions) -> bool:
    """Is the fixed text itself the answer? Then the findings that are left go to standard error."""
    return document.path.startswith("<") or ("-" in options.targets and document.path == options.stdin_filename)


def _fix(document: Document, assume: Assumptions, options: LintOptions, items: list[Item]) -> bool:
    """Fix one document; what is left is found anew. True when something changed."""
    better = fixed(document, assume, lambda finding: _shows(finding, options))
    if options.diff:
        _show_diff(document, better)
        items.extend(item for item in _findings(document, assume, options) if item[1].code == UNREADABLE)
        return better.text != document.text
    if _is_answer(document, options):
        _print_text(better)
    elif better.text != document.text:
        _write(better)
    items.extend(_findings(better, assume, options))
    return better.text != document.text


def _print_text(document: Document) -> None:
    """A whole file as it is, byte by byte; expressions one a line. A terminal gets no control characters."""
    if document.kind in ("expressions", "posix"):
        for line in document.text.split("\n"):
            if line.strip():
                out(inert(line.rstrip("\r")))
    elif sys.stdout.isatty():
        for line in document.text.split("\n"):
            out(inert(line))
    else:
        sys.stdout.flush()
        mark = BYTE_ORDER_MARK if document.has_mark else ""
        sys.stdout.buffer.write((mark + document.text).encode("utf-8"))
        sys.stdout.buffer.flush()


def _write(document: Document) -> None:
    """The whole new file or the old one: a crontab cut short by a full disk would be worse than any finding."""
    mark = BYTE_ORDER_MARK if document.has_mark else ""
    try:
        replace_file(Path(document.path).resolve(), (mark + document.text).encode("utf-8"))
    except OSError as error:
        raise UsageError(f"{inert(document.path)} cannot be written: {error.strerror}") from None


def replace_file(path: Path, data: bytes) -> None:
    """Keeps the file's mode and, where the system allows it, its owner."""
    state = path.stat()
    number, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(data)
            os.fchmod(number, state.st_mode & 0o7777)
            with suppress(OSError):
                os.fchown(number, state.st_uid, state.st_gid)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _show_diff(before: Document, after: Document) -> None:
    old, new = before.text.splitlines(keepends=True), after.text.splitlines(keepends=True)
    for line in difflib.unified_diff(old, new, before.path, before.path):
        out(inert(line.rstrip("\r\n")))
        if not line.endswith("\n"):
            out("\\ No newline at end of file")


# -- what a file cannot tell ------------------------------------------------------------------------------


def assumptions(zone: str, why: str, reference_ms: int) -> Assumptions:
    return Assumptions(ZoneNote(zone, why), reference_ms)


def _explain(code: str) -> int:
    from chronex.lint.rules import rules
    from chronex.lint.rules.rule_pages import PAGE_REFERENCE_MS, page

    rule = rules().get(code.strip().upper())
    if rule is None:
        raise UsageError(f"--explain: there is no rule {inert(code)!r}; chronex lint --list-rules shows them")
    out(page(rule, assumptions("UTC", "assumed", PAGE_REFERENCE_MS)).rstrip("\n"))
    return 0
