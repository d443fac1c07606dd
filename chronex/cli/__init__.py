"""The command line. `main` is the entry point; everything a command needs is imported when it runs."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run a command; whatever happens, the user sees sentences and an exit code, never a traceback."""
    from chronex.cli.app import app_for, understood
    from chronex.errors import ChronexError

    _open_missing_streams()
    arguments = understood(sys.argv[1:])
    try:
        code = app_for(arguments)(arguments, prog_name="chronex", standalone_mode=False)
        if not sys.stdout.closed:  # the language server closes it when it exits
            sys.stdout.flush()
    except ChronexError as error:
        _say(str(error))
        code = error.exit_code
    except (BrokenPipeError, SystemExit):
        # The reader (head, less) has gone, which the library below turns into an exit of its own; keep the
        # interpreter from complaining while it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = 0
    except KeyboardInterrupt:
        code = 130
    except Exception as error:
        code = _report_failure(error)
    sys.exit(code if isinstance(code, int) else 0)


def _open_missing_streams() -> None:
    """With `>&-` the store's own files would get the numbers of the standard streams, and be printed into."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115


def _say(sentence: str) -> None:
    from chronex.cli.terminal import err

    err(f"chronex: {sentence}")


def _report_failure(error: Exception) -> int:
    """Bad usage, a system that refuses, or else a defect of ours: each is one sentence."""
    from chronex.cli import failures

    if failures.is_help(error):
        print(error, file=sys.stderr)  # noqa: T201
        return 2
    if (sentence := failures.usage_sentence(error)) is not None:
        _say(sentence)
        return 2
    if type(error).__name__ == "Abort":
        return 130
    if os.environ.get("CHRONEX_DEBUG"):
        raise error
    if isinstance(error, OSError) and error.errno is not None:
        if error.filename is None:
            # What could not be written must not be tried again by the interpreter, which would complain.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        _say(failures.system_sentence(error))
        return 1
    _say(f"this should not have happened ({type(error).__name__}: {error}); CHRONEX_DEBUG=1 shows where")
    return 1
