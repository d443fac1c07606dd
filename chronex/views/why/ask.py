"""The question itself: which kind of instant is it, and who answers."""

from __future__ import annotations

from chronex.storage.records import Reading
from chronex.views.why.ahead import ahead
from chronex.views.why.answer import WhyAnswer
from chronex.views.why.asked_instant import next_of
from chronex.views.why.job_versions import Lives, lives_of
from chronex.views.why.recorded import recorded
from chronex.views.why.unrecorded import unrecorded


def why(reading: Reading, job: str, instant_ms: int, now_ms: int) -> WhyAnswer | None:
    """What became, or will become, of `job` at exactly `instant_ms`; None for a job that the store does not know."""
    lives = lives_of(reading, job)
    if lives is None:
        return None
    occurrence = reading.occurrence(job, instant_ms)
    if occurrence is not None:
        return recorded(reading, lives, occurrence, now_ms)
    if instant_ms > now_ms:
        return ahead(reading, lives, instant_ms, now_ms)
    return unrecorded(reading, lives, instant_ms, now_ms)


def latest_and_next(reading: Reading, job: str, now_ms: int) -> list[WhyAnswer]:
    """Without a time: the last thing that happened, and the next that will."""
    lives = lives_of(reading, job)
    if lives is None:
        return []
    answers = []
    latest = reading.occurrences(job, now_ms + 1, 1)
    if latest:
        answers.append(recorded(reading, lives, latest[0], now_ms))
    upcoming = _upcoming(reading, lives, now_ms)
    if upcoming is not None:
        found = why(reading, job, upcoming, now_ms)
        answers += [found] if found else []
    return answers


def _upcoming(reading: Reading, lives: Lives, now_ms: int) -> int | None:
    pending = [o.nominal_ms for o in reading.occurrences(lives.last.id, None, 20) if o.nominal_ms > now_ms]
    if pending:
        return min(pending)
    return None if lives.is_gone else next_of(lives.last, max(now_ms, lives.last.progress.cursor_ms or now_ms))
