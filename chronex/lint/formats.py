"""Findings for editors, CI and code scanning, and rules as pages. Columns are 1-based code points."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from chronex.expr.diagnostics import ERROR, INFO, WARNING, Example, Rule
from chronex.lint.findings import Assumptions, Edit, LintFinding, assumptions
from chronex.lint.host_schedules import schedule_of
from chronex.lint.linter import lint_document
from chronex.lint.rules import explanation_of, rule_named, title_of
from chronex.lint.source_files import ARGUMENTS, Document, open_document
from chronex.text.instants import local_datetime
from chronex.timing.zones import Zone
from chronex.version import __version__

_NEXT_RUNS = 3
Item = tuple[Document, LintFinding]


class LintOutput:
    """What a writer is given: each finding with its file, and the instant from which next runs are counted."""

    def __init__(self, items: Sequence[Item], reference_ms: int) -> None:
        self.items = items
        self.reference_ms = reference_ms


def region(document: Document, start: int, end: int) -> dict[str, int]:
    line, column = document.position(start)
    end_line, end_column = document.position(end)
    return {"line": line, "column": column, "end_line": end_line, "end_column": end_column}


def as_json(output: LintOutput) -> Iterator[str]:
    yield json.dumps([_row(d, f, output.reference_ms) for d, f in output.items], indent=2, ensure_ascii=False)


def _row(document: Document, finding: LintFinding, reference_ms: int) -> dict[str, Any]:
    site, fix = finding.site, finding.fix
    row: dict[str, Any] = {
        "file": document.path,
        **region(document, finding.start, finding.end),
        "code": finding.code,
        "severity": finding.severity,
        "message": finding.message,
        "page": rule_address(finding.code) or f"docs/rules/{finding.code}.md",
        "expression": None if site is None else site.text,
        "dialect": None if site is None else site.host.key,
        "zone": None if site is None else site.zone.name,
        "next": [],
        "fix": None,
    }
    if site is not None and (schedule := schedule_of(site, reference_ms)) is not None:
        row["next"] = [_local_iso(ms, schedule.zone) for ms in schedule.upcoming(reference_ms, _NEXT_RUNS)]
    if fix is not None:
        edits = [{**region(document, e.start, e.end), "text": e.text} for e in fix.edits]
        row["fix"] = {"title": fix.title, "safe": fix.is_safe, "edits": edits}
    return row


def _local_iso(ms: int, zone: Zone) -> str:
    return local_datetime(ms, zone.tzinfo).isoformat()


def as_gcc(output: LintOutput) -> Iterator[str]:
    for document, finding in output.items:
        line, column = document.position(finding.start)
        severity = "note" if finding.severity == INFO else finding.severity
        yield f"{_one_line(document.path)}:{line}:{column}: {severity}: {_one_line(finding.message)} [{finding.code}]"


def as_github(output: LintOutput) -> Iterator[str]:
    for document, finding in output.items:
        spot = region(document, finding.start, max(finding.end, finding.start + 1))
        properties = {
            "file": document.path,
            "line": spot["line"],
            "endLine": spot["end_line"],
            "col": spot["column"],
            "endColumn": spot["end_column"],
            "title": finding.code,
        }
        listed = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
        level = "notice" if finding.severity == INFO else finding.severity
        yield f"::{level} {listed}::{_data(finding.message)}"


def as_gitlab(output: LintOutput) -> Iterator[str]:
    """GitLab's Code Quality report. A fingerprint names the same finding when its line has moved."""
    from hashlib import sha256

    rows, seen = [], Counter[str]()
    for document, finding in output.items:
        line = document.position(finding.start)[0]
        print_of = f"{document.path}\0{finding.code}\0{finding.message}\0{document.line(line)}"
        seen[print_of] += 1
        rows.append(
            {
                "description": finding.message,
                "check_name": finding.code,
                "fingerprint": sha256(f"{print_of}\0{seen[print_of]}".encode("utf-8", "surrogatepass")).hexdigest(),
                "severity": _GITLAB_SEVERITIES[finding.severity],
                "location": {"path": document.path, "lines": {"begin": line}},
            }
        )
    yield json.dumps(rows, indent=2, ensure_ascii=False)


_GITLAB_SEVERITIES = {ERROR: "major", WARNING: "minor", INFO: "info"}


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _one_line(text: str) -> str:
    return text.replace("\n", " ")


