"""The sources that the arguments of lint name: files, directories, standard input, expressions."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from chronex.cli.arguments import UsageError
from chronex.cli.output import err
from chronex.expr.diagnostics import ERROR
from chronex.lint.findings import UNREADABLE, LintFinding
from chronex.lint.source_files import ARGUMENTS, KINDS, Document, find_files, kind_by_name, open_document
from chronex.text.terminal import terminal_safe

_MOST_BYTES = 8 * 1024 * 1024
_STDIN = "<stdin>"
_SUFFIXES = (".toml", ".yml", ".yaml", ".timer", ".cron", ".crontab", ".json", ".py", ".conf")
_LOOK_INSIDE = {"yaml": b"CronJob", "python": b"chronex"}


class Unreadable(NamedTuple):
    """A file that has no text to lint."""

    document: Document
    finding: LintFinding


LintSource: TypeAlias = Document | Unreadable


def read_sources(
    targets: Sequence[str], kind: str | None, stdin_filename: str | None, dialect: str
) -> Iterator[LintSource]:
    """Every source in the order given. Raises UsageError for what is neither a file nor an expression."""
    bare = "posix" if dialect == "posix" else "expressions"
    if not targets:
        yield from (source for path in find_files(Path()) if (source := _read(path, kind)) is not None)
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
            yield from (source for file in find_files(path) if (source := _read(file, kind)) is not None)
        elif is_there(target):
            yield from _given(path, kind)


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
    source = _read(path, kind, look_inside=False)
    if source is None:
        return
    if isinstance(source, Document) and source.kind is None and kind_by_name(str(path)) is None:
        name = terminal_safe(str(path))
        err(f"chronex: {name} has no name that lint knows; --as {{{','.join(KINDS)}}} says what it is")
    yield source


def _read(path: Path, kind: str | None, *, look_inside: bool = True) -> LintSource | None:
    name = str(path)
    known = kind_by_name(name)
    try:
        if not path.is_file():  # a pipe or a device could block for ever
            return None if look_inside else _unreadable(name, "not a regular file")
        if path.stat().st_size > _MOST_BYTES:
            return None if look_inside and known in _LOOK_INSIDE else _unreadable(name, "the file is too large")
        data = path.read_bytes()
    except OSError as error:
        return _unreadable(name, f"the file cannot be read: {error.strerror}")
    if look_inside and kind is None and known in _LOOK_INSIDE and _LOOK_INSIDE[known] not in data:
        return None
    return _decoded(name, data, kind)


def _decoded(name: str, data: bytes, kind: str | None) -> LintSource:
    try:
        return open_document(name, data.decode("utf-8"), kind)
    except UnicodeDecodeError as error:
        if kind is None and kind_by_name(name) in (None, "yaml", "python"):
            return open_document(name, "")  # no file for the linter
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
    return _decoded(name or _STDIN, data, kind)
