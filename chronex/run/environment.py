"""The environment of a child: a short list of the daemon's, what the job asks for, and who is calling.

Values are only ever environment: nothing here, or below, puts one into the text of a command.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b

from msgspec import Struct

from chronex.model.job import target_of
from chronex.run.process import Marks
from chronex.run.request import AttemptRequest, CommandRules, NotStarted
from chronex.text.instants import utc_datetime
from chronex.text.trusted_paths import UntrustedPathError, read_trusted
from chronex.text.variable_files import MOST_BYTES, VariableFileError, parse_variables


def variables_of_files(paths: tuple[str, ...]) -> dict[str, str] | NotStarted:
    """The variables of all the files; of two files with the same name, the later one's."""
    found: dict[str, str] = {}
    for path in paths:
        try:
            found |= parse_variables(read_trusted(path, MOST_BYTES))
        except UntrustedPathError as untrusted:
            return NotStarted(untrusted_file("env_file", path, untrusted), retryable=False)
        except OSError as problem:
            reason = (problem.strerror or str(problem)).lower()
            return NotStarted(f"env_file {path}: {reason}", problem.errno, path)
        except VariableFileError as problem:
            return NotStarted(f"env_file {path}: {problem}", path=path, retryable=False)
    return found


def untrusted_file(what: str, path: str, problem: UntrustedPathError) -> str:
    return f"{what} {path}: {problem.problem}, and root reads only what nobody else can change"


_INHERITED = frozenset({"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR"})
_INHERITED_PREFIXES = ("LC_", "XDG_")
# What has nothing to do with who the daemon is: so much another user may know of its environment.
_OF_EVERYBODY = ("LANG", "TZ")
# Its own library path is what a frozen bundle changes for itself; the user's is kept under the second name.
_LIBRARY_PATH, _LIBRARY_PATH_OF_USER = "LD_LIBRARY_PATH", "LD_LIBRARY_PATH_ORIG"
_FALLBACK_PATH = "/usr/local/bin:/usr/bin:/bin"
_NOT_IN_A_NAME = re.compile(r"[^A-Z0-9_]", re.ASCII)
ATTEMPT_VARIABLE = "CHRONEX_ATTEMPT"
TRACE_VARIABLE = "TRACEPARENT"
_LEAST_HIDDEN_LINE = 8  # a shorter line of a key, such as a brace, stands in every log

# The system has 2 MiB at most for the arguments and the environment of a command.
_MOST_HANDED = 1_000_000

Variables = dict[bytes, bytes]


class ChildEnvironment(Struct, frozen=True):
    """`secrets` are the values that must not appear in the log."""

    variables: Variables
    secrets: tuple[bytes, ...] = ()


class Inheritance:
    """What children may see of the daemon's environment, read once at the daemon's start."""

    def __init__(self, environ: Mapping[str, str], *, frozen: bool = False) -> None:
        self._environ = dict(environ)
        self.variables: Variables = {
            os.fsencode(name): os.fsencode(value) for name, value in self._inherited(frozen) if "\0" not in value
        }
        self.of_everybody: Variables = {
            name: value
            for name, value in self.variables.items()
            if name.startswith(b"LC_") or os.fsdecode(name) in _OF_EVERYBODY
        }

    def _inherited(self, frozen: bool) -> Iterator[tuple[str, str]]:
        yield "PATH", _FALLBACK_PATH
        for name, value in self._environ.items():
            if name != _LIBRARY_PATH and _is_inherited(name):
                yield name, value
        own = _LIBRARY_PATH_OF_USER if frozen or _LIBRARY_PATH_OF_USER in self._environ else _LIBRARY_PATH
        if self._environ.get(own):
            yield _LIBRARY_PATH, self._environ[own]

    def secret(self, name: str) -> str | None:
        """The value of a declared secret; None where the daemon was started without it."""
        return self._environ.get(name)


# What a shell adds when a command of it takes its place.
_OF_SHELLS = frozenset({"PWD", "OLDPWD", "SHLVL", "_"})


