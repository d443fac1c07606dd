"""Every error that Chronex raises on purpose.

    ChronexError
    ├── ExpressionError        the text of a schedule is wrong; carries every diagnostic
    ├── UnknownZoneError       a time zone that the zone data does not know
    ├── DecisionError          a request to the decision core is wrong; names the field
    │   ├── IdentityError               empty, or not UTF-8 text
    │   ├── NominalTimeError            no zone, or outside years 1 to 9999
    │   ├── DecisionTimezoneError       a time zone that the zone data does not know
    │   ├── WindowModeError             none of after, around (center), before
    │   ├── WindowDurationError         negative, no duration, or reaching outside years 1 to 9999
    │   ├── DistributionError           an unknown distribution
    │   ├── DistributionParameterError  an unknown parameter, or a bad value of a known one
    │   ├── SeedStrategyError           none of stable, daily, weekly
    │   ├── SaltError                   not UTF-8 text
    │   └── ConstraintError             a clause of only or avoid; carries its position in the text
    ├── SchedulerError         the declarative scheduler; its tree is in chronex.declarative.scheduler_errors
    ├── JobFileError           a job file is wrong; carries every problem (chronex.jobfile)
    ├── IllegalTransitionError a state change that the transition table does not have
    ├── StaleClaimError        the record has another owner, epoch or state by now
    ├── CustomScheduleError    a schedule of the user's own raised, went backwards, or is not registered
    ├── TaskStateError         a name or value that a task cannot keep, or a task that is over
    ├── CommandError           what was asked for cannot be done as things stand; nothing was changed
    │   ├── UnknownJobError             no job of that name; suggests near ones
    │   ├── UnknownIdError              no occurrence, run or attempt of that id
    │   ├── AmbiguousIdError            several ids begin like that
    │   ├── NotPossibleError            the thing is there, and its state does not allow it
    │   ├── PruneError                  the update would remove most jobs of its source
    │   ├── JobChainError               a job would follow one that is not there, or itself by way of others
    │   └── StaleUpdateError            somebody changed the jobs since the caller looked; says who and what
    ├── LogDirectoryError      the logs of attempts cannot lie there, or this is none of them
    └── StoreError             the store could not do what was asked
        ├── StoreRefusedError          this place or file must not be used; nothing was changed
        │   ├── StorePermissionError       others could read or change the store, or own it
        │   ├── StoreNetworkError          a network file system
        │   ├── StoreFormatError           written by a newer Chronex
        │   ├── ForeignStoreError          not a Chronex store
        │   ├── StoreLibraryError          an LMDB library without the fixes Chronex relies on
        │   ├── StoreAlreadyOpenError      open already in this process
        │   ├── StoreForkedError           opened before a fork, used after it
        │   └── StoreNamespaceError        a scheduler lives in another boot or process namespace
        ├── StoreInUseError            another daemon holds the store
        ├── StoreFullError             no free space on the disk or in the map; nothing was written
        ├── StoreOutcomeUnknownError   a commit failed half way: re-read before trying again
        ├── StoreDamagedError          the file itself is damaged
        ├── StoreReplacedError         the file was replaced under us, by a restore
        ├── StoreClosedError           the store or the transaction is over
        ├── NestedTransactionError     a transaction was begun inside another
        ├── InvalidKeyError            a key that is empty, too long, or not bytes
        ├── RecordTooLargeError        a record over 64 KiB
        ├── DamagedRecordError         one record fails its checksum or type
        │   └── NewerRecordError       one record is of a version that is not known here
        └── BackupError                a backup that cannot be written or restored

The first line of a class's docstring is its message to the user when none is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from chronex.expr.diagnostics import Diagnostic


class ChronexError(Exception):
    """Something went wrong in Chronex."""

    exit_code = 2  # bad usage or input; 1 where nothing was wrong with what was asked for
    names_position = False  # whether its message begins with the file, line and column that it is about

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").partition("\n")[0])


class ExpressionError(ChronexError, ValueError):
    """The expression is not valid; run `chronex lint` on it to see every mistake."""

    def __init__(self, text: str, diagnostics: Sequence[Diagnostic]) -> None:
        self.text = text
        self.diagnostics = tuple(diagnostics)
        super().__init__("; ".join(str(d) for d in self.diagnostics if d.is_error))


class UnknownZoneError(ChronexError, LookupError):
    """The time zone is unknown; use an IANA name such as Europe/Berlin or UTC."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"unknown time zone {name!r}; use an IANA name such as Europe/Berlin or UTC")


