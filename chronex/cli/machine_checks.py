"""The checks of the machine: zone data, clock, service, daemon, and whether jobs find the programs they name.

Checking changes nothing.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import NamedTuple

from chronex.cli.job_file import unsafe_because
from chronex.cli.options import job_file_path
from chronex.cli.service_units import service_state
from chronex.daemon.wakeups import is_synchronized
from chronex.errors import UnknownZoneError
from chronex.keeper.keepers import keepers_of
from chronex.model.job import Call, Job, Task
from chronex.model.records import Node
from chronex.run import is_alive
from chronex.run.accounts import PATH_OF_OTHERS, Rights, group_id, needs_root, rights_of, user_id
from chronex.run.environment import Inheritance, variables_of_files
from chronex.run.request import AttemptRequest, NotStarted
from chronex.run.secret_values import secret_values
from chronex.storage.records import Reading
from chronex.text.terminal import terminal_safe
from chronex.timing.zones import load_zone, zone_version
from chronex.views.troubles import start_command
from chronex_store import LmdbStore

# What a check of the machine says.


class CheckVerdict(StrEnum):
    FINE = "fine"
    NOTE = "note"
    WRONG = "wrong"


class Check(NamedTuple):
    """`topic` is what was checked; `advice` what to do, empty where there is nothing to do."""

    topic: str
    verdict: CheckVerdict
    message: str
    advice: str = ""


# Checks of what jobs need on this machine: users, directories, files of variables, secrets.
#
# Nothing is changed, and no value of a secret is told.


def job_checks(jobs: Sequence[Job], environ: Mapping[str, str]) -> Iterator[Check]:
    """`environ` is the environment that the daemon has, or would have."""
    tasks = [(job, task) for job in jobs for task in job.tasks if not isinstance(task.run, Call)]
    inheritance = Inheritance(environ)
    yield from _all_of("users", tasks, _user, sum(task.user is not None for _, task in tasks))
    yield from _all_of("directories", tasks, _directory, sum(task.directory is not None for _, task in tasks))
    yield from _all_of("variables", tasks, _env_file, sum(len(task.env_file) for _, task in tasks))
    in_daemon = partial(_secrets, inheritance=inheritance)
    yield from _all_of("secrets", tasks, in_daemon, sum(len(task.secrets) for _, task in tasks))


def _all_of(
    topic: str, tasks: Sequence[tuple[Job, Task]], check: Callable[[Job, Task], Iterator[Check]], count: int
) -> Iterator[Check]:
    """What is wrong, or that all of them are as they should be; nothing where no job has one."""
    wrong = [one for job, task in tasks for one in check(job, task)]
    yield from wrong
    if count and not wrong:
        yield Check(topic, CheckVerdict.FINE, f"{count} looked for")


def _name(job: Job, task: Task) -> str:
    return f"job {job.id}" if len(job.tasks) == 1 else f"job {job.id}, task {task.name}"


def _user(job: Job, task: Task) -> Iterator[Check]:
    where = _name(job, task)
    if task.user is not None and user_id(task.user) is None:
        yield Check("users", CheckVerdict.WRONG, f"{where}: no user {task.user!r} on this machine",
                    "make one, or name another in user")  # fmt: skip
    elif task.group is not None and group_id(task.group) is None:
        yield Check("users", CheckVerdict.WRONG, f"{where}: no group {task.group!r} on this machine",
                    "make one, or name another in group")  # fmt: skip
    elif (problem := needs_root(task.process_settings)) is not None:
        yield Check("users", CheckVerdict.WRONG, f"{where}: {problem}", "chronex service install --system, as root")


def _directory(job: Job, task: Task) -> Iterator[Check]:
    if task.directory is None:
        return
    where = f"{_name(job, task)}: the directory {task.directory}"
    rights = rights_of(task.user, task.group)
    try:
        mode = os.stat(task.directory).st_mode
    except OSError as problem:
        reason = (problem.strerror or str(problem)).lower()
        yield Check("directories", CheckVerdict.WRONG, f"{where}: {reason}", "make it, or name another")
        return
    if not stat.S_ISDIR(mode):
        yield Check("directories", CheckVerdict.WRONG, f"{where} is a file", "name a directory")
    elif rights is not None and not rights.may_enter(task.directory):
        who = task.user or "the daemon"
        yield Check("directories", CheckVerdict.WRONG, f"{where} is closed to {who}", "open it, or name another")


def _env_file(job: Job, task: Task) -> Iterator[Check]:
    found = variables_of_files(task.env_file)
    if isinstance(found, NotStarted):
        yield Check("variables", CheckVerdict.WRONG, f"{_name(job, task)}: {found.error}", "make it, or mend it")


def _secrets(job: Job, task: Task, inheritance: Inheritance) -> Iterator[Check]:
    """Each by itself, as a start would fetch it. Commands are not run: they may ask somebody, or cost something."""
    for name in task.secrets:
        source = task.secret_sources.get(name, "")
        if source.startswith("command:"):
            continue
        asked = AttemptRequest(
            attempt_id="", number=1, job=job.id, task=task.name, occurrence_id="", nominal_ms=0,
            secrets=(name,), secret_sources={name: source} if source else {},
        )  # fmt: skip
        found = secret_values(asked, inheritance, {})
        if isinstance(found, NotStarted):
            yield Check("secrets", CheckVerdict.WRONG, f"{_name(job, task)}: {found.error}")


def may_run(path: str, rights: Rights | None) -> bool:
    """By the user whose command it is, as far as that user is known."""
    return os.access(path, os.X_OK) if rights is None else rights.may_run(path)


_MOST_JOBS = 1000  # more jobs name few programs that the first thousand do not


_MOST_ATTEMPTS = 100_000


class StoreFacts(NamedTuple):
    """What the store says: the jobs, and the daemon that runs them, if one does."""

    jobs: tuple[Job, ...]
    node: Node | None
    living: frozenset[str] = frozenset()  # the ids of all nodes that work on the store now
    running: frozenset[str] = frozenset()  # attempts without an end on record
    start: str = "chronex run"  # what starts a daemon on it


def examine(found: StoreFacts, environ: Mapping[str, str], service: str) -> list[Check]:
    """`service` is what the service manager says of us, in a sentence."""
    return [
        *_zones(found.jobs),
        _clock(),
        *_daemon(found.node, service, found.start),
        *_environment(found, environ),
    ]


def _zones(jobs: Sequence[Job]) -> Iterator[Check]:
    version, source = zone_version()
    yield Check("zone data", CheckVerdict.FINE, f"version {version}, {source}")
    for name in sorted({job.timezone for job in jobs}):
        try:
            load_zone(name)
        except UnknownZoneError:
            users = ", ".join(job.id for job in jobs if job.timezone == name)
            yield Check("zone data", CheckVerdict.WRONG, f"zone {name} is unknown here (used by {users})",
                        "update the zone data or name another zone")  # fmt: skip


def _clock() -> Check:
    synchronized = is_synchronized()
    if synchronized is None:
        return Check("clock", CheckVerdict.NOTE, "the system does not say whether its clock is synchronized")
    if synchronized:
        return Check("clock", CheckVerdict.FINE, "synchronized")
    return Check("clock", CheckVerdict.NOTE, "the clock is not synchronized",
                 "turn on time synchronization, such as: timedatectl set-ntp true")  # fmt: skip


def _daemon(node: Node | None, service: str, start: str) -> Iterator[Check]:
    yield Check("service", CheckVerdict.FINE if service.startswith("running") else CheckVerdict.NOTE, service)
    if node is None:
        yield Check("daemon", CheckVerdict.NOTE, "no daemon has run on this store", f"start one: {start}")
    elif is_alive(node.process):
        yield Check("daemon", CheckVerdict.FINE, f"runs as process {node.process.pid}")
    else:
        yield Check("daemon", CheckVerdict.NOTE, "none runs now; nothing will start", f"start one: {start}")


def how_to_execute(path: str) -> str:
    """What is wrong is the program's own mode, or a directory on the way to it that the user is not let into."""
    try:
        is_for_all = os.stat(path).st_mode & 0o111 == 0o111
    except OSError:
        is_for_all = False
    return (
        "let that user into the directories that lead there" if is_for_all else f"run: chmod +x {shlex.quote(path)}"
    )