def secrets_of_process(request: AttemptRequest, environ: bytes | None) -> tuple[bytes, ...] | str:
    """The secrets that a process was started with, by its own environment; or why they cannot be known.

    The daemon that takes it over may have other values by now, and the job may be gone or have other secrets. So each
    secret must be there, and each variable must be one that the job or Chronex gave it.
    """
    if environ is None:
        return "its environment cannot be read, so its secrets are not known"
    pairs = (pair.partition(b"=") for pair in environ.split(b"\0") if pair)
    found = {os.fsdecode(name): value for name, _, value in pairs}
    of_files = variables_of_files(request.env_file)
    if isinstance(of_files, NotStarted):
        return f"its variables cannot be told from secrets: {of_files.error}"
    given = {*of_files, *request.env, *request.secrets, *request.extra_environment, *_OF_SHELLS, TRACE_VARIABLE}
    for name in found:
        if name not in given and not _is_inherited(name) and not name.startswith("CHRONEX_"):
            return f"its job has changed since, so it is not known whether {_shown(name)} is a secret"
    for name in request.secrets:
        if name not in found:
            return f"the value that its secret {_shown(name)} had is not known any more"
    return hidden_values(found[name] for name in request.secrets)


def hidden_values(secrets: Iterable[bytes]) -> tuple[bytes, ...]:
    """What must not appear in the log: each secret, and each longer line of one, which is printed by itself."""
    found: dict[bytes, None] = {}
    for value in secrets:
        lines = value.split(b"\n") if b"\n" in value else []
        found |= dict.fromkeys((value, *(line for line in lines if len(line.strip()) >= _LEAST_HIDDEN_LINE)))
    return tuple(value for value in found if value)


def _is_inherited(name: str) -> bool:
    return name in _INHERITED or name.startswith(_INHERITED_PREFIXES) or name == _LIBRARY_PATH


def child_environment(
    request: AttemptRequest, inheritance: Inheritance, secrets: Mapping[str, str]
) -> ChildEnvironment | NotStarted:
    """Inherited, then files, then the job's, then secrets, then Chronex's own: the later wins.

    Another user inherits nothing that is the daemon's own; the launcher adds what is that user's.
    """
    is_other = request.settings is not None and request.settings.user is not None
    variables = dict(inheritance.of_everybody if is_other else inheritance.variables)
    of_files = variables_of_files(request.env_file) if request.env_file else {}
    if isinstance(of_files, NotStarted):
        return of_files
    handed = sum(len(value) for values in request.inputs.values() for value in values.values())
    if handed > _MOST_HANDED:
        why = f"the values of the tasks before it have {handed} characters, and at most {_MOST_HANDED} fit"
        return NotStarted(why, retryable=False)
    for source in (of_files, request.env, secrets, chronex_variables(request), request.extra_environment):
        problem = _add(variables, source) if source else None
        if problem is not None:
            return problem
    return ChildEnvironment(variables, hidden_values(os.fsencode(value) for value in secrets.values()))


def chronex_variables(request: AttemptRequest) -> dict[str, str]:
    """Who is calling, and what for; META, PARAM, MATRIX and FROM names are in capitals, other characters as `_`."""
    variables = {
        "CHRONEX_JOB": request.job,
        "CHRONEX_TASK": request.task,
        "CHRONEX_OCCURRENCE": request.occurrence_id,
        ATTEMPT_VARIABLE: request.attempt_id,
        "CHRONEX_ATTEMPT_NUMBER": str(request.number),
        "CHRONEX_SCHEDULED_TIME": instant_text(request.nominal_ms),
        TRACE_VARIABLE: trace_parent(request),
    }
    if target := target_of(request.job):
        variables["CHRONEX_TARGET"] = target
    if request.run_id:
        variables["CHRONEX_RUN_ID"] = request.run_id
    if request.version:
        variables["CHRONEX_VERSION"] = str(request.version)
        variables["CHRONEX_RECOVERY"] = "true" if request.recovery else "false"
    if request.fire_count:
        variables["CHRONEX_FIRE_COUNT"] = str(request.fire_count)
    if request.epoch:
        variables["CHRONEX_EPOCH"] = str(request.epoch)
    if request.fence:
        variables["CHRONEX_FENCE"] = str(request.fence)
    if request.last_run_ms is not None:
        variables["CHRONEX_LAST_RUN"] = instant_text(request.last_run_ms)
    if request.span_start_ms is not None:
        variables["CHRONEX_SPAN_START"] = instant_text(request.span_start_ms)
    if request.span_end_ms is not None:
        variables["CHRONEX_SPAN_END"] = instant_text(request.span_end_ms)
    if request.idempotency_key:
        variables["CHRONEX_IDEMPOTENCY_KEY"] = request.idempotency_key
    named = (("META", request.metadata), ("PARAM", request.parameters), ("MATRIX", request.matrix))
    handed = ((f"FROM_{source}", values) for source, values in sorted(request.inputs.items()))
    for kind, values in (*named, *handed):
        prefix = f"CHRONEX_{_NOT_IN_A_NAME.sub('_', kind.upper())}_"
        # Of two keys that look the same in capitals, the first in the order of their text is given.
        for key in sorted(values):
            variables.setdefault(prefix + _NOT_IN_A_NAME.sub("_", key.upper()), values[key])
    return variables


