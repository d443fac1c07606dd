"""The tally as text: a week of hours, the crowded minutes, and what did not run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from chronex.cli.simulation.tally import JobTally, Tally
from chronex.cli.terminal import inert, wants_unicode, width
from chronex.text.durations import format_duration
from chronex.timing.zones import Zone

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_SHADES, _PLAIN_SHADES = " ░▒▓█", " .:*#"
_MOST_JOBS = 20


def picture(found: Tally, zone: Zone) -> Iterator[str]:
    yield from _density(found.hours)
    yield ""
    yield from _collisions(found, zone)
    yield from _troubles(found)


def _density(hours: Sequence[int]) -> Iterator[str]:
    """Levels by quantile of the hours that are not empty, with their bounds printed."""
    shades = _SHADES if wants_unicode() else _PLAIN_SHADES
    levels = _levels(hours)
    yield "starts     " + "".join(f"{hour:02} " for hour in range(24))
    for day, name in enumerate(_DAYS):
        row = hours[day * 24 : day * 24 + 24]
        cells = "".join(shades[sum(value >= level for level in levels)] * 2 + " " for value in row)
        yield f"  {name}      {cells.rstrip()}".rstrip()
    legend = "  ".join(f"{shades[number] * 2} from {level}" for number, level in enumerate(levels, 1))
    yield f"  {legend}" if legend else "  nothing starts"


def _levels(hours: Sequence[int]) -> list[int]:
    values = sorted(value for value in hours if value)
    return sorted({values[len(values) * quarter // 4] for quarter in range(4)}) if values else []


def _collisions(found: Tally, zone: Zone) -> Iterator[str]:
    crowded = found.collisions()
    yield f"at most {found.most_at_once} at once"
    if not crowded:
        yield "no two jobs start in the same minute"
        return
    minute, starts = crowded[0]
    wall = datetime.fromtimestamp(minute * 60, zone.tzinfo)
    same = sum(1 for _, count in found.minutes.items() if count == starts)
    others = f", and {same - 1} other minutes like it" if same > 1 else ""
    yield f"busiest minute: {wall:%a %d %b %Y %H:%M} with {starts} starts{others}"


def _troubles(found: Tally) -> Iterator[str]:
    """Every job whose runs do not all start on time, the worst first."""
    troubled = [(name, job) for name, job in found.jobs.items() if job.skipped or job.queued or job.canceled]
    total = sum(job.completed for job in found.jobs.values())
    yield f"{total} runs of {len(found.jobs)} jobs; {len(troubled)} jobs with runs that are skipped, late or canceled"
    for name, job in sorted(troubled, key=lambda item: -(item[1].skipped + item[1].queued))[:_MOST_JOBS]:
        yield f"  {_padded(name, 24)} {_words(job)}"
    if len(troubled) > _MOST_JOBS:
        yield f"  … and {len(troubled) - _MOST_JOBS} more"


def _words(job: JobTally) -> str:
    parts = [f"{job.completed} run"]
    if job.skipped:
        why = ", ".join(f"{reason} {count}" for reason, count in job.reasons.most_common(3))
        parts.append(f"{job.skipped} skipped ({inert(why)})")
    if job.queued:
        parts.append(f"{job.queued} late, the longest by {format_duration(job.longest_wait_ms)}")
    if job.canceled:
        parts.append(f"{job.canceled} canceled for the next one")
    return "; ".join(parts)


def _padded(text: str, columns: int) -> str:
    shown = inert(text)
    return shown + " " * max(columns - width(shown), 0)
