"""Actions that change something: asked for here, carried out by the store, shown when the next snapshot tells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from chronex.engine.commands import Asker
from chronex.errors import ChronexError
from chronex.model.reasons import text_of
from chronex.storage.records import Ledger
from chronex_tui.actions import BY_ID, shell_command
from chronex_tui.asking import run_name
from chronex_tui.control import Told, cancel_runs, pause_jobs, replay_items, resume_jobs, trigger_jobs
from chronex_tui.messages import Arrived, Done
from chronex_tui.model.cells import shown
from chronex_tui.model.runs import state_of, took
from chronex_tui.model.snapshot import RunItem, RunKey
from chronex_tui.model.wording import count, full_stamp
from chronex_tui.screens.confirm import confirm
from chronex_tui.screens.menu import LETTERS, Choice, choose

if TYPE_CHECKING:
    from chronex_tui.app import ChronexApp

Wish = Callable[[Ledger, Asker], Told]
_MOST_LISTED = 8
_REPLAYABLE = ("failed", "failed_stale", "missed", "canceled", "dlq", "skipped", "completed")


class Acting:
    def __init__(self, app: ChronexApp) -> None:
        self.app, self.state = app, app.state
        self.asker = Asker.of_this_process("tui")
        self._undo: Callable[[], None] | None = None

    # -- carrying out -----------------------------------------------------------------------------------------

    def carry_out(self, wish: Wish, jobs: Sequence[str], word: str) -> None:
        """In a thread of its own; until the answer comes the rows say that it was asked for."""
        store, now = self.app.live.store, self.app.clock.wall_ms()
        if store is None:
            self.app.notify("there is no store to write to", severity="warning")
            return
        self.state.asked |= dict.fromkeys(jobs, word)
        self.app.board.update_all()

        def work() -> None:
            try:
                told = store.update(lambda tx: wish(Ledger(tx, now), self.asker))
                answer = Done(told.text, told.is_refused, tuple(jobs))
            except ChronexError as error:
                answer = Done(str(error), is_refused=True, jobs=tuple(jobs))
            self.app.post_message(Arrived(answer))

        self.app.run_worker(work, thread=True, group="acts", exit_on_error=False)

    def _targets(self) -> list[str]:
        """The marked jobs, else the one under the cursor."""
        if self.state.screen == "jobs" and self.state.marked:
            return sorted(self.state.marked)
        return [self.state.job] if self.state.job else []

    def _command(self, action: str) -> str:
        return shell_command(BY_ID[action], self.app.context())

    # -- jobs -------------------------------------------------------------------------------------------------

    def mark(self) -> None:
        """Add the job to the marked ones, or take it out, and go on to the next."""
        name = self.state.job
        if name is not None:
            self.state.marked ^= {name}
            self.app.board.update_all()

    def trigger(self) -> None:
        names = self._targets()
        facts = [(_named("Run", names, "now"), "bold")]
        busy = [row for row in self.state.snapshot.rows if row.job.id in names and row.is_running]
        facts += [
            (f"{row.job.id} runs already; its overlap policy is {row.job.overlap}.", "retry") for row in busy[:3]
        ]
        if not self.state.snapshot.daemon_lives:
            facts.append(("The daemon is stopped: it starts when a daemon runs again.", "retry"))

        def wish(ledger: Ledger, asker: Asker) -> Told:
            return trigger_jobs(ledger, names, asker)

        command = self._command("trigger") if len(names) == 1 else ""
        confirm(self.app, "Trigger", facts, command, lambda: self.carry_out(wish, names, "asked to run"))

    def pause(self) -> None:
        """No question: `u` takes it back."""
        names = self._targets()
        rows = {row.job.id: row for row in self.state.snapshot.rows}
        resumes = all(rows[name].is_paused for name in names if name in rows)
        (self._resume if resumes else self._pause)(names)

    def _pause(self, names: list[str]) -> None:
        self._undo = lambda: self._resume(names)
        self.carry_out(lambda ledger, asker: pause_jobs(ledger, names, asker), names, "pausing")

    def _resume(self, names: list[str]) -> None:
        self._undo = lambda: self._pause(names)
        self.carry_out(lambda ledger, asker: resume_jobs(ledger, names, asker), names, "resuming")

    def undo(self) -> None:
        undo, self._undo = self._undo, None
        if undo is None:
            self.app.notify("nothing to undo: only pause and resume can be taken back")
        else:
            undo()

    # -- runs -------------------------------------------------------------------------------------------------

    def cancel(self) -> None:
        state = self.state
        if state.screen == "runs":
            doomed = [item for item in state.snapshot.live if item.key == state.run]
        else:
            names = self._targets()
            doomed = [item for item in state.snapshot.live if item.key.job in names]
        if not doomed:
            return
        facts = [("Cancel what runs, and what waits for it? Its processes get TERM, then KILL.", "bold")]
        facts += [(self._told(item), "") for item in doomed[:_MOST_LISTED]]
        keys = [item.key for item in doomed]
        command = self._command("cancel") if len(keys) == 1 else ""

        def wish(ledger: Ledger, asker: Asker) -> Told:
            return cancel_runs(ledger, keys, asker)

        jobs = [key.job for key in keys]
        title = f"Cancel {count(len(keys), 'run')}"
        confirm(self.app, title, facts, command, lambda: self.carry_out(wish, jobs, "canceling"))

    def _told(self, item: RunItem) -> str:
        job = self.state.job_of(item.key.job)
        zone = self.state.look.zone_of(job) if job else self.state.look.board_zone
        spent = f", {took(item, self.state.now_ms)}" if item.started_ms else ""
        return f"{item.key.job}, scheduled for {full_stamp(item.key.nominal_ms, zone)}: {state_of(item)}{spent}"

    def replay(self) -> None:
        """On the Runs screen the run under the cursor; elsewhere one is chosen, or all dead letters of the job."""
        state = self.state
        chosen = state.run_item() if state.screen == "runs" else None
        if chosen is not None:
            self._replay([chosen])
            return
        name = state.job or ""
        ended = [item for item in (*state.history.dead, *state.history.items) if item.key.job == name]
        known: dict[RunKey, RunItem] = {}
        for item in ended:
            known.setdefault(item.key, item)
        bad = [item for item in known.values() if state_of(item) in _REPLAYABLE[:4]] or list(known.values())
        self._choose_replay(name, bad[:_MOST_LISTED], [item for item in state.history.dead if item.key.job == name])

    def _choose_replay(self, name: str, found: list[RunItem], dead: list[RunItem]) -> None:
        if not found:
            self.app.notify(f"{name} has no run that could be replayed")
            return
        choices = [Choice("a", "all", f"all {count(len(dead), 'dead letter')} of {name}")] if len(dead) > 1 else []
        letters = iter(letter for letter in LETTERS if letter != "a")
        by_letter: dict[str, RunItem] = {}
        for item in found:
            letter = next(letters)
            by_letter[letter] = item
            choices.append(Choice(letter, letter, self._told(item), shown(text_of(item.reason))))
        choose(self.app, f"Replay which run of {name}?", choices,
               lambda answer: self._replay(dead if answer == "all" else [by_letter[answer]]))  # fmt: skip

    def _replay(self, items: list[RunItem]) -> None:
        facts = [(f"Run {count(len(items), 'run')} again, at the old scheduled time?", "bold")]
        facts += [(self._told(item), "") for item in items[:_MOST_LISTED]]
        if len(items) > _MOST_LISTED:
            facts.append((f"and {len(items) - _MOST_LISTED} more", "dim"))
        live = [item for item in items if item.finished_ms is None and not item.is_dead]
        if live:
            self.app.notify("it still runs; cancel it first, or wait for its end", severity="warning")
            return

        def wish(ledger: Ledger, asker: Asker) -> Told:
            return replay_items(ledger, items, asker)

        names = sorted({item.key.job for item in items})
        command = f"chronex replay {run_name(items[0].key)}" if len(items) == 1 else ""
        confirm(self.app, "Replay", facts, command, lambda: self.carry_out(wish, names, "asked to run"))


def _named(verb: str, names: Sequence[str], rest: str) -> str:
    if len(names) <= 3:
        return f"{verb} {', '.join(names)} {rest}?"
    return f"{verb} {len(names)} jobs {rest}? {', '.join(names[:3])} and {len(names) - 3} more"
