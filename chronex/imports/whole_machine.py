"""Import of a whole machine: what cron, anacron and systemd start there, for all of its users."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from chronex.imports.anacron import read_anacrontab
from chronex.imports.cron_host import CronHost
from chronex.imports.crontab import CrontabFile, MailChannels, as_ignored, plain_text, read_crontab
from chronex.imports.import_result import Import, Imported, JobNames, Lost
from chronex.imports.systemd import Masked, read_timers, timer_of, unit_file
from chronex.lint.cron_programs import DEBIAN, CronProgram
from chronex.timing.zones import Zone

_MOST_BYTES = 1 << 20
_SPOOLS = ("var/spool/cron/crontabs", "var/spool/cron/tabs", "var/spool/cron")
_UNITS = ("run/systemd/system", "usr/local/lib/systemd/system", "usr/lib/systemd/system", "lib/systemd/system")
_WANTS = ("*.wants", "*.requires")
_SPOOL_MODE = 0o600
_PERIODS = ("hourly", "daily", "weekly", "monthly", "yearly")
# The names that run-parts takes without options.
_RUN_PARTS = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_STARTS_ANACRON = re.compile(r"\b(?:invoke-rc\.d|service)\s+anacron\b|/anacron\s+-s|systemctl\s+start\s+anacron")
_LEAVES_TO_ANACRON = re.compile(r"^\s*(?:test|\[)\s+-x\s+\S*/anacron\s*\]?\s*\|\|")


class MachineFiles(NamedTuple):
    """A machine's tree, with its /etc where that is not inside of it."""

    root: Path
    etc: Path

    @property
    def host(self) -> CronHost:
        return CronHost.of_tree(self.root, self.etc)

    def shown(self, path: Path) -> str:
        return f"/{path.relative_to(self.root)}" if path.is_relative_to(self.root) else str(path)


def read_machine(machine: MachineFiles, zone: Zone, program: CronProgram = DEBIAN) -> Import:
    """Everything in one list; what could not be read is named as lost."""
    parts, names, mail = list[Import](), JobNames(), MailChannels()
    for read in (_crontabs, _spools, _anacrontab):
        parts += read(machine, zone, program, names, mail)
    parts += _timers(machine, zone, names)
    found = Import(
        "machine",
        zone.name,
        {},
        [job for part in parts for job in part.jobs],
        [lost for part in parts for lost in part.lost],
        (*(note for part in parts for note in part.passed), *_passed_scripts(machine)),
        mail.tables,
    )
    return _without_anacron(found, machine)


def _part(zone: Zone, lost: Lost | None = None, passed: str = "") -> Import:
    return Import("machine", zone.name, {}, [], [lost] if lost else [], (passed,) if passed else ())


def _text(path: Path) -> str | Lost:
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        return Lost(str(path), path.name, f"cannot be read: {(error.strerror or str(error)).lower()}")
    if len(data) > _MOST_BYTES:
        return Lost(str(path), path.name, "larger than 1 MiB: that is no crontab")
    return data.decode("utf-8", "surrogateescape")


# -- cron ----------------------------------------------------------------------------------------------------------


def _crontabs(
    machine: MachineFiles, zone: Zone, program: CronProgram, names: JobNames, mail: MailChannels
) -> Iterator[Import]:
    files = [machine.etc / "crontab"] if (machine.etc / "crontab").is_file() else []
    directory = machine.etc / "cron.d"
    for path in sorted(directory.iterdir()) if directory.is_dir() else []:
        if not path.is_file() or path.name.startswith("."):
            continue
        if program.skipped_names is not None and program.skipped_names.fullmatch(path.name):
            yield _part(zone, passed=f"{machine.shown(path)}: {program.title} passes over files of such a name")
            continue
        files.append(path)
    for path in files:
        stem = "" if path.name == "crontab" else path.name
        file = CrontabFile(True, None, program, machine.shown(path), stem, machine.host)
        yield _as_trusted(_crontab(path, zone, file, names, mail), _distrusted(path, machine, program), program)


def _spools(
    machine: MachineFiles, zone: Zone, program: CronProgram, names: JobNames, mail: MailChannels
) -> Iterator[Import]:
    directory = next((machine.root / name for name in _SPOOLS if (machine.root / name).is_dir()), None)
    if directory is None:
        return
    try:
        paths = sorted(path for path in directory.iterdir() if path.is_file() and not path.name.startswith("."))
    except OSError as error:
        why = f"cannot be read: {(error.strerror or str(error)).lower()}; read it as root"
        yield _part(zone, Lost(machine.shown(directory), "the crontabs of the users", why))
        return
    for path in paths:
        file = CrontabFile(False, path.name, program, machine.shown(path), path.name, machine.host)
        found = _crontab(path, zone, file, names, mail)
        yield _as_trusted(found, _distrusted_spool(path, machine, program), program)


def _crontab(path: Path, zone: Zone, file: CrontabFile, names: JobNames, mail: MailChannels) -> Import:
    text = _text(path)
    return _part(zone, text) if isinstance(text, Lost) else read_crontab(text, zone, file, names, mail)


