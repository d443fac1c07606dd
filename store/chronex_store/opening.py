"""Where a store is, and opening it: a directory of this machine, or a database that several machines share."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from uuid import uuid4

from chronex.errors import StoreRefusedError
from chronex.text.terminal import utf8_sentence
from chronex_store.lmdb_store import LmdbStore
from chronex_store.postgres.pg_address import PostgresAddress, read_address

if TYPE_CHECKING:
    from chronex_store.postgres.pg_store import PostgresStore

StoreLocation = Path | PostgresAddress
OpenedStore: TypeAlias = "LmdbStore | PostgresStore"
STATE_VARIABLE = "CHRONEX_STATE_DIR"
_DATABASES = ("postgresql", "postgres")
# One slash too few, or as libpq writes it in a string of its own; as a directory it would be shown with its password.
_NEARLY_AN_ADDRESS = r"(?i)postgres(ql)?:|(host|hostaddr|port|dbname|user|password|service) *="
# A name and a password before a host, whatever is wrong before them.
_CREDENTIALS = r"(?s):.*@"


def read_location(text: str) -> StoreLocation:
    """The place that a user named."""
    scheme = _scheme_of(text)
    return Path(text) if scheme is None or scheme.lower() not in _DATABASES else read_address(text)


def problem_of_store_name(text: str, source: str) -> str:
    """Why it names no store, without a word of it: it may hold a password. Empty where it does. `source` is where the
    text stands, such as --store."""
    if not text:
        return f"{source} is empty; name a directory or a postgresql:// address"
    scheme = _scheme_of(text)
    if scheme is not None and scheme.lower() not in _DATABASES:
        return f"{source} is a {scheme} address, and a store is a directory or a postgresql:// address"
    if scheme is not None:
        return ""
    if re.match(_NEARLY_AN_ADDRESS, text) or (re.search(_CREDENTIALS, text) and not Path(text).exists()):
        return f"{source} is not written as an address; write postgresql://user@host:5432/database"
    try:
        text.encode()
    except UnicodeEncodeError as error:  # LMDB takes a path as UTF-8; refused here, nothing has been made of it yet
        return utf8_sentence(error)
    return ""


def _scheme_of(text: str) -> str | None:
    """`postgresql` of "postgresql://host/name"; None for a path, which may hold any character but no `://`."""
    scheme, separator, _ = text.partition("://")
    return scheme if separator and scheme.replace("+", "").replace("-", "").isalnum() else None


def shown_location(location: StoreLocation) -> str:
    """The place in a message, without a password."""
    return location.shown if isinstance(location, PostgresAddress) else str(location)


def open_location(location: StoreLocation, *, create: bool = True) -> OpenedStore:
    """Open the store there, making it when `create`."""
    if isinstance(location, Path):
        return LmdbStore.open(location, create=create)
    return open_postgres(location, create=create)


def open_postgres(address: PostgresAddress, *, create: bool = True) -> PostgresStore:
    check_client(address)
    from chronex_store.postgres.pg_store import PostgresStore

    return PostgresStore.open(address, create=create)


def check_client(address: PostgresAddress) -> None:
    """StoreRefusedError where the client is not installed: to be asked before a module that imports it."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        hint = "install it with: pip install 'chronex[postgres]'"
        if getattr(sys, "frozen", False):
            hint = "the directory form of this program has it, and so has: pip install 'chronex[postgres]'"
        raise StoreRefusedError(
            f"{address.shown} needs the PostgreSQL client, which is not installed; {hint}"
        ) from None


def state_directory(location: StoreLocation, environ: Mapping[str, str] = os.environ) -> Path:
    """What this machine keeps of its own work on a store, logs above all: for a directory, that directory itself."""
    if isinstance(location, Path):
        return location
    if chosen := environ.get(STATE_VARIABLE):
        return Path(chosen)
    from platformdirs import user_state_path

    named = hashlib.blake2b(f"{location.shown}\0{location.schema}".encode(), digest_size=6).hexdigest()
    return user_state_path("chronex", appauthor=False) / "nodes" / named


def host_identity(directory: Path, *, create: bool = True) -> str:
    """A name for this machine, and for this view of its processes, that no other machine has.

    It lies in the state directory, so it is the same after a restart; processes of another container cannot be seen
    from here, so that is another machine although it may share the directory. Who only looks makes nothing: then a
    machine on which no node has ever worked has no name.
    """
    file = directory / "host-id"
    if not create and not file.exists():
        return ""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w") as opened:
            opened.write(uuid4().hex)
    namespace = 0
    with suppress(OSError):
        namespace = os.stat("/proc/self/ns/pid").st_ino
    return f"{file.read_text().strip()}-{namespace}"
