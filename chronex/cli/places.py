"""Where the job file and the store are: the option, else the variable, else the platform's own place."""

from __future__ import annotations

import errno
import stat
from collections.abc import Mapping
from pathlib import Path

from platformdirs import user_config_path, user_state_path

JOB_FILE = "chronex.toml"
CONFIG_VARIABLE = "CHRONEX_CONFIG"
STORE_VARIABLE = "CHRONEX_STORE"
# What the shell has opened already, as `<(…)` and `< file`, has somebody at its other end.
_OPENED = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")


def job_file_path(option: str | None, environ: Mapping[str, str]) -> Path:
    """--config, else CHRONEX_CONFIG, else ./chronex.toml when there is one, else the user's own."""
    if chosen := option or environ.get(CONFIG_VARIABLE):
        return Path(chosen)
    here = Path(JOB_FILE)
    return here if here.exists() else user_config_path("chronex", appauthor=False) / JOB_FILE


def is_named(option: str | None, environ: Mapping[str, str]) -> bool:
    """Was a job file asked for by name? Then it must be there."""
    return bool(option or environ.get(CONFIG_VARIABLE))


def store_path(option: str | None, environ: Mapping[str, str]) -> Path:
    """The store's directory: --store, else CHRONEX_STORE, else one for the user's state."""
    if chosen := option or environ.get(STORE_VARIABLE):
        return Path(chosen)
    return user_state_path("chronex", appauthor=False) / "store"


def read_file(path: Path, most: int) -> bytes:
    """At most so many bytes of it; OSError for what could keep us waiting for ever, as a named pipe could."""
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode) and not str(path).startswith(_OPENED):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    with path.open("rb") as file:
        return file.read(most)
