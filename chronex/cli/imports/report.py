"""What an import tells: in sentences, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from chronex.cli.imports.imported import Import
from chronex.cli.imports.proof import shortened, shown
from chronex.cli.imports.proving import Proven
from chronex.cli.terminal import inert

_MOST_SHOWN = 12


def as_text(found: Import, proven: Sequence[Proven]) -> Iterator[str]:
    for each in proven:
        yield from _job(each)
    for lost in found.lost:
        yield f"NOT CARRIED OVER, {lost.origin}: {inert(lost.text)}"
        yield f"    {inert(lost.why)}"
    yield _summary(found, proven)


def _job(each: Proven) -> Iterator[str]:
    job = each.job
    count = len(each.differences)
    if job.theirs is None:
        verdict = "its times cannot be compared"
    else:
        when = "of the next five years" if each.is_whole else "of five days and around every clock change"
        instants = f"{each.compared} instants {when}"
        verdict = f"{count} of {instants} differ" if count else f"all {instants} are the same"
    yield f"{inert(job.id)} ({inert(job.origin)}): {verdict}"
    if "dst" in job.table:
        yield f"    dst = {json.dumps(job.table['dst'])} keeps the source's rule for clock changes"
    yield from (f"    {line}" for line in shortened([shown(d, job.zone) for d in each.differences], _MOST_SHOWN))
    yield from (f"    note: {inert(note)}" for note in job.notes)


def _summary(found: Import, proven: Sequence[Proven]) -> str:
    same = sum(1 for each in proven if each.job.theirs is not None and not each.differences)
    return f"{len(proven)} jobs, {same} of them proven the same; {len(found.lost)} things not carried over"


def as_json(found: Import, proven: Sequence[Proven]) -> str:
    return json.dumps(
        {
            "source": found.source,
            "jobs": [_job_json(each) for each in proven],
            "lost": [lost._asdict() for lost in found.lost],
        },
        indent=2,
    )


def _job_json(each: Proven) -> dict[str, Any]:
    return {
        "id": each.job.id,
        "origin": each.job.origin,
        "schedule": each.job.table["schedule"],
        "compared": each.compared,
        "compared_all": each.is_whole,
        "notes": list(each.job.notes),
        "differences": [{"at": d.second, "only": d.who, "reason": d.reason} for d in each.differences],
    }
