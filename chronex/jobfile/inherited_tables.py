"""The tables that a job inherits from [defaults] and a task from its job: policies, commands and the environment."""

from __future__ import annotations

import math
import re
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from chronex.jobfile.entries import Entry, Reader, RefusedError, read_each, read_table
from chronex.jobfile.positions import MAX_DEPTH
from chronex.jobfile.process_table import PROCESS, merged_limits, secret_source
from chronex.jobfile.values import (
    choice_of,
    codes,
    duration,
    filled_text,
    number,
    one_of,
    positive_duration,
    refuse_duplicates,
    text,
    text_table,
    whole_number,
    yes_or_no,
)
from chronex.model.job import ONLY_ZERO, Call, Command, Work
from chronex.model.policies import (
    SHORTEST_PAUSE_MS,
    CrashCheck,
    CrashPolicy,
    DstSetting,
    RecoveryPolicy,
    RecoveryStrategy,
    ResourceLimits,
    RetryPolicy,
)
from chronex.text.durations import format_duration
from chronex.text.terminal import quoted

Given = dict[str, Any]

UNLIMITED = "unlimited"
MAX_RETRIES = 1_000_000
MAX_BACKOFF = 1_000
MAX_RECOVERED = 1_000_000
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
# Chronex sets these for every attempt, so a value of the user's would be lost.
_OURS = re.compile(
    r"CHRONEX_(?:JOB|TASK|OCCURRENCE|ATTEMPT|ATTEMPT_NUMBER|RUN_ID|VERSION|RECOVERY|FIRE_COUNT|EPOCH|FENCE|LAST_RUN|"
    r"SCHEDULED_TIME|SPAN_START|SPAN_END|IDEMPOTENCY_KEY|STORE|META_.*|PARAM_.*)",
    re.ASCII,
)

# -- what a task runs, and in which environment ---------------------------------------------------------------


def command(entry: Entry) -> Command:
    """A list is argv; text goes to the shell."""
    if isinstance(entry.value, str):
        line = text(entry)
        if not line.strip():
            entry.refuse(f"{entry.label} is empty", 'write a command, such as "make backup"', "J019")
        return line
    if not isinstance(entry.value, list):
        entry.refuse_type("a list of arguments or a line for the shell", entry.assignment('["echo", "hello"]'))
    argv: list[str] = read_each(entry, text)
    if not argv or not argv[0].strip():
        hint = 'name the program first, such as ["echo", "hello"]'
        entry.refuse(f"{entry.label} names no program", hint, "J019")
    return tuple(argv)


def work(entry: Entry) -> Work:
    """A command, or the call of a function, which only a program can write."""
    if not isinstance(entry.value, Call):
        return command(entry)
    call = entry.value
    if not isinstance(call.target, str) or not call.target.strip() or "\0" in call.target:
        entry.refuse(f"{entry.label} calls a function without a name", 'write Call("send_mail")', "J019")
    _check_storable(entry, call)
    return call


def _check_storable(entry: Entry, call: Call) -> None:
    """The function is given what the store gives back, so that must be what was written."""
    args: object = call.args
    kwargs: object = call.kwargs
    if not isinstance(args, list | tuple) or not isinstance(kwargs, dict):
        hint = 'write args=("ann",) and kwargs={"copies": 2}'
        entry.refuse(f"args of {quoted(call.target)} is a list, and kwargs a table", hint, "J019")
    if not _is_storable(args) or not _is_storable(kwargs):
        hint = "give text, numbers, lists and tables, or bind other values with functools.partial"
        entry.refuse(f"the arguments of {quoted(call.target)} cannot be stored", hint, "J019")


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, as Python makes of a byte that is no character
        return False
    return True


def _is_storable(value: object, depth: int = 0) -> bool:
    if depth > MAX_DEPTH:
        return False
    if isinstance(value, list | tuple):
        return all(_is_storable(one, depth + 1) for one in value)
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_storable(one, depth + 1) for key, one in value.items())
    if isinstance(value, int):
        return -(2**63) <= value < 2**63
    if type(value) is str:
        return _is_encodable(value)
    return value is None or (type(value) is float and math.isfinite(value))


def environment(entry: Entry) -> dict[str, str]:
    found = text_table(entry)
    for name in tuple(found):
        try:
            check_variable(entry.child(name), name, at_key=True)
        except RefusedError:
            del found[name]
    return found


