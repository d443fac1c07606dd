"""What lint reads (files, directories, standard input, expressions), and how it prints findings and fixes."""

from __future__ import annotations

import difflib
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, TypeAlias

from chronex.cli.options import UsageError
from chronex.cli.output import caret_lines, out, paint, print_json
from chronex.expr.diagnostics import ERROR
from chronex.lint.findings import UNREADABLE, LintFinding, assumptions
from chronex.lint.formats import PAGE_REFERENCE_MS, WRITERS, Item, LintOutput, page
from chronex.lint.source_files import (
    ARGUMENTS,
    BYTE_ORDER_MARK,
    KINDS,
    UNSURE_CRON_D,
    Document,
    find_files,
    has_jobs,
    kind_by_name,
    open_document,
)
from chronex.text.files import replace_file
from chronex.text.terminal import terminal_safe

_MOST_BYTES = 16 * 1024 * 1024
_STDIN = "<stdin>"
_SUFFIXES = (".toml", ".yml", ".yaml", ".timer", ".cron", ".crontab", ".json", ".py", ".conf")
_IN_BYTES = ("crontab", "cron.d", UNSURE_CRON_D)
_SNIFFED_FOR = {"yaml": b"kind", "python": b"chronex"}


# -- sources ------------------------------------------------------------------------------------------------------


class Unreadable(NamedTuple):
    """A file that has no text to lint."""

    document: Document
    finding: LintFinding


LintSource: TypeAlias = Document | Unreadable


def read_sources(
    targets: Sequence[str],
    kind: str | None,
    stdin_filename: str | None,
    dialect: str,
    is_excluded: Callable[[str], bool] = lambda path: False,
) -> Iterator[LintSource]:
    """Every source in the order given. Raises UsageError for what is neither a file nor an expression.

    `is_excluded` leaves out files that are found in a directory; those that are named are read all the same.
    """
    bare = "posix" if dialect == "posix" else "expressions"
    if not targets:
        yield from _found_in(Path(), kind, is_excluded)
        return
    expressions = [target for target in targets if target != "-" and not is_there(target)]
    for target in expressions:
        _refuse_missing(target)
    if expressions:
        yield open_document(ARGUMENTS, "\n".join(expressions), bare)
    for target in targets:
        path = Path(target)
        if target == "-":
            yield _standard_input(kind, stdin_filename, bare)
        elif is_there(target) and path.is_dir():
            yield from _found_in(path, kind, is_excluded)
        elif is_there(target):
            yield from _given(path, kind)


def _found_in(folder: Path, kind: str | None, is_excluded: Callable[[str], bool]) -> Iterator[LintSource]:
    for path in find_files(folder):
        if not is_excluded(str(path)) and (source := _read_source(path, kind)) is not None:
            yield source


def is_there(target: str) -> bool:
    try:
        return bool(target) and Path(target).exists()
    except (OSError, ValueError):  # a name that no file system takes
        return False


def _refuse_missing(target: str) -> None:
    """An expression has blanks in it or starts with @ or R; anything else was meant to be a file."""
    is_expression = (
        " " in target.strip() or "\t" in target or target.lstrip()[:1] == "@" or target[:2] in ("R/", "r/")
    )
    if is_expression and not target.endswith(_SUFFIXES):
        return
    hint = "an expression has five fields, in quotes" if not target.endswith(_SUFFIXES) else "is the name right?"
    raise UsageError(f"there is no file {terminal_safe(target)[:80]!r}; {hint}")


def _given(path: Path, kind: str | None) -> Iterator[LintSource]:
    """A file that the user names is read whatever .gitignore says of it."""
    source = _read_source(path, kind, sniff=False)
    if source is None:
        return
    yield _named(source)


def _named(source: LintSource) -> LintSource:
    """A file that is asked for and not linted is no success: nobody would notice that nothing was checked."""
    if isinstance(source, Document) and source.kind is None and kind_by_name(source.path) is None:
        return _unreadable(source.path, f"not linted: {_how_to_name_it(source)}")
    return source


