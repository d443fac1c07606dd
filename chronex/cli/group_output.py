"""A group for people and for programs, as `groups` and `status` print it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from chronex.cli.output import paint, timed
from chronex.text.terminal import terminal_safe

if TYPE_CHECKING:
    from chronex.timing.zones import Zone
    from chronex.views.group_rows import GroupRow


def group_lines(row: GroupRow, now_ms: int, zone: Zone) -> Iterator[str]:
    from chronex.model.reasons import text_of
    from chronex.views.group_rows import limits_text
    from chronex.views.wording import moment

    colour = "yellow" if row.waiting else "bold"
    yield f"{paint(terminal_safe(row.group.name), colour)}  {limits_text(row.group)}"
    for holder in row.holders:
        places = f", {holder.places} places" if holder.places != 1 else ""
        where = f" on {holder.node}" if holder.node else ""
        yield f"  running  {terminal_safe(holder.job)} since {moment(holder.since_ms, now_ms, zone)}{places}{where}"
    for waiter in row.first:
        places = f", {waiter.places} places" if waiter.places != 1 else ""
        since = moment(waiter.since_ms, now_ms, zone)
        yield f"  waiting  {terminal_safe(waiter.job)} since {since}{places}: {terminal_safe(text_of(waiter.reason))}"
    if row.waiting > len(row.first):
        yield f"           … and {row.waiting - len(row.first)} more wait behind them"
    if not row.holders and not row.waiting:
        yield "  free"


def group_json(row: GroupRow) -> dict[str, Any]:
    from chronex.model.reasons import text_of

    group, rate = row.group, row.group.rate
    return {
        "group": group.name,
        "limit": group.limit,
        "rate": None if rate is None else {"count": rate.count, "per_ms": rate.per_ms},
        "version": group.version,
        "source": group.source,
        "held": row.held,
        "holders": [
            {
                "job": one.job,
                "occurrence": one.occurrence,
                "places": one.places,
                **timed("since", one.since_ms),
                "node": one.node or None,
            }
            for one in row.holders
        ],
        "waiting": row.waiting,
        "first": [
            {
                "job": one.job,
                "occurrence": one.occurrence,
                "places": one.places,
                **timed("since", one.since_ms),
                "reason": text_of(one.reason),
            }
            for one in row.first
        ],
        **timed("next_start", row.next_ms),
    }
