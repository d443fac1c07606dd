"""Messages are data: templates filled with arguments, never sentences that are taken apart again."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest

from chronex.expr.diagnostics import HostMessage, Message, Rule
from chronex.lint.findings import ScheduleSite, ZoneNote
from chronex.lint.host_schedules import judge
from chronex.lint.hosts import CRON_HOSTS, CRONTAB, GITHUB, KUBERNETES, ScheduleHost
from chronex.lint.rules import rules
from chronex.timing import validate
from tests.kit.source_trees import syntax_of
from tests.kit.tables import table
from tests.lint.golden import NOW_MS

ROOT = Path(__file__).parent.parent.parent / "chronex"
TAKES_APART = {
    "startswith", "endswith", "removeprefix", "removesuffix", "split", "rsplit", "partition", "rpartition", "replace",
    "find", "rfind", "index", "search", "match", "fullmatch", "findall", "finditer", "sub",
}  # fmt: skip
WORDED = {"message", "hint", "problem"}


def _is_worded(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in WORDED


def taken_apart(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        parts: list[ast.expr] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in TAKES_APART:
            parts = [node.func.value, *node.args]
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            parts = node.comparators
        yield from (part.lineno for part in parts if _is_worded(part))


@table([(str(path.relative_to(ROOT)), path) for path in sorted(ROOT.rglob("*.py"))])
def test_no_message_is_taken_apart(path: Path) -> None:
    assert list(taken_apart(syntax_of(path))) == []


@pytest.mark.parametrize(
    "text", ["d.message.split('; ')", "re.search('x', p.hint)", "'FRIL' in d.message", "p.hint.removeprefix('a')"]
)
def test_the_test_finds_what_takes_messages_apart(text: str) -> None:
    assert list(taken_apart(ast.parse(text))) == [1]


# -- templates --------------------------------------------------------------------------------------------


def cases() -> Iterator[tuple[Rule, str, Message]]:
    for rule in rules().values():
        yield from ((rule, case, message) for case, message in rule.messages.items())


def _names(template: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(template) if name}


@table([(f"{rule.code} {case}", message) for rule, case, message in cases()])
def test_a_host_is_given_no_other_arguments_than_chronex(message: Message) -> None:
    """All words of one case are filled from one set of arguments; `value` is always among them."""
    own = _names(message.problem) | _names(message.hint)
    for other in message.elsewhere:
        assert isinstance(other, HostMessage)
        assert _names(other.problem) | _names(other.hint) <= own | {"value"}


def test_every_case_is_used() -> None:
    """The names of cases are texts, which no type checker follows; a missing one raises where it is used."""
    written = {
        node.value
        for path in ROOT.rglob("*.py")
        if not path.name.endswith("_rules.py")
        for node in ast.walk(syntax_of(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    own = {
        node.value
        for path in ROOT.rglob("*_rules.py")
        for call in ast.walk(syntax_of(path))
        if isinstance(call, ast.Call | ast.Assign | ast.IfExp)
        for node in ast.iter_child_nodes(call)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert {f"{rule.code}: {case}" for rule, case, _ in cases() if case and case not in written | own} == set()


# -- the words of each host -------------------------------------------------------------------------------


def said(text: str, host: ScheduleHost) -> list[tuple[str, str, str | None]]:
    site = ScheduleSite(text, 0, len(text), 0, host, ZoneNote("UTC", ""))
    return [(d.code, str(d), d.fix) for d in judge(site, NOW_MS)]


@pytest.mark.parametrize("host", [CRON_HOSTS["cronie"], GITHUB, KUBERNETES], ids=lambda host: host.key)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 9 L-31,3 * *", ("E004", "dayOfMonth: 'L-31' is not a value here", None)),
        ("0 9 45W * *", ("E004", "dayOfMonth: '45W' is not a value here", None)),
        ("0 9 L-40 * *", ("E004", "dayOfMonth: 'L-40' is not a value here", None)),
        ("0 9 * * FRI#9", ("E006", "dayOfWeek: 'FRI#9' is not a value here", None)),
        ("0 9 * * FRI#L", ("E006", "dayOfWeek: 'FRI#L' is not a value here", None)),
        ("0 9 * * MON,FRI#7", ("E006", "dayOfWeek: 'FRI#7' is not a value here", None)),
        ("FRIL 9 * * *", ("E002", "minute: 'FRIL' is not a value; expected a number from 0 to 59", None)),
        ("H 9 * * *", ("E002", "minute: 'H' is Jenkins' hash; use a fixed value", None)),
        ("0 9 * *", ("E010", "expected 5 fields, got 4", None)),
        ("0 0 9 * * MON 2027", ("E010", "expected 5 fields, got 7", None)),
        ("0 9 31 * *", ("W105", "dayOfMonth: there is no day 31 in February, April, June, September, November: skipped", None)),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)  # fmt: skip
def test_plain_cron_is_not_offered_what_only_chronex_reads(
    host: ScheduleHost, text: str, expected: tuple[str, str, str | None]
) -> None:
    assert said(text, host) == [expected]


@pytest.mark.parametrize(
    "host", [CRON_HOSTS["cronie"], CRON_HOSTS["busybox"], GITHUB, KUBERNETES], ids=lambda host: host.title
)
@pytest.mark.parametrize(
    ("text", "field", "elements"),
    [
        ("0 9 15,L * *", "dayOfMonth", ["L"]),
        ("0 9 L * *", "dayOfMonth", ["L"]),
        ("0 9 * * MON,FRIL", "dayOfWeek", ["FRIL"]),
        ("0 9 1W,15W * *", "dayOfMonth", ["1W", "15W"]),
    ],
)
def test_days_by_their_place_are_refused_one_by_one_where_cron_is_plain(
    host: ScheduleHost, text: str, field: str, elements: list[str]
) -> None:
    found = [d for d in said(text, host) if d[0] == "E130"]
    first = [("E130", f"{field}: {e!r}: {host.title} does not know L, W and #", None) for e in elements]
    assert found in (first, first[:1])  # a cron stops at the first one


@pytest.mark.parametrize(
    "text", ["0 9 15,L * *", "0 9 * * MON#1,THU#1", "0 9 1W,LW * *", "0 9 1,15,L * FRI", "0 9 1,2W * *"]
)
def test_supercronic_takes_days_by_their_place_in_lists(text: str) -> None:
    assert not [d for d in said(text, CRON_HOSTS["supercronic"]) if d[0].startswith("E")]


def test_days_that_begin_with_a_star_are_joined_by_and_in_a_crontab_only() -> None:
    text = "0 9 */2 * MON"
    (crontab,) = (d for d in said(text, CRONTAB) if d[0] == "W106")
    (github,) = (d for d in said(text, GITHUB) if d[0] == "W106")
    assert crontab[1] == "dayOfMonth: */2 begins with *, so cron fires only when both day fields match"
    assert github[1] == (
        "dayOfMonth: */2 counts as a restriction, so either day field may match; other crons require both here"
    )


@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        ("0 9 ? * *", "'?' is Quartz's way to leave a day field open", "read as *"),
        ("0 9 * * MNO", "unknown name 'MNO'", "did you mean MON?"),
        ("@every 0s", "duration must be positive", ""),
        ("0 9 * * * {tag:'a; b'}", "expected tags (a letter, then letters, digits, _ or -, joined by +), got ''a; b''", ""),
    ],
)  # fmt: skip
def test_problem_and_hint_are_fields_of_their_own(text: str, problem: str, hint: str) -> None:
    (d,) = validate(text).diagnostics
    assert (d.problem, d.hint) == (problem, hint)
    assert d.message == (f"{problem}; {hint}" if hint else problem)