def _environment(found: StoreFacts, environ: Mapping[str, str]) -> Iterator[Check]:
    """The PATH that jobs get against the one of this shell, then every program that a job names."""
    of_jobs, source = _environ_of_jobs(found.node, environ)
    theirs = of_jobs.get("PATH", os.defpath)
    yield from _paths(environ.get("PATH", os.defpath), theirs, source)
    yield from job_checks(found.jobs, of_jobs)
    count = 0
    for job, program in programs_of(found.jobs, environ.get("PATH", os.defpath), theirs):
        count += 1
        where = f"job {job.id}: {program.name}"
        match program.finding:
            case NotFound():
                yield Check("programs", CheckVerdict.WRONG,
                            f"{where} is not found in the PATH of jobs ({program.path})",
                            "name it by its full path, or set PATH in the job's env")  # fmt: skip
            case NotExecutable(path):
                yield Check("programs", CheckVerdict.WRONG, f"{where}: {path} is there, and cannot be executed by "
                            f"{program.user or 'the daemon'}", how_to_execute(path))  # fmt: skip
            case OtherFile(shell, job_path):
                yield Check("programs", CheckVerdict.NOTE,
                            f"{where} is {job_path} for jobs, but {shell} in this shell",
                            "name it by its full path if that matters")  # fmt: skip
    yield Check("programs", CheckVerdict.FINE, f"{count} looked for")