def as_sarif(output: LintOutput) -> Iterator[str]:
    rules = sorted({finding.code for _, finding in output.items})
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "chronex",
                "version": __version__,
                "informationUri": rule_pages() or None,
                "rules": [_sarif_rule(code) for code in rules],
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": [_sarif_result(document, finding, rules) for document, finding in output.items],
    }
    if run["tool"]["driver"]["informationUri"] is None:
        del run["tool"]["driver"]["informationUri"]
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    yield json.dumps({"$schema": schema, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False)


def _sarif_rule(code: str) -> dict[str, Any]:
    """With all that GitHub's code scanning asks for: a name in one word, descriptions, a page and its address."""
    title, explanation = title_of(code), explanation_of(code) or title_of(code)
    known = rule_named(code)
    row: dict[str, Any] = {
        "id": code,
        "name": "".join(word.capitalize() for word in re.findall("[A-Za-z0-9]+", title)),
        "shortDescription": {"text": title},
        "fullDescription": {"text": explanation},
        "help": {"text": explanation},
        "defaultConfiguration": {"level": _LEVELS[known.severity] if known else "warning"},
    }
    if known is not None:
        row["help"]["markdown"] = page(known, assumptions("UTC", "assumed", PAGE_REFERENCE_MS))
    if (address := rule_address(code)) is not None:
        row["helpUri"] = address
    return row


_LEVELS = {ERROR: "error", WARNING: "warning", INFO: "note"}


@lru_cache(maxsize=1)
def rule_pages() -> str | None:
    """Where the pages of the rules are published: below the documentation that the installed package names."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        named = metadata("chronex").get_all("Project-URL") or []
    except PackageNotFoundError:
        return None
    urls = dict(re.split(r",\s*", entry, maxsplit=1) for entry in named if "," in entry)
    base = urls.get("Documentation")
    return f"{base.rstrip('/')}/rules/" if base else None


def rule_address(code: str) -> str | None:
    base = rule_pages()
    return f"{base}{code}" if base else None


def _sarif_result(document: Document, finding: LintFinding, rules: list[str]) -> dict[str, Any]:
    artifact = {"uri": _uri(document.path)}
    location = {"artifactLocation": artifact, "region": _sarif_region(document, finding.start, finding.end)}
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": rules.index(finding.code),
        "level": _LEVELS[finding.severity],
        "message": {"text": finding.message},
        "locations": [{"physicalLocation": location}],
    }
    if finding.fix is not None and finding.fix.is_safe:  # SARIF has no word for a fix that needs a second thought
        changes = [_replacement(document, edit) for edit in finding.fix.edits]
        change = {"artifactLocation": artifact, "replacements": changes}
        result["fixes"] = [{"description": {"text": finding.fix.title}, "artifactChanges": [change]}]
    return result


def _replacement(document: Document, edit: Edit) -> dict[str, Any]:
    deleted = _sarif_region(document, edit.start, edit.end)
    return {"deletedRegion": deleted, "insertedContent": {"text": edit.text}}


def _sarif_region(document: Document, start: int, end: int) -> dict[str, int]:
    names = {"line": "startLine", "column": "startColumn", "end_line": "endLine", "end_column": "endColumn"}
    return {names[key]: value for key, value in region(document, start, max(end, start)).items()}


def _uri(path: str) -> str:
    """A relative reference, or a file URI; what stands for a file has no brackets."""
    plain = path.strip("<>").replace("\\", "/")
    return PurePath(plain).as_uri() if PurePath(plain).is_absolute() else quote(plain, errors="surrogatepass")


WRITERS: dict[str, Callable[[LintOutput], Iterator[str]]] = {
    "json": as_json,
    "gcc": as_gcc,
    "github": as_github,
    "gitlab": as_gitlab,
    "sarif": as_sarif,
}

# -- a rule as a page: what `chronex lint --explain` prints and docs/rules holds ------------------------------

PAGE_REFERENCE_MS = 1_798_761_600_000  # 2027-01-01: what pages say about coming dates is said from here
_LANGUAGES = {".toml": "toml", ".yml": "yaml", ".yaml": "yaml", ".timer": "ini", ".py": "python", ".json": "json"}


def page(rule: Rule, assume: Assumptions) -> str:
    """The page in Markdown. What is said of the bad example is what the linter really says of it."""
    return "\n".join(_lines(rule, assume)) + "\n"


def findings_of(example: Example, assume: Assumptions) -> list[LintFinding]:
    document = open_document(example.path, example.text)
    if not example.path:
        document = open_document(ARGUMENTS, example.text, "expressions")
    return lint_document(document, assume).findings


def _lines(rule: Rule, assume: Assumptions) -> Iterator[str]:
    yield from (f"# {rule.code}: {rule.title}", "", f"Severity: {rule.severity}.", "", rule.explanation)
    if rule.bad is None or rule.good is None:
        return
    yield from ("", "## Bad", "", *_shown(rule.bad))
    for finding in findings_of(rule.bad, assume):
        if finding.code == rule.code:
            stop = "" if finding.message[-1] == "?" else "."
            yield from ("", f"What will happen: {finding.message}{stop}")
            if finding.fix is not None:
                kind = "The fix" if finding.fix.is_safe else "A suggestion, which only `--unsafe-fixes` applies"
                yield from ("", f"{kind}: {finding.fix.title}.")
            break
    yield from ("", "## Good", "", *_shown(rule.good))
    marker = f"# chronex: ignore[{rule.code}]"
    if rule.code[0] == "W":
        yield from ("", f"To keep it as it is, write `{marker}` on the line above.")


def _shown(example: Example) -> Iterator[str]:
    if not example.path:
        yield from ("```text", example.text, "```")
        return
    # Characters that cannot be seen are written out, and those that Markdown would change.
    text = example.text.rstrip("\n").replace("\ufeff", "<U+FEFF>").replace("\r", "<U+000D>")
    suffix = example.path[example.path.rfind(".") :] if "." in example.path else ""
    yield from (f"`{example.path}`:", "", f"```{_LANGUAGES.get(suffix, 'text')}", text, "```")
