"""What an import says of odd crontabs, beside what Debian's own cron makes of them.

Each job that is called the same must run at the same minutes, as the same user, with the same words, input, variables and
directory; what cron is said to ignore must not have run.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from chronex.engine.commands import Actor, trigger
from chronex.imports.cron_host import CronHost
from chronex.imports.import_result import Proven, job_file_text, prove, with_shared_defaults
from chronex.imports.whole_machine import MachineFiles, read_machine
from chronex.jobfile import read_job_file
from chronex.storage.records import Records
from chronex.timing.zones import load_zone
from chronex_store import LmdbStore
from tests.imports.odd_crontabs import odd_files
from tests.imports.server_box import Box, Note, new_box, why_not
from tests.kit.waits import until
from tests.torture.test_server_in_a_box import CHRONEX, FIRST_MINUTE_MS, chronex, facts_of, note_name, starts

MINUTES = 90
_MISSING = why_not()
pytestmark = [pytest.mark.torture, pytest.mark.skipif(_MISSING is not None, reason=str(_MISSING))]
FILES = int(os.environ.get("CHRONEX_ODD_FILES", "150"))
SEEDS = [int(seed) for seed in os.environ.get("CHRONEX_ODD_SEEDS", "1 2").split()]


class BoxPlace(MachineFiles):
    """The tree of a box, which has the accounts and homes of this machine."""

    @property
    def host(self) -> CronHost:
        return CronHost(None, Path("/"), sends_mail=True, knows_accounts=True)


class Seen(NamedTuple):
    """What cron did in these minutes, by the names of the entries."""

    starts: Counter[tuple[str, int]]
    notes: list[Note]

    def of(self, name: str) -> list[int]:
        return sorted(minute for each, minute in self.starts.elements() if each == name)


@pytest.fixture
def box(request: pytest.FixtureRequest) -> Iterator[Box]:
    found = new_box(odd_files(request.param, FILES))
    yield found
    shutil.rmtree(found.root, ignore_errors=True)


def watched(box: Box) -> Seen:
    noted = box.run_debian_cron(MINUTES)
    box.take_mail()
    counted = Counter((note.name, minute) for minute, notes in enumerate(noted) for note in notes)
    return Seen(counted, [note for notes in noted for note in notes])


def run_each(box: Box, file: Path, names: set[str]) -> list[Note]:
    """Each of these jobs once, by a daemon that is root."""
    store = box.root / "store"
    assert chronex("apply", str(file), "--store", str(store)).returncode == 0
    jobs = [job for job in read_job_file(file.read_bytes(), "box.toml", "UTC").jobs if note_name(job) in names]
    with LmdbStore.open(store, create=False) as opened:
        actor = Actor("box", "test", "here")
        opened.update(lambda tx: [trigger(Records(tx, opened.now()), job.id, actor) for job in jobs])
    command = shlex.join([*CHRONEX, "run", "--headless", "--config", str(file), "--store", str(store)])
    environment = {"PATH": os.environ["PATH"], "TZ": "UTC"}
    with subprocess.Popen(box.inside(command), env=environment, stderr=subprocess.DEVNULL, umask=0o022) as daemon:
        try:
            until(
                lambda: {path.name.split(".")[0] for path in box.out.glob("*.done")} >= names, "a note of every job"
            )
        finally:
            daemon.terminate()
            daemon.wait(60)
    return box.take_notes()


def in_the_root(note: Note) -> Note:
    """Where there is no home cron stays in its own directory, and Chronex goes to /, as the import says."""
    return note._replace(facts=tuple(fact.replace("directory /var/spool/cron", "directory /") for fact in note.facts))


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("box", SEEDS, indirect=True)
def test_what_is_called_the_same_is_the_same(box: Box) -> None:
    seen = watched(box)
    found = read_machine(BoxPlace(box.root, box.root / "etc"), load_zone("UTC"))
    compared, proven = prove(found, FIRST_MINUTE_MS // 1000)
    text = job_file_text(with_shared_defaults(compared))
    file = box.root / "chronex.toml"
    file.write_text(text)
    planned = starts(read_job_file(text.encode(), "box.toml", "UTC").jobs, MINUTES)
    wrong, same = list[str](), set[str]()
    for each in proven:
        name = _name_of(each)
        mine = sorted(minute for other, minute in planned.elements() if other == name)
        wrong += [f"{each.job.origin}: {problem}" for problem in _wrong(each, mine, seen.of(name))]
        if each.verdict == "same" and seen.of(name):
            same.add(name)
    carried = {_name_of(each) for each in proven}
    told = {lost.text.split("{note} ")[-1] for lost in found.lost}
    assert wrong == []
    assert len(same) > FILES / 3, (len(same), len(carried), len(told))
    theirs, ours = facts_of([in_the_root(note) for note in seen.notes]), facts_of(run_each(box, file, same))
    assert {name: unlike for name in same if (unlike := _unlike(ours[name], theirs[name]))} == {}


def _unlike(ours: set[tuple[str, ...]], theirs: set[tuple[str, ...]]) -> list[str]:
    """The facts that only one of them has."""
    mine, other = ({fact for facts in each for fact in facts} for each in (ours, theirs))
    return [f"Chronex: {fact}" for fact in sorted(mine - other)] + [f"cron: {fact}" for fact in sorted(other - mine)]


def _name_of(each: Proven) -> str:
    run = each.job.table["run"]
    return (run if isinstance(run, str) else " ".join(run)).split("/note ")[-1].split()[0].rstrip(";)")


def _wrong(each: Proven, mine: list[int], theirs: list[int]) -> Iterator[str]:
    is_ignored = any("ignores the whole file" in text for text in each.job.differs)
    if each.verdict == "same" and mine != theirs:
        yield f"called the same, and cron ran it at {theirs[:5]}, Chronex at {mine[:5]}"
    if is_ignored and theirs:
        yield f"cron is said to ignore its file, and ran it at {theirs[:5]}"
