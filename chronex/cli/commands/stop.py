"""`chronex stop` and `chronex restart`: end the daemon of a store, or replace it; commands go on unless told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from chronex.cli.options import Form, StorePath, UsageError, check_format, read_duration
from chronex.cli.output import err, print_result
from chronex.text.terminal import terminal_safe

if TYPE_CHECKING:
    from collections.abc import Callable

    from chronex.cli.store_session import StoreSession
    from chronex.model.records import Node
    from chronex.storage.records import Reading, Records

_ANSWERS_WITHIN_MS = 60_000
# A daemon that begins is on record soon; a service manager may begin a new one where the old one has ended.
_BEGINS_WITHIN_MS = 10_000
_REPORT_EVERY_MS = 10_000
_POLL_S = 0.2


def stop(
    leave: Annotated[bool, typer.Option("--leave", help="Commands go on; the next daemon takes them up.")] = False,
    drain: Annotated[bool, typer.Option("--drain", help="Begin nothing, and wait for what runs.")] = False,
    cancel: Annotated[bool, typer.Option("--cancel", help="Stop what runs: TERM, then KILL.")] = False,
    duration: Annotated[
        str | None,
        typer.Option("--for", help="Drain for at most this long; what still runs then goes on.", metavar="DURATION"),
    ] = None,
    store: StorePath = None,
    form: Form = "text",
) -> int:
    """Stop the daemon; commands go on unless it is told otherwise. Without an option, as `[scheduler] on_stop` says.

    Example: chronex stop --drain --for 10m
    """
    check_format(form)
    given = [name for name, is_given in (("leave", leave), ("drain", drain), ("cancel", cancel)) if is_given]
    if len(given) > 1:
        raise UsageError(f"--{given[0]} and --{given[1]} exclude each other; choose one")
    within_ms = read_duration("--for", duration)
    if within_ms is not None and given != ["drain"]:
        raise UsageError("--for is for --drain: chronex stop --drain --for 10m")
    return run_stop(given[0] if given else "", within_ms, store, form)


def restart(store: StorePath = None, form: Form = "text") -> int:
    """Replace the daemon by a new one, of the version that is installed now. Commands go on, and no instant is lost.

    Example: chronex restart
    """
    check_format(form)
    return run_restart(store, form)


def run_stop(mode: str, within_ms: int | None, store: str | None, form: str) -> int:
    """0 when no daemon runs any more; 1 when it has not answered."""
    from chronex.cli.store_session import open_session

    with open_session(store) as session:
        node = _ask(session, mode, within_ms)
        if node is None:
            print_result(form, lambda: {"stopped": False, "running": 0}, lambda: ["no daemon runs on this store"])
            return 0
        # A drain may take as long as what it waits for; everything else is over soon.
        limit_ms = None if mode == "drain" and within_ms is None else _ANSWERS_WITHIN_MS + (within_ms or 0)
        if not _until(session, node, lambda: session.daemon_pid is None, limit_ms):
            err(f"process {node.process.pid} has been asked to stop and has not ended; look at its log")
            return 1
        running = _running(session, node)
        print_result(form, lambda: {"stopped": True, "running": len(running)}, lambda: _stopped_lines(running))
        return 0


def run_restart(store: str | None, form: str) -> int:
    """0 when the new daemon works; 1 when there is none."""
    from chronex.cli.store_session import open_session
    from chronex.engine.commands.nodes import RESTART
    from chronex.run import is_alive
    from chronex.views.troubles import start_command

    with open_session(store) as session:
        asked_ms = session.store.now()
        before = _ask(session, RESTART, None)
        if before is None:
            err(terminal_safe(f"no daemon runs on this store; start one with: {session.read(start_command)}"))
            return 1
        found: list[Node] = []

        def has_answer() -> bool:
            nodes = session.read(lambda reading: reading.nodes())
            found[:] = [
                one for one in nodes if follows(one, before, asked_ms) or (one.id == before.id and one.stop_refused)
            ]
            return bool(found)

        if not _until(session, before, has_answer, _ANSWERS_WITHIN_MS, lambda: not is_alive(before.process)):
            err("no new daemon has begun; look at the log of the old one, and run: chronex status")
            return 1
        if found[0].id == before.id:
            err(f"not restarted, and the daemon goes on as it is: {terminal_safe(found[0].stop_refused)}")
            return 1
        took_ms = max(0, found[0].started_ms - asked_ms)
        running = _running(session, before)
        print_result(form, lambda: _json(took_ms, running), lambda: [_back(took_ms, running)])
        return 0


def _ask(session: StoreSession, mode: str, within_ms: int | None) -> Node | None:
    """Write the request down, then send the signal; None where no daemon runs."""
    import signal

    from chronex.engine import commands
    from chronex.run.process import signal_process

    pid = _daemon_that_stays(session)
    if pid is None:
        return None

    def ask(records: Records) -> tuple[Node, bool]:
        """The node, and whether the request is new: a restart that another has asked for already is waited for."""
        before = {one.id: one.stop_asked_ms for one in records.nodes()}
        asked = commands.ask_to_stop(records, pid, mode, within_ms, session.actor)
        return asked, before.get(asked.id) != asked.stop_asked_ms

    node, is_new = session.change(ask)
    if is_new:
        signal_process(node.process, signal.SIGTERM)
    return node


def _daemon_that_stays(session: StoreSession) -> int | None:
    """The daemon's process. While one takes the place of another there is none for a moment: that is waited for."""
    import time

    began_ms = session.store.now()
    while _is_changing(session) and session.store.now() - began_ms < _BEGINS_WITHIN_MS:
        time.sleep(_POLL_S)
    return session.daemon_pid


