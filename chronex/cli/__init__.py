"""The command line. `main` is the entry point; everything a command needs is imported when it runs."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run a command; whatever happens, the user sees sentences and an exit code, never a traceback."""
    from chronex.cli.app import app_for
    from chronex.errors import ChronexError

    try:
        code = app_for(sys.argv[1:])(standalone_mode=False)
    except ChronexError as error:
        _say(str(error))
        code = error.exit_code
    except BrokenPipeError:
        # The reader (head, less) has gone; keep the interpreter from complaining while it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except KeyboardInterrupt:
        code = 130
    except Exception as error:
        code = _report_unforeseen(error)
    sys.exit(code if isinstance(code, int) else 0)


def _say(sentence: str) -> None:
    print(f"chronex: {sentence}", file=sys.stderr)  # noqa: T201


def _report_unforeseen(error: Exception) -> int:
    """Usage errors carry their own text and code; anything else is a defect of ours, told in one sentence."""
    show = getattr(error, "show", None)
    if callable(show):
        show()
        return int(getattr(error, "exit_code", 2))
    if type(error).__name__ == "Abort":
        return 130
    if os.environ.get("CHRONEX_DEBUG"):
        raise error
    _say(f"this should not have happened ({type(error).__name__}: {error}); CHRONEX_DEBUG=1 shows where")
    return 1
