"""What an editor may offer at a schedule: every fix, an ignore, an hour outside the clock change, another minute."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from chronex.expr.parser import parse_text
from chronex.lint.findings import Edit, LintFinding, ScheduleSite
from chronex.lint.host_schedules import judge, schedule_of
from chronex.lint.hosts import SYSTEMD
from chronex.lint.linter import Analysis
from chronex.lint.rules.host_rules import spread_fix

QUICK_FIX, REWRITE, FIX_ALL = "quickfix", "refactor.rewrite", "source.fixAll.chronex"
_CLOCK = ("W111", "W112")
_WORD = re.compile(r"[^ \t]+")
_CLOCK_TIME = re.compile(r"(?<![0-9:])([0-9]{1,2}):([0-9]{2})(?![0-9])")
_NO_COMMENTS = ("trigger", "expressions", "posix", None)


class EditorAction(NamedTuple):
    title: str
    kind: str
    edits: tuple[Edit, ...]
    finding: LintFinding | None = None
    is_preferred: bool = False


def actions_between(analysis: Analysis, start: int, end: int, now_ms: int) -> Iterator[EditorAction]:
    """For the findings and expressions that this part of the file touches."""
    touched = [f for f in analysis.findings if f.start <= end and start <= f.end]
    for finding in touched:
        if finding.fix is not None:
            yield EditorAction(_title(finding.fix.title), QUICK_FIX, finding.fix.edits, finding, finding.fix.is_safe)
    moved: set[ScheduleSite] = set()
    for finding in touched:
        site = finding.site
        if finding.code in _CLOCK and site is not None and site not in moved:
            moved.add(site)
            yield from _outside_the_clock_change(site, finding, now_ms)
    for finding in touched:
        if (edit := ignore_edit(analysis, finding)) is not None:
            yield EditorAction(f"Ignore {finding.code} here", QUICK_FIX, (edit,), finding)
    offered = {finding.code for finding in touched}
    for site in analysis.sites:
        if site.start <= end and start <= site.end and "W132" not in offered:
            yield from _spread_minute(site, now_ms)


def fix_all(analysis: Analysis, better: str) -> Iterator[EditorAction]:
    """All safe fixes as one action; `better` is the text with them, as `chronex lint --fix` would write it."""
    edit = _difference(analysis.document.text, better)
    if edit is not None:
        yield EditorAction("Apply all safe fixes of Chronex", FIX_ALL, (edit,))


def _difference(old: str, new: str) -> Edit | None:
    """One edit from the first character that differs to the last."""
    if old == new:
        return None
    start = _alike(old, new)
    end = _alike(old[: start - 1 : -1] if start else old[::-1], new[: start - 1 : -1] if start else new[::-1])
    return Edit(start, len(old) - end, new[start : len(new) - end])


def _alike(one: str, other: str) -> int:
    """How many characters at the beginning are the same."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def canonical_edits(analysis: Analysis) -> Iterator[Edit]:
    """Each schedule that Chronex reads in its canonical text, which means the same. Others are left alone: their
    programs may read what looks alike otherwise."""
    for site in analysis.sites:
        if site.host.is_plain or site.editable is None:
            continue
        meaning = parse_text(site.text, site.host.dialect).meaning
        if meaning is not None and str(meaning) != site.text:
            yield Edit(site.editable, site.editable + len(site.text), str(meaning))


def _title(text: str) -> str:
    return text[:1].upper() + text[1:]


def ignore_edit(analysis: Analysis, finding: LintFinding) -> Edit | None:
    """A comment on a line of its own above the finding, as deep as that line."""
    document = analysis.document
    if document.kind in _NO_COMMENTS or finding.code in ("E140", "W141", "W142"):
        return None
    line, _ = document.position(finding.start)
    text, start = document.line(line), document.lines.start_of_line(line)
    indent = text[: len(text) - len(text.lstrip(" \t"))]
    newline = "\r\n" if "\r\n" in document.text else "\n"
    return Edit(start, start, f"{indent}# chronex: ignore[{finding.code}]{newline}")


def _outside_the_clock_change(site: ScheduleSite, finding: LintFinding, now_ms: int) -> Iterator[EditorAction]:
    """The same minute at the first later hour that no clock change touches."""
    if site.editable is None:
        return
    found = _hour_of(site)
    if found is None:
        return
    start, end, hour, shown = found
    for later in range(hour + 1, 24):
        text = f"{site.text[:start]}{later:0{end - start}}{site.text[end:]}"
        if not any(d.code in _CLOCK or d.is_error for d in judge(site._replace(text=text), now_ms)):
            edit = Edit(site.editable + start, site.editable + end, f"{later:0{end - start}}")
            title = f"Move {shown(hour)} to {shown(later)}, outside the clock change"
            yield EditorAction(title, QUICK_FIX, (edit,), finding)
            return


def _hour_of(site: ScheduleSite) -> tuple[int, int, int, _Shown] | None:
    """Where a single hour stands in the text, and how to show a time of that hour."""
    if site.host is SYSTEMD:
        match = _CLOCK_TIME.search(site.text)
        if match is None:
            return None
        return match.start(1), match.end(1), int(match[1]), _Shown(int(match[2]))
    words = [word for word in _WORD.finditer(site.text) if not word[0].startswith("TZ=")]
    fields = words[: next((n for n, word in enumerate(words) if word[0][0] in "{<"), len(words))]
    if len(fields) not in (5, 6):
        return None
    minute, hour = fields[len(fields) - 5], fields[len(fields) - 4]
    if not hour[0].isdigit() or not minute[0].isdigit():
        return None
    return hour.start(), hour.end(), int(hour[0]), _Shown(int(minute[0]))


class _Shown(NamedTuple):
    minute: int

    def __call__(self, hour: int) -> str:
        return f"{hour:02}:{self.minute:02}"


def _spread_minute(site: ScheduleSite, now_ms: int) -> Iterator[EditorAction]:
    """From minute 0, where most jobs start, to one that depends on the job's name."""
    is_at_zero = site.text.split()[:1] == ["0"] and len(site.text.split()) >= 5
    fix = spread_fix(site) if is_at_zero and site.host is not SYSTEMD else None
    if fix is not None and schedule_of(site, now_ms) is not None and len(site.text.split("{")[0].split()) == 5:
        yield EditorAction(_title(fix.title), REWRITE, fix.edits)
