"""A machine that is too busy is known as that."""

from __future__ import annotations

from chronex.torture.metronome import Metronome, uptime_s
from chronex.torture.witness import Span
from tests.kit.waits import until


def test_only_beats_that_come_too_late_are_kept() -> None:
    metronome = Metronome(60_000)
    metronome.note(Span(10.0, 69.9))
    metronome.note(Span(70.0, 131.0))
    metronome.close()
    assert metronome.late == [Span(70.0, 131.0)]


def test_it_beats_by_the_clock_of_the_witness() -> None:
    begun = uptime_s()
    metronome = Metronome(0)
    until(lambda: len(metronome.late) >= 2, "two beats")
    metronome.close()
    first, second = metronome.late[:2]
    assert begun < first.since < first.until < second.since < second.until
