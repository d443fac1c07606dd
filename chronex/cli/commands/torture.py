"""`chronex torture`: real nodes on the user's own database, faults, and a verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from chronex.cli.options import Form, StorePath, UsageError, check_format, store_location
from chronex.cli.output import err, print_result

if TYPE_CHECKING:
    from chronex.torture.campaign import CampaignSettings
    from chronex.torture.judgement import CampaignVerdict
    from chronex_store.postgres.pg_address import PostgresAddress

_SECONDS_A_ROUND = 5


def torture(
    nodes: Annotated[int, typer.Option(help="How many nodes.", metavar="N", min=2, max=16)] = 4,
    rounds: Annotated[int, typer.Option(help="How many faults, one after the other.", metavar="N", min=1)] = 20,
    faults: Annotated[str, typer.Option("--faults", help="Only these, such as kill,stop,cut.", metavar="LIST")] = "",
    pace: Annotated[
        int, typer.Option(help="How many times faster than usual leases run out.", metavar="N", min=1, max=20)
    ] = 10,
    seed: Annotated[int, typer.Option(help="Another campaign of the same kind.", metavar="N")] = 1,
    clusters: Annotated[
        int, typer.Option(help="Share the rounds among this many clusters at a time.", metavar="N", min=1, max=16)
    ] = 1,
    upgrade_to: Annotated[
        str | None, typer.Option("--upgrade-to", help="Another chronex, for the fault upgrade.", metavar="PROGRAM")
    ] = None,
    store: StorePath = None,
    form: Form = "text",
) -> int:
    """Try a cluster on your own database: start nodes on a schema made for it, hurt them, and judge what is left.

    Nodes are killed, stopped, cut off, switched off, restarted in bursts and given wrong clocks, while commands write
    down when they ran.
    By name only: stop60 and freeze (a minute of the usual pace), halt (stopped in the middle of a transaction),
    unplug (as root), upgrade (with --upgrade-to).
    Exit 0 when every instant had one outcome, nothing ran twice at a time, nothing that was acknowledged was lost,
    and the nodes that were well went on.
    Your jobs are not touched: the schema is made for it and removed again.

    Example: chronex torture --nodes 4 --rounds 50 --store postgresql://chronex@db.example/jobs
    """
    check_format(form)
    location = _database(store)
    from chronex.torture.campaign import CampaignSettings
    from chronex.torture.node_faults import upgrade_to as upgrading

    chosen = tuple(part.strip() for part in faults.split(",") if part.strip())
    extra = {} if upgrade_to is None else {"upgrade": upgrading(_program(upgrade_to))}
    settings = CampaignSettings(nodes=nodes, rounds=rounds, pace=pace, seed=seed, faults=chosen, extra_faults=extra)
    return run_torture(settings, location, form, clusters)


def _program(name: str) -> str:
    import shutil

    found = shutil.which(name)
    if found is None:
        raise UsageError(f"--upgrade-to: there is no program {name!r}; name another installed chronex, by its path")
    return found


def _database(store: str | None) -> PostgresAddress:
    from chronex_store.opening import check_client
    from chronex_store.postgres.pg_address import PostgresAddress

    location = store_location(store)
    if not isinstance(location, PostgresAddress):
        raise UsageError(
            "torture needs a database that machines share: --store postgresql://user@host/database; "
            "one machine is tried by make torture"
        )
    check_client(location)
    return location


def run_torture(settings: CampaignSettings, location: PostgresAddress, form: str, clusters: int) -> int:
    import tempfile
    from pathlib import Path

    from chronex.torture.clusters import run_clusters

    _check_faults(settings)
    err(f"{settings.nodes} nodes, {settings.rounds} faults; this takes about {_minutes(settings, clusters)}")
    with tempfile.TemporaryDirectory(prefix="chronex-torture-", ignore_cleanup_errors=True) as directory:
        verdict = run_clusters(lambda _number: location, Path(directory), settings, clusters, err)
    print_result(form, lambda: {"holds": verdict.holds, "findings": list(verdict.findings), **verdict.figures},
                 lambda: _lines(verdict))  # fmt: skip
    return 0 if verdict.holds else 1


def _check_faults(settings: CampaignSettings) -> None:
    from chronex.text.suggestions import nearest
    from chronex.torture.node_faults import FAULTS
    from chronex.torture.tormented_node import why_no_networks

    known = {**FAULTS, **settings.extra_faults}
    for name in settings.faults:
        if name == "upgrade" and name not in known:
            raise UsageError("--faults: upgrade needs another version; name its program with --upgrade-to")
        if name not in known:
            meant = nearest(name, known)
            hint = f"did you mean {meant}?" if meant else f"there are {', '.join(known)}"
            raise UsageError(f"--faults: no fault {name!r}; {hint}")
    if settings.in_namespaces and (why := why_no_networks()):
        raise UsageError(f"--faults: unplug cannot be done here: {why}; cut does the same by a relay")


def _minutes(settings: CampaignSettings, clusters: int) -> str:
    minutes = max(1, settings.rounds * _SECONDS_A_ROUND // clusters // 60 + 1)
    return f"{minutes} minute{'s' if minutes > 1 else ''}"


def _lines(verdict: CampaignVerdict) -> list[str]:
    figures = verdict.figures
    if not figures:
        return ["it does not hold", *(f"  {finding}" for finding in verdict.findings)]
    faults = ", ".join(f"{count} {name}" for name, count in figures["rounds"].items())
    outcomes = ", ".join(f"{count} {state}" for state, count in sorted(figures["outcomes"].items()))
    lag = figures["start_lag_ms"]
    head = "it holds: every instant has one outcome, nothing ran twice at a time, nothing acknowledged was lost"
    return [
        head if verdict.holds else "it does not hold",
        *(f"  {finding}" for finding in verdict.findings),
        f"faults      {faults}",
        f"occurrences {figures['occurrences']}: {outcomes}",
        f"executions  {figures['executions']}, {figures['executed_again']} of them because a node was lost",
        f"nodes       {', '.join(f'{count} {word}' for word, count in figures['nodes'].items())}".replace("_", " "),
        f"given up    after {figures['given_up_after_ms'] / 1000:.1f} s of silence at the most",
        f"pauses      nothing began anywhere for {figures['longest_pause_ms'] / 1000:.1f} s at the most",
        f"promises    {figures['acknowledged']} runs were acknowledged",
        f"start lag   median {lag['median']} ms, 95 of 100 within {lag['p95']} ms, longest {lag['max']} ms",
        f"journal     {figures['events']} events, verify: {figures['verify']}",
    ]
