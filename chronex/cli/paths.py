"""Where the job file and the store are: the option, else the variable, else the platform's own directory."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from pathlib import Path

JOB_FILE = "chronex.toml"
CONFIG_VARIABLE = "CHRONEX_CONFIG"
STORE_VARIABLE = "CHRONEX_STORE"
# Paths that the shell has opened already, as `<(…)` and `< file`: a pipe there has a writer at its other end.
_OPEN_ALREADY = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")


def job_file_path(option: str | None, environ: Mapping[str, str] = os.environ) -> Path:
    """--config, else CHRONEX_CONFIG, else ./chronex.toml when there is one, else the user's own."""
    if chosen := option or environ.get(CONFIG_VARIABLE):
        return Path(chosen)
    here = Path(JOB_FILE)
    if here.exists():
        return here
    from platformdirs import user_config_path

    return user_config_path("chronex", appauthor=False) / JOB_FILE


def is_named(option: str | None, environ: Mapping[str, str] = os.environ) -> bool:
    """True where the user named a job file, which must then exist."""
    return bool(option or environ.get(CONFIG_VARIABLE))


def store_path(option: str | None, environ: Mapping[str, str] = os.environ) -> Path:
    """The store's directory: --store, else CHRONEX_STORE, else one for the user's state."""
    if chosen := option or environ.get(STORE_VARIABLE):
        return Path(chosen)
    from platformdirs import user_state_path

    return user_state_path("chronex", appauthor=False) / "store"


def read_file(path: Path, most: int) -> bytes:
    """At most so many bytes of it; OSError for a file that could block for ever, as a named pipe could."""
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode) and not str(path).startswith(_OPEN_ALREADY):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    with path.open("rb") as file:
        return file.read(most)
