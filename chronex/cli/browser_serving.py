"""`chronex tui --serve`: the server of the dashboard's pages, until it is told to stop."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from typing import TYPE_CHECKING

import msgspec

from chronex.cli.dashboard_process import this_program
from chronex.cli.options import UsageError
from chronex.cli.output import err, out

if TYPE_CHECKING:
    from chronex.cli.commands.tui import TuiOptions


def serve_dashboard(options: TuiOptions, address_text: str) -> int:
    """Say the URL and serve. The URL has the token, so it is printed for the user alone and is in no log."""
    from chronex_tui.model.browser_access import ServeAddressError, new_token, read_address

    try:
        address = read_address(address_text)
    except ServeAddressError as error:
        raise UsageError(f"--serve: {error}") from None
    try:
        from chronex_tui.browser import BrowserServer
    except ImportError:
        raise UsageError("a browser needs textual-serve; install chronex[serve]") from None
    server = BrowserServer(address, new_token(), session_command(options))
    if not address.is_loopback:
        what = "trigger, pause and cancel jobs" if options.allow_actions else "see every job and its output"
        err(f"chronex: warning: {address.shown} can be reached by other machines, without encryption;")
        err(f"chronex: warning: whoever has the URL can {what}")
    try:
        return asyncio.run(_serve(server))
    except OSError as error:
        raise UsageError(f"--serve: {address.shown} cannot be used: {_why(error)}") from None


def _why(error: OSError) -> str:
    """What the system said, without the words that asyncio puts around it."""
    number = error.errno or 0
    said = os.strerror(number).lower() if number > 0 else str(error)
    return f"{said}; choose another port" if number in (errno.EADDRINUSE, errno.EACCES) else said


async def _serve(server: object) -> int:
    from chronex_tui.browser import BrowserServer, serve

    assert isinstance(server, BrowserServer)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    await serve(server, _say_url, stop)
    return 0


def _say_url(url: str) -> None:
    out(f"The dashboard is at {url}")
    out("Whoever has this address can see it. Ctrl-C ends it; the daemon goes on.")


def session_command(options: TuiOptions) -> list[str]:
    """What starts the dashboard of one page: this program, with the options as one argument."""
    return [*this_program(), "browser-session", msgspec.json.encode(options).decode()]
