"""`chronex why`: the question to the store, and the answer as text or JSON."""

from __future__ import annotations

import json
import sys
from textwrap import wrap
from typing import Any

from chronex.cli.arguments import UsageError
from chronex.cli.looking import columns, looked_at
from chronex.cli.terminal import inert, out, paint, width
from chronex.cli.times import timed
from chronex.clock import wall_ms
from chronex.storage.records import Reading
from chronex.text.suggestions import nearest
from chronex.timing.zones import Zone
from chronex.views.why import Answer, Link, latest_and_next, why
from chronex.views.why.answer import stamp
from chronex.views.why.instants import by_occurrence, clock_links, instant_of, read_time, zone_of
from chronex.views.why.job_versions import Lives, lives_of

_AT_WIDTH = 29


def run_why(job: str, time: str | None, store: str | None, form: str) -> int:
    answers = looked_at(store, lambda reading: answers_to(reading, job, time, wall_ms()))
    if form == "json":
        out(json.dumps({"job": job, "answers": [to_dict(answer) for answer in answers]}, indent=2))
        return 0
    for index, answer in enumerate(answers):
        if index:
            out()
        _print(answer)
    return 0


def answers_to(reading: Reading, job: str, time: str | None, now_ms: int) -> list[Answer]:
    """One answer for a time, or two: the last thing that happened and the next. UsageError without the job."""
    lives = lives_of(reading, job)
    if lives is None:
        raise UsageError(_unknown(reading, job))
    if time is None:
        found = latest_and_next(reading, job, now_ms)
        if not found:
            raise UsageError(f"nothing has happened to {job!r} yet and nothing will; chronex list shows its state")
        return found
    if time.startswith("occ_"):
        nominal = by_occurrence(reading, job, time)
        if nominal is None:
            raise UsageError(
                f"{job!r} has no occurrence {time[:60]!r}; chronex history {job} --format json lists them"
            )
        return _one(why(reading, job, nominal, now_ms))
    return _one(_at_time(reading, lives, job, time, now_ms))


def _at_time(reading: Reading, lives: Lives, job: str, time: str, now_ms: int) -> Answer | None:
    asked = read_time(time, zone_of(lives.last), now_ms)
    if asked is None:
        hint = "write 2027-03-28T02:30, 02:30 (today), -2h, or an occurrence's id"
        raise UsageError(f"{time[:60]!r} is not a time; {hint}")
    answer = why(reading, job, instant_of(reading, lives, asked, now_ms), now_ms)
    notes = clock_links(lives.last, asked)
    return answer._replace(links=(*notes, *answer.links)) if answer is not None else None


def _one(answer: Answer | None) -> list[Answer]:
    return [answer] if answer is not None else []


def _unknown(reading: Reading, job: str) -> str:
    known = [found.id for found in reading.jobs()]
    if not known:
        return f"no job {job[:60]!r}: the store has no jobs yet; write a chronex.toml and run: chronex apply"
    meant = nearest(job, known)
    return f"no job {job[:60]!r}; " + (f"did you mean {meant}?" if meant else "chronex list shows them")


def to_dict(answer: Answer) -> dict[str, Any]:
    return {
        "job": answer.job,
        **timed("instant", answer.instant_ms),
        "timezone": answer.zone.name,
        "occurrence": answer.occurrence or None,
        "cause": answer.cause.value,
        "summary": answer.summary,
        "names": dict(answer.names),
        "links": [_link_dict(link) for link in answer.links],
        **timed("previous", answer.previous_ms),
        **timed("next", answer.next_ms),
    }


def _link_dict(link: Link) -> dict[str, Any]:
    return {"fact": link.fact, **timed("at", link.at_ms), "source": link.source.value}


def _print(answer: Answer) -> None:
    zone = answer.zone
    out(paint(inert(f"{answer.job} {stamp(answer.instant_ms, zone)} ({zone.name}): {answer.cause.value}"), "bold"))
    for line in _fitted(answer.summary, "  "):
        out(inert(line))
    for link in answer.links:
        for line in _told(link, zone):
            out(inert(line))
    neighbours = [("before", answer.previous_ms), ("after", answer.next_ms)]
    shown = [f"{word} {stamp(ms, zone)}" for word, ms in neighbours if ms is not None]
    if shown and not answer.occurrence:
        out(f"  nearest by schedule: {', '.join(shown)}")


def _told(link: Link, zone: Zone) -> list[str]:
    """One line, or as many as a narrow terminal takes."""
    line = f"  {_when(link, zone):{_AT_WIDTH}} {link.fact}  [{link.source.value}]"
    if not sys.stdout.isatty() or width(line) <= columns():
        return [line]
    return _fitted(f"{_when(link, zone)} {link.fact} [{link.source.value}]".strip(), "    ")


def _fitted(text: str, further: str) -> list[str]:
    """What is piped somewhere is searched rather than read: there every fact is one line."""
    if not sys.stdout.isatty():
        return [f"  {text}"]
    return wrap(text, columns(), initial_indent="  ", subsequent_indent=further, break_on_hyphens=False)


def _when(link: Link, zone: Zone) -> str:
    return "" if link.at_ms is None else stamp(link.at_ms, zone)