def _how_to_name_it(source: Document) -> str:
    if source.path.endswith(".toml") and has_jobs(source.text):
        return "it may be a job file, or a part of one; --as chronex reads it as a whole one"
    return f"its name does not say what it is; say so with --as {{{','.join(KINDS)}}}"


def _read_source(path: Path, kind: str | None, *, sniff: bool = True) -> LintSource | None:
    name = str(path)
    known = kind_by_name(name)
    try:
        if not path.is_file():  # a pipe or a device could block for ever
            return None if sniff else _unreadable(name, "not a regular file")
        if path.stat().st_size > _MOST_BYTES:
            return None if sniff and known in _SNIFFED_FOR else _unreadable(name, "the file is too large")
        data = path.read_bytes()
    except OSError as error:
        return _unreadable(name, f"the file cannot be read: {error.strerror}")
    if sniff and kind is None and known in _SNIFFED_FOR and _SNIFFED_FOR[known] not in data:
        return None
    return _decoded(name, data, kind, sniff=sniff)


def _decoded(name: str, data: bytes, kind: str | None, *, sniff: bool) -> LintSource:
    try:
        return open_document(name, data.decode("utf-8"), kind)
    except UnicodeDecodeError as error:
        if kind is None and sniff and kind_by_name(name) in (None, "yaml", "python"):
            return open_document(name, "")  # no file for the linter
        if (kind or kind_by_name(name)) in _IN_BYTES:
            # The program reads bytes, and a comment in Latin-1 is nothing to it.
            return open_document(name, data.decode("utf-8", "surrogateescape"), kind)
        before = data[: error.start].decode("utf-8")
        document = Document(name, before + "\N{REPLACEMENT CHARACTER}", None)
        message = f"byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8"
        return Unreadable(document, LintFinding(UNREADABLE, ERROR, message, len(before), len(before) + 1))


def _unreadable(name: str, message: str) -> Unreadable:
    return Unreadable(Document(name, "", None), LintFinding(UNREADABLE, ERROR, message, 0, 0))


def _standard_input(kind: str | None, name: str | None, bare: str) -> LintSource:
    data = sys.stdin.buffer.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise UsageError(f"standard input is longer than {_MOST_BYTES // 1024 // 1024} MiB")
    if name is None and kind is None:
        return open_document(_STDIN, data.decode("utf-8", "replace"), bare)
    return _named(_decoded(name or _STDIN, data, kind, sniff=False))


# -- findings and fixes -------------------------------------------------------------------------------------------
#
# In text a finding in a file is one line, a finding in an expression has carets under it, and a terminal gets both.

_EXPRESSIONS = ("expressions", "posix")  # the kinds of documents that hold bare expressions


def print_findings(form: str, output: LintOutput, show: Callable[[str], None]) -> None:
    """JSON and SARIF go to programs as they are; forms that a person may read have no control characters."""
    if form == "text":
        for line in _finding_lines(output.items):
            show(line)
        return
    is_for_programs = form in ("json", "sarif") and not sys.stdout.isatty()
    for text in WRITERS[form](output):
        for line in [text] if is_for_programs else text.split("\n"):
            show(line if is_for_programs else terminal_safe(line))


def print_fixed(document: Document) -> None:
    """A whole file as it is, byte by byte; expressions one a line. A terminal gets no control characters."""
    if document.kind in _EXPRESSIONS:
        for line in document.text.split("\n"):
            if line.strip():
                out(terminal_safe(line.rstrip("\r")))
    elif sys.stdout.isatty():
        for line in document.text.split("\n"):
            out(terminal_safe(line))
    else:
        sys.stdout.flush()
        mark = BYTE_ORDER_MARK if document.has_mark else ""
        sys.stdout.buffer.write((mark + document.text).encode("utf-8", "surrogateescape"))
        sys.stdout.buffer.flush()


