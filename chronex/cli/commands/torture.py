"""`chronex torture`: real nodes on the user's own database, faults, and a verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from chronex.cli.options import Form, StorePath, UsageError, check_format, store_place
from chronex.cli.output import err, print_result

if TYPE_CHECKING:
    from chronex.torture.campaign import CampaignSettings
    from chronex.torture.judgement import CampaignVerdict

_SECONDS_A_ROUND = 5


def torture(
    nodes: Annotated[int, typer.Option(help="How many nodes.", metavar="N", min=2, max=16)] = 4,
    rounds: Annotated[int, typer.Option(help="How many faults, one after the other.", metavar="N", min=1)] = 20,
    faults: Annotated[str, typer.Option("--faults", help="Only these, such as kill,stop,cut.", metavar="LIST")] = "",
    pace: Annotated[
        int, typer.Option(help="So many times faster than usual do leases run out.", metavar="N", min=1, max=20)
    ] = 10,
    seed: Annotated[int, typer.Option(help="Another campaign of the same kind.", metavar="N")] = 1,
    store: StorePath = None,
    form: Form = "text",
) -> int:
    """Try a cluster on your own database: start nodes on a schema made for it, hurt them, and judge what is left.

    Nodes are killed, stopped, cut off, switched off and given wrong clocks, while commands write down when they ran.
    Exit 0 when every instant had one outcome, nothing ran twice at a time and nothing that was acknowledged was lost.
    Your jobs are not touched: the schema is made for it and removed again.

    Example: chronex torture --nodes 4 --rounds 50 --store postgresql://chronex@db.example/jobs
    """
    check_format(form)
    from chronex.torture.campaign import CampaignSettings

    chosen = tuple(part.strip() for part in faults.split(",") if part.strip())
    settings = CampaignSettings(nodes=nodes, rounds=rounds, pace=pace, seed=seed, faults=chosen)
    return run_torture(settings, store, form)


def run_torture(settings: CampaignSettings, store: str | None, form: str) -> int:
    import tempfile
    from pathlib import Path

    from chronex.text.suggestions import nearest
    from chronex.torture.campaign import FAULTS, Campaign, CampaignStuckError
    from chronex_store.postgres.pg_address import PostgresAddress

    place = store_place(store)
    if not isinstance(place, PostgresAddress):
        raise UsageError(
            "torture needs a database that machines share: --store postgresql://user@host/database; "
            "one machine is tried by make torture"
        )
    for name in settings.faults:
        if name not in FAULTS:
            meant = nearest(name, FAULTS)
            hint = f"did you mean {meant}?" if meant else f"there are {', '.join(FAULTS)}"
            raise UsageError(f"--faults: no fault {name!r}; {hint}")
    err(f"{settings.nodes} nodes, {settings.rounds} faults; this takes about {_minutes(settings)}")
    with (
        tempfile.TemporaryDirectory(prefix="chronex-torture-", ignore_cleanup_errors=True) as directory,
        Campaign(place, Path(directory), settings, err) as campaign,
    ):
        try:
            verdict = campaign.run()
        except CampaignStuckError as stuck:
            err(f"the campaign does not go on: {stuck}")
            return 1
    print_result(form, lambda: {"holds": verdict.holds, "findings": list(verdict.findings), **verdict.figures},
                 lambda: _lines(verdict))  # fmt: skip
    return 0 if verdict.holds else 1


def _minutes(settings: CampaignSettings) -> str:
    minutes = max(1, settings.rounds * _SECONDS_A_ROUND // 60 + 1)
    return f"{minutes} minute{'s' if minutes > 1 else ''}"


def _lines(verdict: CampaignVerdict) -> list[str]:
    figures = verdict.figures
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
        f"promises    {figures['acknowledged']} runs were acknowledged",
        f"start lag   median {lag['median']} ms, 95 of 100 within {lag['p95']} ms, longest {lag['max']} ms",
        f"journal     {figures['events']} events, verify: {figures['verify']}",
    ]
