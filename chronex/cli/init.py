"""`chronex init`: a commented job file to start from."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from secrets import token_hex

from chronex.cli.arguments import UsageError
from chronex.cli.terminal import inert, out
from chronex.jobfile.starter import STARTER

_OWN_FILE = 0o600
_OWN_DIRECTORY = 0o700


def init(path: Path, force: bool) -> int:
    """Write the starter file. A file that is there stays as it is unless `force`; then it changes at once."""
    name = inert(str(path))
    if not force and os.path.lexists(path):
        raise UsageError(f"{name} is there already; --force replaces it, or choose another --config")
    if os.path.isdir(path):
        raise UsageError(f"{name} is a directory; name the file itself, such as {inert(str(path / 'chronex.toml'))}")
    try:
        make_directories(path.parent)
        write_file(path, STARTER.encode(), replace=force)
    except FileExistsError:
        raise UsageError(f"{name} is there already; --force replaces it, or choose another --config") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(f"cannot write {name}: {reason}; choose another place with --config") from None
    out(f"wrote {name} with one job; start it with: chronex run --config {shlex.quote(name)}")
    return 0


def make_directories(directory: Path) -> None:
    """Those that are missing, closed to others whatever the umask is."""
    if os.path.isdir(directory):
        return
    make_directories(directory.parent)
    try:
        directory.mkdir(_OWN_DIRECTORY)
    except FileExistsError:
        return  # made by someone else just now; when it is no directory, writing says so
    directory.chmod(_OWN_DIRECTORY)


def write_file(path: Path, content: bytes, *, replace: bool) -> None:
    """A whole file or none, and never through a link: a new file, which takes the old one's place at the end."""
    new = path.with_name(f".{path.name[:100]}.{token_hex(6)}") if replace else path
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _OWN_FILE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), _OWN_FILE)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
