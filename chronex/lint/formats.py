"""The same findings for people, editors, CI and code scanning. Columns are 1-based code points."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from chronex.expr.codes import TITLES
from chronex.expr.diagnostics import Diagnostic
from chronex.lint.findings import Linted
from chronex.version import __version__


def as_json(findings: Sequence[Linted]) -> Iterator[str]:
    rows = [
        {
            "file": item.source.path,
            "line": item.source.line,
            "expression": item.source.text,
            "valid": item.result.is_valid,
            "diagnostics": [d.to_dict() for d in item.diagnostics],
        }
        for item in findings
    ]
    yield json.dumps(rows, indent=2, ensure_ascii=False)


def as_gcc(findings: Sequence[Linted]) -> Iterator[str]:
    for item in findings:
        for d in item.diagnostics:
            place = f"{item.source.path}:{item.source.line}:{d.start + 1}"
            yield f"{place}: {d.severity}: {_one_line(str(d))} [{d.code}]"


def as_github(findings: Sequence[Linted]) -> Iterator[str]:
    for item in findings:
        for d in item.diagnostics:
            properties = {
                "file": item.source.path,
                "line": item.source.line,
                "col": d.start + 1,
                "endColumn": max(d.end, d.start + 1) + 1,
                "title": d.code,
            }
            listed = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
            yield f"::{d.severity} {listed}::{_data(str(d))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _one_line(text: str) -> str:
    return text.replace("\n", " ")


def as_sarif(findings: Sequence[Linted]) -> Iterator[str]:
    rules = sorted({d.code for item in findings for d in item.diagnostics})
    run = {
        "tool": {
            "driver": {
                "name": "chronex",
                "version": __version__,
                "rules": [{"id": code, "shortDescription": {"text": TITLES.get(code, code)}} for code in rules],
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": [_sarif_result(item, d, rules) for item in findings for d in item.diagnostics],
    }
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    yield json.dumps({"$schema": schema, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False)


def _sarif_result(item: Linted, d: Diagnostic, rules: list[str]) -> dict[str, Any]:
    region = {"startLine": item.source.line, "startColumn": d.start + 1, "endColumn": max(d.end, d.start) + 1}
    location = {"artifactLocation": {"uri": item.source.path.strip("<>")}, "region": region}
    result: dict[str, Any] = {
        "ruleId": d.code,
        "ruleIndex": rules.index(d.code),
        "level": d.severity,
        "message": {"text": str(d)},
        "locations": [{"physicalLocation": location}],
    }
    if d.fix is not None:
        change = {"deletedRegion": region, "insertedContent": {"text": d.fix}}
        artifact = {"artifactLocation": location["artifactLocation"], "replacements": [change]}
        result["fixes"] = [{"description": {"text": f"write {d.fix!r}"}, "artifactChanges": [artifact]}]
    return result


WRITERS: dict[str, Callable[[Sequence[Linted]], Iterator[str]]] = {
    "json": as_json,
    "gcc": as_gcc,
    "github": as_github,
    "sarif": as_sarif,
}