def marks_of(request: AttemptRequest) -> Marks:
    """What every process of the attempt has in its environment, and no other process of this machine.

    Its id alone is not enough: job and second make it, and a scheduler on another store may have the same of both.
    """
    marks = {ATTEMPT_VARIABLE: request.attempt_id, **request.extra_environment}
    return frozenset(f"{name}={value}".encode("utf-8", "surrogateescape") for name, value in marks.items())


def rules_of(request: AttemptRequest) -> CommandRules:
    """What counts of the request once its command runs."""
    return CommandRules(
        attempt_id=request.attempt_id,
        timeout_ms=request.timeout_ms,
        grace_ms=request.grace_ms,
        success_codes=request.success_codes,
        retry_codes=request.retry_codes,
        leftovers=request.leftovers,
        log_limit=request.log_limit,
        marks=marks_of(request),
    )


@lru_cache(maxsize=256)
def instant_text(at_ms: int) -> str:
    """An instant in UTC as RFC 3339, with milliseconds only where there are some."""
    instant = utc_datetime(at_ms)
    precision = "milliseconds" if at_ms % 1000 else "seconds"
    return instant.isoformat(timespec=precision).replace("+00:00", "Z")


# -- where an attempt stands in a trace -----------------------------------------------------------------------------

# One occurrence is a trace; its attempts are spans below its own. Ids follow from those of occurrence and attempt, so
# that telling twice tells one thing. These follow from job and time, which two machines may have in common: so the
# store is in it too, and the machine where the store is a directory.
_SHARED = "postgresql://"


def trace_parent(request: AttemptRequest) -> str:
    """As W3C has it. Sampled only where the span itself is told, or readers of the trace would wait for it."""
    store = request.extra_environment.get("CHRONEX_STORE", "")
    trace, span = trace_id(request.occurrence_id, store), span_id(request.attempt_id, store)
    return f"00-{trace:032x}-{span:016x}-{int(request.is_traced):02x}"


def trace_id(occurrence: str, store: str) -> int:
    return _number("trace", occurrence, store, 16)


def span_id(record: str, store: str) -> int:
    """Of an occurrence or an attempt, by its id."""
    return _number("span", record, store, 8)


def _number(kind: str, record: str, store: str, size: int) -> int:
    text = "\0".join((kind, record, store, "" if store.startswith(_SHARED) else machine_name()))
    found = blake2b(text.encode("utf-8", "surrogateescape"), digest_size=size).digest()
    return int.from_bytes(found) or 1  # nothing but zeros is no id


@lru_cache(maxsize=1)
def machine_name() -> str:
    return os.uname().nodename


def _add(variables: Variables, source: Mapping[str, str]) -> NotStarted | None:
    """Quick where all is well, which is nearly always; this is done for every start."""
    names, values = "".join(source), "".join(source.values())
    if "\0" in names or "=" in names or "" in source or "\0" in values:
        return _fault(source)
    try:
        for name, value in source.items():
            variables[name.encode("utf-8", "surrogateescape")] = value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return _fault(source)
    return None


def _fault(source: Mapping[str, str]) -> NotStarted:
    for name, value in source.items():
        if not name or "=" in name or "\0" in name:
            return NotStarted(f"{_shown(name)} cannot name an environment variable", retryable=False)
        if "\0" in value:
            return NotStarted(f"the value of {_shown(name)} contains a NUL character", retryable=False)
        try:
            (name + value).encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            return NotStarted(f"{_shown(name)} cannot be written as bytes", retryable=False)
    raise AssertionError("called without a fault")


def _shown(name: str) -> str:
    return ascii(name[:80])
