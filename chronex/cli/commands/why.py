"""`chronex why`: why a job ran, ran late, failed, or did not run at a time."""

from __future__ import annotations

import sys
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chronex.cli.options import Form, StorePath, UsageError, check_format
from chronex.cli.output import JobZones, columns, out, paint, print_json, timed, width, zone_of
from chronex.text.terminal import terminal_safe

if TYPE_CHECKING:
    from chronex.storage.records import Reading
    from chronex.timing.zones import Zone
    from chronex.views.nodes import Watch
    from chronex.views.troubles import Trouble
    from chronex.views.why import Link, WhyAnswer
    from chronex.views.why.schedule_versions import VersionHistory

_AT_WIDTH = 29


def why(
    job: Annotated[str, typer.Argument(help="The job.", metavar="JOB")],
    time: Annotated[
        str | None,
        typer.Argument(
            help="An ISO 8601 time, HH:MM or yesterday HH:MM in the job's zone, -2h, +1d, or an occurrence's id.",
            metavar="TIME",
        ),
    ] = None,
    store: StorePath = None,
    form: Form = "text",
) -> int:
    """Say why a job ran, ran late, failed, or did not run at a time; without TIME: the last run and the next.

    Example: chronex why backup 03:00
    """

    check_format(form)
    return run_why(job, time, store, form)


def run_why(job: str, time: str | None, store: str | None, form: str) -> int:
    from chronex.cli.store_session import print_troubles, read_store_now, store_watch, troubles_of

    def ask(reading: Reading, now_ms: int) -> tuple[list[tuple[str, WhyAnswer]], list[Trouble]]:
        names = JobZones(reading)
        found = answers_to(reading, job, time, now_ms, store_watch(reading, now_ms))
        answers = [(names.name_of(answer.job), answer) for answer in found]
        return answers, troubles_of(reading, now_ms)

    (answers, troubles), _ = read_store_now(store, ask)
    if form == "json":
        print_json({"job": job, "answers": [answer_json(answer) for _, answer in answers]})
        return 0
    for index, (name, answer) in enumerate(answers):
        if index:
            out()
        _print(answer, name)
    print_troubles(troubles)
    return 0


def answers_to(reading: Reading, job: str, time: str | None, now_ms: int, watch: Watch) -> list[WhyAnswer]:
    """One answer for a time; without one the last thing that happened, the next, and what has passed between them."""
    from chronex.engine.commands.names import job_id_named
    from chronex.views.why import latest_and_next
    from chronex.views.why import why as why_at
    from chronex.views.why.ask import by_occurrence
    from chronex.views.why.schedule_versions import version_history

    written, job = job, job_id_named(reading, job)
    history = version_history(reading, job)
    if history is None:
        raise UsageError(_unknown(reading, written))
    if time is None:
        found = latest_and_next(reading, job, now_ms, watch)
        if not found and history.last.follows:
            parents = " and ".join(history.last.after)
            raise UsageError(f"nothing has happened to {job!r} yet: it follows {parents}; chronex why tells of those")
        if not found:
            raise UsageError(
                f"{job} has never run, and its schedule has no time to come; chronex show {job} tells more"
            )
        return found
    if time.startswith("occ_"):
        nominal = by_occurrence(reading, job, time)
        if nominal is None:
            raise UsageError(
                f"{job!r} has no occurrence {time[:60]!r}; chronex history {job} --format json lists them"
            )
        return _one(why_at(reading, job, nominal, now_ms, watch))
    return _one(_at_time(reading, history, time, now_ms, watch))


def _at_time(reading: Reading, history: VersionHistory, time: str, now_ms: int, watch: Watch) -> WhyAnswer | None:
    from chronex.views.why import why as why_at
    from chronex.views.why.ask import clock_links, instant_of, read_time

    chosen = read_time(time, zone_of(history.last), now_ms)
    if chosen is None:
        hint = "write 2027-03-28T02:30, 02:30 (today), yesterday 02:30, -2h, or an occurrence's id"
        raise UsageError(f"{time[:60]!r} is not a time; {hint}")
    answer = why_at(reading, history.last.id, instant_of(reading, history, chosen, now_ms), now_ms, watch)
    notes = clock_links(history.last, chosen)
    return answer._replace(links=(*notes, *answer.links)) if answer is not None else None


def _one(answer: WhyAnswer | None) -> list[WhyAnswer]:
    return [answer] if answer is not None else []


def _unknown(reading: Reading, job: str) -> str:
    from chronex.text.suggestions import nearest

    known = [found.shown_name for found in reading.jobs()]
    if not known:
        return f"no job {job[:60]!r}: the store has no jobs yet; write a chronex.toml and run: chronex apply"
    meant = nearest(job, known)
    return f"no job {job[:60]!r}; " + (f"did you mean {meant}?" if meant else "`chronex list` shows them")


def answer_json(answer: WhyAnswer) -> dict[str, Any]:
    return {
        "job": answer.job,
        **timed("instant", answer.instant_ms),
        "timezone": answer.zone.name,
        "occurrence": answer.occurrence or None,
        "cause": answer.cause.value,
        "summary": answer.summary,
        "names": dict(answer.names),
        "links": [_link_json(link) for link in answer.links],
        **timed("previous", answer.previous_ms),
        **timed("next", answer.next_ms),
    }


def _link_json(link: Link) -> dict[str, Any]:
    return {"fact": link.fact, **timed("at", link.at_ms), "source": link.source.value}


def _print(answer: WhyAnswer, name: str) -> None:
    from chronex.views.why.answer import stamp

    zone = answer.zone
    out(
        paint(
            terminal_safe(
                f"{name} {stamp(answer.instant_ms, zone)} ({zone.name}): {answer.cause.value.replace('_', ' ')}"
            ),
            "bold",
        )
    )
    for line in _fitted(answer.summary, "  "):
        out(terminal_safe(line))
    for link in answer.links:
        for line in _link_lines(link, zone):
            out(terminal_safe(line))
    if (node := answer.names.get("node")) is not None:
        known = f" (pid {node['pid']} on {node['host']})" if node["pid"] is not None else ""
        out(terminal_safe(f"  run by {node['id']}{known}"))
    neighbours = [("before", answer.previous_ms), ("after", answer.next_ms)]
    shown = [f"{word} {stamp(ms, zone)}" for word, ms in neighbours if ms is not None]
    if shown and not answer.occurrence:
        out(f"  nearest by schedule: {', '.join(shown)}")


def _link_lines(link: Link, zone: Zone) -> list[str]:
    """One line, or as many as a narrow terminal takes."""
    line = f"  {_when(link, zone):{_AT_WIDTH}} {link.fact}  [{link.source.value}]"
    if not sys.stdout.isatty() or width(line) <= columns():
        return [line]
    return _fitted(f"{_when(link, zone)} {link.fact} [{link.source.value}]".strip(), "    ")


def _fitted(text: str, further: str) -> list[str]:
    """Output in a pipe is searched rather than read, so every fact is one line there."""
    if not sys.stdout.isatty():
        return [f"  {text}"]
    return wrap(text, columns(), initial_indent="  ", subsequent_indent=further, break_on_hyphens=False)


def _when(link: Link, zone: Zone) -> str:
    from chronex.views.why.answer import stamp

    return "" if link.at_ms is None else stamp(link.at_ms, zone)
