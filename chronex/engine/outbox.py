"""The outbox of channels: a row of the store for each notice and channel, until that channel has taken it.

A notice is written in the transaction that finds it out. A channel takes its notices in their order, so one that does
not answer keeps the later ones waiting; one that refuses a notice again and again is rid of it, and the notice is
kept as undeliverable for a person. A node claims a channel before it sends anything, and records each delivery before
the next: what a crash comes in between is sent again, under the same delivery id.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

from msgspec.structs import replace

from chronex.errors import ChronexError
from chronex.model.channels import ChannelKind
from chronex.model.event import Event
from chronex.model.reasons import free_text
from chronex.model.records import ChannelState, Notice
from chronex.storage import keys
from chronex.storage.journal import append
from chronex.storage.keys import key_of
from chronex.storage.ports import Transaction, UpdateFn
from chronex.storage.records import Reading, Records

# So many wait for one channel; of those that it never took, so many are kept for a person to look at.
MOST_WAITING = 200
MOST_UNDELIVERABLE = 50
MOST_CHANNELS = 1_000
# A node that sends has this long to say how that ended; a try has half of it.
CLAIM_MS = 60_000
FIRST_PAUSE_MS = 10_000
LONGEST_PAUSE_MS = 1_800_000
_JITTER = 0.2
# A receiver that says no is asked so often; one that does not answer as long as the notice is worth telling.
MOST_REFUSALS = 5
KEPT_MS = 3 * 86_400_000
# A late ping says that something ran just now, and that is wrong.
KEPT_OF_CHECKS_MS = 3_600_000
LONGEST_PROBLEM = 500
IsGone = Callable[[str], bool]


def kept_ms(kind: ChannelKind) -> int:
    """For how long a notice is worth delivering."""
    return KEPT_OF_CHECKS_MS if kind is ChannelKind.HEALTHCHECKS else KEPT_MS


def delivery_of(notice: Notice) -> str:
    """The same for every try of one notice, so that a receiver can drop doubles."""
    return f"{notice.job}/{notice.nominal_ms or 0}/{notice.kind}/{notice.at_ms}/{notice.channel}"


# -- writing ------------------------------------------------------------------------------------------------------


def enqueue(records: Records, notice: Notice) -> None:
    """Let it wait for its channel. Where too many wait already it is dropped, counted and told."""
    state = state_of(records, notice.channel)
    if _count_waiting(records, notice.channel) < MOST_WAITING:
        records.put(notice)
        if state is None:
            records.put(ChannelState(channel=notice.channel))
        return
    state = state or ChannelState(channel=notice.channel)
    if not state.is_dropping:
        problem = f"{MOST_WAITING} notices wait for {notice.channel} already"
        append(records.tx, _event("NotificationDropped", notice, records.now_ms, problem))
    records.put(replace(state, dropped=state.dropped + 1, dropped_ms=records.now_ms, is_dropping=True))


def _count_waiting(reading: Reading, channel: str) -> int:
    """Undeliverable ones are few, so they need not be told apart to know that there is room."""
    found = reading.tx.scan(keys.within_channel(channel), None, MOST_WAITING + MOST_UNDELIVERABLE)
    return len(found) if len(found) < MOST_WAITING else len(waiting(reading, channel))


# -- reading ------------------------------------------------------------------------------------------------------


def state_of(reading: Reading, channel: str) -> ChannelState | None:
    return reading.get(keys.channel_key(channel), ChannelState)


def states(reading: Reading) -> list[ChannelState]:
    """Of every channel that ever had a notice."""
    return reading.scan(keys.CHANNEL, ChannelState, None, MOST_CHANNELS)


def all_of(reading: Reading, channel: str) -> list[Notice]:
    """Its notices, the oldest first, undeliverable ones among them."""
    return reading.scan(keys.within_channel(channel), Notice, None, MOST_WAITING + MOST_UNDELIVERABLE)


def waiting(reading: Reading, channel: str) -> list[Notice]:
    return [notice for notice in all_of(reading, channel) if notice.given_up_ms is None]


def undeliverable(reading: Reading, channel: str) -> list[Notice]:
    return [notice for notice in all_of(reading, channel) if notice.given_up_ms is not None]


def channels_due(reading: Reading, node: str, now_ms: int, is_gone: IsGone) -> tuple[list[str], bool]:
    """Channels with a notice that this node may send now; and whether any notice waits at all."""
    waited_for = [state for state in states(reading) if waiting(reading, state.channel)]
    due = [state.channel for state in waited_for if _may_claim(state, node, now_ms, is_gone)]
    return due, bool(waited_for)


def _may_claim(state: ChannelState, node: str, now_ms: int, is_gone: IsGone) -> bool:
    # A pause that is longer than any was set by a clock that has been put back since.
    is_due = state.next_ms <= now_ms or state.next_ms > now_ms + 2 * LONGEST_PAUSE_MS
    # The same of a claim; one of another node that read its clock some milliseconds later is none of these.
    is_free = state.owner in ("", node) or not now_ms < state.claimed_until_ms <= now_ms + 2 * CLAIM_MS
    return is_due and (is_free or is_gone(state.owner))


# -- a try --------------------------------------------------------------------------------------------------------


def claim(channel: str, node: str, now_ms: int, is_gone: IsGone) -> UpdateFn[Notice | None]:
    """An update that takes the channel for this node, and gives its oldest notice; None where there is none."""

    def write(tx: Transaction) -> Notice | None:
        records = Records(tx, now_ms)
        state = state_of(records, channel)
        if state is None or not _may_claim(state, node, now_ms, is_gone):
            return None
        found = waiting(records, channel)
        if not found:
            return None
        records.put(replace(state, owner=node, claimed_until_ms=now_ms + CLAIM_MS))
        return found[0]

    return write


def delivered(notice: Notice, now_ms: int, *, is_journaled: bool) -> UpdateFn[None]:
    """An update that records that the channel has taken it. With `is_journaled` the journal says so."""

    def write(tx: Transaction) -> None:
        records = Records(tx, now_ms)
        state = state_of(records, notice.channel) or ChannelState(channel=notice.channel)
        if records.delete(key_of(notice)) and is_journaled:
            append(tx, _event("NotificationSent", notice, now_ms))
        records.put(
            replace(
                state,
                owner="",
                claimed_until_ms=0,
                next_ms=0,
                tries=0,
                failing_since_ms=None,
                problem="",
                delivered=state.delivered + 1,
                delivered_ms=now_ms,
                is_dropping=False,
            )
        )

    return write


def refused(notice: Notice, problem: str, now_ms: int, *, is_final: bool, keep_ms: int = KEPT_MS) -> UpdateFn[bool]:
    """An update that records a failed try: later again, or undeliverable. True where it was given up.

    `is_final` is the answer of a receiver that would say the same of it again.
    """
    problem = problem[:LONGEST_PROBLEM]

    def write(tx: Transaction) -> bool:
        records = Records(tx, now_ms)
        state = state_of(records, notice.channel) or ChannelState(channel=notice.channel)
        tries = state.tries + 1
        since_ms = state.failing_since_ms if state.failing_since_ms is not None else now_ms
        records.put(
            replace(
                state,
                owner="",
                claimed_until_ms=0,
                next_ms=now_ms + pause_ms(notice.channel, tries),
                tries=tries,
                failing_since_ms=since_ms,
                problem=problem,
            )
        )
        found = records.get(key_of(notice), Notice)
        if found is None:
            return False  # a person has dropped it meanwhile
        refusals = found.tries + 1 if is_final else found.tries
        is_over = refusals >= MOST_REFUSALS or now_ms - found.at_ms >= keep_ms
        records.put(replace(found, tries=refusals, problem=problem, given_up_ms=now_ms if is_over else None))
        if is_over:
            append(tx, _event("NotificationFailed", notice, now_ms, problem))
            _bound_undeliverable(records, notice.channel)
        return is_over

    return write


def pause_ms(channel: str, tries: int) -> int:
    """Ten seconds, then twice as long each time up to half an hour; by chance a fifth more or less.

    The chance comes from the names, so that several channels of one dead server do not return together.
    """
    plain: int = min(FIRST_PAUSE_MS << min(tries - 1, 20), LONGEST_PAUSE_MS)
    drawn = int.from_bytes(blake2b(f"{channel}/{tries}".encode(), digest_size=4).digest(), "big") / 2**32
    return round(plain * (1 - _JITTER + 2 * _JITTER * drawn))


def _bound_undeliverable(records: Records, channel: str) -> None:
    found = undeliverable(records, channel)
    for notice in found[: max(0, len(found) - MOST_UNDELIVERABLE)]:
        records.delete(key_of(notice))
        state = state_of(records, channel)
        if state is not None:
            records.put(replace(state, dropped=state.dropped + 1, dropped_ms=records.now_ms))


def _event(name: str, notice: Notice, now_ms: int, problem: str = "") -> Event:
    data = {"kind": notice.kind, "channel": notice.channel, "delivery": delivery_of(notice)}
    return Event(
        name=name, at_ms=now_ms, job=notice.job, nominal_ms=notice.nominal_ms, reason=free_text(problem), data=data
    )


# -- by hand ------------------------------------------------------------------------------------------------------


def retry(records: Records, channel: str, actor: str) -> int:
    """Try again at once what waits, and what was given up. How many those are."""
    state = _known(records, channel)
    found = all_of(records, channel)
    for notice in found:
        records.put(replace(notice, tries=0, given_up_ms=None, problem=""))
    records.put(replace(state, next_ms=0, tries=0, dropped_ms=None, is_dropping=False))
    if found:
        _journal(records, "NotificationRetried", channel, len(found), actor)
    return len(found)


def drop(records: Records, channel: str, actor: str, *, only_undeliverable: bool) -> int:
    """Remove its notices, or those that were given up. How many those were."""
    state = _known(records, channel)
    found = undeliverable(records, channel) if only_undeliverable else all_of(records, channel)
    for notice in found:
        records.delete(key_of(notice))
    records.put(replace(state, dropped=state.dropped + len(found)))
    if found:
        _journal(records, "NotificationDropped", channel, len(found), actor)
    return len(found)


def _known(records: Records, channel: str) -> ChannelState:
    state = state_of(records, channel)
    if state is None:
        raise ChronexError(f"nothing was ever told to a channel {channel!r}; chronex notify list shows them")
    return state


def _journal(records: Records, name: str, channel: str, count: int, actor: str) -> None:
    data = {"channel": channel, "count": count}
    append(records.tx, Event(name=name, at_ms=records.now_ms, actor=actor, data=data))
