"""replay: one occurrence, or those of a job in a range, shown before anything is done."""

from __future__ import annotations

from typing import NamedTuple

from chronex.cli.acting import Desk, at_desk, confirmed, show
from chronex.cli.acts import follow, occurrence_dict, told
from chronex.cli.arguments import UsageError, choose_zone, read_instant
from chronex.engine.admit import MOST_QUEUED
from chronex.engine.commands import Replayed, job_named, occurrence_named, replay
from chronex.model.reasons import text_of
from chronex.model.records import Occurrence
from chronex.model.states import OccurrenceState, is_final
from chronex.storage.records import Ledger, Reading
from chronex.views.wording import column

# So many wait in a job's queue; more at once would only be skipped.
MOST_AT_ONCE = MOST_QUEUED
STATES = tuple(state.value for state in OccurrenceState if is_final(state))


class Filter(NamedTuple):
    """Of one job, the occurrences whose nominal time lies in [from, to) and that ended in one of the states."""

    job: str
    since: str | None
    until: str | None
    states: tuple[str, ...]


def run_replay(
    named: str | None, chosen: Filter | None, reason: str, as_of: str, yes: bool, store: str | None, form: str
) -> int:
    """0: done, or nothing to do; 1: not confirmed."""
    if (named is None) == (chosen is None):
        raise UsageError("say which: an OCCURRENCE, or --job with --from, --to and --state")
    if not reason.strip():
        raise UsageError('say why, for the journal: --reason "the disk was full"')

    def work(desk: Desk) -> int:
        originals = desk.look(lambda reading: _originals(reading, named, chosen))
        if chosen is not None and not _agreed(desk, originals, yes, form):
            return 1
        done = desk.act(lambda ledger: _replay_all(ledger, originals, desk, reason, as_of))
        shown = [desk.occurrence(one.occurrence) for one in done]
        if desk.has_daemon and len(shown) == 1:
            shown = [follow(desk, shown[0], to_the_end=False)]
        show(form, [occurrence_dict(one) for one in shown], *map(told, shown))
        if shown:
            desk.warn_without_daemon(
                "they start with the next one" if len(shown) > 1 else "it starts with the next one"
            )
        return 0

    return at_desk(store, work)


def _replay_all(ledger: Ledger, originals: list[Occurrence], desk: Desk, reason: str, as_of: str) -> list[Replayed]:
    return [replay(ledger, original, desk.asker, reason, as_of=as_of) for original in originals]


def _originals(reading: Reading, named: str | None, chosen: Filter | None) -> list[Occurrence]:
    if named is not None:
        return [occurrence_named(reading, named)]
    assert chosen is not None
    job = job_named(reading, chosen.job)
    zone = choose_zone(job.timezone).zone
    since = read_instant(chosen.since, zone, "--from") if chosen.since else None
    until = read_instant(chosen.until, zone, "--to") if chosen.until else None
    found: list[Occurrence] = []
    before = until
    while page := reading.occurrences(job.id, before_ms=before):
        for one in page:
            if since is not None and one.nominal_ms < since:
                return found[::-1]
            if one.state.value in chosen.states:
                found.append(one)
        before = page[-1].nominal_ms
        if len(found) > MOST_AT_ONCE:
            break
    if len(found) > MOST_AT_ONCE:
        raise UsageError(f"more than {MOST_AT_ONCE} occurrences are meant; narrow it with --from and --to")
    return found[::-1]


def _agreed(desk: Desk, originals: list[Occurrence], yes: bool, form: str) -> bool:
    if not originals:
        show(form, [], "nothing to replay: no occurrence is meant by that")
        return False
    if form == "text":
        zone = desk.zone_of(originals[0].job)
        rows = (f"{column(one.nominal_ms, zone)}  {one.state.value:12} {text_of(one.reason)}" for one in originals)
        show(form, None, *rows, f"{len(originals)} to replay, the oldest first")
    return confirmed(f"replay {len(originals)}?", is_sure=yes)


def states_of(given: list[str]) -> tuple[str, ...]:
    """`--state failed --state missed,skipped`; failed where none is given."""
    states = [one.strip() for text in given for one in text.split(",")] or ["failed"]
    for state in states:
        if state not in STATES:
            raise UsageError(f"--state: {state!r} is none of {', '.join(STATES)}")
    return tuple(states)
