"""Why something ran, ran late or did not run: the chain of `chronex why` as lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chronex.views.why.answer import Answer
from chronex_tui.model.cells import Line, shown, wrap
from chronex_tui.model.look import Look
from chronex_tui.model.wording import exact_clock, full_stamp, local

_INDENT = 18


def chain_lines(answers: Sequence[Answer], look: Look, cells: int) -> list[Line]:
    return [line for answer in answers for line in (*_one(answer, look, cells), ())][:-1]


def _one(answer: Answer, look: Look, cells: int) -> Iterator[Line]:
    zone = answer.zone
    yield ((full_stamp(answer.instant_ms, zone), "bold"), (f"  {zone.name}  ", "dim"), (answer.cause.value, "key"))
    for piece in wrap(shown(answer.summary), max(cells - 2, 10)):
        yield ((f"  {piece}", ""),)
    day = local(answer.instant_ms, zone).date()
    for link in answer.links:
        at = ""
        if link.at_ms is not None:
            is_that_day = local(link.at_ms, zone).date() == day
            at = exact_clock(link.at_ms, zone) if is_that_day else full_stamp(link.at_ms, zone)[4:20].strip()
        for number, piece in enumerate(wrap(shown(link.fact), max(cells - _INDENT, 10))):
            yield ((f"  {at if number == 0 else '':{_INDENT - 2}}", "label"), (piece, "dim"))
