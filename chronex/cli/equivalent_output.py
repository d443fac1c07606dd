"""`chronex explain --as`: the equivalent for another program in words, or why there is none."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from chronex.imports.equivalents import Equivalent, NoEquivalent
from chronex.lint.cron_programs import CronProgram
from chronex.text.instants import rfc3339
from chronex.timing.zones import Zone

_TITLES = {"systemd": "systemd", "quartz": "Quartz", "kubernetes": "Kubernetes"}
_WHY = {
    NoEquivalent.SECONDS: "{title} knows whole minutes only",
    NoEquivalent.EITHER_DAY: "{title} cannot join a day of the month and a weekday by or; write two triggers",
    NoEquivalent.DAY_BY_PLACE: "{title} has no such day: L, W or # with this number",
    NoEquivalent.LIST_BY_PLACE: "{title} takes L, W and # alone, not in a list; write one trigger for each",
    NoEquivalent.ANCHORED: "an interval counts from when the job was made, which no calendar of {title} can say",
    NoEquivalent.PERIOD: "{title} has no periods that are counted from a start",
    NoEquivalent.MOMENT: "{title} knows no single moment",
    NoEquivalent.PASSED: "the moment has passed",
    NoEquivalent.BOUNDS: "{title} has nothing like from, until and max",
    NoEquivalent.NEVER: "there is no instant in the next five years that could be compared",
    NoEquivalent.CLOCK_CHANGE: "a clock change of {zone} skips or repeats a time of it, and {title} does not say "
    "what it does then; in a zone without clock changes, such as UTC, there is one",
    NoEquivalent.DIFFERS: "what comes nearest fires at other times",
}


def title_of(target: str, program: CronProgram) -> str:
    return _TITLES.get(target, program.title)


def render_equivalent(found: Equivalent, zone: Zone, program: CronProgram) -> Iterator[str]:
    title = title_of(found.target, program)
    if found.reason is not None:
        yield f"no equivalent for {title}: {_WHY[found.reason].format(title=title, zone=found.zone)}"
        if found.differs_at is not None:
            yield from (f"  {line}" for line in found.tried)
            yield f"  {_difference(found, zone, title)}"
        return
    yield from found.lines
    yield f"# {_proof(found)} for {title} and Chronex."
    if condition := _condition(found, program):
        yield f"# {condition}"
    if found.left_out:
        yield f"# Not in this text: {', '.join(found.left_out)}."


def _proof(found: Equivalent) -> str:
    if found.is_whole:
        return f"All {found.compared} instants of the next five years are the same"
    return f"All {found.compared} instants of five days and of the days around each clock change are the same"


def _condition(found: Equivalent, program: CronProgram) -> str:
    if found.target == "quartz":
        return f"The trigger's time zone is to be {found.zone}."
    if found.target != "cron":
        return ""
    if program.reads_cron_tz:
        return f"CRON_TZ={found.zone} is to stand above it, unless that is the zone of the machine."
    return f"The zone of the machine is to be {found.zone}: {program.title} has none of its own."


def _difference(found: Equivalent, zone: Zone, title: str) -> str:
    assert found.differs_at is not None
    wall = datetime.fromtimestamp(found.differs_at, UTC).astimezone(zone.tzinfo)
    who = title if found.only_there else "Chronex"
    return f"first difference: {wall:%a %Y-%m-%d %H:%M:%S %Z}, when only {who} fires"


def equivalent_fields(text: str, canonical: str, found: Equivalent, program: CronProgram) -> dict[str, Any]:
    """The answer of `--format json`."""
    difference = None
    if found.differs_at is not None:
        only = found.target if found.only_there else "chronex"
        difference = {"at": rfc3339(found.differs_at * 1000), "only": only, "tried": list(found.tried)}
    return {
        "expression": text,
        "canonical": canonical,
        "as": found.target,
        "program": title_of(found.target, program),
        "timezone": found.zone,
        "equivalent": list(found.lines) if found.reason is None else None,
        "reason": None if found.reason is None else found.reason.value,
        "difference": difference,
        "compared": found.compared,
        "compared_all": found.is_whole,
        "left_out": list(found.left_out),
    }
