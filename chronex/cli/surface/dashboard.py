"""The dashboard's command: tui."""

# Annotations are values here, not text: typer would evaluate each one again at every start.

from typing import Annotated

import typer

from chronex.cli.surface.options import StorePath


def tui(
    store: StorePath = None,
    screen: Annotated[
        str, typer.Option(help="Open on jobs, runs, timeline, clock or density.", metavar="SCREEN")
    ] = "jobs",
    job: Annotated[str | None, typer.Option(help="Select this job.", metavar="JOB")] = None,
    run: Annotated[str | None, typer.Option(help="Select this run: its id, or JOB@TIME.", metavar="RUN")] = None,
    log: Annotated[bool, typer.Option("--log", help="Open the output of the selected job or run.")] = False,
    tz: Annotated[
        str | None,
        typer.Option("--tz", help="Tell times in this zone; on the clock screen, show its changes.", metavar="ZONE"),
    ] = None,
    date: Annotated[str | None, typer.Option(help="Show clock changes from this day on.", metavar="DATE")] = None,
    filter_text: Annotated[
        str, typer.Option("--filter", help="Show only what matches, such as state:failed.", metavar="TEXT")
    ] = "",
    size: Annotated[
        str | None, typer.Option(help="Columns and rows of a picture, such as 120x40.", metavar="WxH")
    ] = None,
    print_: Annotated[bool, typer.Option("--print", help="Print one frame as text and exit.")] = False,
    screenshot: Annotated[
        str | None, typer.Option(help="Write one frame to an .svg file and exit.", metavar="FILE")
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Hide everything that changes something.")] = False,
    no_mouse: Annotated[
        bool, typer.Option("--no-mouse", help="Leave the mouse to the terminal, to select text with it.")
    ] = False,
    theme: Annotated[str | None, typer.Option(help="dark, light, colorblind, ansi or mono.", metavar="THEME")] = None,
    ascii_only: Annotated[bool, typer.Option("--ascii", help="Draw with ASCII characters only.")] = False,
) -> None:
    """Look at a store live: what runs, what failed and why, what comes next. Looking never changes anything.

    Example: chronex tui --screen clock
    """
    from chronex.cli.dashboard import Asked, run_tui

    asked = Asked(
        store=store, screen=screen, job=job, run=run, log=log, tz=tz, date=date, filter=filter_text, size=size,
        print=print_, screenshot=screenshot, read_only=read_only, mouse=not no_mouse, theme=theme,
        ascii=ascii_only,
    )  # fmt: skip
    raise typer.Exit(run_tui(asked))
