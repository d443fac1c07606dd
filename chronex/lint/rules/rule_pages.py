"""A rule as a page: what `chronex lint --explain` prints and docs/rules holds."""

from __future__ import annotations

from collections.abc import Iterator

from chronex.expr.diagnostics import Example, Rule
from chronex.lint.document import ARGUMENTS, open_document
from chronex.lint.findings import Assumptions, LintFinding
from chronex.lint.linter import lint_document

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
                yield from ("", f"The fix: {finding.fix.title}.")
            break
    yield from ("", "## Good", "", *_shown(rule.good))
    marker = f"# chronex: ignore[{rule.code}]"
    if rule.code[0] == "W":
        yield from ("", f"To keep it as it is, write `{marker}` on the line above.")


def _shown(example: Example) -> Iterator[str]:
    if not example.path:
        yield from ("```text", example.text, "```")
        return
    suffix = example.path[example.path.rfind(".") :] if "." in example.path else ""
    yield from (f"`{example.path}`:", "", f"```{_LANGUAGES.get(suffix, 'text')}", example.text.rstrip("\n"), "```")
