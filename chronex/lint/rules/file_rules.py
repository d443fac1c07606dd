"""The rules on files of any kind: what cannot be read, schedules without quotes, and comments that ignore rules."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chronex.expr.diagnostics import ERROR, INFO, SAME_MEANING, WARNING, Example, Message, Rule
from chronex.lint.findings import UNREADABLE, Edit, Fix, LintFinding, finding
from chronex.lint.rules import WORKFLOW, crontab, workflow
from chronex.text.terminal import quoted

_UNQUOTED_STAR = re.compile(
    r"^[ \t]*(?:-[ \t]+)?(?:cron|schedule):[ \t]+(\*(?:[/, \t][^#\n\r]*?)?)[ \t]*(?:#.*)?\r?$", re.MULTILINE
)

E137 = Rule(
    "E137",
    "schedule without quotes in YAML",
    ERROR,
    "In YAML a value that begins with * is an alias, so that the file is refused, or worse, the "
    "schedule is something else. Put it in quotes.",
    bad=workflow("*/15 * * * *"),
    good=workflow('"*/15 * * * *"'),
    messages={
        "": Message(
            "* without quotes is a YAML alias: the file is refused", "put the schedule in quotes", fix_is=SAME_MEANING
        )
    },
)
E140 = Rule(
    UNREADABLE,
    "the file cannot be read",
    ERROR,
    "The file cannot be read: not UTF-8, not valid YAML, or too large. Exit code 2.",
    bad=Example("on:\n  schedule: [\n", WORKFLOW),
    good=Example("on:\n  schedule: []\n", WORKFLOW),
    messages={
        "too long": Message("the file has {length} characters", "at most {limit} are read"),
        "not YAML": Message("not valid YAML: {reason}"),
    },
)


def file_too_long(length: int, limit: int) -> LintFinding:
    return finding(E140, 0, 1, "too long", length=length, limit=limit)


def yaml_faults(text: str, reason: str, offset: int) -> Iterator[LintFinding]:
    """A star without quotes is the fault that schedules bring into YAML; any other is the YAML's own."""
    stars = [star for star in _UNQUOTED_STAR.finditer(_without_block_scalars(text)) if star[1]]
    for star in stars:
        start, end = star.span(1)
        yield finding(E137, start, end, fix=Fix("put it in quotes", (Edit(start, end, f'"{star[1]}"'),)))
    if not stars:
        yield finding(E140, offset, offset + 1, "not YAML", reason=reason)


_BLOCK_STYLE = re.compile(r"[|>][0-9+-]{0,2}")
_DASHES = re.compile(r"[ -]*(?<![^ ])")  # of sequences; the key stands behind them


def _without_block_scalars(text: str) -> str:
    """The text with blanks for what stands in block scalars: scripts, whose lines are no keys of the file."""
    lines: list[str] = []
    column = -1  # of the key whose block scalar goes on
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip(" "))
        if column >= 0 and (indent > column or not line.strip()):
            lines.append(" " * len(line))
            continue
        column = _key_column(line) if _opens_block_scalar(line) else -1
        lines.append(line)
    return "\n".join(lines)


def _opens_block_scalar(line: str) -> bool:
    words = line.partition(" #")[0].split()
    is_value = any(word == "-" or word.endswith(":") for word in words[-4:-1])  # an anchor or a tag may stand between
    return is_value and _BLOCK_STYLE.fullmatch(words[-1]) is not None


def _key_column(line: str) -> int:
    """Of the key, or of the dash before a text that is an item itself."""
    match = _DASHES.match(line)
    column = match.end() if match else 0
    return column if line[column : column + 1] not in tuple("|>&!") else max(line.rfind("-", 0, column), 0)


W141 = Rule(
    "W141",
    "ignore without a code",
    INFO,
    "An ignore without a code also silences what is found here in a year.",
    bad=crontab("# chronex: ignore\n*/7 * * * * /usr/local/bin/poll\n"),
    good=crontab("# chronex: ignore[W103]\n*/7 * * * * /usr/local/bin/poll\n"),
    messages={
        "": Message("an ignore without a code silences whatever comes later too", "name it: ignore[W111]"),
    },
)
W142 = Rule(
    "W142",
    "ignore that silences nothing",
    WARNING,
    "The comment silences nothing: the mistake is gone, or stands elsewhere.",
    bad=crontab("# chronex: ignore[W103]\n*/5 * * * * /usr/local/bin/poll\n"),
    good=crontab("*/5 * * * * /usr/local/bin/poll\n"),
    messages={"": Message("nothing is found here that ignore{codes} could silence: remove it", fix_is=SAME_MEANING)},
)


def ignore_without_code(start: int, end: int) -> LintFinding:
    return finding(W141, start, end)


def unused_ignore(codes: tuple[str, ...], start: int, end: int, removal: Edit) -> LintFinding:
    listed = f"[{quoted(', '.join(codes))[1:-1]}]" if codes else ""
    return finding(W142, start, end, fix=Fix("remove the comment", (removal,)), codes=listed)


FILE_RULES = (E137, E140, W141, W142)
