"""`chronex import`: schedules of cron, systemd, Kubernetes or a whole machine as a job file, with an honest list."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from chronex.cli.options import Form, UsageError, ZoneName, check_format, choose, choose_zone, read_file, read_instant
from chronex.cli.output import err, out
from chronex.text.terminal import terminal_safe

if TYPE_CHECKING:
    from chronex.imports.import_result import Import, Proven
    from chronex.lint.cron_programs import CronProgram
    from chronex.timing.zones import Zone

_MOST_DIFFERENCES = 12  # shown of one job
_MOST_BYTES = 1 << 20
_COMPARED_S = 6 * 366 * 86_400  # the five years of the proof, from a --now of this year
_SOURCES = ("crontab", "systemd", "k8s", "machine")
_COLUMN = " " * 9
_FIRST_ENVIRONMENT = Path("/proc/1/environ")
_OWN_PLACES = ("/etc", "/var/spool", "/run", "/lib", "/usr")


def import_jobs(
    source: Annotated[str, typer.Argument(help="crontab, systemd, k8s, or a machine by its /etc.", metavar="SOURCE")],
    paths: Annotated[
        list[str] | None,
        typer.Argument(help="Files, or - for standard input (default: what this user has).", metavar="PATH…"),
    ] = None,
    output: Annotated[
        str, typer.Option("-o", "--output", help="Where to write; - prints it.", metavar="FILE")
    ] = "chronex.toml",
    check: Annotated[bool, typer.Option("--check", help="Write nothing, tell what would differ.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that is there.")] = False,
    kind: Annotated[
        str | None,
        typer.Option("--as", help="system: the crontab has a user column; user: it has none.", metavar="KIND"),
    ] = None,
    root: Annotated[
        str | None, typer.Option(help="A whole machine whose files lie below this directory.", metavar="DIR")
    ] = None,
    tz: ZoneName = None,
    cron: Annotated[
        str | None,
        typer.Option(help="debian, cronie, bsd, busybox, supercronic or bcron has read it so far.", metavar="CRON"),
    ] = None,
    now: Annotated[
        str | None, typer.Option(help="Count the five years from this ISO 8601 time.", metavar="TIME")
    ] = None,
    form: Form = "text",
) -> int:
    """Carry schedules over, and tell of each job whether it is the same, what differs and what is lost. Every instant
    of the next five years is compared. Exit 1: something differs or is lost.

    Example: chronex import /etc --check
    """
    check_format(form)
    if kind is not None:
        choose("--as", kind, ("system", "user"))
    options = ImportOptions(tz, output, now, check, force, form, cron, kind, root)
    if root is not None or (source not in _SOURCES and os.path.isdir(source)):
        return run_import("machine", [root or source], options)
    choose("SOURCE", source, _SOURCES)
    return run_import(source, paths or [], options)


class ImportOptions(NamedTuple):
    tz: str | None
    output: str
    now: str | None
    check: bool
    force: bool
    form: str
    cron: str | None = None
    kind: str | None = None
    root: str | None = None


def run_import(source: str, paths: list[str], options: ImportOptions) -> int:
    """0: everything is carried over and the same; 1: something differs or is lost, and was reported."""
    from chronex.imports.import_result import job_file_text, prove, with_accepted_warnings, with_shared_defaults

    zone = _zone_of(source, paths, options.tz)
    found = _read(source, paths, zone, options)
    if not found.jobs and not found.lost:
        raise UsageError(f"nothing to import: no {source} schedule was found")
    now_s = read_instant(options.now, zone, "--now") // 1000
    found, proven = prove(found, now_s)
    if not options.check and found.jobs:
        text = with_accepted_warnings(job_file_text(with_shared_defaults(found)), found.timezone, now_s)
        _write(text, options.output, options.force)
    _report(found, proven, options)
    return 1 if found.lost or any(each.verdict != "same" for each in proven) else 0


def _report(found: Import, proven: Sequence[Proven], options: ImportOptions) -> None:
    """On standard output, or on standard error where the job file itself went to standard output."""
    import json

    to_stdout = options.output == "-"
    show = err if to_stdout and not options.check else out
    if options.form == "json":
        show(json.dumps(_json(found, proven), indent=2))
        return
    for line in _lines(found, proven):
        show(line)
    if not options.check and not to_stdout:
        name = terminal_safe(options.output)
        done = f"wrote {name}; try it with: chronex apply {name} --dry-run"
        out(done if found.jobs else f"{name} was not written: there is no job for it")


def _write(text: str, output: str, force: bool) -> None:
    from chronex.text.files import write_private_file

    if output == "-":
        out(text.rstrip("\n"))
        return
    path = Path(output)
    if os.path.lexists(path) and not (path.is_file() or path.is_symlink()):
        hint = "--check compares without writing, and -o - prints the jobs"
        raise UsageError(f"{terminal_safe(output)} is not a file that could be written over; {hint}")
    if not force and os.path.lexists(path):
        raise UsageError(f"{terminal_safe(output)} is there already; --force replaces it, or choose another --output")
    try:
        write_private_file(path, text.encode(), replace=force)
    except OSError as error:
        raise UsageError(
            f"cannot write {terminal_safe(output)}: {(error.strerror or str(error)).lower()}; choose another --output"
        ) from None


def _read(source: str, paths: list[str], zone: Zone, options: ImportOptions) -> Import:
    if source == "crontab":
        return _crontabs(paths, zone, options)
    if source == "machine":
        return _machine(paths[0] if paths else "/", zone, options)
    if source == "systemd":
        from chronex.imports.systemd import read_timers, timers_in

        return read_timers(list(timers_in([_existing(path) for path in paths or _unit_directories()])), zone)
    from chronex.imports.kubernetes import read_cronjobs

    return read_cronjobs("\n---\n".join(_text_of(path) for path in paths or ["-"]), zone)


def _zone_of(source: str, paths: list[str], tz: str | None) -> Zone:
    """The zone in which the source is read: cron and systemd keep that of their machine.

    A TZ variable is of this shell, and says how a file from anywhere is read. What this machine itself runs has it
    where the first process has it too, as in a container that was started with one; else it is asked for, instead of
    proving times that were never kept.
    """
    from chronex.clock import wall_ms
    from chronex.timing.zones import host_zone, machine_zone, show_one_time, utc_zone

    if tz or source == "k8s":
        return choose_zone(tz).zone
    root = _root_and_etc(paths[0] if paths else "/")[0] if source == "machine" else Path("/")
    shell, machine = host_zone(), machine_zone(root)
    if root != Path("/"):
        return machine or shell.zone
    machine, now_s = machine or utc_zone(), wall_ms() // 1000
    is_doubtful = not show_one_time(shell.zone, machine, now_s, now_s + _COMPARED_S)
    if is_doubtful and _is_of_this_machine(paths) and not _services_have_our_zone():
        raise UsageError(
            f"TZ is {shell.zone.name} in this shell, and the machine's zone is {machine.name}; say which one "
            f"{'the timers' if source == 'systemd' else 'cron'} had: --tz {shell.zone.name} or --tz {machine.name}"
        )
    return shell.zone


def _is_of_this_machine(paths: list[str]) -> bool:
    """Without a path it is what runs here."""
    places = [Path(path).absolute() for path in paths if path != "-"]
    return not paths or any(place.is_relative_to(root) for place in places for root in _OWN_PLACES)


def _services_have_our_zone() -> bool:
    """Whether TZ is that of the first process; False where nobody may know that."""
    try:
        variables = _FIRST_ENVIRONMENT.read_bytes().split(b"\0")
    except OSError:
        return False
    return b"TZ=" + os.environb.get(b"TZ", b"") in variables


def _machine(named: str, zone: Zone, options: ImportOptions) -> Import:
    """`/etc` is the machine's own; any other directory is a tree with an etc in it, or one that is an etc."""
    from chronex.imports.whole_machine import MachineFiles, read_machine

    root, etc = _root_and_etc(named)
    return read_machine(MachineFiles(root, etc), zone, _program(options.cron, root))


