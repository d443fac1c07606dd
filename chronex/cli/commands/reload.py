"""`chronex reload`: have the running daemon read its job file again."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from chronex.cli.options import Form, StorePath, check_format
from chronex.cli.output import err, print_result
from chronex.text.terminal import terminal_safe

if TYPE_CHECKING:
    from chronex.cli.store_session import StoreSession
    from chronex.model.event import Event

_ANSWERS_WITHIN_MS = 600_000  # a hundred thousand jobs take a while
_REPORT_EVERY_MS = 10_000
_ANSWERS = ("ConfigurationApplied", "ConfigurationRejected")
_CHANGES = {"new": "new", "overridden": "changed", "orphaned": "removed", "preserved": "unchanged"}


def reload(store: StorePath = None, form: Form = "text") -> int:
    """Have the daemon apply its job file again: all of it or nothing. Exit 1: refused, and the old jobs go on.

    Example: chronex reload
    """
    check_format(form)
    return run_reload(store, form)


def run_reload(store: str | None, form: str) -> int:
    from chronex.cli.store_session import open_session

    with open_session(store) as session:
        answer = _ask(session)
        if answer is None:
            return 1
        if answer.name == "ConfigurationRejected":
            problem = str(answer.data.get("error", "refused"))
            others = int(answer.data.get("problems", 1)) - 1
            more = f" (and {others} more; chronex lint shows all)" if others > 0 else ""
            err(terminal_safe(f"not applied, and the daemon goes on with the jobs it has: {problem}{more}"))
            return 1
        print_result(form, lambda: {"applied": True, **_counts(answer)}, lambda: [_line(answer)])
        return 0


def _ask(session: StoreSession) -> Event | None:
    """Send the signal and wait for what the daemon writes into the journal; None without a daemon or an answer."""
    import signal

    from chronex.run.process import signal_process
    from chronex.storage.journal import head

    pid = session.daemon_pid
    nodes = session.read(lambda reading: reading.nodes())
    node = next((one for one in nodes if one.process.pid == pid and one.stopped_ms is None), None)
    if pid is None or node is None:
        err("no daemon runs on this store; apply the file with: chronex apply")
        return None
    since = session.store.view(head)
    signal_process(node.process, signal.SIGHUP)
    answer = _answer(session, since)
    if answer is None:
        err(f"process {pid} was asked to read its job file again and has not answered; look at its log")
    return answer


def _answer(session: StoreSession, since: int) -> Event | None:
    from chronex.storage.journal import tail

    began = reported = session.store.now()
    while session.daemon_pid is not None and session.store.now() - began < _ANSWERS_WITHIN_MS:
        seen = session.store.wait(-1, 0)
        while page := session.store.view(partial(tail, after=since)):
            since = page[-1][0]
            for _, event in page:
                if event.name in _ANSWERS:
                    return event
        if session.store.now() - reported >= _REPORT_EVERY_MS:
            reported = session.store.now()
            err("waiting for the daemon")
        session.store.wait(seen, 1.0)
    return None


def _counts(answer: Event) -> dict[str, Any]:
    return {word: int(answer.data.get(key, 0)) for key, word in _CHANGES.items()}


def _line(answer: Event) -> str:
    counts = ", ".join(f"{count} {word}" for word, count in _counts(answer).items() if count)
    restart = answer.data.get("restart_for")
    also = f"; {restart} of [scheduler] needs: chronex restart" if restart else ""
    return f"applied: {counts or 'no jobs'}{also}"
