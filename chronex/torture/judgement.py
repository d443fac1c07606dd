"""The verdict on a campaign: what the store says, held against what the commands wrote and what was acknowledged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from chronex.model.occurrence import Occurrence
from chronex.model.reasons import text_of
from chronex.model.states import OccurrenceState, is_final
from chronex.storage import journal
from chronex.storage.ports import Store
from chronex.storage.records import EVERYTHING, Reading
from chronex.text.instants import rfc3339
from chronex.torture.witness import (
    Span,
    WitnessedRun,
    at_a_time,
    begun_twice,
    fences_went_back,
    longest_pause,
    overlaps,
)
from chronex.verify import VerificationReport, verify_store

_MOST_FINDINGS = 20
_PAGE = 2_000


class CampaignVerdict(NamedTuple):
    """`findings` is empty where everything that is promised held."""

    findings: tuple[str, ...]
    figures: dict[str, Any]

    @property
    def holds(self) -> bool:
        return not self.findings


Firing = tuple[str, int]


class Watched(NamedTuple):
    """From when to when something was due each second, and when no database or machine was there to begin it."""

    span: Span
    cannot: tuple[Span, ...]
    longest_s: float  # nothing may begin for so long, and no longer


def judge(
    store: Store, every_ms: dict[str, int], executions: list[WitnessedRun], acknowledged: Sequence[Firing],
    in_turn: Collection[str] = (), watched: Watched | None = None,
) -> CampaignVerdict:  # fmt: skip
    """`every_ms` are jobs with the distance of their instants; `acknowledged` the runs that somebody was promised.

    Of the jobs `in_turn` no two may run at a time. While `watched`, something must begin again and again.
    """
    findings: list[str] = []
    known: dict[Firing, Occurrence] = {}
    for job in {**every_ms, **dict.fromkeys(job for job, _ in acknowledged)}:
        found = _occurrences(store, job)
        known |= {(one.job, one.nominal_ms): one for one in found}
        if job in every_ms:
            findings += _instants_without_outcome(job, every_ms[job], [one for one in found if not one.manual])
    occurrences = list(known.values())
    findings += _of_witness(occurrences, executions)
    alone = {one.id for one in occurrences if one.job in in_turn}
    findings += [
        f"{before.attempt} and {after.attempt} of one group ran at a time: until {before.last}, from {after.begun}"
        for before, after in at_a_time([one for one in executions if one.occurrence in alone])
    ]
    findings += [_broken_promise(one, known.get(one)) for one in acknowledged if not _is_kept(known.get(one))]
    pause = None if watched is None else longest_pause(executions, watched.span, watched.cannot)
    if watched and pause and pause.seconds > watched.longest_s:
        most = f"{watched.longest_s:g} s are the most"
        findings.append(f"nothing began anywhere for {pause.seconds:.1f} s, from {pause.since}; {most}")
    report = verify_store(store)
    findings += [f"verify: {one.property} {one.title}: {one.findings[0].message}" for one in report.violated()]
    figures = _figures(occurrences, executions, len(acknowledged), report)
    figures["longest_pause_ms"] = round((pause.seconds if pause else 0) * 1000)
    figures["could_not_begin_ms"] = round(sum(one.seconds for one in watched.cannot) * 1000) if watched else 0
    return CampaignVerdict(tuple(findings[:_MOST_FINDINGS]), {**figures, **_node_facts(store)})


def _occurrences(store: Store, job: str) -> list[Occurrence]:
    return store.view(lambda tx: Reading(tx).occurrences(job, limit=EVERYTHING))


def _is_kept(found: Occurrence | None) -> bool:
    return found is not None and found.state is OccurrenceState.COMPLETED


def _broken_promise(firing: Firing, found: Occurrence | None) -> str:
    standing = "lost" if found is None else found.state.value
    return f"{firing[0]} at {rfc3339(firing[1])} was acknowledged and is {standing}"


def _instants_without_outcome(job: str, distance_ms: int, found: list[Occurrence]) -> list[str]:
    """Each instant between the first and the last has one record, and that has ended."""
    instants = sorted(one.nominal_ms for one in found)
    if not instants:
        return [f"{job} has never run"]
    wanted = range(instants[0], instants[-1] + 1, distance_ms)
    lost = sorted(set(wanted) - set(instants))
    spans = sum(one.older.count for one in found if one.older is not None)
    findings = [f"{job} at {rfc3339(one)} has no outcome" for one in lost[spans:]]
    findings += [
        f"{job} at {rfc3339(one.nominal_ms)} is still {one.state.value}" for one in found if not is_final(one.state)
    ]
    return findings + [
        f"{job} at {rfc3339(one.nominal_ms)} was canceled ({text_of(one.reason)}), and nobody had asked for that"
        for one in found
        if one.state is OccurrenceState.CANCELED
    ]


def _of_witness(occurrences: Iterable[Occurrence], executions: list[WitnessedRun]) -> list[str]:
    findings = [
        f"{before.occurrence} ran twice at a time: {before.attempt} until {before.last}, then {after.attempt}"
        f" from {after.begun}"
        for before, after in overlaps(executions)
    ]
    findings += [f"{attempt} was executed twice" for attempt in begun_twice(executions)]
    findings += [f"the fences of {occurrence} went back" for occurrence in fences_went_back(executions)]
    ended = {one.occurrence for one in executions if one.ended}
    begun = {one.occurrence for one in executions}
    for one in occurrences:
        if one.state is OccurrenceState.COMPLETED and one.id not in ended:
            findings.append(f"{one.id} is completed, and its command never came to its end")
        if one.started_ms is None and one.id in begun:
            findings.append(f"{one.id} ran, and the store has no start of it")
    return findings


_OF_NODES = {
    "NodeLost": "given_up",
    "NodeRefused": "refused",
    "SchedulerCrashed": "found_dead",
    "TaskRunAdopted": "runs_adopted",
    "StoreBack": "store_away",
}


def _node_facts(store: Store) -> dict[str, Any]:
    """What the faults did to nodes: a campaign in which none was given up has shown little."""
    found, silent_ms = dict.fromkeys(_OF_NODES.values(), 0), 0
    seen = 0
    while page := store.view(lambda tx, seen=seen: journal.tail(tx, seen, _PAGE)):  # type: ignore[misc]
        seen = page[-1][0]
        for _, event in page:
            if event.name in _OF_NODES:
                found[_OF_NODES[event.name]] += 1
            if event.name == "NodeLost":
                silent_ms = max(silent_ms, int(event.data.get("silent_ms", 0)))
    return {"nodes": found, "given_up_after_ms": silent_ms}


def _figures(
    occurrences: list[Occurrence], executions: list[WitnessedRun], promised: int, report: VerificationReport
) -> dict[str, Any]:
    per_occurrence = Counter(one.occurrence for one in executions)
    start = report.latencies[0]
    return {
        "occurrences": len(occurrences),
        "outcomes": dict(Counter(one.state.value for one in occurrences)),
        "executions": len(executions),
        "executed_again": sum(count - 1 for count in per_occurrence.values()),
        "acknowledged": promised,
        "events": report.coverage.events,
        "start_lag_ms": {"median": start.median_ms, "p95": start.p95_ms, "max": start.max_ms},
        "verify": report.verdict.value,
    }
