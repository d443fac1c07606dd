"""What a program asks and orders: jobs added, changed and removed, commands, history, `why`.

Every method is one transaction of the store, by the same functions as the command line's. They may be called from any
thread, and from an event loop, which waits for the disk meanwhile; `asyncio.to_thread` spares it that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeVar, overload

from msgspec.structs import replace

from chronex.clock import Clock
from chronex.daemon.control_arguments import (
    Span,
    as_of_named,
    call_arguments,
    check_count,
    check_job_name,
    checked_parameters,
    checked_reason,
    checked_states,
    overrides_of,
    policy_named,
    span_ms,
)
from chronex.daemon.reload import is_gone_file
from chronex.engine import commands
from chronex.engine.admit import MOST_QUEUED
from chronex.engine.commands import Actor, Canceled, Replayed, Triggered, job_named
from chronex.engine.update import Changed, Policy, apply_jobs
from chronex.engine.update.single_jobs import add_job, change_job, put_job, remove_job
from chronex.engine.update.sources import PROGRAM, IsGone, JobSource
from chronex.errors import ChronexError, NotPossibleError, UnknownIdError
from chronex.jobfile import SchedulerSettings
from chronex.jobfile.program_jobs import TASK_KEYS, check_jobs, one_task_table, read_program_job, table_of
from chronex.model.channels import Channel
from chronex.model.job import Call, Job, Work
from chronex.run import is_alive
from chronex.run.callables import TaskFunction
from chronex.run.functions import Calls, RegisteredFunction, check_arguments, registered
from chronex.storage.ports import Store
from chronex.storage.records import Reading, Records
from chronex.storage.scopes import WHOLE, Scope, of_jobs
from chronex.text.instants import epoch_ms, utc_datetime
from chronex.timing.job_schedule import absolute_schedule
from chronex.timing.zones import load_zone
from chronex.views.jobs import Row, row_of, rows_of, upcoming_runs
from chronex.views.past_runs import HistoryQuery, PastRun, past_occurrences, past_run
from chronex.views.status import StoreStatus, store_status
from chronex.views.why import WhyAnswer, latest_and_next
from chronex.views.why import why as why_at
from chronex.views.why.ask import by_occurrence, clock_links, instant_of, read_time
from chronex.views.why.schedule_versions import version_history

T = TypeVar("T")
# An instant: an aware datetime, or a span back from now.
When = datetime | timedelta
Runnable = Work | list[str] | TaskFunction
_HOOKS = ("on_start", "on_complete")
_RUN_KEYS = ("run", "args", "kwargs", "executor")


class UpcomingRun(NamedTuple):
    """A run to come. It starts at `due`, or at the earliest then where its jitter is not drawn yet."""

    scheduled: datetime
    due: datetime
    is_certain: bool


class _Runnable(NamedTuple):
    """What a task's `run` is to be, and the function behind it, where this program is yet to know it."""

    run: object
    function: RegisteredFunction | None = None


