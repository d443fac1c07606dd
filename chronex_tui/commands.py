"""The actions that change the store: confirmed where the table of actions says so, run in a thread, one update each.

The functions of `chronex.engine.commands` do the work, as they do for the commands of the shell; the journal records
that the dashboard called them. A row shows what was requested until the next snapshot shows what came of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from chronex.engine.commands import Actor, TriggerAnswer, cancel, pause, replay, replay_dead_letter, resume, trigger
from chronex.engine.commands.nodes import drain_node
from chronex.errors import ChronexError, NotPossibleError
from chronex.jobfile.keymap import BY_ID
from chronex.model.occurrence import Occurrence
from chronex.model.reasons import shown_text, words_of
from chronex.model.states import RunState
from chronex.storage.records import Records
from chronex.storage.scopes import WHOLE, of_jobs
from chronex.text.terminal import cell_safe
from chronex_tui.data import CommandDone, DataArrived, Worker
from chronex_tui.model.available_actions import shell_command
from chronex_tui.model.display import count, full_stamp, have_seconds, word
from chronex_tui.model.runs_table import run_name, state_of, took
from chronex_tui.model.snapshot import RunItem, RunKey
from chronex_tui.screens.dialogs import LETTERS, Choice, choose, confirm

if TYPE_CHECKING:
    from chronex_tui.app import ChronexApp
    from chronex_tui.view_actions import Handler

_MOST_LISTED = 8
# The states whose runs are offered first when a run to replay is chosen.
_UNSUCCESSFUL = ("failed", "failed_stale", "missed", "canceled")


class CommandResult(NamedTuple):
    """What came of a command, in one sentence."""

    text: str
    is_refused: bool = False


StoreWork = Callable[[Records, Actor], CommandResult]


@dataclass(frozen=True, slots=True)
class StoreCommand:
    """One change of the store, ready to be confirmed and run."""

    action: str  # its id in the table of actions, which says whether a dialog asks first
    jobs: tuple[str, ...]
    pending: str  # what the rows of these jobs show until the store has answered
    work: StoreWork
    title: str = ""  # of the dialog
    facts: tuple[tuple[str, str], ...] = ()  # sentences of the dialog, each with a style
    shell_command: str = ""


class StoreCommands:
    """The handlers of all actions that write."""

    def __init__(self, app: ChronexApp) -> None:
        self.app, self.state = app, app.state
        self.actor = Actor.of_this_process("tui")
        self._undo: Callable[[], None] | None = None
        self._wanted: dict[str, bool] = {}  # whether a job is to be paused
        self._writer = Worker("chronex-writer", self._failed)
        self._count = 0
        self.handlers: dict[str, Handler] = {
            "trigger": self.trigger,
            "pause": self.pause_or_resume,
            "undo": self.undo,
            "replay": self.replay,
            "cancel": self.cancel,
            "drain": self.drain,
        }

    # -- confirming and running -------------------------------------------------------------------------------

    def start(self, command: StoreCommand) -> None:
        """Run the command, after a confirmation where its action asks for one."""
        self.app.last_command = command.shell_command
        if BY_ID[command.action].asks:
            confirm(self.app, command.title, command.facts, command.shell_command, lambda: self._run(command))
        else:
            self._run(command)

    def close(self) -> None:
        """What was requested is still written."""
        self._writer.close(finishes=True)

    def _run(self, command: StoreCommand) -> None:
        """In a thread, because an update waits for other writers; in the order in which the keys were pressed.

        The answer arrives as a message.
        """
        store, now = self.app.live.store, self.app.clock.wall_ms()
        if store is None:
            self.app.notify("there is no store to write to", severity="warning")
            return
        self.state.pending |= dict.fromkeys(command.jobs, command.pending)
        self.app.board.update_all()

        def work() -> None:
            try:
                scope = of_jobs(*command.jobs) if command.jobs else WHOLE
                result = store.update(lambda tx: command.work(Records(tx, now), self.actor), scope=scope)
                done = CommandDone(result.text, result.is_refused, command.jobs)
            except ChronexError as error:
                for name in command.jobs:
                    self._wanted.pop(name, None)
                done = CommandDone(str(error), is_refused=True, jobs=command.jobs)
            self.app.post_message(DataArrived(done))

        self._count += 1
        self._writer.submit(str(self._count), work)  # a kind of its own: none replaces another

    def _failed(self, error: Exception) -> None:
        sentence = f"this should not have happened ({type(error).__name__}: {error}); nothing was changed"
        self.app.post_message(DataArrived(CommandDone(sentence, is_refused=True)))

    def _selected_jobs(self) -> list[str]:
        """The marked jobs, else the one under the cursor."""
        if self.state.screen == "jobs" and self.state.marked:
            return sorted(name for name in self.state.marked if self.state.row(name) is not None)
        name = self.app.context().job
        return [name] if name else []

    def _shell_command(self, action: str, targets: Sequence[Mapping[str, object]]) -> str:
        """The same from a shell, where a command has one target: so several are several commands, if they are few.

        A target says what of the context it replaces.
        """
        if len(targets) > _MOST_LISTED:
            return ""
        context = self.app.context()
        contexts = [dataclasses.replace(context, **target) for target in targets]  # type: ignore[arg-type]
        return " && ".join(shell_command(BY_ID[action], one) for one in contexts)

    # -- jobs -------------------------------------------------------------------------------------------------

    def trigger(self) -> None:
        names = self._selected_jobs()
        facts = [(_question("Run", names, "now"), "bold")]
        running = [row for row in self.state.snapshot.rows if row.job.id in names and row.is_running]
        facts += [
            (f"{row.job.id} runs already; its overlap policy is {row.job.overlap}.", "retry") for row in running[:3]
        ]
        if not self.state.snapshot.is_daemon_alive:
            facts.append(("The daemon is stopped: it starts when a daemon runs again.", "retry"))
        self.start(
            StoreCommand(
                "trigger",
                tuple(names),
                "asked to run",
                lambda records, actor: trigger_jobs(records, names, actor),
                "Trigger",
                tuple(facts),
                self._shell_command("trigger", [{"job": name} for name in names]),
            )
        )

    def pause_or_resume(self) -> None:
        """Resume when all selected jobs are paused, else pause those that are not; `undo` reverses exactly that."""
        names = self._selected_jobs()
        active = [name for name in names if not self._is_paused(name)]
        if active:
            self._pause(dict.fromkeys(active))
        elif names:
            self._resume(names)

    def _is_paused(self, name: str) -> bool:
        """As was last requested here, until a snapshot shows it so."""
        row = self.state.row(name)
        is_shown = row is not None and row.is_paused
        if self._wanted.get(name) == is_shown:
            del self._wanted[name]
        return self._wanted.get(name, is_shown)

    def _pause(self, until: Mapping[str, int | None]) -> None:
        """`until` says for each job when its pause ends, if that is known."""
        self._undo = lambda: self._resume(list(until))
        self._wanted |= dict.fromkeys(until, True)
        self.start(
            StoreCommand(
                "pause",
                tuple(until),
                "pausing",
                lambda records, actor: pause_jobs(records, until, actor),
                shell_command=self._shell_command("pause", [{"job": name, "is_paused": False} for name in until]),
            )
        )

    def _resume(self, names: list[str]) -> None:
        rows = [row for name in names if (row := self.state.row(name)) is not None]
        until = {row.job.id: row.job.progress.paused_until_ms for row in rows}
        self._undo = lambda: self._pause(until)
        self._wanted |= dict.fromkeys(names, False)
        self.start(
            StoreCommand(
                "pause",
                tuple(names),
                "resuming",
                lambda records, actor: resume_jobs(records, names, actor),
                shell_command=self._shell_command("pause", [{"job": name, "is_paused": True} for name in names]),
            )
        )

    def undo(self) -> None:
        undo, self._undo = self._undo, None
        if undo is None:
            self.app.notify("nothing to undo: only a pause or a resume can be undone")
        else:
            undo()

    # -- runs -------------------------------------------------------------------------------------------------

    def cancel(self) -> None:
        items = self._cancelable()
        keys = [item.key for item in items]
        if not keys:
            return
        question = "Cancel what runs, and what waits for it? Its processes get TERM, then KILL."
        facts = [(question, "bold"), *self._described(items)]
        self.start(
            StoreCommand(
                "cancel",
                tuple(key.job for key in keys),
                "canceling",
                lambda records, actor: cancel_runs(records, keys, actor),
                f"Cancel {count(len(keys), 'run')}",
                tuple(facts),
                self._shell_command("cancel", [{"live_run": run_name(key)} for key in keys]),
            )
        )

    def drain(self) -> None:
        """The node under the cursor begins nothing more, or begins again."""
        row = self.state.node_row()
        if row is None:
            return
        name, draining = row.node.id, not row.node.draining
        question = f"Let {name} begin {'nothing more' if draining else 'work again'}?"
        self.start(
            StoreCommand(
                "drain",
                (),
                "",
                lambda records, actor: drain_named(records, name, actor, draining=draining),
                "Drain" if draining else "Undrain",
                ((question, "bold"), ("What runs there goes on.", "")),
                self._shell_command("drain", [{}]),
            )
        )

    def _cancelable(self) -> list[RunItem]:
        """On the Runs screen the run under the cursor, elsewhere all live runs of the selected jobs."""
        live = self.state.snapshot.live
        if self.state.screen == "runs":
            return [item for item in live if item.key == self.state.run]
        names = self._selected_jobs()
        return [item for item in live if item.key.job in names]

    def _described(self, items: Sequence[RunItem]) -> list[tuple[str, str]]:
        """Each on a line of a question, and how many more there are."""
        is_exact = have_seconds(item.key.nominal_ms for item in items)
        facts = [
            (f"{item.key.job}, scheduled for {self._when_and_how(item, is_exact=is_exact)}", "")
            for item in items[:_MOST_LISTED]
        ]
        return [*facts, *[(f"and {len(items) - _MOST_LISTED} more", "dim")] * (len(items) > _MOST_LISTED)]

    def _when_and_how(self, item: RunItem, *, is_exact: bool) -> str:
        job = self.state.job_of(item.key.job)
        zone = self.state.display.zone_of(job) if job else self.state.display.board_zone
        spent = f", {took(item, self.state.display)}" if item.started_ms else ""
        when = full_stamp(item.key.nominal_ms, zone, is_exact=is_exact, now_ms=self.state.now_ms)
        return f"{when}: {word(state_of(item))}{spent}"

    def replay(self) -> None:
        """On the Runs screen the run under the cursor; elsewhere one is chosen, or all dead letters of the job."""
        selected = self.state.run_item() if self.state.screen == "runs" else None
        if selected is not None:
            self._replay([selected])
            return
        name = self.app.context().job
        dead = [item for item in self.state.history.dead if item.key.job == name]
        ended: dict[RunKey, RunItem] = {item.key: item for item in dead}
        for item in (*self._newest_of(name), *self.state.history.items):
            if item.key.job == name:
                ended.setdefault(item.key, item)
        offered = [item for item in ended.values() if state_of(item) in _UNSUCCESSFUL] or list(ended.values())
        self._choose_replay(name, offered[:_MOST_LISTED], dead)

    def _newest_of(self, name: str) -> list[RunItem]:
        """What its detail knows: beside a job of every second its runs are not among the newest of the store."""
        detail = self.state.detail
        if detail is None or detail.row.job.id != name:
            return []
        return [
            RunItem(
                RunKey(name, one.nominal_ms),
                one.state,
                one.reason,
                one.nominal_ms,
                one.started_ms,
                one.finished_ms,
                one.recovery,
                one.manual,
                errors=one.errors,
            )
            for one in detail.outcomes
        ]

    def _choose_replay(self, name: str, offered: list[RunItem], dead: list[RunItem]) -> None:
        if not offered:
            self.app.notify(f"{name} has no run that could be replayed")
            return
        choices = [Choice("a", "all", f"all {count(len(dead), 'dead letter')} of {name}")] if len(dead) > 1 else []
        by_letter = dict(zip((letter for letter in LETTERS if letter != "a"), offered, strict=False))
        is_exact = have_seconds(item.key.nominal_ms for item in offered)
        for letter, item in by_letter.items():
            when = self._when_and_how(item, is_exact=is_exact)
            choices.append(Choice(letter, letter, when, cell_safe(shown_text(item.reason))))

        def replay_choice(answer: str) -> None:
            self._replay(dead if answer == "all" else [by_letter[answer]])

        choose(self.app, f"Replay which run of {name}?", choices, replay_choice)

    def _replay(self, items: list[RunItem]) -> None:
        if any(item.finished_ms is None and not item.is_dead for item in items):
            self.app.notify("it still runs; cancel it first, or wait for its end", severity="warning")
            return
        question = "Run it again, at its old scheduled time?"
        if len(items) > 1:
            question = f"Run these {len(items)} again, at their old scheduled times?"
        facts = [(question, "bold"), *self._described(items)]
        self.start(
            StoreCommand(
                "replay",
                tuple(sorted({item.key.job for item in items})),
                "asked to run",
                lambda records, actor: replay_items(records, items, actor),
                "Replay",
                tuple(facts),
                self._shell_command("replay", [{"run": run_name(item.key)} for item in items]),
            )
        )


def _question(verb: str, names: Sequence[str], rest: str) -> str:
    if len(names) <= 3:
        return f"{verb} {', '.join(names)} {rest}?"
    return f"{verb} {len(names)} jobs {rest}? {', '.join(names[:3])} and {len(names) - 3} more"


# -- inside the update ----------------------------------------------------------------------------------------


def trigger_jobs(records: Records, names: Sequence[str], actor: Actor) -> CommandResult:
    """A trigger that the overlap policy skips stays on record, so it is reported and not rolled back."""
    found = [trigger(records, name, actor) for name in names]
    skipped = [
        f"{one.occurrence.job} was not started: {shown_text(one.reason)}"
        for one in found
        if one.answer is TriggerAnswer.SKIPPED
    ]
    if skipped:
        return CommandResult("; ".join(skipped[:3]), is_refused=True)
    queued = next((one for one in found if one.answer is TriggerAnswer.QUEUED), None)
    tail = "" if queued is None else f"; {queued.occurrence.job} waits: {words_of(queued.reason)}"
    return CommandResult(f"asked to run {_list(names)}{tail}")


def pause_jobs(records: Records, until: Mapping[str, int | None], actor: Actor) -> CommandResult:
    """A pause that has ended meanwhile is not made again."""
    names = [name for name, end_ms in until.items() if end_ms is None or end_ms > records.now_ms]
    for name in names:
        pause(records, name, actor, until_ms=until[name])
    return CommandResult(f"paused {_list(names)}; u undoes it" if names else "the pause has ended meanwhile")


def resume_jobs(records: Records, names: Sequence[str], actor: Actor) -> CommandResult:
    for name in names:
        resume(records, name, actor)
    return CommandResult(f"resumed {_list(names)}; u undoes it")


def cancel_runs(records: Records, keys: Sequence[RunKey], actor: Actor) -> CommandResult:
    found = [cancel(records, _occurrence(records, key), actor) for key in keys]
    ended = sum(1 for one in found if one.is_over)
    stopping = len(found) - ended
    parts = [
        f"stopping {count(stopping, 'run')}" if stopping else "",
        f"canceled {ended} that waited" if ended else "",
    ]
    return CommandResult(", ".join(part for part in parts if part))


def replay_items(records: Records, items: Sequence[RunItem], actor: Actor) -> CommandResult:
    """Of a dead letter only its dead runs, of any other occurrence the whole."""
    for item in items:
        if item.is_dead:
            for run in records.runs(*item.key):
                if run.state is RunState.DLQ:
                    replay_dead_letter(records, run, actor)
        else:
            replay(records, _occurrence(records, item.key), actor, "")
    return CommandResult(f"asked to run {_list(sorted({item.key.job for item in items}))} again")


def drain_named(records: Records, name: str, actor: Actor, *, draining: bool) -> CommandResult:
    node = drain_node(records, name, actor, draining=draining)
    return CommandResult(f"{node.id} begins {'nothing more' if draining else 'work again'}")


def _occurrence(records: Records, key: RunKey) -> Occurrence:
    found = records.occurrence(*key)
    if found is None:
        raise NotPossibleError(f"that run of {key.job} is gone")
    return found


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{len(names)} jobs"
