"""Several campaigns at a time, each a cluster of its own: most of a campaign is waiting, and their verdict is one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from chronex.torture.campaign import Campaign, CampaignSettings, CampaignStuckError, Emit
from chronex.torture.judgement import CampaignVerdict
from chronex_store.postgres.pg_address import PostgresAddress

_SUMMED = ("occurrences", "executions", "executed_again", "acknowledged", "events", "could_not_begin_ms")
_COUNTED = ("rounds", "outcomes", "nodes")
_WORST = ("given_up_after_ms", "longest_pause_ms")


def run_clusters(
    address_of: Callable[[int], PostgresAddress], directory: Path, settings: CampaignSettings, count: int, emit: Emit
) -> CampaignVerdict:
    """Share the rounds among `count` clusters; CampaignStuckError where one does not go on, when all have ended."""

    def run(number: int) -> CampaignVerdict:
        place = directory / f"cluster-{number}"
        place.mkdir()
        mine = replace(settings, rounds=share(settings.rounds, count, number), seed=settings.seed + number)

        def emit_named(line: str) -> None:
            emit(line if count == 1 else f"cluster {number + 1}: {line}")

        with Campaign(address_of(number), place, mine, emit_named) as campaign:
            return campaign.run()

    with ThreadPoolExecutor(count) as pool:
        started = [pool.submit(run, number) for number in range(count) if share(settings.rounds, count, number)]
    verdicts = []
    for one in started:
        stuck = one.exception()
        if isinstance(stuck, CampaignStuckError):
            verdicts.append(CampaignVerdict((f"the campaign does not go on: {stuck}",), {}))
        else:
            verdicts.append(one.result())
    return joined(verdicts)


def share(rounds: int, count: int, number: int) -> int:
    """How many rounds the cluster of this number has: all of them together have `rounds`."""
    return rounds // count + (number < rounds % count)


def joined(verdicts: Sequence[CampaignVerdict]) -> CampaignVerdict:
    """One verdict: counts are sums, and of everything else the worst counts."""
    findings = tuple(finding for one in verdicts for finding in one.findings)
    figures = [one.figures for one in verdicts if one.figures]
    if len(figures) <= 1:
        return CampaignVerdict(findings, figures[0] if figures else {})
    found: dict[str, Any] = {name: _sum(one[name] for one in figures) for name in _COUNTED}
    found |= {name: sum(one[name] for one in figures) for name in _SUMMED}
    found |= {name: max(one[name] for one in figures) for name in _WORST}
    found["start_lag_ms"] = {
        name: max(one["start_lag_ms"][name] for one in figures) for name in figures[0]["start_lag_ms"]
    }
    found["verify"] = ", ".join(sorted({one["verify"] for one in figures}))
    return CampaignVerdict(findings, found)


def _sum(counts: Any) -> dict[str, int]:
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return dict(total)