class DecisionError(ChronexError, ValueError):
    """The request to the decision core is not valid."""

    field = "request"

    def __init__(
        self,
        message: str | None = None,
        *,
        hint: str = "",
        field: str | None = None,
        value: object = None,
        suggestion: str | None = None,
        place: str = "",
    ) -> None:
        self.field = field or type(self).field
        self.value = value
        self.suggestion = suggestion
        self.problem = message or (type(self).__doc__ or "").partition("\n")[0]
        meant = f"did you mean {suggestion}?" if suggestion else ""
        self.hint = "; ".join(part for part in (hint, meant) if part)
        said = f"{self.problem}; {hint}" if hint else self.problem
        super().__init__(f"{self.field}: {said}{place}{'; ' + meant if meant else ''}")


class IdentityError(DecisionError):
    """The identity must be text that is not empty and can be written as UTF-8."""

    field = "identity"


class NominalTimeError(DecisionError):
    """The nominal time must be a datetime with a time zone, within the years 1 to 9999."""

    field = "nominal_time"


class DecisionTimezoneError(DecisionError):
    """The time zone is unknown; use an IANA name such as Europe/Berlin or UTC."""

    field = "timezone"


class WindowModeError(DecisionError):
    """The window mode is after, around (or center), or before."""

    field = "window_mode"


class WindowDurationError(DecisionError):
    """The window's duration must be a timedelta that is not negative and stays within the years 1 to 9999."""

    field = "window_duration"


class DistributionError(DecisionError):
    """The distribution is uniform, skewEarly, skewLate, normal or exponential."""

    field = "distribution"


class DistributionParameterError(DecisionError):
    """The distribution does not take this parameter or this value."""

    field = "distribution_params"


class SeedStrategyError(DecisionError):
    """The seed strategy is stable, daily or weekly."""

    field = "seed_strategy"


class SaltError(DecisionError):
    """The salt must be text that can be written as UTF-8."""

    field = "salt"


class ConstraintError(DecisionError):
    """A clause is not valid; write for example dow=MON-FRI;between=08:00-20:00."""

    field = "only"

    def __init__(
        self,
        message: str | None = None,
        *,
        hint: str = "",
        field: str | None = None,
        value: object = None,
        suggestion: str | None = None,
        position: int | None = None,
    ) -> None:
        self.position = position or 0
        place = "" if position is None else f" (at position {position})"
        super().__init__(message, hint=hint, field=field, value=value, suggestion=suggestion, place=place)


class IllegalTransitionError(ChronexError):
    """This change of state is not in the transition table."""

    def __init__(self, entity: str, source: str, destination: str) -> None:
        self.entity, self.source, self.destination = entity, source, destination
        super().__init__(f"{entity}: {source} → {destination} is not in the transition table")


class StaleClaimError(ChronexError):
    """The record has another owner, epoch or state by now; re-read it and decide again."""


class CustomScheduleError(ChronexError):
    """A schedule of your own does not keep its promises; it must give later instants for later questions."""


class TaskStateError(ChronexError, ValueError):
    """A task's state is made of short names with short texts, and only its own running attempt changes it."""


class CommandError(ChronexError):
    """What was asked for cannot be done as things stand; nothing was changed."""


class UnknownJobError(CommandError, LookupError):
    """There is no job of that name; `chronex list` shows them."""

    def __init__(self, name: str, near: str | None = None) -> None:
        self.name, self.near = name, near
        hint = f"did you mean {near}?" if near else "`chronex list` shows them"
        super().__init__(f"no job {name[:80]!r}; {hint}")


class UnknownIdError(CommandError, LookupError):
    """There is no occurrence, run or attempt of that id; `chronex history` shows them."""

    def __init__(self, text: str, hint: str = "`chronex history` shows them") -> None:
        self.text = text
        super().__init__(f"no occurrence, run or attempt {text[:80]!r}; {hint}")


class AmbiguousIdError(CommandError, LookupError):
    """Several ids begin like that; write more of it."""

    def __init__(self, text: str, found: Sequence[str]) -> None:
        self.text, self.found = text, tuple(found)
        super().__init__(f"{text[:80]!r} begins more than one id ({', '.join(self.found[:3])}…); write more of it")


class NotPossibleError(CommandError):
    """Its state does not allow that."""

    exit_code = 1


class StaleUpdateError(CommandError):
    """The jobs were changed since you looked; look again and apply again."""

    exit_code = 1

    def __init__(self, changes: Sequence[str]) -> None:
        self.changes = tuple(changes)
        super().__init__(
            f"the jobs were changed since you looked ({'; '.join(self.changes[:5])}); look again and apply again"
        )


class PruneError(CommandError):
    """The update would remove most of the jobs of its source; say --prune if that is meant."""

    def __init__(self, source: str, removed: int, had: int) -> None:
        self.source, self.removed, self.had = source, removed, had
        jobs = "its only job" if had == 1 else f"all {had} jobs" if removed == had else f"{removed} of the {had} jobs"
        whose = f" of {source}" if source else ""
        super().__init__(f"nothing was changed: this would remove {jobs}{whose}; say --prune if that is meant")