def _environ_of_jobs(node: Node | None, environ: Mapping[str, str]) -> tuple[Mapping[str, str], str]:
    """The running daemon's own environment, where it can be read; else that of this shell."""
    if node is not None and is_alive(node.process):
        try:
            raw = Path(f"/proc/{node.process.pid}/environ").read_bytes()
        except OSError:
            raw = b""
        pairs = (os.fsdecode(line).partition("=") for line in raw.split(b"\0") if line)
        if found := {name: value for name, _, value in pairs}:
            return found, "the running daemon's"
    return environ, "this shell's; no daemon runs"


def _paths(shell: str, theirs: str, source: str) -> Iterator[Check]:
    lost = [directory for directory in shell.split(":") if directory and directory not in theirs.split(":")]
    if lost:
        yield Check("environment", CheckVerdict.NOTE, f"jobs lack {', '.join(lost)} of this shell's PATH ({source})",
                    "chronex service install again takes over the PATH of this shell")  # fmt: skip
    else:
        yield Check("environment", CheckVerdict.FINE, f"jobs see every directory of this shell's PATH ({source})")


# -- what the store says --------------------------------------------------------------------------------------------


def checks_of(store: Path, is_readable: bool) -> list[Check]:
    found = _found(store) if is_readable else StoreFacts((), None)
    return [
        *examine(found, os.environ, service_state().text),
        *(keeper_checks(store, found) if is_readable else ()),
        *job_file_checks(job_file_path(None)),
    ]


def keeper_checks(store: Path, found: StoreFacts) -> Iterator[Check]:
    """Keepers that no scheduler has, what they left, and what they complained of."""
    for keeper in keepers_of(store, found.running):
        node = keeper.directory.name.rpartition(".")[0]
        shown = terminal_safe(str(keeper.directory))
        if keeper.errors:
            last = terminal_safe(keeper.errors.rpartition("\n")[2])
            yield Check("keeper", CheckVerdict.WRONG, f"it had a fault: {last}", f"report what is in {shown}/errors")
        if node in found.living:
            continue
        held = f"{keeper.commands} running, {keeper.ends} ended and not on record"
        if keeper.stopped_pid is not None:
            who = f"process {keeper.stopped_pid}, which alone knows the ends of its commands"
            yield Check(
                "keeper", CheckVerdict.WRONG, f"{who}, is stopped: {held}", f"kill -CONT {keeper.stopped_pid}"
            )
        elif keeper.is_alive and found.living:
            so = f"commands of an earlier scheduler, which this one watches: {held}"
            yield Check("keeper", CheckVerdict.FINE, so)
        elif keeper.is_alive:
            yield Check("keeper", CheckVerdict.NOTE, f"commands of a scheduler that is gone: {held}",
                        "chronex run takes them up")  # fmt: skip
        else:
            yield Check("keeper", CheckVerdict.NOTE, f"{shown} is left of a keeper that is gone: {held}",
                        "chronex run records what it says and removes it")  # fmt: skip


def job_file_checks(path: Path) -> Iterator[Check]:
    """Whether others could change the job file that commands would read."""
    try:
        problem = unsafe_because(path)
    except OSError:
        return  # there is none, and none is needed
    if problem is None:
        yield Check("job file", CheckVerdict.FINE, f"only you and root can change {path}")
    else:
        yield Check("job file", CheckVerdict.WRONG, f"{path} {problem.message}", problem.advice)


def _found(store: Path) -> StoreFacts:
    with LmdbStore.open(store, create=False) as opened:
        return opened.view(lambda tx: facts_of(Reading(tx)))


def facts_of(reading: Reading) -> StoreFacts:
    nodes = sorted(reading.nodes(), key=lambda node: node.started_ms)
    living = frozenset(one.id for one in nodes if one.stopped_ms is None and is_alive(one.process))
    running = frozenset(one.id for one in reading.active_attempts(limit=_MOST_ATTEMPTS))
    jobs = tuple(reading.jobs(limit=_MOST_JOBS))
    return StoreFacts(jobs, nodes[-1] if nodes else None, living, running, start_command(reading))


