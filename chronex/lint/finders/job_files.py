"""chronex.toml: the schedule of each job, with the zone, the dialect and the policy that hold for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from chronex.expr.diagnostics import WARNING
from chronex.jobfile.positions import TextNode, scan_toml
from chronex.lint.assumptions import Assumptions
from chronex.lint.document import Document
from chronex.lint.findings import Finding, Found, Place, ZoneNote
from chronex.lint.hosts import CHRONEX, POSIX
from chronex.lint.strings import text_of, toml_string
from chronex.lint.zones import abbreviation_message, is_abbreviation
from chronex.timing.dst import DEFAULT_POLICY, POSIX_POLICY, DstPolicy, GapRule, OverlapRule

_GAPS: dict[str, GapRule] = {"end": "end", "skip": "skip"}
_OVERLAPS: dict[str, OverlapRule] = {"first": "first", "both": "both", "by-kind": "by-kind"}
_CARRIAGE_RETURN = re.compile("\r(?=\n)")


@lru_cache(maxsize=2)
def scan_job_file(text: str) -> TextNode:
    """The tree of the file. A space in the place of each carriage return keeps all offsets as they are."""
    return scan_toml(_CARRIAGE_RETURN.sub(" ", text)).root


def find_jobs(document: Document, assume: Assumptions) -> Found:
    reader = _Reader(document.text, assume)
    return Found(list(reader.places()), list(reader.zone_findings()))


class _Reader:
    def __init__(self, text: str, assume: Assumptions) -> None:
        self.text, self.root = text, scan_job_file(text)
        self.host_zone = assume.zone
        self.zone = self._zone(self.root.children.get("scheduler"), "from [scheduler]") or assume.zone

    def places(self) -> Iterator[Place]:
        for name, job in self._jobs():
            schedule = job.children.get("schedule")
            value = text_of(schedule, self.text, toml_string) if schedule else None
            if schedule is None or value is None:
                continue
            host = POSIX if self._setting(job, "dialect") == "posix" else CHRONEX
            zone = self._zone(job, "from the job's timezone") or self.zone
            policy = self._policy(job, host is POSIX)
            span = schedule.value
            yield Place(value, span.start, span.end, schedule.content, host, zone, name, policy)

    def zone_findings(self) -> Iterator[Finding]:
        """Unknown zones are told by the job file's own reader."""
        tables = [self.root.children.get("scheduler"), *(job for _, job in self._jobs())]
        for table in tables:
            node = table.children.get("timezone") if table else None
            name = text_of(node, self.text, toml_string) if node else None
            if node is not None and name is not None and is_abbreviation(name):
                yield Finding("W113", WARNING, abbreviation_message(name), node.value.start, node.value.end)

    def _jobs(self) -> Iterator[tuple[str, TextNode]]:
        jobs = self.root.children.get("jobs")
        for name, job in jobs.children.items() if jobs else ():
            if isinstance(name, str):
                yield name, job

    def _zone(self, table: TextNode | None, why: str) -> ZoneNote | None:
        node = table.children.get("timezone") if table else None
        name = text_of(node, self.text, toml_string) if node else None
        if name is None:
            return None
        return self.host_zone if name == "local" else ZoneNote(name, why)

    def _setting(self, job: TextNode, key: str) -> str | None:
        for table in (job, self.root.children.get("defaults")):
            node = table.children.get(key) if table else None
            if node is not None:
                return text_of(node, self.text, toml_string)
        return None

    def _policy(self, job: TextNode, is_posix: bool) -> DstPolicy | None:
        """The policy that the job or the defaults choose; None when neither does."""
        given: dict[str, str] = {}
        for table in (self.root.children.get("defaults"), job):
            dst = table.children.get("dst") if table else None
            for key, node in dst.children.items() if dst else ():
                given[str(key)] = text_of(node, self.text, toml_string) or ""
        usual = POSIX_POLICY if is_posix else DEFAULT_POLICY
        gap = _GAPS.get(given.get("gap", ""), usual.gap)
        overlap = _OVERLAPS.get(given.get("overlap", ""), usual.overlap)
        return DstPolicy(gap, overlap) if given else None
