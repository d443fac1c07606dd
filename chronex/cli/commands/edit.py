"""`chronex edit`: the job file in an editor, as crontab -e does it; what the edit does is shown before it counts."""

from __future__ import annotations

import os
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chronex.cli.options import Config, StorePath, UsageError, Yes, job_file_path, store_location
from chronex.cli.output import JobZones, choose_letter, err, is_answered, out, print_lines, zone_of
from chronex.cli.update_output import lost_of, preview_lines
from chronex.text.terminal import terminal_safe

if TYPE_CHECKING:
    from chronex.cli.job_edits import EditedFile
    from chronex.cli.store_session import StoreSession
    from chronex.jobfile import JobFile
    from chronex.storage.ports import Store

_TAKES_LINE = frozenset(
    {"vi", "vim", "nvim", "view", "nano", "pico", "emacs", "emacsclient", "kak", "micro", "joe", "ne", "mg"}
)
_FALLBACKS = ("editor", "vi", "nano")


def edit(
    job: Annotated[str | None, typer.Argument(help="Begin at this job.", metavar="JOB")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what the edit would do; change nothing.")] = False,
    yes: Yes = False,
    config: Config = None,
    store: StorePath = None,
) -> int:
    """Edit the job file in $VISUAL or $EDITOR, see what the edit does, and apply it or leave all as it was.

    Example: chronex edit backup
    """
    if not (yes or dry_run or is_answered()):
        raise UsageError("nothing was done: say --yes to apply the edit without being asked, or --dry-run")
    return run_edit(job, config, store, is_sure=yes, dry_run=dry_run)


def run_edit(job: str | None, config: str | None, store: str | None, *, is_sure: bool, dry_run: bool) -> int:
    """0: applied, or nothing was edited; 1: left as it was; 2: the text has mistakes."""
    import tempfile

    edited = _edited_file(job, config, store)
    with tempfile.TemporaryDirectory(prefix="chronex-edit-") as directory:
        copy = Path(directory) / edited.file.name
        copy.write_bytes(edited.old or b"")
        copy.chmod(0o600)
        code = 2
        try:
            code = _edit_until_decided(edited, copy, job, store, is_sure=is_sure, dry_run=dry_run)
        finally:
            if code != 0 and copy.is_file() and copy.read_bytes() != (edited.old or b""):
                _keep(copy.read_bytes(), edited.file)
        return code


def _edited_file(job: str | None, config: str | None, store: str | None) -> EditedFile:
    from chronex.cli.job_edits import file_for_new_job, file_of_job
    from chronex.cli.store_session import read_store

    if job is None:
        path = job_file_path(config)
        if path.is_dir():
            raise UsageError(
                f"{terminal_safe(str(path))} is a directory: name a job, or one of its files by --config"
            )
        return file_for_new_job(config, "")
    location = store_location(store)
    known = (
        read_store(store, lambda reading: reading.job(job))
        if not isinstance(location, Path) or location.exists()
        else None
    )
    return file_of_job(None if config else known, config, job)


def _edit_until_decided(
    edited: EditedFile, copy: Path, job: str | None, store: str | None, *, is_sure: bool, dry_run: bool
) -> int:
    from chronex.errors import JobChainError

    while True:
        _open_editor(copy, job)
        if not copy.is_file():
            raise UsageError("the editor has left no file behind; nothing was changed")
        new = copy.read_bytes()
        if new == (edited.old or b""):
            out("nothing was edited")
            return 0
        found = _read_or_report(edited, new)
        try:
            answer = _decide(edited, new, found, store, is_sure=is_sure, dry_run=dry_run) if found else None
        except JobChainError as error:  # a mistake too, which only the store could find
            found, answer = None, None
            for problem in error.problems:
                err(terminal_safe(str(problem)))
        if answer is not None:
            return answer
        if found is not None:
            continue
        if is_sure or dry_run or choose_letter("edit again? [Y/n]", "ny") == "n":
            return 2


def _open_editor(copy: Path, job: str | None) -> None:
    """The editor that the user names, with the arguments that stand beside its name."""
    import shutil
    import subprocess

    from chronex.jobfile.text_edits import line_of_job

    named = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    try:
        words = shlex.split(named) if named else [name for name in _FALLBACKS if shutil.which(name)][:1]
    except ValueError:
        raise UsageError(f"a quote is not closed in the name of the editor, {terminal_safe(named or '')}") from None
    if not words:
        raise UsageError("no editor is found; name one: EDITOR=nano chronex edit")
    location = []
    if job is not None and os.path.basename(words[0]) in _TAKES_LINE:
        location = [f"+{line_of_job(copy.read_text('utf-8', 'replace'), job)}"]
    try:
        done = subprocess.run([*words, *location, str(copy)], check=False)  # noqa: S603  the user's own editor
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"cannot start {terminal_safe(words[0])}: {reason}; set EDITOR to your editor") from None
    if done.returncode != 0:
        raise UsageError(f"{terminal_safe(words[0])} ended with {done.returncode}; nothing was changed")


