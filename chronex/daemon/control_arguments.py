"""What a program gives to the methods of its engine, checked: a refusal names the argument and says what to write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from chronex.engine.commands import AsOf
from chronex.engine.update import Policy
from chronex.errors import ChronexError
from chronex.model.policies import FailureStrategy, Overrides
from chronex.text.durations import parse_duration, suggest_duration
from chronex.text.suggestions import nearest
from chronex.views.past_runs import STATES, unknown_state

# How long something lasts: a timedelta, or a text as in a job file, such as "10m".
Span = timedelta | str
_MILLISECOND = timedelta(milliseconds=1)
_LONGEST_SHOWN = 60


def span_ms(name: str, span: Span | None) -> int | None:
    if span is None:
        return None
    if isinstance(span, timedelta):
        return span // _MILLISECOND
    if not isinstance(span, str):
        raise ChronexError(f"{name} takes a timedelta or a text such as '10m', not {type(span).__name__}")
    ms = parse_duration(span)
    if ms is None:
        meant = suggest_duration(span)
        hint = f"did you mean {meant}?" if meant else "write 10m or 2h30m, or give a timedelta"
        raise ChronexError(f"{name}: {span[:_LONGEST_SHOWN]!r} is not a duration; {hint}")
    return ms


def call_arguments(args: Iterable[Any], kwargs: Mapping[str, Any] | None) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Those of a function. A text would become one argument for each of its characters, and a set has no order."""
    if isinstance(args, str | bytes):
        raise ChronexError(
            f"args takes a list of arguments, not {type(args).__name__}; write [{args[:_LONGEST_SHOWN]!r}]"
        )
    if isinstance(args, set | frozenset | Mapping) or not isinstance(args, Iterable):
        raise ChronexError(f"args takes a list of arguments, not {type(args).__name__}")
    if not isinstance(kwargs, Mapping | None):
        raise ChronexError(f"kwargs takes a dict, not {type(kwargs).__name__}")
    for name in kwargs or {}:
        if not isinstance(name, str):
            raise ChronexError(f"kwargs takes names as its keys, not {name!r}"[:300])
    return tuple(args), dict(kwargs or {})


def check_job_name(job: str) -> str:
    if not isinstance(job, str):
        raise ChronexError(f"a job is named by text, not {type(job).__name__}")
    return job


def check_count(name: str, count: int) -> int:
    if count < 0:
        raise ChronexError(f"{name} cannot be {count}; write 0 or more")
    return count


def policy_named(text: str) -> Policy:
    return Policy(_one_of("policy", text, [policy.value for policy in Policy]))


def checked_parameters(parameters: Mapping[str, str] | None) -> Mapping[str, str]:
    if not isinstance(parameters, Mapping | None):
        raise ChronexError(f"parameters takes a dict, not {type(parameters).__name__}")
    for name, value in (parameters or {}).items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise ChronexError(
                f"a parameter is text with text as its value, not {name!r}: {value!r}; write str(…)"[:300]
            )
    return parameters or {}


def checked_states(given: str | Iterable[str]) -> frozenset[str]:
    states = frozenset([given] if isinstance(given, str) else given)
    for state in states:
        if state not in STATES:
            raise ChronexError(f"no state {state!r}; {unknown_state(state)}")
    return states


def checked_reason(text: str) -> str:
    if not text.strip():
        raise ChronexError('reason is required, for example reason="the disk was full"')
    return text


def overrides_of(timeout: Span | None, retries: int | None, on_failure: str | None) -> Overrides | None:
    """None where nothing is given: the job's own policies hold."""
    timeout_ms = span_ms("timeout", timeout)
    if timeout_ms is not None and timeout_ms <= 0:
        raise ChronexError("a timeout is longer than 0; write for example timedelta(minutes=5)")
    if retries is not None and retries < 0:
        raise ChronexError(f"a task cannot be tried again {retries} times; write 0 or more")
    known = [strategy.value for strategy in FailureStrategy]
    strategy = None if on_failure is None else FailureStrategy(_one_of("on_failure", on_failure, known))
    given = Overrides(timeout_ms=timeout_ms, retries=retries, on_failure=strategy)
    return None if given == Overrides() else given


def as_of_named(text: str) -> AsOf:
    if text not in ("then", "now"):
        raise ChronexError(f"as_of cannot be {text!r}; it is then (the version that it ran) or now")
    return AsOf(text)


def _one_of(name: str, text: str, known: list[str]) -> str:
    if text in known:
        return text
    meant = nearest(str(text), known)
    hint = f"did you mean {meant}?" if meant else f"it is one of {', '.join(known)}"
    raise ChronexError(f"{name} cannot be {text!r}; {hint}")
