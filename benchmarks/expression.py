"""Expressions beside their peers: single next, upcoming, parse, rare dates, and integers in bulk."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice

import chronex
from benchmarks.measure import FULL, Row, Size, geometric_mean, seconds
from benchmarks.peers import CHRONEX, PEERS, Peer, exhaust, tzinfo_of
from chronex.text.instants import LAST_MS
from chronex.timing.occurrences import Occurrences

EXPRESSIONS = (
    "* * * * *", "*/5 * * * *", "0 9 * * MON-FRI", "30 4 1,15 * *", "0 0 L * *", "0 0 * * 5#2", "0 0 29 2 *",
    "15 3 * * *", "0 */2 * * *", "30 2 * * *", "0 0 1 1 *", "0 0 13 * FRI",
)  # fmt: skip
RARE = ("0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 * 2 MON#5", "0 0 29 2 *")
ZONES = ("UTC", "America/New_York")
SINGLE_TARGETS = {"cronsim": 20.0, "croniter": 50.0}
UPCOMING_TARGETS = {"cronsim": 40.0, "croniter": 80.0, "croniter-rs": 1.0}
TOPIC = "expression"
YEAR_MS = 365 * 86_400_000


def notes() -> list[str]:
    lines = [
        f"{len(EXPRESSIONS)} expressions, geometric means; a ratio is the peer's CPU time over ours, in one run.",
        "Instants: a fixed list spread over three years, each asked once a round. All results are datetimes.",
        "upcoming: the first 100 after each start, so yearly ones run into the next century or four.",
    ]
    return lines + [f"{peer.name}: {peer.remark}" for peer in PEERS]


def instants(count: int, zone: str) -> list[datetime]:
    chooser = random.Random(20_260_101)
    start = datetime(2025, 1, 1, tzinfo=UTC)
    tz = tzinfo_of(zone)
    moments = (start + timedelta(seconds=chooser.randrange(3 * 365 * 86_400)) for _ in range(count))
    return [moment.astimezone(tz) for moment in moments]


def run(size: Size = FULL) -> Iterator[Row]:
    for zone in ZONES:
        yield from _single(zone, size)
    for zone in ZONES:
        yield from _upcoming(zone, size)
    yield from _integers(size)
    yield from _rare()
    yield from _parse(size)


def _single(zone: str, size: Size) -> Iterator[Row]:
    moments = instants(size.instants, zone)

    def cost(peer: Peer, text: str) -> float:
        single = peer.single(text, zone)

        def work() -> None:
            for moment in moments:
                single(moment)

        return seconds(work, size.repeats) / len(moments) * 1e6

    yield from _beside_peers(f"next, {zone}", cost, SINGLE_TARGETS)
    slowest = max((cost(CHRONEX, text), text) for text in EXPRESSIONS)
    yield Row(TOPIC, f"next, {zone}: slowest expression", slowest[0], " µs", at_most=5, remark=slowest[1])


def _upcoming(zone: str, size: Size) -> Iterator[Row]:
    moments = instants(size.starts, zone)

    def cost(peer: Peer, text: str) -> float:
        iterate = peer.iterate(text, zone)

        def work() -> None:
            for moment in moments:
                exhaust(iterate(moment, size.per_start))

        return seconds(work, size.repeats) / (len(moments) * size.per_start) * 1e6

    yield from _beside_peers(f"upcoming, {zone}", cost, UPCOMING_TARGETS)


def _beside_peers(what: str, cost: Callable[[Peer, str], float], targets: dict[str, float]) -> Iterator[Row]:
    own = geometric_mean(cost(CHRONEX, text) for text in EXPRESSIONS)
    yield Row(TOPIC, what, own, " µs")
    for peer in PEERS:
        theirs = geometric_mean(cost(peer, text) for text in EXPRESSIONS)
        ratio = theirs / own
        yield Row(TOPIC, f"{what}: {peer.name}", ratio, "×", targets.get(peer.name), remark=f"{theirs:.3g} µs")


def _integers(size: Size) -> Iterator[Row]:
    """The path of engine and simulator: epoch milliseconds, lazily."""
    start = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * 1000
    for zone in ZONES:
        minutes = [chronex.parse("* * * * *", tz=zone).occurrences() for _ in range(size.schedules)]
        listed = sum(1 for _ in minutes[0].between(start, start + YEAR_MS - 1))

        def work(minutes: list[Occurrences] = minutes) -> None:
            for schedule in minutes:
                exhaust(schedule.between(start, start + YEAR_MS - 1))

        took = seconds(work, 1)
        what = f"integers, {zone}: {size.schedules} × {listed:,} minutes"
        yield Row(TOPIC, what, took, " s", at_most=10)
        yield Row(TOPIC, f"integers, {zone}: each", took / (size.schedules * listed) * 1e6, " µs", at_most=0.4)
        mean = geometric_mean(_integer_cost(text, zone, size) for text in EXPRESSIONS)
        remark = "rare ones pay for the clock changes between" if zone != "UTC" else ""
        yield Row(TOPIC, f"integers, {zone}: mean of the expressions", mean, " µs", remark=remark)


def _integer_cost(text: str, zone: str, size: Size) -> float:
    schedule, count = chronex.parse(text, tz=zone).occurrences(), 10 * size.per_start
    start = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * 1000
    return seconds(lambda: exhaust(islice(schedule.between(start, LAST_MS), count)), size.repeats) / count * 1e6


def _rare() -> Iterator[Row]:
    """From a fresh expression, nothing remembered: the first answer, in both directions."""
    after = datetime(2097, 1, 1, tzinfo=UTC)
    for text in RARE:

        def both_ways(text: str = text) -> None:
            fresh = chronex.parse(text)
            fresh.next(after)
            fresh.previous(after)

        yield Row(TOPIC, f"first next and previous of {text}", seconds(both_ways, 5) * 1e3, " ms", at_most=1)


def _parse(size: Size) -> Iterator[Row]:
    def cost(peer: Peer, text: str) -> float:
        def work() -> None:
            for _ in range(size.instants):
                peer.parse(text)

        return seconds(work, size.repeats) / size.instants * 1e6

    own = geometric_mean(cost(CHRONEX, text) for text in EXPRESSIONS)
    yield Row(TOPIC, "parse, with spans and diagnostics", own, " µs")
    for peer in PEERS:
        theirs = geometric_mean(cost(peer, text) for text in EXPRESSIONS)
        limit = 2.0 if peer.name == "cronsim" else None
        remark = f"{theirs:.3g} µs; Chronex's time over theirs"
        yield Row(TOPIC, f"parse: over {peer.name}", own / theirs, "×", at_most=limit, remark=remark)
