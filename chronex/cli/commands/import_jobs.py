"""`chronex import`: schedules of crontab, systemd or Kubernetes as a job file, with a proof."""

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
    from chronex.timing.zones import Zone

_MOST_DIFFERENCES = 12  # shown of one job
_MOST_BYTES = 1 << 20
_SYSTEM_CRONTABS = ("/etc/crontab", "/etc/cron.d/")


def import_jobs(
    source: Annotated[str, typer.Argument(help="crontab, systemd or k8s.", metavar="SOURCE")],
    paths: Annotated[
        list[str] | None,
        typer.Argument(help="Files, or - for standard input (default: what this user has).", metavar="PATH…"),
    ] = None,
    output: Annotated[
        str, typer.Option("-o", "--output", help="Where to write; - prints it.", metavar="FILE")
    ] = "chronex.toml",
    check: Annotated[bool, typer.Option("--check", help="Write nothing, tell what would differ.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that is there.")] = False,
    tz: ZoneName = None,
    cron: Annotated[
        str | None,
        typer.Option(help="debian, cronie, bsd, busybox or supercronic has read it so far.", metavar="CRON"),
    ] = None,
    now: Annotated[
        str | None, typer.Option(help="Count the five years from this ISO 8601 time.", metavar="TIME")
    ] = None,
    form: Form = "text",
) -> int:
    """Carry schedules over, and prove it: every instant of the next five years that differs is listed with its
    reason. Exit 1: something differs or has no equivalent.

    Example: chronex import k8s - --check
    """
    check_format(form)
    choose("SOURCE", source, ("crontab", "systemd", "k8s"))
    return run_import(source, paths or [], ImportOptions(tz, output, now, check, force, form, cron))


class ImportOptions(NamedTuple):
    tz: str | None
    output: str
    now: str | None
    check: bool
    force: bool
    form: str
    cron: str | None = None


def run_import(source: str, paths: list[str], options: ImportOptions) -> int:
    """0: everything is carried over and proven the same; 1: something differs or is lost, and was reported."""
    from chronex.imports.import_result import job_file_text, prove

    zone = choose_zone(options.tz).zone
    found = _read(source, paths, zone, options.cron)
    if not found.jobs and not found.lost:
        raise UsageError(f"nothing to import: no {source} schedule was found")
    found, proven = prove(found, read_instant(options.now, zone, "--now") // 1000)
    if not options.check:
        _write(job_file_text(found), options.output, options.force)
    _report(found, proven, options)
    differs = found.lost or any(each.differences or each.job.source_instants is None for each in proven)
    return 1 if differs else 0


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
        out(f"wrote {name}; try it with: chronex apply {name} --dry-run")


def _write(text: str, output: str, force: bool) -> None:
    from chronex.text.files import write_private_file

    if output == "-":
        out(text.rstrip("\n"))
        return
    path = Path(output)
    if not force and os.path.lexists(path):
        raise UsageError(f"{terminal_safe(output)} is there already; --force replaces it, or choose another --output")
    try:
        write_private_file(path, text.encode(), replace=force)
    except OSError as error:
        raise UsageError(f"cannot write {terminal_safe(output)}: {error.strerror}; choose another --output") from None


def _read(source: str, paths: list[str], zone: Zone, cron: str | None) -> Import:
    if source == "crontab":
        return _crontab(paths, zone, cron)
    if source == "systemd":
        from chronex.imports.systemd import read_timers, timers_in

        return read_timers(list(timers_in([_existing(path) for path in paths or _unit_directories()])), zone)
    from chronex.imports.kubernetes import read_cronjobs

    return read_cronjobs("\n---\n".join(_text_of(path) for path in paths or ["-"]), zone)


def _crontab(paths: list[str], zone: Zone, cron: str | None) -> Import:
    import getpass

    from chronex.imports.crontab import read_crontab
    from chronex.lint.cron_programs import CRON_PROGRAMS, program_of_file, program_of_machine

    if cron is not None:
        choose("--cron", cron, tuple(CRON_PROGRAMS))
    path = paths[0] if paths else ""
    if len(paths) > 1:
        raise UsageError("one crontab at a time: import each, and join the files")
    has_user = path.startswith(_SYSTEM_CRONTABS) or "/cron.d/" in path
    text = _text_of(path) if path else _own_crontab()
    program = CRON_PROGRAMS[cron] if cron else program_of_file(path, text) or program_of_machine()
    return read_crontab(text, zone, has_user=has_user, user=getpass.getuser(), program=program)


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
    return done.stdout.decode("utf-8", "replace")


def _unit_directories() -> list[str]:
    """The timers of this user and of the machine's own administrator."""
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    directories = [home / "systemd" / "user", Path("/etc/systemd/system")]
    return [str(directory) for directory in directories if directory.is_dir()]


def _existing(path: str) -> Path:
    if not os.path.exists(path):
        raise UsageError(f"{terminal_safe(path)} is not there; name a .timer file or a directory of them")
    return Path(path)


def _text_of(path: str) -> str:
    try:
        most = _MOST_BYTES + 1
        data = sys.stdin.buffer.read(most) if path == "-" else read_file(Path(path), most)
    except OSError as error:
        raise UsageError(
            f"cannot read {terminal_safe(path)}: {(error.strerror or str(error)).lower()}; is the name right?"
        ) from None
    if len(data) > _MOST_BYTES:
        raise UsageError(f"{terminal_safe(path)} is larger than {_MOST_BYTES >> 20} MiB; that is no crontab")
    return data.decode("utf-8", "replace")


# -- text and JSON ---------------------------------------------------------------------------------------------------


def _lines(found: Import, proven: Sequence[Proven]) -> Iterator[str]:
    for each in proven:
        yield from _job_lines(each)
    for lost in found.lost:
        yield f"NOT CARRIED OVER, {lost.origin}: {terminal_safe(lost.text)}"
        yield f"    {terminal_safe(lost.why)}"
    yield _summary(found, proven)


def _job_lines(each: Proven) -> Iterator[str]:
    import json

    from chronex.imports.import_result import difference_text, shortened

    job = each.job
    count = len(each.differences)
    if job.source_instants is None:
        verdict = "its times cannot be compared"
    else:
        when = "of the next five years" if each.is_whole else "of five days and around every clock change"
        instants = f"{each.compared} instants {when}"
        verdict = f"{count} of {instants} differ" if count else f"all {instants} are the same"
    yield f"{terminal_safe(job.id)} ({terminal_safe(job.origin)}): {verdict}"
    if "dst" in job.table:
        yield f"    dst = {json.dumps(job.table['dst'])} keeps the source's rule for clock changes"
    yield from (
        f"    {line}"
        for line in shortened([difference_text(d, job.zone) for d in each.differences], _MOST_DIFFERENCES)
    )
    yield from (f"    note: {terminal_safe(note)}" for note in job.notes)


def _summary(found: Import, proven: Sequence[Proven]) -> str:
    same = sum(1 for each in proven if each.job.source_instants is not None and not each.differences)
    jobs = f"{len(proven)} job{'' if len(proven) == 1 else 's'}"
    lost = f"{len(found.lost)} thing{'' if len(found.lost) == 1 else 's'}"
    return f"{jobs}, {same} of them proven the same; {lost} not carried over"


def _json(found: Import, proven: Sequence[Proven]) -> dict[str, Any]:
    return {
        "source": found.source,
        "jobs": [_job_json(each) for each in proven],
        "lost": [lost._asdict() for lost in found.lost],
    }


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