def secrets(entry: Entry) -> dict[str, str]:
    """Names of variables and where each value comes from; a list names those that the daemon's environment holds."""
    if isinstance(entry.value, dict):
        return _secret_table(entry)
    if not isinstance(entry.value, list):
        entry.refuse_type("a table or a list of names", entry.assignment('{ PGPASSWORD = "file:/run/secrets/pg" }'))
    found: list[str] = read_each(entry, _variable)
    refuse_duplicates(entry, found)
    return dict.fromkeys(found, "")


def _secret_table(entry: Entry) -> dict[str, str]:
    table = entry.expect_table()
    found: dict[str, str] = read_table(entry, dict.fromkeys(table, secret_source))
    for name in table:
        try:
            check_variable(entry.child(name), name, at_key=True)
        except RefusedError:
            found.pop(name, None)
    return found


def _variable(entry: Entry) -> str:
    name = text(entry)
    check_variable(entry, name)
    return name


def check_variable(entry: Entry, name: str, *, at_key: bool = False) -> None:
    span = entry.key_span if at_key else None
    if not _VARIABLE.fullmatch(name):
        hint = "use letters, digits and _, and no digit first"
        entry.refuse(f"{quoted(name)} cannot name a variable", hint, "J020", span)
    if _OURS.fullmatch(name):
        entry.refuse(f"{name} is set by Chronex itself", "choose another name", "J020", span)


def _success_codes(entry: Entry) -> tuple[int, ...]:
    found = codes(entry)
    if not found:
        entry.refuse(f"{entry.label} names no code, so nothing would succeed", "write [0]", "J014")
    return found


ENVIRONMENT: dict[str, Reader] = {
    "env": environment,
    "secrets": secrets,
    "directory": filled_text,
    "success_codes": _success_codes,
    "retry_codes": codes,
    **PROCESS,
}


class TaskEnvironment(Struct, frozen=True):
    env: dict[str, str] = {}
    secrets: tuple[str, ...] = ()
    secret_sources: dict[str, str] = {}
    directory: str | None = None
    success_codes: tuple[int, ...] = ONLY_ZERO
    retry_codes: tuple[int, ...] | None = None
    env_file: tuple[str, ...] = ()
    user: str | None = None
    group: str | None = None
    umask: str | None = None
    nice: int | None = None
    limits: ResourceLimits | None = None

    def within(self, entry: Entry, given: dict[str, Any]) -> TaskEnvironment:
        """These, as the level of `entry` changes them."""
        own = {key: given[key] for key in ENVIRONMENT if key in given}
        env = {**self.env, **own.get("env", {})}
        named: dict[str, str] = own.get("secrets", {})
        sources = {name: where for name, where in {**self.secret_sources, **named}.items() if where}
        added = {
            "env": env,
            "secrets": tuple(dict.fromkeys((*self.secrets, *named))),
            "secret_sources": sources,
            "env_file": tuple(dict.fromkeys((*self.env_file, *own.get("env_file", ())))),
            "limits": merged_limits(self.limits, own["limits"]) if "limits" in own else self.limits,
        }
        merged = replace(self, **{**own, **added})
        _check_secrets_apart(entry, own, merged)
        _check_codes_apart(entry, own, merged)
        return merged


def _check_secrets_apart(entry: Entry, own: dict[str, Any], merged: TaskEnvironment) -> None:
    """Report a name that is both a secret and in env: its value would stand in the file."""
    hint = "remove it from env"
    reported = set[str]()
    written = entry.child("secrets") if own.get("secrets") else entry
    for index, name in enumerate(own.get("secrets", {})):
        if name in merged.env:
            place = written.child(name if isinstance(written.value, dict) else index)
            span = place.key_span if isinstance(written.value, dict) else None
            place.report(f"{quoted(name)} is both in secrets and in env", hint, "J020", span)
            reported.add(name)
    for name in own.get("env", {}):
        if name in merged.secrets and name not in reported:
            variable = entry.child("env").child(name)
            variable.report(f"{quoted(name)} is both in secrets and in env", hint, "J020", variable.key_span)


def _check_codes_apart(entry: Entry, own: dict[str, Any], merged: TaskEnvironment) -> None:
    key = "retry_codes" if "retry_codes" in own else "success_codes"
    both = sorted(set(merged.success_codes) & set(merged.retry_codes or ()))
    if key in own and both:
        message = f"exit code {both[0]} is both in success_codes and in retry_codes"
        entry.child(key).report(message, "remove it from one of them", "J024")


# -- retry, recovery, clock changes ---------------------------------------------------------------------------


def _retry_count(entry: Entry) -> int | None:
    if entry.value == UNLIMITED:
        return None
    if isinstance(entry.value, str):
        entry.refuse_type(f'a whole number or "{UNLIMITED}"', entry.assignment("3"))
    return whole_number(0, MAX_RETRIES)(entry)


