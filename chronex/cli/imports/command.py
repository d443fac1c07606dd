"""`chronex import SOURCE`: read, translate, prove, write, tell."""

from __future__ import annotations

import getpass
import os
import subprocess
import sys
from pathlib import Path

from chronex.cli.arguments import UsageError, choose_zone, read_instant
from chronex.cli.imports.imported import Import
from chronex.cli.imports.proving import prove
from chronex.cli.imports.report import as_json, as_text
from chronex.cli.imports.writing import job_file
from chronex.cli.init import write_file
from chronex.cli.places import read_file
from chronex.cli.terminal import err, inert, out
from chronex.timing.zones import Zone

_MOST_BYTES = 1 << 20
_SYSTEM_CRONTABS = ("/etc/crontab", "/etc/cron.d/")


def run_import(
    source: str,
    paths: list[str],
    tz: str | None,
    output: str,
    *,
    now: str | None,
    check: bool,
    force: bool,
    form: str,
) -> int:
    """0: everything is carried over and proven the same; 1: something differs or is lost, and was told."""
    zone = choose_zone(tz).zone
    found = _read(source, paths, zone)
    if not found.jobs and not found.lost:
        raise UsageError(f"nothing to import: no {source} schedule was found")
    found, proven = prove(found, read_instant(now, zone, "--now") // 1000)
    to_stdout = output == "-"
    if not check:
        _write(job_file(found), output, force)
    tell = err if to_stdout and not check else out
    if form == "json":
        tell(as_json(found, proven))
    else:
        for line in as_text(found, proven):
            tell(line)
        if not check and not to_stdout:
            out(f"wrote {inert(output)}; try it with: chronex apply {inert(output)} --dry-run")
    differs = found.lost or any(each.differences or each.job.theirs is None for each in proven)
    return 1 if differs else 0


def _write(text: str, output: str, force: bool) -> None:
    if output == "-":
        out(text.rstrip("\n"))
        return
    path = Path(output)
    if not force and os.path.lexists(path):
        raise UsageError(f"{inert(output)} is there already; --force replaces it, or choose another --output")
    try:
        write_file(path, text.encode(), replace=force)
    except OSError as error:
        raise UsageError(f"cannot write {inert(output)}: {error.strerror}; choose another --output") from None


def _read(source: str, paths: list[str], zone: Zone) -> Import:
    if source == "crontab":
        return _crontab(paths, zone)
    if source == "systemd":
        from chronex.cli.imports.systemd import read_timers, timers_in

        return read_timers(list(timers_in([_existing(path) for path in paths or _unit_places()])), zone)
    from chronex.cli.imports.kubernetes import read_cronjobs

    return read_cronjobs("\n---\n".join(_text_of(path) for path in paths or ["-"]), zone)


def _crontab(paths: list[str], zone: Zone) -> Import:
    from chronex.cli.imports.crontab import read_crontab

    path = paths[0] if paths else ""
    if len(paths) > 1:
        raise UsageError("one crontab at a time: import each, and join the files")
    has_user = path.startswith(_SYSTEM_CRONTABS) or "/cron.d/" in path
    text = _text_of(path) if path else _own_crontab()
    return read_crontab(text, zone, has_user=has_user, user=getpass.getuser())


def _own_crontab() -> str:
    try:
        # The user's own crontab, as the user's own PATH finds it.
        done = subprocess.run(["crontab", "-l"], capture_output=True, timeout=30, check=False)  # noqa: S607
    except FileNotFoundError:
        raise UsageError("crontab is not installed here; name a file: chronex import crontab FILE") from None
    except subprocess.TimeoutExpired:
        raise UsageError("crontab -l did not answer within 30 seconds; name a file instead") from None
    if done.returncode != 0:
        reason = done.stderr.decode("utf-8", "replace").strip() or "it has none"
        raise UsageError(f"crontab -l: {inert(reason)}; name a file: chronex import crontab FILE")
    return done.stdout.decode("utf-8", "replace")


def _unit_places() -> list[str]:
    """The timers of this user and of the machine's own administrator."""
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    places = [home / "systemd" / "user", Path("/etc/systemd/system")]
    return [str(place) for place in places if place.is_dir()]


def _existing(path: str) -> Path:
    if not os.path.exists(path):
        raise UsageError(f"{inert(path)} is not there; name a .timer file or a directory of them")
    return Path(path)


def _text_of(path: str) -> str:
    try:
        most = _MOST_BYTES + 1
        data = sys.stdin.buffer.read(most) if path == "-" else read_file(Path(path), most)
    except OSError as error:
        raise UsageError(
            f"cannot read {inert(path)}: {(error.strerror or str(error)).lower()}; is the name right?"
        ) from None
    if len(data) > _MOST_BYTES:
        raise UsageError(f"{inert(path)} is larger than {_MOST_BYTES >> 20} MiB; that is no crontab")
    return data.decode("utf-8", "replace")
