"""`chronex verify`: the verdicts with their counterexamples, once or as the journal grows."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

from chronex.cli.arguments import UsageError, host_zone, read_instant
from chronex.cli.jobs import load_or_tell
from chronex.cli.places import job_file_path, store_path
from chronex.cli.terminal import inert, out, paint
from chronex.jobfile import Property
from chronex.model.reasons import text_of
from chronex.storage.ports import Store
from chronex.storage.records import Reading
from chronex.verify import Finding, PropertyResult, Report, Verdict, Verifier, follow
from chronex.verify.lags import BOUND_MS, LagSummary
from chronex.verify.verdicts import Line, stamp
from chronex_store import LmdbStore

_COLOURS = {Verdict.HOLDS: "green", Verdict.VIOLATED: "red", Verdict.OPEN: "yellow"}
_LOOK_AGAIN_S = 30.0


def run_verify(
    store: str | None, config: str | None, *, since: str | None, job: str | None, watch: bool, form: str
) -> int:
    """0 when nothing is violated, 1 when something is, 2 when the question was wrong."""
    properties = _own_properties(config)
    if properties is None:
        return 2
    since_ms = None if since is None else read_instant(since, host_zone().zone, "--since")
    verifier = Verifier(job=job, since_ms=since_ms, properties=properties)
    with LmdbStore.open(store_path(store, os.environ), create=False) as opened:
        _must_exist(opened, job)
        follow(opened, verifier)
        report = verifier.report()
        _show(report, form)
        if watch:
            report = _watch(opened, verifier, report, form)
    return 1 if report.verdict is Verdict.VIOLATED else 0


def _own_properties(config: str | None) -> tuple[Property, ...] | None:
    """Those of the job file, where there is one; None when it has a mistake, which has been told then."""
    if config is None and not job_file_path(None, os.environ).exists():
        return ()
    found = load_or_tell(config)
    return None if found is None else found.properties


def _must_exist(store: Store, job: str | None) -> None:
    def is_known(reading: Reading) -> bool:
        return job is None or reading.job(job) is not None or bool(reading.occurrences(job, limit=1))

    if not store.view(lambda tx: is_known(Reading(tx))):
        raise UsageError(f"no job {job!r}; chronex list shows them")


# -- watching -----------------------------------------------------------------------------------------------


def _watch(store: Store, verifier: Verifier, report: Report, form: str, rounds: int | None = None) -> Report:
    """Tell each new violation as it comes, until interrupted; `rounds` bounds the looks, for tests."""
    seen = store.wait(-1, 0)
    try:
        while rounds is None or rounds > 0:
            rounds = None if rounds is None else rounds - 1
            if follow(store, verifier):
                before, report = report, verifier.report()
                for result, finding in _news(before, report):
                    _tell(result, finding, form)
            seen = store.wait(seen, _LOOK_AGAIN_S if rounds is None else 0)
    except KeyboardInterrupt:
        pass
    return report


def _news(before: Report, after: Report) -> Iterator[tuple[PropertyResult, Finding]]:
    for old, new in zip(before.properties, after.properties, strict=True):
        for finding in new.findings[len(old.findings) :]:
            yield new, finding


def _tell(result: PropertyResult, finding: Finding, form: str) -> None:
    if form == "json":
        out(json.dumps({"property": result.property, **finding.to_dict()}))
    else:
        _show_finding(result, finding)


# -- showing ------------------------------------------------------------------------------------------------


def _show(report: Report, form: str) -> None:
    if form == "json":
        out(json.dumps(report.to_dict(), indent=2))
        return
    _show_coverage(report)
    for result in report.properties:
        _show_property(result)
    for lag in report.lags:
        _show_lag(lag)


def _show_coverage(report: Report) -> None:
    covered = report.coverage
    if covered.first is None or covered.last is None:
        out("the journal is empty: there is nothing to hold against the model yet")
        return
    out(
        f"{covered.events} events, {covered.first[0]} to {covered.last[0]},"
        f" {stamp(covered.first[1].at_ms)} to {stamp(covered.last[1].at_ms)}"
    )
    if covered.first[0] != 1:
        out("the journal was trimmed: what lies before its first event is taken on trust")
    if covered.gaps:
        out(f"events are missing or unreadable in {covered.gaps} places: what crosses them is not judged")


def _show_property(result: PropertyResult) -> None:
    word = paint(f"{result.verdict.value:9}", _COLOURS[result.verdict])
    out(f"{inert(result.property):5} {word} {inert(result.title)} ({result.checked} checked)")
    for finding in result.findings:
        _show_finding(result, finding)
    if result.violations > len(result.findings):
        out(f"      and {result.violations - len(result.findings)} more")
    for finding in result.open:
        out(f"      {inert(finding.message)}")


def _show_finding(result: PropertyResult, finding: Finding) -> None:
    out(f"      {paint(inert(result.property), 'red')} breaks at event {finding.number}: {inert(finding.message)}")
    for line in finding.evidence:
        out(f"        {inert(_event_text(line))}")


def _event_text(line: Line) -> str:
    number, event = line
    subject = event.job
    if event.nominal_ms is not None:
        subject += f" of {stamp(event.nominal_ms)}"
    if event.task:
        subject += f", {event.task}" + (f" attempt {event.attempt}" if event.attempt else "")
    node = event.data.get("node")
    parts = [
        f"{number:>7}  {stamp(event.at_ms):24} {event.name:24}",
        subject,
        f"on {node}" if node else "",
        text_of(event.reason),
    ]
    return " ".join(part for part in parts if part)


def _show_lag(lag: LagSummary) -> None:
    if not lag.count:
        out(f"{lag.name:5} {'':9} {lag.title}: no such start")
        return
    share = f"{lag.within_bound} of {lag.count} within {BOUND_MS // 1000} s"
    out(
        f"{lag.name:5} {'':9} {lag.title}: median {_ms(lag.median_ms)}, 95 % within {_ms(lag.p95_ms)},"
        f" longest {_ms(lag.max_ms)}; {share}" + (f"; {lag.left_out} waited in a queue" if lag.left_out else "")
    )


def _ms(value: int) -> str:
    return f"{value} ms" if value < 10_000 else f"{value / 1000:.1f} s"
