"""A server's crontabs under Debian's own cron and under Chronex: the same commands, by the same users, at the same minutes.

cron reads them in a mount namespace with a clock of libfaketime that is moved on minute by minute; Chronex imports them,
and a daemon that is root runs each job. Both hand their mail to the sendmail of the box.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chronex.engine.commands import Actor, trigger
from chronex.engine.plan import NO_CHANCE, due_time
from chronex.jobfile import read_job_file
from chronex.model.job import Job
from chronex.storage.records import Records
from chronex.timing.job_schedule import options_of, schedule_of
from chronex_store import LmdbStore
from tests.imports.server_box import FIRST_MINUTE, SPOOLS, STARTS, TOLD, USERS, Box, Mail, Note, new_box, why_not
from tests.kit.waits import until

FIRST_MINUTE_MS = int(FIRST_MINUTE.timestamp() * 1000)
_MISSING = why_not()
pytestmark = pytest.mark.skipif(_MISSING is not None, reason=str(_MISSING))
SAID = {"homeless": "in vain", "mail-account": "of www-data", "mail-named": "named", "backup-own": "own"}
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
    minutes = 1440
    jobs = read_job_file(imported(box).read_bytes(), "box.toml", "UTC").jobs
    noted = box.run_debian_cron(minutes)
    theirs = Counter((note.name, minute) for minute, notes in enumerate(noted) for note in notes)
    ours = starts(jobs, minutes)
    assert sum(theirs.values()) == sum(STARTS.values()), "what cron itself has run"
    assert Counter(name for name, _ in ours.elements()) == STARTS
    assert sorted((theirs - ours).items()) == [], "what only cron has run"
    assert sorted((ours - theirs).items()) == [], "what only Chronex would run"


def as_chronex_has_them(name: str, facts: tuple[str, ...]) -> tuple[str, ...]:
    """What cron runs in its own directory, because there is no home, Chronex runs in /, as the import says."""
    if name not in ("monitor", "homeless"):
        return facts
    assert "directory /var/spool/cron" in facts
    return tuple(fact.replace("/var/spool/cron", "/") for fact in facts)


def told(mails: list[Mail], name_of: Callable[[str], str]) -> dict[str, set[str]]:
    """Who was sent mail of which command. Each mail has what the command printed."""
    found: dict[str, set[str]] = {}
    for mail in mails:
        name = name_of(mail.text)
        assert f"\n{SAID[name]}\n" in mail.text
        found.setdefault(name, set()).update(mail.to)
    return found


def name_in_subject(text: str) -> str:
    """`Subject: Cron <root@box> …/note hourly; echo …`"""
    (subject,) = re.findall(r"^Subject: .*(?:\n[ \t].*)*", text, re.MULTILINE)
    return str(subject).split("/note ")[-1].split()[0].rstrip(";)")


@pytest.mark.torture
def test_each_command_is_run_as_cron_runs_it_and_its_mail_goes_to_the_same(box: Box) -> None:
    """User, groups, directory, umask, environment and standard input of every command that cron ran in 90 minutes."""
    noted = [note for notes in box.run_debian_cron(90) for note in notes]
    theirs = facts_of([note._replace(facts=as_chronex_has_them(*note)) for note in noted])
    assert told(box.take_mail(), name_in_subject) == TOLD
    file, store = imported(box), box.root / "store"
    wanted = read_job_file(file.read_bytes(), "box.toml", "UTC").jobs
    assert chronex("apply", str(file), "--store", str(store)).returncode == 0
    with LmdbStore.open(store, create=False) as opened:
        actor = Actor("box", "test", "here")
        opened.update(lambda tx: [trigger(Records(tx, opened.now()), job.id, actor) for job in wanted])
    command = shlex.join([*CHRONEX, "run", "--headless", "--config", str(file), "--store", str(store)])
    environment = {"PATH": os.environ["PATH"], "TZ": "UTC"}
    names = {note_name(job) for job in wanted}
    by_id = {job.id: note_name(job) for job in wanted}
    mails = list[Mail]()
    with subprocess.Popen(box.inside(command), env=environment, stderr=subprocess.DEVNULL, umask=0o022) as daemon:

        def is_over() -> bool:
            mails.extend(box.take_mail())
            done = {path.name.split(".")[0] for path in box.out.glob("*.done")} >= names
            return done and len(mails) >= len(TOLD)

        try:
            until(is_over, "a note of every job, and their mail")
        finally:
            daemon.terminate()
            daemon.wait(60)
    ours = facts_of(box.take_notes())
    assert {name: sorted(ours[name] ^ theirs[name]) for name in theirs if ours.get(name) != theirs[name]} == {}
    assert told(mails, lambda text: by_id[text.split("\nX-Chronex-Job: ")[1].split("\n")[0]]) == TOLD
    ran_by = {next(iter(facts))[0].split()[1] for facts in theirs.values()}
    assert ran_by == set(USERS)
    assert set(SPOOLS) <= set(USERS)
