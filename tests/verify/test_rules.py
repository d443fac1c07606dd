"""Properties of the user's own: the language, its errors, and what each form forbids or asks for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from chronex.jobfile import JobFileError, Property, read_job_file
from chronex.jobfile.properties import EventPattern, PropertyRule, PropertyRuleError, parse_rule
from chronex.model.event import EVENTS
from chronex.verify import VerificationReport, verify_events
from tests.verify.traces import trace

ROOT = Path(__file__).parents[2]


def judged(rule: str, text: str) -> VerificationReport:
    return verify_events(trace(text), properties=[Property("own", rule, parse_rule(rule))])


def broken_at(rule: str, text: str) -> list[int]:
    return [finding.number for finding in judged(rule, text).properties[-1].findings]


def test_the_parts_of_a_rule() -> None:
    assert parse_rule("never TaskRunFailed") == PropertyRule((EventPattern("TaskRunFailed"),))
    assert parse_rule(
        "never OccurrenceStarted(a*) after JobPaused($job) or JobOrphaned until JobResumed within 1h30m"
    ) == PropertyRule(
        (EventPattern("OccurrenceStarted", "a*"),),
        (EventPattern("JobPaused", "$job"), EventPattern("JobOrphaned")),
        (EventPattern("JobResumed"),),
        5_400_000,
    )
    assert parse_rule(
        "expect TaskRunCompleted(a/b) after TaskRunStarted(a/b) within 5m unless JobOrphaned(a)"
    ) == PropertyRule(
        (EventPattern("TaskRunCompleted", "a", "b"),),
        (EventPattern("TaskRunStarted", "a", "b"),),
        (EventPattern("JobOrphaned", "a"),),
        300_000,
        must_come=True,
    )


@pytest.mark.parametrize(
    ("rule", "marked", "hint"),
    [
        ("", "", "never OccurrenceStarted"),
        ("«always» X", "always", "never OccurrenceStarted"),
        ("never «TaskRunStart»", "TaskRunStart", "did you mean TaskRunStarted?"),
        ("never «Frobnicated»", "Frobnicated", "lists the events"),
        ("never", "", "lists the events"),
        ("never TaskRunStarted «afte» JobPaused", "afte", "did you mean after?"),
        ("never TaskRunStarted(«)»", ")", "OccurrenceStarted(backup)"),
        ("never TaskRunStarted(a", "", "close the parenthesis"),
        ("never TaskRunStarted(a/«$job»)", "$job", "OccurrenceStarted(backup)"),
        ("never TaskRunStarted($job)", "", "the event after"),
        ("never TaskRunStarted after JobPaused within «5min»", "5min", "did you mean 5m?"),
        ("expect TaskRunStarted", "", "say what it follows"),
        ("expect TaskRunStarted after JobPaused", "", "say how soon"),
        ("expect TaskRunStarted after JobPaused within 5m «until» JobResumed", "until", "remove what follows"),
        ("never TaskRunStarted or «or» X", "or", "lists the events"),
        ("never TaskRunStarted «\x1b»", "\x1b", "remove"),
    ],
)
def test_a_rule_that_cannot_be_read_says_where_and_what_to_write(rule: str, marked: str, hint: str) -> None:
    text = rule.replace("«", "").replace("»", "")
    start = rule.index("«") if "«" in rule else len(text)
    with pytest.raises(PropertyRuleError) as refused:
        parse_rule(text)
    assert refused.value.start == start
    assert text[start : refused.value.end] == marked
    assert hint in refused.value.hint
    assert "\x1b" not in refused.value.message


def test_a_rule_of_absurd_length_is_refused() -> None:
    with pytest.raises(PropertyRuleError, match="at most 1000 characters"):
        parse_rule("never " + "TaskRunStarted or " * 1000)


BACKUP = """
10:00:00 OccurrenceStarted backup@10:00
10:01:00 OccurrenceStarted deploy@10:01
10:02:00 OccurrenceCompleted backup@10:00
10:03:00 OccurrenceStarted deploy@10:03
10:30:00 OccurrenceStarted other@10:30
"""


@pytest.mark.parametrize(
    ("rule", "numbers"),
    [
        ("never OccurrenceStarted(deploy)", [2, 4]),
        ("never OccurrenceStarted(de*y)", [2, 4]),
        ("never OccurrenceFailed", []),
        ("never OccurrenceStarted(deploy) after OccurrenceStarted(backup)", [2, 4]),
        ("never OccurrenceStarted(deploy) after OccurrenceStarted(backup) until OccurrenceCompleted(backup)", [2]),
        ("never OccurrenceStarted(deploy) after OccurrenceStarted(backup) within 2m", [2]),
        ("never OccurrenceStarted(deploy) after OccurrenceStarted(backup) within 59s", []),
        ("never OccurrenceStarted($job) after OccurrenceStarted within 5m", [4]),
        ("never OccurrenceStarted($job) after OccurrenceCompleted", []),
        ("expect OccurrenceCompleted(backup) after OccurrenceStarted(backup) within 2m", []),
        ("expect OccurrenceCompleted(backup) after OccurrenceStarted(backup) within 119s", [3]),
        ("expect OccurrenceCompleted($job) after OccurrenceStarted within 10m", [5]),
        ("expect OccurrenceCompleted($job) after OccurrenceStarted(deploy) within 1m unless OccurrenceCompleted(backup)", [5]),
        ("expect OccurrenceFailed after OccurrenceStarted(backup) within 1h", []),
    ],
)  # fmt: skip
def test_where_a_trace_breaks_a_rule(rule: str, numbers: list[int]) -> None:
    assert broken_at(rule, BACKUP) == numbers


def test_what_is_still_awaited_is_open() -> None:
    result = judged("expect OccurrenceFailed after OccurrenceStarted(backup) within 1h", BACKUP).properties[-1]
    assert result.verdict.value == "open"
    assert "2027-01-04T11:00:00Z" in result.open[0].message


def test_the_evidence_is_the_pair_of_events() -> None:
    result = judged("never OccurrenceStarted(deploy) after OccurrenceStarted(backup) within 2m", BACKUP).properties[
        -1
    ]
    assert [number for number, _ in result.findings[0].evidence] == [1, 2]
    assert result.property == "own"


def test_a_mistake_in_the_job_file_has_line_and_column() -> None:
    text = '[[verify.property]]\nname = "a"\nrule = "never TaskRunStart"\n'
    with pytest.raises(JobFileError) as refused:
        read_job_file(text, "chronex.toml", "UTC")
    assert str(refused.value) == (
        "chronex.toml:3:15: expected an event, not 'TaskRunStart'; did you mean TaskRunStarted?"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[verify]\nrule = "x"\n', "unknown key 'rule'"),
        ("[verify]\nproperty = 5\n", "property takes a list"),
        ('[[verify.property]]\nname = "a"\n', "a property has no rule"),
        ('[[verify.property]]\nrule = "never TaskRunFailed"\n', "a property has no name"),
        ('[[verify.property]]\nname = "a"\nrule = 7\n', "rule takes text"),
        ('[[verify.property]]\nname = "a"\nrule = "never TaskRunFailed"\n' * 2, "given twice"),
        ('[[verify.property]]\nname = "a"\nrule = "never TaskRunFailed"\nwhen = "x"\n', "unknown key 'when'"),
    ],
)
def test_the_table_is_read_as_strictly_as_the_rest_of_the_file(text: str, message: str) -> None:
    with pytest.raises(JobFileError, match=re.escape(message)):
        read_job_file(text, "chronex.toml", "UTC")


def test_properties_come_with_the_job_file() -> None:
    text = '[[verify.property]]\nname = "quiet"\nrule = "never TaskRunFailed(backup)"\n'
    (found,) = read_job_file(text, "chronex.toml", "UTC").properties
    assert found == Property("quiet", "never TaskRunFailed(backup)", parse_rule("never TaskRunFailed(backup)"))


# However an event is written: told, journaled or reported by name, or chosen by one of two names.
WRITTEN = re.compile(
    r'(?:(?:tell|journal|report|_told|_tell)\((?:records, )?|Event\(\s*name=|Told\(name=|\bname=)"([A-Z][a-z]+[A-Z][A-Za-z]+)"'
)


def test_every_event_that_is_written_has_its_name_in_the_list() -> None:
    packages = ("engine", "daemon", "declarative", "run")
    sources = [path for package in packages for path in ROOT.glob(f"chronex/{package}/**/*.py")]
    written = {name for source in sources for name in WRITTEN.findall(source.read_text())}
    assert written
    assert written <= set(EVENTS)


def test_the_specification_lists_every_event() -> None:
    page = (ROOT / "specs" / "formal-model.md").read_text()
    assert dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", page, re.MULTILINE)) == EVENTS
