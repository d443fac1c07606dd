"""The `[[verify.property]]` tables: promises of the user's own, which `chronex verify` holds the journal to."""

from __future__ import annotations

from typing import NamedTuple

from chronex.expr.faults import quote
from chronex.jobfile.entries import Entry, Reader, RefusedError, read_table
from chronex.jobfile.rules import Rule, RuleError, parse_rule
from chronex.jobfile.values import filled_text, name

MOST_PROPERTIES = 100
_EXAMPLE = 'name = "…" and rule = "never … after …"'


class Property(NamedTuple):
    """A name, the rule as written, and what it means."""

    name: str
    text: str
    rule: Rule


def _rule(entry: Entry) -> tuple[str, Rule]:
    text = filled_text(entry)
    try:
        return text, parse_rule(text)
    except RuleError as error:
        entry.refuse(error.message, error.hint, "J025", entry.span_inside(error.start, error.end))


PROPERTY: dict[str, Reader] = {"name": name, "rule": _rule}
VERIFY: dict[str, Reader] = {"property": lambda entry: entry}


def read_properties(entry: Entry) -> tuple[Property, ...]:
    tables = read_table(entry, VERIFY, "[[verify.property]] and its keys below it")
    listed: Entry | None = tables.get("property")
    if listed is None:
        return ()
    found: dict[str, Property] = {}
    for number, one in enumerate(listed.children()):
        if number == MOST_PROPERTIES:
            one.refuse(f"more than {MOST_PROPERTIES} properties", "keep those that matter", "J014")
        try:
            _add(one, found)
        except RefusedError:
            continue
    return tuple(found.values())


def _add(entry: Entry, found: dict[str, Property]) -> None:
    given = read_table(entry, PROPERTY, _EXAMPLE)
    for key in PROPERTY:
        if key not in entry.expect_table():
            entry.report(f"a property has no {key}", f"write {_EXAMPLE}", "J012")
    if "name" not in given or "rule" not in given:
        raise RefusedError
    if given["name"] in found:
        entry.child("name").refuse(f"the property {quote(given['name'])} is given twice", "rename one", "J018")
    text, rule = given["rule"]
    found[given["name"]] = Property(given["name"], text, rule)
