"""What was found in a file: where it stands, what will happen, and the edits that put it right."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from chronex.expr.diagnostics import ERROR, INFO, WARNING, Diagnostic, Rule, is_safe, with_hint
from chronex.lint.cron_programs import DEBIAN, CronProgram
from chronex.lint.hosts import ScheduleHost
from chronex.timing.dst import DstPolicy

if TYPE_CHECKING:  # the records need a library that a linter does without
    from chronex.model.calendars import CalendarRules
    from chronex.model.job import Job

SEVERITIES = (ERROR, WARNING, INFO)  # the worst first
UNREADABLE = "E140"
# Of a file with one of these nobody can say what is a key, a text or a comment.
UNPARSED = frozenset({UNREADABLE, "E137", "J001", "J002", "J003"})
# A value without quotes must not begin with these in YAML: @daily is refused, * is an alias.
_OPENS_NO_PLAIN_YAML = ("@", "*")


class Edit(NamedTuple):
    """Replace what stands between two offsets of the file."""

    start: int
    end: int
    text: str


class Fix(NamedTuple):
    """A safe fix cannot change when something runs: the host reads both texts alike, or refused one that has a single
    reading. Any other is a suggestion, which people apply."""

    title: str
    edits: tuple[Edit, ...]
    is_safe: bool = False


class ZoneNote(NamedTuple):
    """The zone in which a host reads a schedule, and how that is known."""

    name: str
    why: str


class Assumptions(NamedTuple):
    """What a file does not contain: the zone of its machine, the date, and which cron reads it."""

    zone: ZoneNote
    reference_ms: int
    cron: CronProgram | None = None  # as somebody says it; otherwise the file tells, or the machine
    machine_cron: CronProgram = DEBIAN


class ScheduleSite(NamedTuple):
    """An expression and where it stands. `start` and `end` enclose its quotes too; `content` is the offset of its
    first character, None when escapes or folded lines hide the offsets of its parts. `is_shared`: it stands for other
    places of the file too, so that only its writer should change it."""

    text: str
    start: int
    end: int
    content: int | None
    host: ScheduleHost
    zone: ZoneNote
    name: str = ""
    policy: DstPolicy | None = None
    calendars: CalendarRules | None = None
    is_shared: bool = False

    @property
    def editable(self) -> int | None:
        """The offset of its first character where it may be changed."""
        return None if self.is_shared else self.content

    def span(self, start: int, end: int) -> tuple[int, int]:
        """A part of the expression in the file; the whole of it where the offsets of parts are not known."""
        if self.content is None:
            return self.start, self.end
        return self.content + start, self.content + end

    def edit(self, start: int, end: int, text: str) -> Edit | None:
        if self.editable is None:
            return None
        if start == 0 and text[:1] in _OPENS_NO_PLAIN_YAML and self._is_plain_yaml:
            return Edit(self.start, self.end, f'"{text}{self.text[end:]}"')
        return Edit(self.editable + start, self.editable + end, text)

    @property
    def _is_plain_yaml(self) -> bool:
        return self.host.is_in_yaml and self.content == self.start


class LintFinding(NamedTuple):
    """One finding. Offsets count from the start of the file; a message says what will happen."""

    code: str
    severity: str
    message: str
    start: int
    end: int
    fix: Fix | None = None
    site: ScheduleSite | None = None


class FinderResult(NamedTuple):
    """What a finder read in a file: the expressions, what is wrong around them, and the jobs of a file of Chronex."""

    sites: list[ScheduleSite]
    findings: list[LintFinding]
    jobs: tuple[Job, ...] = ()


def finding(
    rule: Rule,
    start: int,
    end: int,
    case: str = "",
    /,
    *,
    fix: Fix | None = None,
    site: ScheduleSite | None = None,
    severity: str | None = None,
    replaced: str = "",
    **arguments: object,
) -> LintFinding:
    """A finding of the rule between two offsets; `arguments` fill the message of the case.

    `replaced` is what the fix takes the place of, for messages whose fix is safe where it is the same word.
    """
    message = rule.messages[case]
    text = with_hint(message.problem.format(**arguments), message.hint.format(**arguments))
    safe_or_not = None if fix is None else fix._replace(is_safe=is_safe(message, replaced, fix.edits[0].text))
    return LintFinding(rule.code, severity or rule.severity, text, start, end, safe_or_not, site)


def finding_at(site: ScheduleSite, d: Diagnostic) -> LintFinding:
    """What is wrong with an expression, at its place in the file."""
    start, end = site.span(d.start, d.end)
    fix = None
    if d.fix is not None and (edit := site.edit(d.start, d.end, d.fix)) is not None:
        title = f"write {d.fix}" if d.fix.strip() else "remove it"
        fix = Fix(title, (edit,), d.is_fix_safe)
    return LintFinding(d.code, d.severity, str(d), start, max(end, start), fix, site)


def in_order(findings: Iterable[LintFinding]) -> list[LintFinding]:
    """In the order of the file, none twice: what YAML shares by an alias is judged at each of them."""
    found: dict[tuple[int, int, str, str], LintFinding] = {}
    for each in findings:
        found.setdefault((each.start, each.end, each.code, each.message), each)
    return [found[key] for key in sorted(found)]


def is_at_least(severity: str, threshold: str) -> bool:
    return SEVERITIES.index(severity) <= SEVERITIES.index(threshold)


def assumptions(
    zone: str, why: str, reference_ms: int, cron: CronProgram | None = None, machine_cron: CronProgram = DEBIAN
) -> Assumptions:
    """What the linter takes for granted: the zone of schedules that name none, why that one, the present time, and
    the cron of crontabs."""
    return Assumptions(ZoneNote(zone, why), reference_ms, cron, machine_cron)
