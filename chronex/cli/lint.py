"""lint: expressions as arguments or one a line on standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from chronex.cli.arguments import UsageError, choose_zone, read_instant
from chronex.cli.carets import caret_lines
from chronex.cli.expressions import choose
from chronex.cli.terminal import err, inert, out
from chronex.expr.parser import DIALECTS
from chronex.lint.findings import Linted, Settings, Source, fixed, lint
from chronex.lint.formats import WRITERS

_MOST_INPUT = 4 * 1024 * 1024


def run_lint(
    texts: list[str], form: str, fix: bool, fail_on: str, tz: str | None, now: str | None, dialect: str
) -> int:
    choose("--format", form, ("text", *WRITERS))
    choose("--fail-on", fail_on, ("warning", "error"))
    choose("--dialect", dialect, DIALECTS)
    choice = choose_zone(tz)
    settings = Settings(dialect, choice.zone, read_instant(now, choice.zone, "--now"))
    sources = list(_sources(texts))
    if fix:
        sources = [source._replace(text=fixed(source.text, settings)) for source in sources]
        for source in sources:
            out(inert(source.text))
    findings = list(lint(sources, settings))
    show = err if fix else out
    for line in _text(findings) if form == "text" else WRITERS[form](findings):
        show(line)
    return 1 if any(_counts(item, fail_on) for item in findings) else 0


def _counts(item: Linted, fail_on: str) -> bool:
    return bool(item.result.errors) or (fail_on == "warning" and bool(item.result.warnings))


def _sources(texts: list[str]) -> Iterator[Source]:
    if texts and texts != ["-"]:
        yield from (Source(text, "<expression>", number) for number, text in enumerate(texts, 1))
        return
    if not texts and sys.stdin.isatty():
        raise UsageError("nothing to lint; give expressions as arguments, or one a line on standard input")
    data = sys.stdin.buffer.read(_MOST_INPUT + 1)
    if len(data) > _MOST_INPUT:
        raise UsageError(f"standard input is longer than {_MOST_INPUT // 1024 // 1024} MiB")
    for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
        text = line.rstrip("\r")
        if text.strip() and not text.lstrip().startswith("#"):
            yield Source(text, "<stdin>", number)


def _text(findings: list[Linted]) -> Iterator[str]:
    for item in findings:
        if item.diagnostics:
            yield f"{item.source.path}:{item.source.line}"
            yield from caret_lines(item.source.text, item.diagnostics)
