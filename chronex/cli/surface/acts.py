"""Acts: trigger, pause, resume, cancel, replay, dlq."""

# Annotations are values here, not text: typer would evaluate each one again at every start.

from typing import Annotated

import typer

from chronex.cli.surface.options import Form, StorePath

JobName = Annotated[str, typer.Argument(help="The job's name.", metavar="JOB")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for the end; exit 1 unless it went well.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
AsOf = Annotated[str, typer.Option("--as-of", help="With the job's version of: then or now.", metavar="WHEN")]
OfJob = Annotated[str | None, typer.Option("--job", help="Those of this job.", metavar="JOB")]
Runs = Annotated[list[str] | None, typer.Argument(help="Ids of dead letters.", metavar="RUN…")]
All = Annotated[bool, typer.Option("--all", help="Every one of them.")]


def _check(form: str, as_of: str = "then") -> None:
    from chronex.cli.expressions import choose

    choose("--format", form, ("text", "json"))
    choose("--as-of", as_of, ("then", "now"))


def trigger(
    job: JobName,
    param: Annotated[
        list[str] | None,
        typer.Option("--param", help="name=value, given to it as CHRONEX_PARAM_NAME.", metavar="K=V"),
    ] = None,
    key: Annotated[
        str, typer.Option("--idempotency-key", help="While this key lives, asking again does nothing.", metavar="KEY")
    ] = "",
    ttl: Annotated[str | None, typer.Option(help="How long the key lives (default: 1d).", metavar="DURATION")] = None,
    wait: Wait = False,
    store: StorePath = None,
    form: Form = "text",
) -> None:
    """Run a job now; its overlap policy is respected. Exit 1: it was skipped, or it went wrong with --wait.

    Example: chronex trigger backup --param level=full --wait
    """
    from chronex.cli import acts

    _check(form)
    raise typer.Exit(acts.run_trigger(job, param or [], key, ttl, wait, store, form))


def pause(
    job: JobName,
    duration: Annotated[str | None, typer.Option("--for", help="Resume by itself.", metavar="DURATION")] = None,
    store: StorePath = None,
    form: Form = "text",
) -> None:
    """Hold a job's schedule: what is due meanwhile is skipped, with your name. What runs goes on.

    Example: chronex pause backup --for 2h
    """
    from chronex.cli import acts

    _check(form)
    raise typer.Exit(acts.run_pause(job, duration, store, form))


def resume(job: JobName, store: StorePath = None, form: Form = "text") -> None:
    """End a pause.

    Example: chronex resume backup
    """
    from chronex.cli import acts

    _check(form)
    raise typer.Exit(acts.run_resume(job, store, form))


def cancel(
    run: Annotated[
        str,
        typer.Argument(
            help="The id of an occurrence, run or attempt, a beginning of it, or JOB@TIME.", metavar="RUN"
        ),
    ],
    reason: Annotated[str, typer.Option(help="Why, for the journal.", metavar="TEXT")] = "",
    wait: Wait = False,
    store: StorePath = None,
    form: Form = "text",
) -> None:
    """Cancel an occurrence that runs or waits: TERM, then KILL after its grace period.

    Example: chronex cancel occ_1f3a9c2e
    """
    from chronex.cli import acts

    _check(form)
    raise typer.Exit(acts.run_cancel(run, reason, wait, store, form))


def replay(
    occurrence: Annotated[
        str | None, typer.Argument(help="Its id, a beginning of it, or JOB@TIME.", metavar="OCCURRENCE")
    ] = None,
    reason: Annotated[str, typer.Option(help="Why, for the journal.", metavar="TEXT")] = "",
    as_of: AsOf = "then",
    job: OfJob = None,
    since: Annotated[str | None, typer.Option("--from", help="From this ISO 8601 time on.", metavar="TIME")] = None,
    until: Annotated[str | None, typer.Option("--to", help="Before this ISO 8601 time.", metavar="TIME")] = None,
    state: Annotated[
        list[str] | None, typer.Option(help="Those that ended so (default: failed).", metavar="STATE")
    ] = None,
    yes: Yes = False,
    store: StorePath = None,
    form: Form = "text",
) -> None:
    """Run what has ended once more, at its old scheduled time; by --job and range the list is shown first.

    Example: chronex replay --job backup --from 2027-01-01 --state failed,missed --reason "disk was full"
    """
    from chronex.cli import replays

    _check(form, as_of)
    chosen = None if job is None else replays.Filter(job, since, until, replays.states_of(state or []))
    raise typer.Exit(replays.run_replay(occurrence, chosen, reason, as_of, yes, store, form))


dlq = typer.Typer(
    help="Dead letters: runs that failed for good.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@dlq.command("list")
def dlq_list(job: OfJob = None, store: StorePath = None, form: Form = "text") -> None:
    """List them, newest first.

    Example: chronex dlq list
    """
    from chronex.cli import dead_letters

    _check(form)
    raise typer.Exit(dead_letters.run_list(job, store, form))


@dlq.command("show")
def dlq_show(
    run: Annotated[str, typer.Argument(help="The id of a dead letter, or a beginning of it.", metavar="RUN")],
    store: StorePath = None,
    form: Form = "text",
) -> None:
    """Show one with its attempts, its version, and the names of what it was given.

    Example: chronex dlq show run_12ab34cd
    """
    from chronex.cli import dead_letters

    _check(form)
    raise typer.Exit(dead_letters.run_show(run, store, form))


@dlq.command("replay")
def dlq_replay(
    runs: Runs = None,
    job: OfJob = None,
    everything: All = False,
    reason: Annotated[str, typer.Option(help="Why, for the journal.", metavar="TEXT")] = "",
    as_of: AsOf = "then",
    yes: Yes = False,
    store: StorePath = None,
    form: Form = "text",
) -> None:
    """Run them again, with the tasks that their failure held up; they are dead letters no longer.

    Example: chronex dlq replay --job backup --yes
    """
    from chronex.cli import dead_letters

    _check(form, as_of)
    dead_letters.check_named(runs or [], job, everything)
    raise typer.Exit(dead_letters.run_replay(runs or [], job, reason, as_of, yes, store, form))


@dlq.command("drop")
def dlq_drop(
    runs: Runs = None,
    job: OfJob = None,
    everything: All = False,
    reason: Annotated[str, typer.Option(help="Why, for the journal.", metavar="TEXT")] = "",
    yes: Yes = False,
    store: StorePath = None,
    form: Form = "text",
) -> None:
    """Take them off the list for good; their history stays.

    Example: chronex dlq drop run_12ab34cd --reason "known"
    """
    from chronex.cli import dead_letters

    _check(form)
    dead_letters.check_named(runs or [], job, everything)
    raise typer.Exit(dead_letters.run_drop(runs or [], job, reason, yes, store, form))