def _is_changing(session: StoreSession) -> bool:
    """A process holds the store and is on record as no working daemon, or has left it in order to begin anew."""
    from chronex.engine.commands.nodes import RESTART
    from chronex.run import is_alive

    pid, nodes = session.daemon_pid, session.read(lambda reading: reading.nodes())
    if pid is not None:
        return not any(one.process.pid == pid and one.stopped_ms is None for one in nodes)
    return any(one.stop_mode == RESTART and one.stopped_ms is not None and is_alive(one.process) for one in nodes)


def _never() -> bool:
    return False


def _until(
    session: StoreSession,
    node: Node,
    is_over: Callable[[], bool],
    limit_ms: int | None,
    is_hopeless: Callable[[], bool] = _never,
) -> bool:
    """Wait, and say from time to time what for; not for long where it `is_hopeless`."""
    import time

    began = reported = session.store.now()
    while not is_over():
        now = session.store.now()
        if limit_ms is not None and now - began > limit_ms:
            return False
        if is_hopeless() and (limit_ms is None or now - began < limit_ms - _BEGINS_WITHIN_MS):
            began, limit_ms = now, _BEGINS_WITHIN_MS
        if now - reported >= _REPORT_EVERY_MS:
            reported = now
            err(f"waiting for {', '.join(_running(session, node)) or 'the daemon'}")
        time.sleep(_POLL_S)
    return True


def follows(node: Node, before: Node, asked_ms: int) -> bool:
    """Whether the node has taken the place of the one that was asked: others begin elsewhere, and programs here."""
    if node.id == before.id or node.stopped_ms is not None:
        return False
    if (node.host_id, node.program) != (before.host_id, before.program):
        return False
    return node.started_ms >= (asked_ms if before.lease_ms else before.started_ms)


def _running(session: StoreSession, node: Node) -> list[str]:
    """The jobs that run on the machine of this node."""
    return session.read(lambda reading: running_with(reading, node))


def running_with(reading: Reading, node: Node) -> list[str]:
    here = {one.id for one in reading.nodes() if one.host_id == node.host_id} if node.lease_ms else None
    return sorted({one.job for one in reading.active_attempts() if here is None or one.owner in here})


def _stopped_lines(running: list[str]) -> list[str]:
    if not running:
        return ["stopped"]
    return [f"stopped; {', '.join(running)}: still running, and taken up by the next daemon"]


def _back(took_ms: int, running: list[str]) -> str:
    kept = f"; {', '.join(running)}: ran on meanwhile" if running else ""
    return f"restarted in {took_ms / 1000:.2f} s{kept}"


def _json(took_ms: int, running: list[str]) -> dict[str, Any]:
    return {"restarted": True, "took_ms": took_ms, "running": len(running)}