def _read_or_report(edited: EditedFile, new: bytes) -> JobFile | None:
    from chronex.cli.job_file import print_warnings, refuse_what_needs_root
    from chronex.jobfile import JobFileError

    try:
        found = edited.jobs_with(new)
        refuse_what_needs_root(found)
    except JobFileError as error:
        for problem in error.problems:
            err(terminal_safe(str(problem)))
        return None
    except UsageError as error:
        err(terminal_safe(str(error)))
        return None
    print_warnings(found)
    return found


def _decide(
    edited: EditedFile, new: bytes, found: JobFile, store: str | None, *, is_sure: bool, dry_run: bool
) -> int | None:
    """Show what the edit does, ask, and apply it; None for editing once more."""
    from chronex.cli.store_session import StoreSession
    from chronex_store import MemoryStore
    from chronex_store.opening import open_location

    location = store_location(store)
    if isinstance(location, Path) and not location.exists():
        losses = _show(MemoryStore(), edited, new, found)
    else:
        with open_location(location, create=False) as opened:
            losses = _show(opened, edited, new, found)
    if dry_run:
        out("dry run: nothing was changed")
        return 0
    question = (
        f"this removes {losses} jobs; apply it? [y]es, [e]dit again, [N]o"
        if losses
        else "apply it? [y]es, [e]dit again, [N]o"
    )
    answer = "y" if is_sure and not losses else "n" if is_sure else choose_letter(question, "yen")
    if is_sure and losses:
        err(f"this removes {losses} jobs, most of those there are: apply the file yourself with --prune")
    if answer == "e":
        return None
    if answer == "n":
        err("nothing was changed")
        return 1
    with open_location(location, create=True) as opened:
        _apply(StoreSession(location, opened), edited, new, found)
    return 0


def _show(store: Store, edited: EditedFile, new: bytes, found: JobFile) -> int:
    """Print what an apply would do; how many jobs would go, where they are most of them."""
    from chronex.daemon.reload import file_source
    from chronex.engine.update import Policy, UpdateOptions
    from chronex.jobfile.graph_tables import position_of_parent
    from chronex.storage.records import Reading
    from chronex.views.apply_preview import preview

    places = partial(position_of_parent, [(str(edited.file), new)])  # the text is in no file yet
    owner = file_source(edited.source)._replace(groups=found.groups, position_of_parent=places)
    how = UpdateOptions(Policy(found.settings.update_policy), owns=owner)
    desired = {job.id: job for job in found.jobs}
    seen = store.view(lambda tx: preview(Reading(tx), found.jobs, store.now(), how))
    lines = preview_lines(
        seen,
        lambda name: (
            zone_of(desired[name]) if name in desired else store.view(lambda tx: JobZones(Reading(tx)).of(name))
        ),
    )
    print_lines([line for line in lines if not line.startswith("unchanged")])
    losses = lost_of(seen.changes)
    return losses.removed if losses.are_most else 0


def _apply(session: StoreSession, edited: EditedFile, new: bytes, found: JobFile) -> None:
    """The file and then the store, or neither; not where the file was written by somebody else meanwhile."""
    from chronex.daemon.reload import file_source
    from chronex.engine.update import Policy, apply_jobs

    if (edited.file.read_bytes() if edited.file.exists() else None) != edited.old:
        raise UsageError(
            f"{terminal_safe(str(edited.file))} was changed meanwhile by somebody else; nothing was changed"
        )
    with edited.written(new):
        changes = apply_jobs(
            session.store,
            found.jobs,
            session.store.now(),
            actor=str(session.actor),
            policy=Policy(found.settings.update_policy),
            owns=file_source(edited.source)._replace(groups=found.groups),
        )
    changed = sum(1 for change in changes if change.change.value != "preserved")
    out(f"applied: {changed} changed, {len(changes) - changed} unchanged")
    session.warn_without_daemon("nothing starts yet")


def _keep(text: bytes, file: Path) -> None:
    """What was typed is not thrown away."""
    import tempfile

    descriptor, name = tempfile.mkstemp(prefix="chronex-edit-", suffix=f"-{file.name}")
    with os.fdopen(descriptor, "wb") as kept:
        kept.write(text)
    err(f"your text is kept in {terminal_safe(name)}")