class ChainProblem(NamedTuple):
    """Why a job cannot follow another one, and where its file says so: `jobs.toml:5:9`, empty where no file does."""

    sentence: str
    place: str = ""

    def __str__(self) -> str:
        return f"{self.place}: {self.sentence}" if self.place else self.sentence


class JobChainError(CommandError):
    """A job would follow one that is not there, or itself by way of others; nothing was changed."""

    exit_code = 2

    def __init__(self, problems: Sequence[ChainProblem]) -> None:
        self.problems = tuple(problems)
        self.names_position = bool(self.problems and self.problems[0].place)
        super().__init__("\n".join(map(str, self.problems)))


class JobSourceError(CommandError):
    """Another file or program has a job of this name; rename yours, or remove the other one."""

    exit_code = 1

    def __init__(self, job: str, source: str) -> None:
        self.job, self.source = job, source
        super().__init__(
            f"the job {job!r} belongs to {source}; rename yours, or remove it there first, or use another store"
        )


class LogDirectoryError(ChronexError):
    """The log directory cannot be used; choose a directory of your own with mode 0700."""


class StoreError(ChronexError):
    """The store could not do what was asked; run `chronex doctor` to see why."""

    exit_code = 1


class StoreRefusedError(StoreError):
    """The store must not be used as it is; nothing was changed."""

    exit_code = 2


class StorePermissionError(StoreRefusedError):
    """The store is open to other users; give its directory mode 0700 and its files 0600."""


class StoreNetworkError(StoreRefusedError):
    """The store lies on a network file system, where its locks do not hold; choose a local directory."""


class StoreFormatError(StoreRefusedError):
    """The store was written by a newer Chronex, or by an older one and only a reading command has opened it."""


class ForeignStoreError(StoreRefusedError):
    """The directory holds a database that is not a Chronex store; choose another directory."""


class StoreLibraryError(StoreRefusedError):
    """The LMDB library lacks fixes that Chronex relies on; install the `lmdb` wheel, not a system build."""


class StoreAlreadyOpenError(StoreRefusedError):
    """The store is already open in this process; share that one, because a second one breaks its locks."""


class StoreForkedError(StoreRefusedError):
    """The store was opened before a fork; start children with exec or spawn and open it there."""


class StoreNamespaceError(StoreRefusedError):
    """A scheduler of this store runs in another container or boot; use the store from there."""


class StoreInUseError(StoreError):
    """Another daemon holds the store; stop it first or choose another --store."""

    exit_code = 75


class StoreUnavailableError(StoreError):
    """The store can take nothing now, and nothing was written; it is asked again until it can."""


class StoreFullError(StoreUnavailableError):
    """The store is full and nothing was written; free disk space or history, then it goes on by itself."""


class StoreAwayError(StoreUnavailableError):
    """The database of the store does not answer; what runs goes on, and it is asked again."""

    exit_code = 75


class StoreRightError(StorePermissionError, StoreUnavailableError):
    """The user of the database lacks a right and nothing was written; who works goes on when it is granted."""


class StoreBusyError(StoreUnavailableError):
    """Others held what an update needs for too long and nothing was written; try again."""

    exit_code = 75


class FencedError(StoreError):
    """Others have given this node up meanwhile, so what it held is theirs; it registers anew and goes on."""


class StoreOutcomeUnknownError(StoreError):
    """A commit failed half way, so its outcome is unknown; re-read the store before trying again."""


class StoreWentBackError(StoreOutcomeUnknownError):
    """The database lost commits that it had acknowledged, as a failover to a standby that lags does; look again."""


class StoreDamagedError(StoreError):
    """The store's file is damaged; run `chronex doctor`, then `chronex restore` with your last backup."""


class StoreReplacedError(StoreError):
    """The store was moved, removed, or replaced by a restore while it was open; open it again."""


class StoreClosedError(StoreError):
    """The store or transaction is closed; open a new one."""


class NestedTransactionError(StoreError):
    """A transaction was begun inside another one of the same thread; use the one you have."""


class InvalidKeyError(StoreError, ValueError):
    """A key must be 1 to 511 bytes."""


class RecordTooLargeError(StoreError, ValueError):
    """A record must not be larger than 64 KiB; keep large data in files."""


class DamagedRecordError(StoreError):
    """A record is damaged; run `chronex doctor` to see which."""

    def __init__(self, key: bytes, reason: str) -> None:
        self.key, self.reason = key, reason
        super().__init__(f"the record {key!r} is damaged: {reason}; run `chronex doctor`")


class NewerRecordError(DamagedRecordError):
    """A record is whole and of a version that this Chronex does not know; it is never removed nor written over."""

    def __init__(self, key: bytes, version: int) -> None:
        super().__init__(key, f"its version {version} is not known here")
        self.args = (
            f"the record {key!r} was written by a newer Chronex (version {version} of records); "
            "install that version here too, and nothing is lost",
        )


class BackupError(StoreError):
    """The backup cannot be written or restored; choose another file."""

    exit_code = 2
