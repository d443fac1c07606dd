"""The values of declared secrets, fetched when a command starts: from a file, the daemon's environment, a credential
of the service, or a command that prints it. They are kept nowhere, and no message holds one."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import PurePosixPath

from chronex.clock import SYSTEM_CLOCK
from chronex.run.environment import Inheritance, untrusted_file
from chronex.run.process import is_readable_within
from chronex.run.request import AttemptRequest, NotStarted
from chronex.text.trusted_paths import UntrustedPathError, read_trusted

MOST_BYTES = 64 * 1024
COMMAND_WITHIN_S = 30.0
_COMMAND = "command:"
CREDENTIALS = "CREDENTIALS_DIRECTORY"  # where a service manager puts them, for this service alone


def needs_commands(request: AttemptRequest) -> bool:
    """Some value is printed by a command, which takes its time."""
    return any(source.startswith(_COMMAND) for source in request.secret_sources.values())


async def fetch_printed(request: AttemptRequest, inheritance: Inheritance) -> dict[str, str] | NotStarted:
    """The values of those secrets that commands print. They run as the scheduler does, not as the job's user."""
    found: dict[str, str] = {}
    for name, source in request.secret_sources.items():
        if source.startswith(_COMMAND):
            value = await _printed(name, source.removeprefix(_COMMAND), inheritance)
            if isinstance(value, NotStarted):
                return value
            found[name] = value
    return found


def secret_values(
    request: AttemptRequest, inheritance: Inheritance, printed: Mapping[str, str]
) -> dict[str, str] | NotStarted:
    """Every declared secret; `printed` are those of commands."""
    found: dict[str, str] = {}
    for name in request.secrets:
        source = request.secret_sources.get(name) or f"env:{name}"
        value = printed.get(name) or secret_value(name, source, inheritance)
        if isinstance(value, NotStarted):
            return value
        found[name] = value
    return found


def has_secret(source: str, inheritance: Inheritance) -> bool:
    """Whether this machine has it, by its place alone: what it holds is found out when a command starts."""
    kind, _, rest = source.partition(":")
    match kind:
        case "env":
            return inheritance.secret(rest) is not None
        case "file":
            return os.path.exists(rest)
        case "credential":
            directory = inheritance.secret(CREDENTIALS)
            return bool(directory) and os.path.exists(PurePosixPath(directory or "") / PurePosixPath(rest).name)
    return True


def secret_value(name: str, source: str, inheritance: Inheritance) -> str | NotStarted:
    """What is kept at `source`, which is no command; `name` is for the words where it cannot be had."""
    kind, _, rest = source.partition(":")
    match kind:
        case "env":
            value = inheritance.secret(rest)
            return value if value is not None else _not_in_environment(name, rest)
        case "file":
            return _of_file(name, rest)
        case "credential":
            return _of_credential(name, rest, inheritance)
    return NotStarted(f"the secret {_shown(name)} comes from a command, and that was not asked", retryable=True)


def _not_in_environment(name: str, variable: str) -> NotStarted:
    what = f"the secret {_shown(name)}" + ("" if variable == name else f": the variable {_shown(variable)}")
    return NotStarted(
        f"{what} is not in the daemon's environment; set it and restart the daemon",
        retryable=False,
    )


def _of_file(name: str, path: str) -> str | NotStarted:
    try:
        return _text(name, read_trusted(path, MOST_BYTES))
    except UntrustedPathError as untrusted:
        refusal = untrusted_file("its file", path, untrusted)
        return NotStarted(f"the secret {_shown(name)}: {refusal}", retryable=False)
    except OSError as problem:
        reason = (problem.strerror or str(problem)).lower()
        refusal = f"{path}: {reason}; put it there, or name another source"
        return NotStarted(f"the secret {_shown(name)}: {refusal}", problem.errno, path)


def _of_credential(name: str, credential: str, inheritance: Inheritance) -> str | NotStarted:
    directory = inheritance.secret(CREDENTIALS)
    if not directory:
        hint = f"add LoadCredential={credential}:/path to the service"
        return NotStarted(f"the secret {_shown(name)}: the daemon was given no credentials; {hint}", retryable=False)
    return _of_file(name, str(PurePosixPath(directory) / PurePosixPath(credential).name))


def _text(name: str, value: bytes) -> str | NotStarted:
    """Without the newline that editors and commands put at the end."""
    value = value.rstrip(b"\r\n")
    if not value:
        return NotStarted(f"the secret {_shown(name)} is empty", errno.ENODATA)
    if b"\0" in value:
        return NotStarted(f"the secret {_shown(name)} has a NUL character", retryable=False)
    return os.fsdecode(value)


async def _printed(name: str, command: str, inheritance: Inheritance) -> str | NotStarted:
    """What the command prints on its standard output. What it says otherwise may hold anything, and is not told."""
    try:
        process = subprocess.Popen(  # noqa: S603  the owner of the daemon wrote it into the job file
            ["/bin/sh", "-c", command], env=inheritance.variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    except OSError as problem:
        return NotStarted(f"the secret {_shown(name)}: its command: {problem.strerror}", problem.errno)
    # On a thread: asyncio's own processes wait for ever for one whose output nobody reads to its end.
    try:
        output, code = await asyncio.to_thread(_output_of, process, COMMAND_WITHIN_S)
    except asyncio.CancelledError:
        _end(process)  # and with it the thread
        raise
    except RuntimeError:  # no thread can be started: the machine's processes are used up
        _end(process)
        process.communicate()
        return NotStarted(f"the secret {_shown(name)}: no thread can be started for what its command prints")
    if len(output) > MOST_BYTES:
        return NotStarted(f"the secret {_shown(name)}: its command printed more than {MOST_BYTES} bytes")
    if code is None:
        return NotStarted(f"the secret {_shown(name)}: its command still ran after {COMMAND_WITHIN_S:g} s")
    if code != 0:
        how = f"exit code {code}" if code > 0 else f"signal {-code}"
        return NotStarted(f"the secret {_shown(name)}: its command ended with {how}; try it by hand")
    return _text(name, output)


def _output_of(process: subprocess.Popen[bytes], within_s: float) -> tuple[bytes, int | None]:
    """What it printed, a little more than is allowed at most, and its exit code; None where it had to be ended."""
    assert process.stdout is not None
    deadline_ms = SYSTEM_CLOCK.monotonic_ms() + round(within_s * 1000)
    output = b""
    code: int | None = None
    with process.stdout as printed:
        while len(output) <= MOST_BYTES:
            left_s = (deadline_ms - SYSTEM_CLOCK.monotonic_ms()) / 1000
            if left_s <= 0 or not is_readable_within(printed.fileno(), left_s):
                break
            chunk = os.read(printed.fileno(), MOST_BYTES)
            if not chunk:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    code = process.wait(max(0.0, (deadline_ms - SYSTEM_CLOCK.monotonic_ms()) / 1000))
                break
            output += chunk
    if code is None:
        _end(process)
        process.wait()
    return output, code


def _end(process: subprocess.Popen[bytes]) -> None:
    """With everything that it has started; what is over is no harm."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _shown(name: str) -> str:
    return ascii(name[:80])