class JobControl:
    """The methods of an engine that work on its store.

    Its jobs have two sources: those that its code declares, which are replaced as a whole at each start, and those
    that were added while it ran, which stay until they are removed.
    """

    def __init__(
        self,
        program: str,
        calls: Calls,
        settings: SchedulerSettings,
        clock: Clock,
        channels: Mapping[str, Channel] | None = None,
    ) -> None:
        self.program = program
        self.channels = dict(channels or {})
        self.calls = calls
        self.settings = settings
        self._clock = clock
        self.source = PROGRAM + program
        self._use_sources(is_gone_file)
        self._declared: dict[str, Job] = {}

    def _use_sources(self, is_gone: IsGone) -> None:
        """Those of its jobs; `is_gone` says of a job file whether its jobs may be taken over."""
        added = self._added = JobSource(f"{self.source} (added)", is_gone)
        # What was added while it ran may become a part of the program's code.
        self._declared_by = JobSource(self.source, lambda source: source == added.name or is_gone(source))

    @property
    def store(self) -> Store:
        raise NotImplementedError

    def note_functions(self) -> None:
        """This program has a further function."""

    def _change(self, command: Callable[[Records], T], scope: Scope = WHOLE) -> T:
        now_ms = self._clock.wall_ms()
        return self.store.update(lambda tx: command(Records(tx, now_ms)), scope=scope)

    def _ask(self, question: Callable[[Reading], T]) -> T:
        return self.store.view(lambda tx: question(Reading(tx)))

    @property
    def _actor(self) -> Actor:
        return Actor.of_this_process("api")

    # -- jobs ------------------------------------------------------------------------------------------------

    def apply(
        self,
        jobs: Iterable[Job],
        actor: str = "library",
        basis: int | None = None,
        *,
        policy: Policy | str = Policy.IMMEDIATE,
    ) -> list[Changed]:
        """Make these jobs, beside those that decorators declare, exactly the jobs that this program declares.

        Those of files, of other programs, and those that `add` added are left alone. InvalidJobError where a job file
        would refuse one; JobSourceError where somebody else has a job of the same name. `basis` is the number of the
        journal's last event when you read the jobs; StaleUpdateError when jobs changed since. `policy` says when an
        edit counts.
        """
        now_ms = self._clock.wall_ms()
        checked = check_jobs([*self._declared.values(), *jobs])
        desired = [absolute_schedule(job, now_ms) for job in checked]
        how = policy_named(policy)
        return apply_jobs(self.store, desired, now_ms, actor=actor, policy=how, basis=basis, owns=self._declared_by)

    @property
    def declared(self) -> tuple[Job, ...]:
        """The jobs of this program's code."""
        return tuple(self._declared.values())

    def declare(self, job: Job) -> Job:
        """One more job of this program's code: written when the engine starts, or now where it runs."""
        (checked,) = check_jobs([job], beside=self._declared)
        if self._is_open:
            now_ms = self._clock.wall_ms()
            put_job(self.store, absolute_schedule(checked, now_ms), now_ms, str(self._actor), self._declared_by)
        self._declared[checked.id] = checked
        return checked

    @property
    def _is_open(self) -> bool:
        raise NotImplementedError

    @overload
    def add(self, job: Job, /) -> Changed: ...
    @overload
    def add(
        self,
        job: str,
        /,
        schedule: str = "",
        run: Runnable = (),
        *,
        args: Iterable[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        executor: str | None = None,
        **keys: Any,
    ) -> Changed: ...
    def add(
        self,
        job: Job | str,
        /,
        schedule: str = "",
        run: Runnable = (),
        *,
        args: Iterable[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        executor: str | None = None,
        **keys: Any,
    ) -> Changed:
        """Add a job while the engine runs; it stays, over restarts too, until it is removed.

        A Job, or its id with schedule, what to run (a command, a function, a Call) and further keys of the job file.
        NotPossibleError where there is a job of that id already.
        """
        if isinstance(job, Job):
            (desired,) = check_jobs([job])
        else:
            desired = self._new_job(job, schedule, self._runnable(job, run, args, kwargs, executor), keys)
        now_ms = self._clock.wall_ms()
        return add_job(self.store, absolute_schedule(desired, now_ms), now_ms, str(self._actor), self._sources)

    def _new_job(self, job: str, schedule: str, work: _Runnable, keys: Mapping[str, Any]) -> Job:
        """Read as a job file would be; once it can be one, this program knows its functions."""
        found, hooks = self._with_hooks(keys)
        table = one_task_table(schedule, work.run, found)
        read = read_program_job(job, table, self.settings.timezone, self.channels)
        self._know(work, *hooks)
        return read

    def _with_hooks(self, keys: Mapping[str, Any]) -> tuple[dict[str, Any], list[_Runnable]]:
        """A hook that is a function is given a report and no context, so it has a name of its own."""
        found, hooks = dict(keys), []
        for hook in _HOOKS:
            function = found.get(hook)
            if callable(function):
                call = Call(f"{self.program}/{_function_name(function, hook)} (hook)")
                hooks.append(_Runnable(call, registered(function)))
                found[hook] = call
        return found, hooks

    @property
    def _sources(self) -> tuple[JobSource, ...]:
        return self._declared_by, self._added

    def update(
        self, job: Job | str, /, *, policy: Policy | str = Policy.IMMEDIATE, basis: int | None = None, **keys: Any
    ) -> Changed:
        """Change a job of this program: a Job replaces it, keys of the job file change what they name.

        UnknownJobError where there is none; JobSourceError where it is another's.
        """
        now_ms, how = self._clock.wall_ms(), policy_named(policy)
        if isinstance(job, Job):
            (given,) = check_jobs([job])
            name, with_keys = job.id, None
        else:
            name, with_keys = job, self._with_keys(job, keys)

        def change(old: Job) -> Job:
            new = absolute_schedule(given if with_keys is None else with_keys(old), now_ms)
            # Who names a schedule anew means from now; a text that is applied again counts from the first time.
            return replace(new, written="") if "schedule" in keys else new

        return change_job(self.store, name, change, now_ms, str(self._actor), self._sources, policy=how, basis=basis)

    def _with_keys(self, name: str, keys: Mapping[str, Any]) -> Callable[[Job], Job]:
        keys, works = self._with_hooks(keys)
        of_run = {key: value for key, value in keys.items() if key in _RUN_KEYS}
        of_task = {key: value for key, value in keys.items() if key in TASK_KEYS}
        of_job = {key: value for key, value in keys.items() if key not in _RUN_KEYS and key not in TASK_KEYS}
        if "run" in of_run:
            given = {key: of_run.get(key) for key in ("kwargs", "executor")}
            works.append(self._runnable(name, of_run["run"], of_run.get("args", ()), **given))
            of_task["run"] = works[-1].run
        elif of_run:
            raise ChronexError(f"{', '.join(of_run)} needs run: the function that is called")

        def change(old: Job) -> Job:
            table = {**table_of(old), **of_job}
            if of_task and len(table["tasks"]) != 1:
                raise ChronexError(f"{name} has several tasks; give all of them in tasks, or a whole Job")
            if of_task:
                table["tasks"] = [{**table["tasks"][0], **of_task}]
            # Those that the job has already go before: they may have been given with the job itself.
            stored = () if old.notify is None or "notify" in of_job else old.notify.channels
            channels = {**self.channels, **{channel.name: channel for channel in stored}}
            new = read_program_job(name, table, self.settings.timezone, channels)
            self._know(*works)
            kept = new if "schedule" in of_job else replace(new, schedule=old.schedule, written=old.written)
            return kept if of_task or "tasks" in of_job else replace(kept, tasks=old.tasks)

        return change

    def remove(self, job: str) -> Changed:
        """Remove a job of this program. Its history stays; what runs goes on to its end."""
        removed = remove_job(self.store, job, self._clock.wall_ms(), str(self._actor), self._sources)
        self._declared.pop(job, None)
        return removed

    def _runnable(
        self, job: str, run: Runnable, args: Iterable[Any], kwargs: Mapping[str, Any] | None, executor: str | None
    ) -> _Runnable:
        """A Call of the function, or what was given."""
        if callable(run) and not isinstance(run, Call):
            return self._call(job, run, args, kwargs, executor)
        given, named = call_arguments(args, kwargs)
        if isinstance(run, Call):
            return _Runnable(replace(run, args=given, kwargs=named) if given or named else run)
        if given or named or executor:
            raise ChronexError("args, kwargs and executor are for a function; a command has its arguments in `run`")
        return _Runnable(run)

    def _call(
        self, job: str, function: TaskFunction, args: Iterable[Any] = (), kwargs: Mapping[str, Any] | None = None,
        executor: str | None = None,
    ) -> _Runnable:  # fmt: skip
        """By a name that is the same at every start."""
        given, named = call_arguments(args, kwargs)
        check_arguments(function, given, named)
        name = f"{self.program}/{_function_name(function, job)}"
        return _Runnable(Call(name, given, named), registered(function, executor, by_name=True))

    def _know(self, *works: _Runnable) -> None:
        """This program has these functions from now on; those of a job that was refused never came here."""
        for work in works:
            if work.function is not None:
                assert isinstance(work.run, Call)
                self.calls.add(work.run.target, work.function)
                self.note_functions()

    # -- commands --------------------------------------------------------------------------------------------

    def trigger(
        self,
        job: str,
        *,
        parameters: Mapping[str, str] | None = None,
        idempotency_key: str = "",
        ttl: Span | None = None,
        only: Iterable[str] = (),
        timeout: Span | None = None,
        retries: int | None = None,
        on_failure: str | None = None,
    ) -> Triggered:
        """Ask for one run now; its overlap policy is respected. The policies given hold for this run alone."""
        overrides, ttl_ms = overrides_of(timeout, retries, on_failure), span_ms("ttl", ttl)
        given = checked_parameters(parameters)
        return self._change(
            lambda records: commands.trigger(
                records, job, self._actor,
                parameters=given, idempotency_key=idempotency_key, ttl_ms=ttl_ms, only=tuple(only),
                overrides=overrides,
            ),
            of_jobs(check_job_name(job)),
        )  # fmt: skip

    def pause(self, job: str, until: datetime | timedelta | None = None) -> Job:
        """Hold its schedule until that time, for that long, or until it is resumed; triggers still run."""
        until_ms = self._ms_of(-until if isinstance(until, timedelta) else until)
        return self._change(
            lambda records: commands.pause(records, job, self._actor, until_ms=until_ms), of_jobs(check_job_name(job))
        )

    def resume(self, job: str) -> Job:
        """End a pause; what was due in it stays skipped."""
        return self._change(lambda records: commands.resume(records, job, self._actor), of_jobs(check_job_name(job)))

    def cancel(self, occurrence: str | PastRun | Triggered, reason: str = "") -> Canceled:
        """End an occurrence as a whole: at once where it waits, else by the engine that runs it."""
        return self._change(lambda records: commands.cancel(records, _id(occurrence), self._actor, reason))

    def replay(
        self,
        occurrence: str | PastRun,
        reason: str,
        *,
        as_of: str = "then",
        only: Iterable[str] = (),
        with_children: bool = False,
    ) -> Replayed:
        """Run one that has ended once more, at its old scheduled time.

        `as_of` is "then" for the version of the job that it ran, or "now". With `only`, these tasks of it;
        `with_children`, the jobs that follow it run again too, once it has completed.
        """
        tasks, why = tuple(only), checked_reason(reason)
        return self._change(
            lambda records: commands.replay(
                records,
                _id(occurrence),
                self._actor,
                why,
                as_of=as_of_named(as_of),
                only=tasks,
                with_children=with_children,
            )
        )

    def replay_range(
        self,
        job: str,
        reason: str,
        *,
        since: When | None = None,
        until: When | None = None,
        state: str | Iterable[str] = ("failed",),
        as_of: str = "then",
        only: Iterable[str] = (),
    ) -> list[Replayed]:
        """Replay those of a job that were due in [since, until) and ended in these states, the oldest first."""
        tasks, why = tuple(only), checked_reason(reason)
        query = HistoryQuery(job, MOST_QUEUED + 1, checked_states(state), self._ms_of(since), self._ms_of(until))

        def command(records: Records) -> list[Replayed]:
            desired = [*past_occurrences(records, query)][::-1]
            if len(desired) > MOST_QUEUED:
                raise NotPossibleError(f"more than {MOST_QUEUED} occurrences are meant; narrow it by since and until")
            return [
                commands.replay(records, one, self._actor, why, as_of=as_of_named(as_of), only=tasks)
                for one in desired
            ]

        return self._change(command)

    # -- questions -------------------------------------------------------------------------------------------

    def history(
        self,
        job: str | None = None,
        *,
        since: When | None = None,
        until: When | None = None,
        state: str | Iterable[str] = (),
        limit: int = 100,
    ) -> list[PastRun]:
        """What became of occurrences in [since, until), newest first, at most `limit`: of one job or of all."""
        query = HistoryQuery(
            job, check_count("limit", limit), checked_states(state), self._ms_of(since), self._ms_of(until)
        )
        return self._ask(lambda reading: [past_run(one) for one in past_occurrences(reading, query)])

    def occurrence(self, occurrence: str | PastRun | Triggered) -> PastRun:
        """One occurrence as it is now; UnknownIdError where there is none of that id."""
        return self._ask(lambda reading: past_run(commands.occurrence_named(reading, _id(occurrence))))

    def why(self, job: str, at: datetime | str | None = None) -> list[WhyAnswer]:
        """Why a job ran, ran late, failed or did not run at a time; without one: the last run and the next.

        `at` is a datetime, or a text as the command line takes it: "03:00", "-2h", the id of an occurrence.
        """
        text = at.isoformat() if isinstance(at, datetime) else at
        return self._ask(lambda reading: _answers(reading, job, text, self._clock.wall_ms()))

    def next_runs(self, job: str, count: int = 5) -> list[UpcomingRun]:
        """The next runs; none where the job is disabled, done, or paused without an end."""
        check_count("count", count)

        def question(reading: Reading) -> list[UpcomingRun]:
            found = upcoming_runs(reading, job_named(reading, job), self._clock.wall_ms(), count)
            return [UpcomingRun(utc_datetime(r.nominal_ms), utc_datetime(r.due_ms), r.is_drawn) for r in found]

        return self._ask(question)

    def status(self) -> StoreStatus:
        """What `chronex status` shows: what runs, comes, fails; `attention()` has a sentence for each problem."""
        return self._ask(lambda reading: store_status(reading, self._clock.wall_ms(), is_alive))

    def rows(self) -> list[Row]:
        """Every job: is_active, is_paused, is_enabled, is_running, next and last; asked of the store."""
        return self._ask(lambda reading: rows_of(reading, self._clock.wall_ms()))

    def row(self, job: str) -> Row:
        """One job; UnknownJobError where there is none of that name."""
        return self._ask(lambda reading: row_of(reading, job_named(reading, job), self._clock.wall_ms()))

    def _ms_of(self, when: When | None) -> int | None:
        if when is None:
            return None
        return self._clock.wall_ms() - (span_ms("when", when) or 0) if isinstance(when, timedelta) else epoch_ms(when)


def _id(given: str | PastRun | Triggered) -> str:
    if isinstance(given, Triggered):
        return given.occurrence.id
    return given if isinstance(given, str) else given.id


def _function_name(function: TaskFunction, job: str) -> str:
    """The same at every start. A function inside a function is one of many of its name; its job is not."""
    name = getattr(function, "__qualname__", "<")
    if "<" in name:
        return job
    module = getattr(function, "__module__", None)
    return name if module in (None, "__main__") else f"{module}.{name}"


def _answers(reading: Reading, job: str, time: str | None, now_ms: int) -> list[WhyAnswer]:
    history = version_history(reading, job)
    if history is None:
        job_named(reading, job)
        return []
    if time is None:
        return latest_and_next(reading, job, now_ms)
    if time.startswith("occ_"):
        nominal_ms = by_occurrence(reading, job, time)
        if nominal_ms is None:
            raise UnknownIdError(time)
        found = why_at(reading, job, nominal_ms, now_ms)
        return [found] if found is not None else []
    asked = read_time(time, load_zone(history.last.timezone), now_ms)
    if asked is None:
        raise ChronexError(
            f"{time[:60]!r} is not a time; write 2027-03-28T02:30, 02:30 (today), -2h, or give a datetime"
        )
    found = why_at(reading, job, instant_of(reading, history, asked, now_ms), now_ms)
    return [] if found is None else [found._replace(links=(*clock_links(history.last, asked), *found.links))]
