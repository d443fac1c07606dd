"""The command line. `main` is the entry point; everything a command needs is imported when it runs."""

from __future__ import annotations

import gc
import os
import sys

# A command imports most of what it needs when it runs: the default of 700 would be a search every few modules.
_OBJECTS_BEFORE_SEARCH = 10_000


def main() -> None:
    """Run a command; whatever happens, the user sees sentences and an exit code, never a traceback."""
    # Imports make thousands of objects that live as long as the process: searching them for cycles costs a twelfth of
    # a short command. Afterwards they are left out of every search.
    gc.disable()
    try:
        code = _run()
    except KeyboardInterrupt:  # also one that comes while modules are imported
        code = 130
    # The interpreter searches for cycles once more when it ends; all memory goes back to the system anyway.
    gc.freeze()
    sys.exit(code if isinstance(code, int) else 0)


def _run() -> object:
    """The exit code, or what a command without one returns."""
    from chronex.cli.app import app_for, normalized
    from chronex.errors import ChronexError

    _open_missing_streams()
    arguments = normalized(sys.argv[1:])
    try:
        app = app_for(arguments)
        gc.freeze()
        gc.set_threshold(_OBJECTS_BEFORE_SEARCH)
        gc.enable()
        code: object = app(arguments, prog_name="chronex", standalone_mode=False)
        if not sys.stdout.closed:  # the language server closes it when it exits
            sys.stdout.flush()
        return code
    except ChronexError as error:
        _print_error(str(error), names_position=error.names_position)
        return error.exit_code
    except (BrokenPipeError, SystemExit):
        # The reader (head, less) has gone, which typer turns into an exit of its own. The interpreter flushes
        # standard output once more when it ends, and would complain about that.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except Exception as error:
        return _report_failure(error)


def _open_missing_streams() -> None:
    """After `>&-` files of the store would get the numbers of the standard streams, and output would damage them."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115


def _print_error(sentence: str, *, names_position: bool = False) -> None:
    """As `chronex: …`, or as `FILE:LINE:COLUMN: …`, which editors and terminals take for a link."""
    from chronex.cli.output import err
    from chronex.text.terminal import terminal_safe

    said = sentence if names_position else f"chronex: {sentence}"
    err("\n".join(terminal_safe(line) for line in said.split("\n")))


def _report_failure(error: Exception) -> int:
    """Bad usage, a refusal of the system, or a defect of Chronex: each is one sentence."""
    from chronex.cli import failures

    if failures.is_help(error):
        print(error, file=sys.stderr)  # noqa: T201
        return 2
    if (sentence := failures.usage_sentence(error)) is not None:
        _print_error(sentence)
        return 2
    if type(error).__name__ == "Abort":
        return 130
    if isinstance(error, UnicodeEncodeError) and error.encoding == "utf-8":
        from chronex.text.terminal import utf8_sentence

        _print_error(utf8_sentence(error))
        return 2
    if os.environ.get("CHRONEX_DEBUG"):
        raise error
    if isinstance(error, OSError) and error.errno is not None:
        if error.filename is None:
            # The interpreter would try to write the same output again when it ends, and would complain.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        _print_error(failures.system_sentence(error))
        return 1
    _print_error(f"this should not have happened ({type(error).__name__}: {error}); CHRONEX_DEBUG=1 shows where")
    return 1