def _root_and_etc(named: str) -> tuple[Path, Path]:
    path = Path(named).absolute()
    if not path.is_dir():
        raise UsageError(f"{terminal_safe(named)} is not a directory; name /etc, or the root of a machine's files")
    return (path, path / "etc") if (path / "etc").is_dir() else (path.parent, path)


def _program(cron: str | None, root: Path = Path("/")) -> CronProgram:
    from chronex.lint.cron_programs import CRON_PROGRAMS, program_of_machine

    return CRON_PROGRAMS[choose("--cron", cron, tuple(CRON_PROGRAMS))] if cron else program_of_machine(root)


def _crontabs(paths: list[str], zone: Zone, options: ImportOptions) -> Import:
    """Any number of crontabs as one import; their jobs get names that differ."""
    from chronex.imports.cron_host import CronHost
    from chronex.imports.crontab import CrontabFile, MailChannels, read_crontab
    from chronex.imports.import_result import Import, JobNames
    from chronex.lint.cron_programs import program_of_file

    names, mail = JobNames(), MailChannels()
    found = Import("crontab", zone.name, {}, [], [], channels=mail.tables)
    for path in paths or [""]:
        text = _text_of(path, "surrogateescape") if path else _own_crontab()
        program = (None if options.cron else program_of_file(path, text)) or _program(options.cron)
        label = path if len(paths) > 1 else ""
        has_user, stem = _has_user(path, text, options.kind), Path(path).name if label else ""
        is_here = not path or Path(path).absolute().is_relative_to("/etc")
        etc = Path("/etc") if is_here else None
        host = CronHost.of_tree(Path("/"), Path("/etc"))._replace(knows_accounts=is_here, etc=etc)
        file = CrontabFile(has_user, None, program, label, stem, host)
        part = read_crontab(text, zone, file, names, mail)
        found.jobs.extend(part.jobs)
        found.lost.extend(part.lost)
    return found


