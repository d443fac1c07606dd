"""apply, its dry run, and the way back to an earlier version."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from chronex.cli.acting import Desk, at_desk, duration_of, show
from chronex.cli.arguments import UsageError
from chronex.cli.jobs import load_or_tell, warn
from chronex.cli.places import store_path
from chronex.cli.terminal import err, inert
from chronex.cli.times import Zones, rfc3339, time_text, timed, zone_of
from chronex.engine.commands import Asker
from chronex.engine.update import Changed, Policy, Way, apply_jobs, roll_back
from chronex.engine.update.diff import DEFAULT_WINDOW_MS, of_no_trigger_file
from chronex.jobfile import JobFile
from chronex.storage.journal import head
from chronex.storage.ports import Store
from chronex.storage.records import Reading
from chronex.timing.zones import Zone
from chronex.views.apply_preview import Effect, Preview, preview
from chronex_store import LmdbStore, MemoryStore

# Of one kind of change of one job, so many lines are shown to people; programs get them all.
_MOST_LINES = 10


class Asked(NamedTuple):
    """What the user asked of `apply`."""

    file: str | None
    dry_run: bool = False
    policy: str = Policy.IMMEDIATE.value
    window: str | None = None
    days: int = 7
    fail_if_fires_now: bool = False
    basis: int | None = None
    store: str | None = None
    form: str = "text"


def run_apply(asked: Asked) -> int:
    """Bring the store to the job file; 2 when the file has a mistake, and then nothing changes."""
    window_ms = duration_of("--window", asked.window) or DEFAULT_WINDOW_MS
    found = load_or_tell(asked.file)
    if found is None:
        return 2
    warn(found)
    way = Way(Policy(asked.policy), window_ms, _owner(found))
    path = store_path(asked.store, os.environ)
    if asked.dry_run and not path.exists():
        return _foreseen(MemoryStore(), found, way, asked)  # looking makes no store
    with LmdbStore.open(path, create=not asked.dry_run) as store:
        return _foreseen(store, found, way, asked) if asked.dry_run else _apply(store, found, way, asked)


def _owner(found: JobFile) -> Any:
    """Trigger definitions own what came from the same file; a job file owns all that came from no such file."""
    path = Path(found.path)
    if path.suffix != ".json":
        return of_no_trigger_file
    source = str(path.resolve())
    return lambda job: job.source == source


def _apply(store: LmdbStore, found: JobFile, way: Way, asked: Asked) -> int:
    basis = asked.basis
    if basis is not None and basis > (last := store.view(head)):
        raise UsageError(f"--basis: the journal has come to {last} only; a dry run tells the number")
    if asked.fail_if_fires_now:
        before = store.view(lambda tx: preview(Reading(tx), found.jobs, store.now(), way, asked.days))
        if before.fires_now:
            _show_preview(before, asked, _zones(store, found))
            err("nothing was changed, because this would fire now")
            return 1
        basis = before.basis if basis is None else basis
    if basis is None:
        basis = store.view(head)
    changes = apply_jobs(
        store,
        found.jobs,
        store.now(),
        actor=str(Asker.of_this_process("cli")),
        policy=way.policy,
        window_ms=way.window_ms,
        basis=basis,
        owns=way.owns,
    )
    lines = [_line(change) for change in changes] or [f"there are no jobs in {found.path}"]
    show(asked.form, {"dry_run": False, "policy": asked.policy, "changes": _rows(changes)}, *lines)
    return 0


def _foreseen(store: Store, found: JobFile, way: Way, asked: Asked) -> int:
    seen = store.view(lambda tx: preview(Reading(tx), found.jobs, store.now(), way, asked.days))
    _show_preview(seen, asked, _zones(store, found))
    return 1 if seen.fires_now and asked.fail_if_fires_now else 0


def _zones(store: Store, found: JobFile) -> Callable[[str], Zone]:
    """Those of the jobs as they are to be; of one that goes, as it is."""
    wanted = {job.id: job for job in found.jobs}
    return lambda name: (
        zone_of(wanted[name]) if name in wanted else store.view(lambda tx: Zones(Reading(tx)).of(name))
    )


def _show_preview(seen: Preview, asked: Asked, zone: Callable[[str], Zone]) -> None:
    value = {
        "dry_run": True,
        "policy": asked.policy,
        "days": asked.days,
        "basis": seen.basis,
        "fires_now": seen.fires_now,
        "changes": _rows(seen.changes),
        "effects": [_effect_dict(effect) for effect in seen.effects],
    }
    effects = {effect.job: effect for effect in seen.effects}
    lines: list[str] = []
    for change in seen.changes:
        lines.append(_line(change))
        if change.job in effects:
            lines += _effect_lines(effects[change.job], zone(change.job))
    if seen.fires_now:
        lines.append("FIRES NOW: this edit starts runs at once")
    show(asked.form, value, *lines, f"nothing was changed; to apply exactly this: --basis {seen.basis}")


def _line(change: Changed) -> str:
    return f"{change.change.value:10} {change.job}"


def _rows(changes: Iterable[Changed]) -> list[dict[str, Any]]:
    return [{"job": c.job, "change": c.change.value, "version": c.version or None} for c in changes]


def _effect_dict(effect: Effect) -> dict[str, Any]:
    def times(one: Any) -> dict[str, Any]:
        return {**timed("nominal", one.nominal_ms), **timed("due", one.due_ms), **timed("latest", one.latest_ms)}

    return {
        "job": effect.job,
        **timed("until", effect.until_ms),
        "added": [times(one) for one in effect.added],
        "removed": [times(one) for one in effect.removed],
        "moved": [{"from": times(pair.before), "to": times(pair.after)} for pair in effect.moved],
        "fires_now": [rfc3339(one.nominal_ms) for one in effect.fires_now],
        "fires_now_ms": [one.nominal_ms for one in effect.fires_now],
    }


def _effect_lines(effect: Effect, zone: Zone) -> list[str]:
    def at(ms: int) -> str:
        return time_text(ms, zone)

    kinds = {
        "fires now": [f"the instant of {at(one.nominal_ms)}" for one in effect.fires_now],
        "moved": [f"{at(pair.before.due_ms)} -> {at(pair.after.due_ms)}" for pair in effect.moved],
        "removed": [at(one.due_ms) for one in effect.removed],
        "added": [at(one.due_ms) for one in effect.added],
    }
    lines: list[str] = []
    for kind, shown in kinds.items():
        lines += [f"  {kind:9} {text}" for text in shown[:_MOST_LINES]]
        if len(shown) > _MOST_LINES:
            lines.append(f"  {kind:9} … {len(shown) - _MOST_LINES} more until {at(effect.until_ms)}")
    return lines


def run_rollback(job: str, version: int, store: str | None, form: str) -> int:
    def work(desk: Desk) -> int:
        changed = roll_back(desk.store, job, version, desk.store.now(), str(desk.asker))
        if changed.version == version:
            text = f"{inert(job)} is at version {version} already"
        else:
            text = (
                f"{changed.change.value:10} {job}: version {changed.version} has the definition of version {version}"
            )
        show(form, {"changes": _rows([changed])}, text)
        if changed.version != version:
            err("the job file still says otherwise: the next apply of it, or restart of the daemon, goes by the file")
        return 0

    return at_desk(store, work)
