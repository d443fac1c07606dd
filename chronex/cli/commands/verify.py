"""`chronex verify`: the verdicts with their counterexamples, once or as the journal grows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from chronex.cli.options import Config, Form, StorePath, UsageError, check_format, job_file_path, read_instant
from chronex.cli.output import out, paint, print_json
from chronex.text.terminal import terminal_safe

if TYPE_CHECKING:
    from chronex.jobfile import Property
    from chronex.storage.ports import Store
    from chronex.storage.records import Reading
    from chronex.verify import PropertyFinding, PropertyResult, VerificationReport, Verifier
    from chronex.verify.results import LatencySummary

_COLOURS = {"holds": "green", "violated": "red", "open": "yellow"}
_POLL_S = 0.5  # Ctrl-C is noticed no later


def verify(
    store: StorePath = None,
    config: Config = None,
    since: Annotated[
        str | None,
        typer.Option("--since", help="Report only what broke at or after this time.", metavar="TIME"),
    ] = None,
    job: Annotated[str | None, typer.Option("--job", help="Only this job.", metavar="JOB")] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Go on with the journal as it grows.")] = False,
    form: Form = "text",
) -> int:
    """Check the journal against the formal model and your own properties. Exit 1: a property is violated.

    Example: chronex verify --format json
    """

    check_format(form)
    return run_verify(store, config, since=since, job=job, watch=watch, form=form)


def run_verify(
    store: str | None, config: str | None, *, since: str | None, job: str | None, watch: bool, form: str
) -> int:
    """0 when nothing is violated, 1 when something is, 2 when the job file has a mistake."""
    from chronex.cli.store_session import open_store
    from chronex.timing.zones import host_zone
    from chronex.verify import PropertyVerdict, Verifier, follow

    properties = _own_properties(config)
    if properties is None:
        return 2
    since_ms = None if since is None else read_instant(since, host_zone().zone, "--since")
    with open_store(store) as opened:
        verifier = Verifier(job=_known(opened, job), since_ms=since_ms, properties=properties)
        follow(opened, verifier)
        report = verifier.report()
        _print(report, form)
        if watch:
            report = _watch(opened, verifier, report, form)
    return 1 if report.verdict is PropertyVerdict.VIOLATED else 0


def _own_properties(config: str | None) -> tuple[Property, ...] | None:
    """The properties of the job file, where there is one; None when it has mistakes, which have been reported."""
    from chronex.cli.job_file import load_or_report

    if config is None and not job_file_path(None).exists():
        return ()
    found = load_or_report(config)
    return None if found is None else found.properties


def _known(store: Store, job: str | None) -> str | None:
    """The id of the job of that name; UsageError where there is none and never was."""
    from chronex.engine.commands.names import job_id_named
    from chronex.model.job import is_name
    from chronex.storage.records import Reading

    def find(reading: Reading, name: str) -> str | None:
        found = job_id_named(reading, name)
        is_known = is_name(found) and (reading.job(found) is not None or reading.occurrences(found, limit=1))
        return found if is_known else None

    known = None if job is None else store.view(lambda tx: find(Reading(tx), job))
    if job is not None and known is None:
        raise UsageError(f"no job {job!r}; chronex list shows them")
    return known


# -- watching -----------------------------------------------------------------------------------------------


def _watch(
    store: Store, verifier: Verifier, report: VerificationReport, form: str, rounds: int | None = None
) -> VerificationReport:
    """Print each new violation as it comes, until interrupted; tests end the loop after so many `rounds`."""
    from chronex.cli.store_session import noting_ctrl_c
    from chronex.verify import follow

    seen = store.wait(-1, 0)
    with noting_ctrl_c() as interrupted:
        while not interrupted.is_set() and (rounds is None or rounds > 0):
            rounds = None if rounds is None else rounds - 1
            if follow(store, verifier):
                before, report = report, verifier.report()
                for result, finding in _news(before, report):
                    _print_news(result, finding, form)
            seen = store.wait(seen, _POLL_S if rounds is None else 0)
    return report


def _news(before: VerificationReport, after: VerificationReport) -> Iterator[tuple[PropertyResult, PropertyFinding]]:
    for old, new in zip(before.properties, after.properties, strict=True):
        for finding in new.findings[len(old.findings) :]:
            yield new, finding


def _print_news(result: PropertyResult, finding: PropertyFinding, form: str) -> None:
    import json

    if form == "json":
        out(json.dumps({"property": result.property, **finding.to_dict()}))
    else:
        _print_finding(result, finding)


# -- text ------------------------------------------------------------------------------------------------


def _print(report: VerificationReport, form: str) -> None:
    if form == "json":
        print_json(report.to_dict())
        return
    _print_coverage(report)
    for result in report.properties:
        _print_property(result)
    for lag in report.latencies:
        _print_lag(lag)


def _print_coverage(report: VerificationReport) -> None:
    from chronex.text.instants import rfc3339

    covered = report.coverage
    if covered.first is None or covered.last is None:
        out("the journal is empty: there is nothing to hold against the model yet")
        return
    out(
        f"{covered.events} events, {covered.first[0]} to {covered.last[0]},"
        f" {rfc3339(covered.first[1].at_ms)} to {rfc3339(covered.last[1].at_ms)}"
    )
    if covered.first[0] != 1:
        out("the journal was trimmed: what lies before its first event is taken on trust")
    if covered.gaps:
        out(f"events are missing or unreadable in {covered.gaps} places: what crosses them is not judged")


def _print_property(result: PropertyResult) -> None:
    word = paint(f"{result.verdict.value:9}", _COLOURS[result.verdict.value])
    out(f"{terminal_safe(result.property):5} {word} {terminal_safe(result.title)} ({result.checked} checked)")
    for finding in result.findings:
        _print_finding(result, finding)
    if result.violations > len(result.findings):
        out(f"      and {result.violations - len(result.findings)} more")
    for finding in result.open:
        out(f"      {terminal_safe(finding.message)}")


def _print_finding(result: PropertyResult, finding: PropertyFinding) -> None:
    from chronex.cli.event_output import event_text

    name = paint(terminal_safe(result.property), "red")
    out(f"      {name} breaks at event {finding.number}: {terminal_safe(finding.message)}")
    for line in finding.evidence:
        out(f"        {terminal_safe(event_text(line))}")


def _print_lag(lag: LatencySummary) -> None:
    from chronex.verify.results import LATENCY_BOUND_MS

    if not lag.count:
        out(f"{lag.name:5} {'':9} {lag.title}: no such start")
        return
    share = f"{lag.within_bound} of {lag.count} within {LATENCY_BOUND_MS // 1000} s"
    out(
        f"{lag.name:5} {'':9} {lag.title}: median {_ms(lag.median_ms)}, 95 % within {_ms(lag.p95_ms)},"
        f" longest {_ms(lag.max_ms)}; {share}" + (f"; {lag.left_out} waited in a queue" if lag.left_out else "")
    )


def _ms(value: int) -> str:
    return f"{value} ms" if value < 10_000 else f"{value / 1000:.1f} s"
