"""`chronex state get|set|list`."""

# Annotations are values here, not text: typer would evaluate each one again at every start.

from typing import Annotated

import typer

from chronex.cli.surface.options import Form, StorePath

state = typer.Typer(
    help="Small values that a task keeps between its runs.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Name = Annotated[str, typer.Argument(help="The value's name.", metavar="NAME")]
OfJob = Annotated[str | None, typer.Option("--job", help="The job (default: the one that runs this).", metavar="JOB")]
OfTask = Annotated[
    str | None, typer.Option("--task", help="The task (default: the one that runs this, or the only one).")
]


@state.command("get")
def get(name: Name, job: OfJob = None, task: OfTask = None, store: StorePath = None, form: Form = "text") -> None:
    """Print a value. Exit 1: there is none of that name.

    Example: chronex state get cursor --job import
    """
    from chronex.cli import task_state
    from chronex.cli.expressions import choose

    choose("--format", form, ("text", "json"))
    raise typer.Exit(task_state.run_get(name, job, task, store, form))


@state.command("set")
def set_value(
    name: Name,
    value: Annotated[str | None, typer.Argument(help="The value; none with --remove.", metavar="VALUE")] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Forget it.")] = False,
    job: OfJob = None,
    task: OfTask = None,
    store: StorePath = None,
) -> None:
    """Keep a value. Inside a run it counts when the attempt succeeds, and not at all when it fails.

    Example: chronex state set cursor 4711 --job import
    """
    from chronex.cli import task_state

    raise typer.Exit(task_state.run_set(name, value, remove, job, task, store))


@state.command("list")
def list_values(job: OfJob = None, task: OfTask = None, store: StorePath = None, form: Form = "text") -> None:
    """List the values of a task.

    Example: chronex state list --job import
    """
    from chronex.cli import task_state
    from chronex.cli.expressions import choose

    choose("--format", form, ("text", "json"))
    raise typer.Exit(task_state.run_list(job, task, store, form))