def _as_trusted(found: Import, problem: str | None, program: CronProgram) -> Import:
    return found if problem is None else as_ignored(found, problem, program)


def _distrusted(path: Path, machine: MachineFiles, program: CronProgram) -> str | None:
    """Why Debian's cron (3.0pl1-162) does not read this file of the system, whatever is in it."""
    if not program.ignores_faulty_files or not _has_its_owners(machine):
        return None
    found = path.stat()
    if found.st_uid != 0:
        return f"its owner, user {found.st_uid}"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"its mode {stat.S_IMODE(found.st_mode):04o}, with which others can write it"
    return "a second name that it has, a hard link" if found.st_nlink != 1 else None


def _distrusted_spool(path: Path, machine: MachineFiles, program: CronProgram) -> str | None:
    """The same for the crontab of a user, of which more is wanted."""
    if not program.ignores_faulty_files or not _has_its_owners(machine):
        return None
    found = path.lstat()
    if machine.host.has_no_account(path.name):
        return "its name, which is no user's"
    if not stat.S_ISREG(found.st_mode):
        return "its being a link"
    if stat.S_IMODE(found.st_mode) != _SPOOL_MODE:
        return f"its mode {stat.S_IMODE(found.st_mode):04o}, where 0600 is wanted"
    if (uid := machine.host.uid_of(path.name)) is not None and found.st_uid not in (0, uid):
        return f"its owner, user {found.st_uid}"
    return "a second name that it has, a hard link" if found.st_nlink != 1 else None


def _has_its_owners(machine: MachineFiles) -> bool:
    """A copy that another user has made of a machine's files says nothing of their owners and modes."""
    return machine.root == Path("/") or machine.etc.stat().st_uid == 0


def _passed_scripts(machine: MachineFiles) -> Iterator[str]:
    """`backup.sh` in cron.daily has never run: run-parts wants names without a dot."""
    for period in _PERIODS:
        directory = machine.etc / f"cron.{period}"
        for path in sorted(directory.iterdir()) if directory.is_dir() else []:
            if path.name.startswith("."):
                continue
            if not _RUN_PARTS.fullmatch(path.name):
                yield f"{machine.shown(path)}: run-parts takes names of letters, digits, _ and - only"
            elif path.is_file() and not os.access(path, os.X_OK):
                yield f"{machine.shown(path)}: run-parts passes over what is not executable"


# -- anacron -------------------------------------------------------------------------------------------------------


def _has_anacron(machine: MachineFiles) -> bool:
    return any((machine.root / name).exists() for name in ("usr/sbin/anacron", "sbin/anacron"))


def _anacrontab(
    machine: MachineFiles, zone: Zone, _: CronProgram, names: JobNames, mail: MailChannels
) -> Iterator[Import]:
    path = machine.etc / "anacrontab"
    if not path.is_file():
        return
    if not _has_anacron(machine):
        yield _part(zone, passed=f"{machine.shown(path)}: anacron is not installed, so nothing reads it")
        return
    text = _text(path)
    if isinstance(text, Lost):
        yield _part(zone, text)
    else:
        label, sends_mail = machine.shown(path), machine.host.sends_mail
        yield read_anacrontab(plain_text(text), zone, label, names, mail, sends_mail=sends_mail)


def _without_anacron(found: Import, machine: MachineFiles) -> Import:
    """Once the jobs of anacron are carried over, what starts anacron would run them twice, and what leaves the jobs
    to it does nothing."""
    if not _has_anacron(machine) or not (machine.etc / "anacrontab").is_file():
        return found
    kept: list[Imported] = []
    passed = list(found.passed)
    for job in found.jobs:
        command = job.table.get("run", "")
        text = " ".join(command) if isinstance(command, list) else command
        if _LEAVES_TO_ANACRON.search(text) or _STARTS_ANACRON.search(text) or job.origin == "anacron.timer":
            passed.append(f"{job.origin}: left out, because the jobs of anacrontab are carried over")
        else:
            kept.append(job)
    return found._replace(jobs=kept, passed=tuple(passed))


# -- timers --------------------------------------------------------------------------------------------------------


def _timers(machine: MachineFiles, zone: Zone, names: JobNames) -> Iterator[Import]:
    """Those that are enabled: they have a link among what timers.target or another unit wants."""
    directories = [machine.etc / "systemd/system", *(machine.root / name for name in _UNITS)]
    links = (path for each in directories for kind in _WANTS for path in each.glob(f"{kind}/*.timer"))
    timers = []
    for name in sorted({path.name for path in links}):
        file = unit_file(name, directories)
        if file is None:
            yield _part(zone, Lost(name, name, "it is enabled, and its unit is not found"))
            continue
        try:
            timer = timer_of(file, directories, name)
        except OSError as error:
            yield _part(zone, Lost(name, name, f"cannot be read: {(error.strerror or str(error)).lower()}"))
            continue
        if isinstance(timer, Masked):
            yield _part(zone, passed=f"{name}: left out, because {timer.unit} is masked")
        else:
            timers.append(timer._replace(manager=timer.manager._replace(root=machine.root)))
    if timers:
        yield read_timers(timers, zone, names)