def _has_user(path: str, text: str, kind: str | None) -> bool:
    """By --as, else by where the file lies, else by what its lines say. A wrong guess runs users as programs."""
    import pwd

    from chronex.imports.crontab import by_content, by_place

    if kind is not None or not path:
        return kind == "system"
    found = by_place(path)
    if found is None:
        found = by_content(text, (account.pw_name for account in pwd.getpwall()))
    if found is None and text.strip():
        raise UsageError(
            f"{terminal_safe(path)}: it cannot be told whether its lines name users; "
            "say --as system for a crontab with a user column, --as user for one without"
        )
    return bool(found)


def _own_crontab() -> str:
    import subprocess

    try:
        # The user's own crontab, as the user's own PATH finds it.
        done = subprocess.run(["crontab", "-l"], capture_output=True, timeout=30, check=False)  # noqa: S607
    except FileNotFoundError:
        raise UsageError("crontab is not installed here; name a file: chronex import crontab FILE") from None
    except subprocess.TimeoutExpired:
        raise UsageError("crontab -l did not answer within 30 seconds; name a file instead") from None
    if done.returncode != 0:
        reason = done.stderr.decode("utf-8", "replace").strip() or "it has none"
        raise UsageError(f"crontab -l: {terminal_safe(reason)}; name a file: chronex import crontab FILE")
    return done.stdout.decode("utf-8", "surrogateescape")


def _unit_directories() -> list[str]:
    """The timers of this user and of the machine's own administrator."""
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    directories = [home / "systemd" / "user", Path("/etc/systemd/system")]
    return [str(directory) for directory in directories if directory.is_dir()]


def _existing(path: str) -> Path:
    if not os.path.exists(path):
        raise UsageError(f"{terminal_safe(path)} is not there; name a .timer file or a directory of them")
    return Path(path)


