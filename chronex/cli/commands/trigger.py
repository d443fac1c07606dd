"""`chronex trigger`: run a job now."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from chronex.cli.options import Form, JobName, StorePath, UsageError, Wait, check_format, choose, read_duration
from chronex.cli.output import print_result

if TYPE_CHECKING:
    from chronex.engine.commands import Triggered
    from chronex.model.occurrence import Occurrence
    from chronex.model.policies import Overrides

_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*", re.ASCII)


def trigger(
    job: JobName,
    param: Annotated[
        list[str] | None,
        typer.Option("--param", help="name=value, given to it as CHRONEX_PARAM_NAME.", metavar="K=V"),
    ] = None,
    key: Annotated[
        str,
        typer.Option(
            "--idempotency-key",
            help="A name for this request: while it is kept, asking again with it runs nothing.",
            metavar="KEY",
        ),
    ] = "",
    ttl: Annotated[str | None, typer.Option(help="How long the key lives (default: 1d).", metavar="DURATION")] = None,
    only: Annotated[list[str] | None, typer.Option(help="Only this task; may be repeated.", metavar="TASK")] = None,
    timeout: Annotated[
        str | None, typer.Option(help="At most this long, instead of the job's timeouts.", metavar="DURATION")
    ] = None,
    retry: Annotated[
        int | None, typer.Option(help="Retry a failed task at most this often.", metavar="N", min=0, max=1_000)
    ] = None,
    on_failure: Annotated[
        str | None, typer.Option(help="fail_fast, continue or retry_on_failure.", metavar="STRATEGY")
    ] = None,
    wait: Wait = False,
    store: StorePath = None,
    form: Form = "text",
) -> int:
    """Run a job now; its overlap policy is respected. Exit 1: it was skipped, or it went wrong with --wait.

    Example: chronex trigger backup --param level=full --wait
    """
    check_format(form)
    parameters = parameters_of(param or [])
    ttl_ms = read_duration("--ttl", ttl)
    if ttl is not None and not key:
        raise UsageError("--ttl needs --idempotency-key: it says how long that key lives")
    given = Given(parameters, key, ttl_ms, tuple(only or ()), overrides_of(timeout, retry, on_failure))
    return run_trigger(job, given, wait=wait, store=store, form=form)


class Given(NamedTuple):
    """What a trigger gives the run: parameters, the idempotency key with its time to live, tasks, policies."""

    parameters: dict[str, str]
    key: str
    ttl_ms: int | None
    only: tuple[str, ...] = ()
    overrides: Overrides | None = None


def overrides_of(timeout: str | None, retry: int | None, on_failure: str | None) -> Overrides | None:
    """None where nothing is given: the job's own policies hold."""
    from chronex.model.policies import FailureStrategy, Overrides

    timeout_ms = read_duration("--timeout", timeout)
    strategy = None
    if on_failure is not None:
        choose("--on-failure", on_failure, tuple(known.value for known in FailureStrategy))
        strategy = FailureStrategy(on_failure)
    given = Overrides(timeout_ms=timeout_ms, retries=retry, on_failure=strategy)
    return None if given == Overrides() else given


def parameters_of(pairs: list[str]) -> dict[str, str]:
    """`--param name=value`, each name once, and each with a variable of its own."""
    found: dict[str, str] = {}
    variables: dict[str, str] = {}
    for pair in pairs:
        name, joint, value = pair.partition("=")
        if not joint or not name:
            raise UsageError(f"--param: {pair!r} is not name=value")
        if name in found:
            raise UsageError(f"--param: {name!r} is given twice")
        if not _PARAMETER.fullmatch(name):
            raise UsageError(
                f"--param: {name!r} is not a name; use a to z, 0 to 9, _, - and ., and begin with a letter"
            )
        variable = f"CHRONEX_PARAM_{re.sub('[-.]', '_', name.upper())}"
        if variable in variables:
            raise UsageError(
                f"--param: {variables[variable]!r} and {name!r} would both be {variable}; give one of them"
            )
        found[name], variables[variable] = value, name
    return found


def run_trigger(job: str, given: Given, *, wait: bool, store: str | None, form: str) -> int:
    """0: it runs, waits, or went well; 1: it was skipped or went wrong, or no daemon is there to run it."""
    from chronex.cli.record_output import occurrence_json, occurrence_line
    from chronex.cli.store_session import open_session
    from chronex.engine import commands
    from chronex.model.states import is_final
    from chronex.storage.scopes import of_jobs

    with open_session(store) as session:
        request = commands.TriggerRequest(given.parameters, given.key, given.ttl_ms, given.only, given.overrides)
        asked = session.change(
            lambda records: commands.trigger_all(records, job, session.actor, request), scope=of_jobs(job)
        )
        has_daemon = session.has_daemon
        found = [session.follow(one.occurrence, to_the_end=wait) if has_daemon else one.occurrence for one in asked]
        shown = [{**occurrence_json(one), "daemon": has_daemon} for one in found]
        print_result(
            form, lambda: shown[0] if len(shown) == 1 else shown, lambda: [occurrence_line(one) for one in found]
        )
        if not all(is_final(one.state) for one in found):
            session.warn_without_daemon("it starts with the next one")
        return max(_exit_code(one, end, wait=wait) for one, end in zip(asked, found, strict=True))


def _exit_code(triggered: Triggered, found: Occurrence, *, wait: bool) -> int:
    from chronex.engine.commands import TriggerAnswer
    from chronex.model.reasons import ReasonCode
    from chronex.model.states import OccurrenceState, is_final

    if triggered.answer is TriggerAnswer.SKIPPED and triggered.reason.code is ReasonCode.IDEMPOTENT:
        return 0  # it was done already: asking again with the same key is safe
    if wait:
        return 0 if found.state is OccurrenceState.COMPLETED else 1
    is_bad = is_final(found.state) and found.state is not OccurrenceState.COMPLETED
    return 1 if is_bad else 0
