"""A server's crontabs under Debian's own cron and under Chronex: the same commands, by the same users, at the same minutes.

cron reads them in a mount namespace with a clock of libfaketime that is moved on minute by minute; Chronex imports them,
and a daemon that is root runs each job. What is mailed is compared by tests of the import alone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from chronex.engine.commands import Actor, trigger
from chronex.engine.plan import NO_CHANCE, due_time
from chronex.jobfile import read_job_file
from chronex.model.job import Job
from chronex.storage.records import Records
from chronex.timing.job_schedule import options_of, schedule_of
from chronex_store import LmdbStore
from tests.imports.server_box import FIRST_MINUTE, SPOOLS, USERS, Box, Note, new_box, why_not
from tests.kit.waits import until

FIRST_MINUTE_MS = int(FIRST_MINUTE.timestamp() * 1000)
_MISSING = why_not()
pytestmark = pytest.mark.skipif(_MISSING is not None, reason=str(_MISSING))
CHRONEX = [sys.executable, "-m", "chronex"]


@pytest.fixture
def box() -> Iterator[Box]:
    found = new_box()
    yield found
    shutil.rmtree(found.root, ignore_errors=True)


def chronex(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "TZ": "UTC", "LC_ALL": "C.UTF-8"}
    return subprocess.run(
        [*CHRONEX, *arguments], capture_output=True, text=True, env=environment, timeout=300, check=False
    )


def imported(box: Box) -> Path:
    """The tree as a job file. The umask of cron's children is that of cron."""
    file = box.root / "chronex.toml"
    done = chronex("import", "machine", "--root", str(box.root), "-o", str(file), "--cron", "debian", "--tz", "UTC")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing lost" in done.stdout
    assert "/etc/cron.d/skipped.dpkg-old: Debian's cron passes over files of such a name" in done.stdout
    return file


def note_name(job: Job) -> str:
    """What the command of a job notes: the word behind the path of the note."""
    run = job.tasks[0].run
    text = run if isinstance(run, str) else " ".join(str(word) for word in run)  # type: ignore[union-attr]
    return text.split("/note ")[-1].split()[0].rstrip(";)")


def starts(jobs: tuple[Job, ...], minutes: int) -> Counter[tuple[str, int]]:
    """Name and minute of every start that Chronex plans."""
    found = Counter[tuple[str, int]]()
    for job in jobs:
        options = options_of(job)
        for ms in schedule_of(job).between(FIRST_MINUTE_MS - 1, FIRST_MINUTE_MS + minutes * 60_000 - 1):
            if not due_time(job, options, ms, NO_CHANCE).impossible:
                found[note_name(job), (ms - FIRST_MINUTE_MS) // 60_000] += 1
    return found


def facts_of(notes: list[Note]) -> dict[str, set[tuple[str, ...]]]:
    found: dict[str, set[tuple[str, ...]]] = {}
    for note in notes:
        found.setdefault(note.name, set()).add(note.facts)
    return found


@pytest.mark.torture
def test_the_same_commands_at_the_same_minutes_of_a_day(box: Box) -> None:
    minutes = 1_440
    jobs = read_job_file(imported(box).read_bytes(), "box.toml", "UTC").jobs
    noted = box.run_debian_cron(minutes)
    theirs = Counter((note.name, minute) for minute, notes in enumerate(noted) for note in notes)
    ours = starts(jobs, minutes)
    assert ours.total() == 2_798, "by hand: 1,440 of every minute, 288 of every five, and so on"
    assert sorted((theirs - ours).items()) == [], "what only cron has run"
    assert sorted((ours - theirs).items()) == [], "what only Chronex would run"


@pytest.mark.torture
def test_each_command_is_run_as_cron_runs_it(box: Box) -> None:
    """User, groups, directory, umask, environment and standard input of every command that cron ran in 90 minutes."""
    theirs = facts_of([note for notes in box.run_debian_cron(90) for note in notes])
    file, store = imported(box), box.root / "store"
    environment = {"PATH": os.environ["PATH"], "TZ": "UTC"}
    command = [*CHRONEX, "run", "--headless", "--config", str(file), "--store", str(store)]
    assert chronex("apply", str(file), "--store", str(store)).returncode == 0
    wanted = read_job_file(file.read_bytes(), "box.toml", "UTC").jobs
    with LmdbStore.open(store, create=False) as opened:
        actor = Actor("box", "test", "here")
        opened.update(lambda tx: [trigger(Records(tx, opened.now()), job.id, actor) for job in wanted])
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL, umask=0o022) as daemon:
        try:
            names = {note_name(job) for job in wanted}
            until(
                lambda: {path.name.split(".")[0] for path in box.out.glob("*.done")} >= names, "a note of every job"
            )
        finally:
            daemon.terminate()
            daemon.wait(60)
    ours = facts_of(box.take_notes())
    assert {name: sorted(ours[name] ^ theirs[name]) for name in theirs if ours.get(name) != theirs[name]} == {}
    ran_by = {next(iter(facts))[0].split()[1] for facts in theirs.values()}
    assert ran_by == set(USERS)
    assert set(SPOOLS) <= set(USERS)