RETRY: dict[str, Reader] = {
    "max": _retry_count,
    "interval": duration,
    "backoff": number(1, MAX_BACKOFF),
    "max_interval": positive_duration,
    "jitter": number(0, 1),
    "newest_wins": yes_or_no,
}
RECOVERY: dict[str, Reader] = {
    "strategy": choice_of(RecoveryStrategy),
    "max_count": whole_number(1, MAX_RECOVERED),
    "max_age": positive_duration,
}
DST: dict[str, Reader] = {
    "gap": one_of("end", "skip"),
    "overlap": one_of("first", "both", "by-kind"),
}
_FIELDS = {"interval": "interval_ms", "max_interval": "max_interval_ms", "max_age": "max_age_ms"}


def retry(entry: Entry) -> Given:
    """A table, or just the number of retries."""
    if isinstance(entry.value, int) and not isinstance(entry.value, bool):
        return {"max": _retry_count(entry)}
    if entry.value == UNLIMITED:
        return {"max": None}
    example = entry.assignment('{ max = 3, interval = "30s" }')
    if not isinstance(entry.value, dict):
        entry.refuse_type("a table or a number of retries", example)
    return _fields(read_table(entry, RETRY))


def merged_retry(base: RetryPolicy, given: Given, entry: Entry) -> RetryPolicy:
    """`base` with the given keys changed; `entry` is the retry that gave them."""
    merged = replace(base, **given)
    for key, shown in (("interval", merged.interval_ms), ("max_interval", merged.longest_ms)):
        if _FIELDS[key] in given and shown < SHORTEST_PAUSE_MS:
            least = format_duration(SHORTEST_PAUSE_MS)
            message = f"no pause is shorter than {least}, so {key} counts as that"
            entry.child(key).warn(message, f'write {key} = "{least}" or more', "J103")
    if merged.max_interval_ms is not None and merged.max_interval_ms < merged.interval_ms:
        message = "max_interval is shorter than interval, so every pause is max_interval"
        entry.warn(message, "make interval shorter or max_interval longer", "J101", entry.key_span)
    return merged


def recovery(entry: Entry) -> Given:
    """A table, or just the strategy."""
    if isinstance(entry.value, str):
        return {"strategy": choice_of(RecoveryStrategy)(entry)}
    if not isinstance(entry.value, dict):
        entry.refuse_type("a strategy or a table", entry.assignment('"execute_last"'))
    return _fields(read_table(entry, RECOVERY))


def merged_recovery(base: RecoveryPolicy, given: Given, entry: Entry) -> RecoveryPolicy:
    """A strategy that is named starts afresh; bounds alone tighten the inherited one."""
    merged = RecoveryPolicy(**given) if "strategy" in given else replace(base, **given)
    has_bounds = merged.max_count is not None or merged.max_age_ms is not None
    refused = isinstance(entry.value, dict) and len(given) < len(entry.value)  # a bound may be there, but bad
    if merged.strategy is RecoveryStrategy.BOUNDED and not has_bounds and not refused:
        hint = f'write {entry.label} = {{ strategy = "bounded", max_count = 10 }}, or with max_age = "1d"'
        entry.report("bounded needs max_count or max_age", hint, "J012")
    if merged.strategy is not RecoveryStrategy.BOUNDED and has_bounds:
        hint = 'write strategy = "bounded", or remove them'
        entry.report(f"max_count and max_age do not go with {merged.strategy}", hint, "J024")
    return merged


CRASH: dict[str, Reader] = {"check": command}


def on_crash(entry: Entry) -> CrashPolicy | CrashCheck:
    """One of the words, or a command that looks."""
    if isinstance(entry.value, str):
        return choice_of(CrashPolicy)(entry)
    example = entry.assignment('{ check = ["test", "-e", "/backup/done"] }')
    if not isinstance(entry.value, dict):
        entry.refuse_type("retry, fail or a table with a check", example)
    found = read_table(entry, CRASH, example)
    if not entry.value:
        entry.refuse(f"{entry.label} has no check", f"write {example}", "J012")
    if "check" not in found:
        raise RefusedError
    return CrashCheck(found["check"])


def dst(entry: Entry) -> Given:
    return read_table(entry, DST, entry.assignment('{ gap = "skip", overlap = "first" }'))


def dst_policy(given: Given, dialect: str) -> DstSetting:
    """What is not given is the dialect's own rule."""
    own = DstSetting(gap="skip", overlap="first") if dialect == "posix" else DstSetting()
    return replace(own, **given)


def _fields(given: Given) -> Given:
    return {_FIELDS.get(key, key): value for key, value in given.items()}