def _text_of(path: str, other_bytes: str = "replace") -> str:
    try:
        most = _MOST_BYTES + 1
        data = sys.stdin.buffer.read(most) if path == "-" else read_file(Path(path), most)
    except OSError as error:
        raise UsageError(
            f"cannot read {terminal_safe(path)}: {(error.strerror or str(error)).lower()}; is the name right?"
        ) from None
    if len(data) > _MOST_BYTES:
        raise UsageError(f"{terminal_safe(path)} is larger than {_MOST_BYTES >> 20} MiB; that is no crontab")
    return data.decode("utf-8", other_bytes)


# -- text and JSON ---------------------------------------------------------------------------------------------------


def _lines(found: Import, proven: Sequence[Proven]) -> Iterator[str]:
    for each in proven:
        yield from _job_lines(each)
    for lost in found.lost:
        yield f"{'lost':9}{terminal_safe(lost.origin)}: {terminal_safe(lost.text)}"
        yield f"{_COLUMN}{terminal_safe(lost.why)}"
    yield from (f"{'passed':9}{terminal_safe(text)}" for text in found.passed)
    yield _summary(found, proven)


def _job_lines(each: Proven) -> Iterator[str]:
    import json

    from chronex.imports.import_result import difference_text, shortened

    job = each.job
    yield f"{each.verdict:9}{terminal_safe(job.id)} ({terminal_safe(job.origin)})"
    yield f"{_COLUMN}times: {_times(each)}"
    if "dst" in job.table:
        yield f"{_COLUMN}dst = {json.dumps(job.table['dst'])} keeps the source's rule for clock changes"
    yield from (
        f"{_COLUMN}  {line}"
        for line in shortened([difference_text(d, job.zone) for d in each.differences], _MOST_DIFFERENCES)
    )
    yield from (f"{_COLUMN}differs: {terminal_safe(text)}" for text in job.differs)
    yield from (f"{_COLUMN}lost: {terminal_safe(text)}" for text in job.lost)
    yield from (f"{_COLUMN}note: {terminal_safe(note)}" for note in job.notes)


def _times(each: Proven) -> str:
    """Proven is said of what was compared, and of nothing else."""
    if each.job.source_instants is None:
        return f"not compared; {each.job.times or 'the source does not tell them'}"
    when = "of the next five years" if each.is_whole else "of five days and around every clock change"
    instants = f"{each.compared} instants {when}"
    count = len(each.differences)
    return f"{count} of {instants} differ" if count else f"proven, all {instants} are the same"


def _summary(found: Import, proven: Sequence[Proven]) -> str:
    counts = {word: sum(1 for each in proven if each.verdict == word) for word in ("same", "differs", "lost")}
    parts = [f"{counts['same']} the same"]
    parts += [f"{counts['differs']} with a difference"] if counts["differs"] else []
    parts += [f"{counts['lost']} with a loss"] if counts["lost"] else []
    times = sum(1 for each in proven if each.has_proven_times)
    jobs = "1 job" if len(proven) == 1 else f"{len(proven)} jobs"
    lost = len(found.lost) + sum(len(each.job.lost) for each in proven)
    things = "nothing" if not lost else "1 thing" if lost == 1 else f"{lost} things"
    return f"{jobs}: {', '.join(parts)}; {things} lost; the times of {times} proven"


def _json(found: Import, proven: Sequence[Proven]) -> dict[str, Any]:
    return {
        "source": found.source,
        "jobs": [_job_json(each) for each in proven],
        "lost": [lost._asdict() for lost in found.lost],
        "passed": list(found.passed),
    }


def _job_json(each: Proven) -> dict[str, Any]:
    return {
        "id": each.job.id,
        "origin": each.job.origin,
        "verdict": each.verdict,
        "schedule": each.job.table["schedule"],
        "user": each.job.table.get("user"),
        "compared": each.compared,
        "compared_all": each.is_whole,
        "notes": list(each.job.notes),
        "differs": list(each.job.differs),
        "lost": list(each.job.lost),
        "differences": [{"at": d.second, "only": d.who, "reason": d.reason} for d in each.differences],
    }
