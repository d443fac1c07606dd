"""`chronex apply`: bring the store to the job file, preview that, or go back to an earlier version of a job."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from chronex.cli.options import (
    Config,
    Form,
    StorePath,
    UsageError,
    check_format,
    choose,
    read_duration,
    store_location,
)
from chronex.cli.output import JobZones, ask, err, hinted, is_answered, print_result, zone_of
from chronex.cli.update_output import (
    change_line,
    change_rows,
    change_word,
    effect_json,
    group_change_line,
    group_change_rows,
    lost_of,
    preview_lines,
)
from chronex.text.terminal import terminal_safe

if TYPE_CHECKING:
    from chronex.cli.store_session import StoreSession
    from chronex.engine.update import Changed, UpdateOptions
    from chronex.jobfile import JobFile
    from chronex.storage.ports import Store
    from chronex.timing.zones import Zone
    from chronex.views.apply_preview import Preview
    from chronex_store.opening import OpenedStore


def apply(
    file: Annotated[
        str | None,
        typer.Argument(
            help="A job file, a directory of them, or trigger definitions in JSON (default: as for run).",
            metavar="FILE",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what it would do to the coming days.")] = False,
    policy: Annotated[
        str | None,
        typer.Option(
            help="When edits take effect: immediate, graceful or windowed (default: the file's).", metavar="POLICY"
        ),
    ] = None,
    window: Annotated[
        str | None, typer.Option(help="How far windowed reaches (default: 30d).", metavar="DURATION")
    ] = None,
    days: Annotated[int, typer.Option(help="How many days --dry-run looks ahead.", metavar="N", min=1, max=366)] = 7,
    fail_if_fires_now: Annotated[
        bool, typer.Option("--fail-if-fires-now", help="Change nothing and exit 1 if an edit would start a run.")
    ] = False,
    prune: Annotated[
        bool,
        typer.Option("--prune", help="Remove what the file has no more, even if that is most of its jobs."),
    ] = False,
    basis: Annotated[
        int | None,
        typer.Option(help="The number that --dry-run printed: refuse if jobs were changed since.", metavar="NUMBER"),
    ] = None,
    rollback: Annotated[
        tuple[str, int] | None,
        typer.Option(help="Give a job an earlier version's definition.", metavar="JOB VERSION"),
    ] = None,
    config: Config = None,
    store: StorePath = None,
    form: Form = "text",
) -> int:
    """Bring the jobs of the store to what the job file says. Exit 2: the file has a mistake, nothing changed.

    Example: chronex apply chronex.toml --dry-run
    """
    check_format(form)
    if policy is not None:
        choose("--policy", policy, ("immediate", "graceful", "windowed"))
    if rollback is not None:
        return run_rollback(*rollback, store, form)
    options = ApplyOptions(
        file=file or config, dry_run=dry_run, policy=policy, window=window, days=days,
        fail_if_fires_now=fail_if_fires_now, basis=basis, store=store, form=form, prune=prune,
    )  # fmt: skip
    return run_apply(options)


class ApplyOptions(NamedTuple):
    file: str | None
    dry_run: bool = False
    policy: str | None = None
    window: str | None = None
    days: int = 7
    fail_if_fires_now: bool = False
    basis: int | None = None
    store: str | None = None
    form: str = "text"
    prune: bool = False


def run_apply(options: ApplyOptions) -> int:
    """Bring the store to the job file; 2 when the file has a mistake, and then nothing changes."""
    from chronex.cli.job_file import load_or_report, print_warnings, refuse_what_needs_root
    from chronex.cli.store_session import StoreSession
    from chronex.daemon.reload import file_source
    from chronex.engine.update import Policy, UpdateOptions
    from chronex.engine.update.diff import DEFAULT_WINDOW_MS
    from chronex_store import MemoryStore
    from chronex_store.opening import open_location

    window_ms = read_duration("--window", options.window) or DEFAULT_WINDOW_MS
    found = load_or_report(options.file)
    if found is None:
        return 2
    refuse_what_needs_root(found)
    print_warnings(found)
    policy = Policy(options.policy or found.settings.update_policy)
    how = UpdateOptions(policy, window_ms, file_source(Path(found.path))._replace(groups=found.groups))
    options = options._replace(policy=policy.value)
    location = store_location(options.store)
    if options.dry_run and isinstance(location, Path) and not location.exists():
        return _preview(MemoryStore(), found, how, options)  # a preview creates no store
    with open_location(location, create=not options.dry_run) as store:
        _say_zone_of_shell(store, found)
        if options.dry_run:
            return _preview(store, found, how, options)
        code = _apply(store, found, how, options)
        if code == 0 and options.form == "text":
            _say_how_to_start(StoreSession(location, store), options)
        return code


def _say_zone_of_shell(store: OpenedStore, found: JobFile) -> None:
    """TZ of this shell may be another zone than the one in which the scheduler and other shells read the file."""
    from chronex.storage.records import Reading
    from chronex.timing.zones import host_zone, machine_zone, utc_zone

    shell, machine = host_zone().zone.name, (machine_zone() or utc_zone()).name
    if "TZ" not in os.environ or shell == machine:
        return
    old = store.view(lambda tx: {job.id: (job.schedule, job.timezone) for job in Reading(tx).jobs()})
    moved = [job for job in found.jobs if job.timezone == shell and old.get(job.id, ("", shell))[1] != shell]
    moved = [job for job in moved if old[job.id][0] == job.schedule]
    if not moved:
        return
    first, before = terminal_safe(moved[0].id), old[moved[0].id][1]
    more = f" and {len(moved) - 1} more" if len(moved) > 1 else ""
    err(
        f"{first}{more}: read in {shell}, the TZ of this shell, and not in {before} as before; "
        f'timezone = "{before}" under [scheduler] of the job file keeps them there, whoever applies it'
    )


def _say_how_to_start(session: StoreSession, options: ApplyOptions) -> None:
    """Jobs in a store start only while a daemon works on it, and nothing else here says so."""
    if not session.has_daemon:
        # A daemon is started from anywhere, so its job file is named in full.
        file = ["--config", str(Path(options.file).absolute())] if options.file else []
        command = shlex.join(["chronex", "run", *file, *_named(options._replace(file=None))])
        err(terminal_safe(f"no daemon runs on this store, so nothing starts yet; start one with: {command}"))


def _named(options: ApplyOptions) -> list[str]:
    """The job file and the store as they were named; the address of a database may hold a password."""
    words = [options.file] if options.file else []
    is_directory = options.store is not None and isinstance(store_location(options.store), Path)
    return [*words, *(["--store", str(Path(str(options.store)).absolute())] if is_directory else [])]


def _apply(store: OpenedStore, found: JobFile, how: UpdateOptions, options: ApplyOptions) -> int:
    from chronex.storage.journal import head
    from chronex.storage.records import Reading
    from chronex.views.apply_preview import preview
    from chronex.views.source_changes import changed_groups

    basis = options.basis
    if basis is not None and basis > (last := store.view(head)):
        raise UsageError(f"--basis: the journal has come to {last} only; a dry run tells the number")
    if options.fail_if_fires_now:
        before = store.view(lambda tx: preview(Reading(tx), found.jobs, store.now(), how, options.days))
        if before.fires_now:
            _print_preview(before, options, _zones(store, found))
            err("nothing was changed, because this would fire now")
            return 1
        basis = before.basis if basis is None else basis
    if basis is None:
        basis = store.view(head)
    groups = store.view(lambda tx: changed_groups(Reading(tx), found.jobs, how.owns))
    changes = _written(store, found, how, basis, prune=options.prune)
    if changes is None:
        err("nothing was changed")
        return 1
    print_result(
        options.form,
        lambda: {
            "dry_run": False,
            "policy": options.policy,
            "changes": change_rows(changes),
            "groups": group_change_rows(groups),
        },
        lambda: (
            [*map(change_line, changes), *map(group_change_line, groups)] or [f"there are no jobs in {found.path}"]
        ),
    )
    return 0


def _written(
    store: OpenedStore, found: JobFile, how: UpdateOptions, basis: int, *, prune: bool
) -> list[Changed] | None:
    """The changes; None where most jobs would go and the answer was no. Without a terminal that is an error."""
    from chronex.daemon.reload import file_source
    from chronex.engine.commands import Actor
    from chronex.engine.update import apply_jobs
    from chronex.errors import PruneError

    owner = file_source(Path(found.path))._replace(groups=found.groups)

    def write(*, may_prune: bool) -> list[Changed]:
        return apply_jobs(
            store,
            found.jobs,
            store.now(),
            actor=str(Actor.of_this_process("cli")),
            policy=how.policy,
            window_ms=how.window_ms,
            basis=basis,
            owns=owner._replace(may_prune=may_prune),
        )

    try:
        return write(may_prune=prune)
    except PruneError as error:
        if not is_answered():
            raise
        question = f"this removes {error.removed} of {error.had} jobs of {error.source}; remove them?"
        return write(may_prune=True) if ask(question) else None


def _preview(store: Store, found: JobFile, how: UpdateOptions, options: ApplyOptions) -> int:
    from chronex.storage.records import Reading
    from chronex.views.apply_preview import preview

    seen = store.view(lambda tx: preview(Reading(tx), found.jobs, store.now(), how, options.days))
    _print_preview(seen, options, _zones(store, found))
    return 1 if seen.fires_now and options.fail_if_fires_now else 0


def _zones(store: Store, found: JobFile) -> Callable[[str], Zone]:
    """The zones of the jobs as they will be; of a job that is removed, as it is."""
    from chronex.storage.records import Reading

    desired = {job.id: job for job in found.jobs}
    return lambda name: (
        zone_of(desired[name]) if name in desired else store.view(lambda tx: JobZones(Reading(tx)).of(name))
    )


def _print_preview(seen: Preview, options: ApplyOptions, zone: Callable[[str], Zone]) -> None:
    print_result(options.form, lambda: _preview_json(seen, options), lambda: _preview_lines(seen, options, zone))


def _preview_json(seen: Preview, options: ApplyOptions) -> dict[str, Any]:
    return {
        "dry_run": True,
        "policy": options.policy,
        "days": options.days,
        "basis": seen.basis,
        "fires_now": seen.fires_now,
        "needs_prune": lost_of(seen.changes).are_most,
        "changes": change_rows(seen.changes),
        "groups": group_change_rows(seen.groups),
        "effects": [effect_json(effect) for effect in seen.effects],
    }


def _preview_lines(seen: Preview, options: ApplyOptions, zone: Callable[[str], Zone]) -> Iterator[str]:
    yield from preview_lines(seen, zone)
    losses = lost_of(seen.changes)
    if losses.are_most:
        yield f"REMOVES {losses.removed} of {losses.had} jobs: to apply this, say --prune"
    prune = ["--prune"] if losses.are_most else []
    command = hinted(shlex.join(["chronex", "apply", *_named(options), *prune, "--basis", str(seen.basis)]))
    yield terminal_safe(f"dry run: nothing was changed; to apply exactly this: {command}")


def run_rollback(job: str, version: int, store: str | None, form: str) -> int:
    from chronex.cli.store_session import open_session
    from chronex.engine.update import roll_back

    with open_session(store) as session:
        changed = roll_back(session.store, job, version, session.store.now(), str(session.actor))
        if changed.version == version:
            line = f"{terminal_safe(job)} is at version {version} already"
        else:
            line = (
                f"{change_word(changed):10} {job}: version {changed.version} has the definition of version {version}"
            )
        print_result(form, lambda: {"changes": change_rows([changed])}, lambda: [line])
        if changed.version != version:
            err("the job file still says otherwise: the next apply of it, or restart of the daemon, goes by the file")
        return 0