def write_fixed(document: Document) -> None:
    """Write the whole new file or none: a crontab cut short by a full disk would be worse than any finding."""

    mark = BYTE_ORDER_MARK if document.has_mark else ""
    try:
        replace_file(Path(document.path).resolve(), (mark + document.text).encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise UsageError(f"{terminal_safe(document.path)} cannot be written: {error.strerror}") from None


def print_diff(before: Document, after: Document) -> None:
    old, new = before.text.splitlines(keepends=True), after.text.splitlines(keepends=True)
    for line in difflib.unified_diff(old, new, before.path, before.path):
        out(terminal_safe(line.rstrip("\r\n")))
        if not line.endswith("\n"):
            out("\\ No newline at end of file")


def _finding_lines(items: Sequence[Item]) -> Iterator[str]:
    for (document, line), group in groupby(items, key=lambda item: (item[0], item[0].position(item[1].start)[0])):
        findings = [finding for _, finding in group]
        if document.kind in _EXPRESSIONS:
            yield f"{document.path}:{line}"
            yield from _carets(document, line, findings)
        else:
            yield from (_finding_line(document, finding) for finding in findings)
            if sys.stdout.isatty():
                yield from _carets(document, line, findings)


def _finding_line(document: Document, finding: LintFinding) -> str:
    line, column = document.position(finding.start)
    fix = ""
    if finding.fix is not None:
        fix = f" [{finding.fix.title}]" if finding.fix.is_safe else f" [perhaps: {finding.fix.title}]"
    colour = "red" if finding.severity == ERROR else "yellow"
    message = terminal_safe(f"{finding.message}{fix}")
    return f"{terminal_safe(document.path)}:{line}:{column}: {paint(finding.code, colour, 'bold')} {message}"


class CaretMark(NamedTuple):
    """A part of a line with what is said under it."""

    code: str
    severity: str
    start: int
    end: int
    message: str

    def __str__(self) -> str:
        return self.message


def _carets(document: Document, line: int, findings: list[LintFinding]) -> Iterator[str]:
    text, start = document.line(line), document.lines.start_of_line(line)
    shows_message = document.kind in _EXPRESSIONS  # elsewhere the line above has it
    marks = (
        CaretMark(
            f.code, f.severity, f.start - start, f.end - start, terminal_safe(f.message) if shows_message else ""
        )
        for f in findings
    )
    yield from caret_lines(text, marks)


def print_statistics(form: str, items: Sequence[Item], show: Callable[[str], None]) -> None:
    """How often each rule was found, the most frequent first, and how many of these --fix puts right."""
    from chronex.lint.rules import title_of

    counts = Counter(finding.code for _, finding in items)
    fixable = Counter(finding.code for _, finding in items if finding.fix is not None and finding.fix.is_safe)
    rows = [
        {"code": code, "count": count, "fixable": fixable[code], "title": title_of(code)}
        for code, count in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    ]
    if form == "json":
        print_json(rows, ensure_ascii=False)
        return
    width = max((len(str(row["count"])) for row in rows), default=1)
    for row in rows:
        fix = f" [{row['fixable']} by --fix]" if row["fixable"] else ""
        show(f"{row['count']:>{width}}  {row['code']}  {row['title']}{fix}")


def print_rules(form: str, only: str | None = None) -> None:
    """All rules, or as JSON one of them with its explanation."""
    from chronex.lint.rules import rule_named, rules

    if only is not None:
        rule = rule_named(only)
        if rule is None:
            raise UsageError(f"there is no rule {terminal_safe(only)!r}; chronex rule lists them")
        row = {"code": rule.code, "severity": rule.severity, "title": rule.title, "explanation": rule.explanation}
        print_json(row, ensure_ascii=False)
        return
    if form == "json":
        rows = [{"code": r.code, "severity": r.severity, "title": r.title} for r in rules().values()]
        print_json(rows, ensure_ascii=False)
        return
    for rule in rules().values():
        out(f"{rule.code}  {rule.severity:<7}  {rule.title}")


def print_rule(code: str, option: str) -> None:
    """The page of a rule; `option` is what a message about an unknown code names."""
    from chronex.lint.rules import rule_named

    rule = rule_named(code)
    if rule is None:
        raise UsageError(f"{option}: there is no rule {terminal_safe(code)!r}; chronex rule lists them")
    out(page(rule, assumptions("UTC", "assumed", PAGE_REFERENCE_MS)).rstrip("\n"))