# -- programs -------------------------------------------------------------------------------------------------------


class NotFound(NamedTuple):
    """The program is not found."""


class NotExecutable(NamedTuple):
    """The file is there, and the user of the job may not execute it."""

    path: str


class OtherFile(NamedTuple):
    """The job would run another file than the shell does."""

    shell: str
    job: str


class Program(NamedTuple):
    name: str
    finding: NotFound | NotExecutable | OtherFile | None
    user: str = ""
    path: str = ""  # the PATH in which it was looked for


# Words of the shell itself, which begin a simple command and are no programs.
_SHELL_WORDS = frozenset({
    ".", ":", "[", "alias", "bg", "break", "case", "cd", "command", "continue", "do", "done", "echo", "elif", "else",
    "esac", "eval", "exec", "exit", "export", "false", "fg", "fi", "for", "getopts", "hash", "if", "jobs", "kill",
    "local", "printf", "pwd", "read", "readonly", "return", "set", "shift", "source", "test", "then", "times", "trap",
    "true", "type", "ulimit", "umask", "unalias", "unset", "until", "wait", "while", "{", "}", "!", "function", "in",
    "select", "time",
})  # fmt: skip
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
_MARKS = ";&|()<>"
_BRACKETS = re.compile(r"\(\(|\)\)|[()]|[^()]+")
_SEPARATORS = frozenset({";", "&", "&&", "|", "||", "(", ")", ";;", "|&"})


def programs_of(jobs: Sequence[Job], shell_path: str, job_path: str) -> Iterator[tuple[Job, Program]]:
    """Each program of each job once; a job's own PATH and directory count."""
    for job in jobs:
        seen: set[str] = set()
        for task in job.tasks:
            is_other = task.user is not None
            path = task.env.get("PATH", PATH_OF_OTHERS if is_other else job_path)
            for name in _programs_named(task):
                if name not in seen:
                    seen.add(name)
                    # Another user's PATH is not that of any shell.
                    finding = _finding(name, path if is_other else shell_path, path, task)
                    yield job, Program(name, finding, task.user or "", path)


def _programs_named(task: Task) -> list[str]:
    if isinstance(task.run, Call):  # a function of the program that uses the library
        return []
    return words_of(task.run) if isinstance(task.run, str) else list(task.run[:1])


def words_of(command: str) -> list[str]:
    """The programs that a shell command plainly names; what hides behind variables is not guessed."""
    lexer = shlex.shlex(command.replace("\n", ";"), posix=True, punctuation_chars=_MARKS)
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        return []
    found: list[str] = []
    begins, depth = True, 0
    for word in (part for token in words for part in _parts_of(token)):
        if word in ("(", "(("):
            depth += 1
            begins = word == "("  # what is calculated names no program
        elif word in (")", "))"):
            # Behind `$(date)` the words of the outer command go on; a `)` that closes nothing ends a pattern of case.
            begins, depth = depth == 0, max(0, depth - 1)
        elif word in _SEPARATORS:
            begins = word != ";;"  # a pattern comes first
        elif begins and not _ASSIGNMENT.fullmatch(word):
            begins = word in ("then", "do", "else", "!", "{", "time", "if", "while", "until", "elif")
            if word not in _SHELL_WORDS and "$" not in word and "`" not in word:
                found.append(word)
    return found


def _parts_of(token: str) -> list[str]:
    """The lexer gives marks that stand together as one: `);` is a bracket and the end of a command."""
    return _BRACKETS.findall(token) if token and not token.strip(_MARKS) else [token]


def _finding(name: str, shell_path: str, job_path: str, task: Task) -> NotFound | NotExecutable | OtherFile | None:
    rights = rights_of(task.user, task.group) if task.user is not None or task.group is not None else None
    if "/" in name:
        path = os.path.join(task.directory or os.curdir, os.path.expanduser(name))
        if not os.path.exists(path):
            return NotFound()
        return None if os.path.isfile(path) and may_run(path, rights) else NotExecutable(path)
    in_shell = shutil.which(name, path=shell_path)
    in_job = shutil.which(name, path=job_path)
    if in_job is None:
        there = shutil.which(name, os.F_OK, job_path)
        return NotFound() if there is None else NotExecutable(there)
    if not may_run(in_job, rights):
        return NotExecutable(in_job)
    if in_shell is None or os.path.realpath(in_shell) == os.path.realpath(in_job):
        return None
    return OtherFile(in_shell, in_job)
