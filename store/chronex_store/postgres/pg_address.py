"""The address of a store on PostgreSQL: what is handed to libpq, in which schema it lies, and how it is shown."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import unquote

from chronex.errors import StoreRefusedError

SCHEMES = ("postgresql://", "postgres://")
DEFAULT_SCHEMA = "chronex"
_SCHEMA_NAME = re.compile(r"[a-z_][a-z0-9_]{0,40}")
_OPTION_NAME = re.compile(r"[a-z_]{1,40}")
_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")
_HOST = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[^:\[\]]*)(?::(?P<port>[0-9]{1,5}))?")
# What these hold is never shown.
_SECRETS = ("password", "sslpassword", "passfile")
_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")
_HINT = (
    "write it as postgresql://user@host:5432/database, "
    "and an @, :, / or % inside a name or password as %40, %3A, %2F or %25"
)
_UNREADABLE = "the address of the store cannot be read"


@dataclass(frozen=True)
class PostgresAddress:
    """`parameters` may hold a password, and are given to libpq alone; `shown` never does."""

    parameters: dict[str, str] = field(repr=False)
    schema: str
    shown: str

    def __hash__(self) -> int:
        return hash((self.schema, self.shown))

    @property
    def is_guarded(self) -> bool:
        """Whether nobody between here and the server can read along, or stand in for it."""
        hosts = [one for one in self.parameters.get("host", "").split(",") if one]
        is_here = all(one.startswith("/") or one in _THIS_MACHINE for one in hosts)
        return is_here or self.parameters.get("sslmode") == "verify-full"

    def without_secrets(self, said: str) -> str:
        """What a library said, in case it repeats what it was given."""
        for name in _SECRETS:
            if secret := self.parameters.get(name):
                said = said.replace(secret, "…")
        return said


def is_postgres(text: str) -> bool:
    return text.lower().startswith(SCHEMES)


def read_address(text: str) -> PostgresAddress:
    """The address that a `--store` names; StoreRefusedError with what is wrong, and never with the password."""
    scheme, _, rest = text.partition("://")
    rest, _, query = rest.partition("?")
    authority, _, database = rest.partition("/")
    login, has_login, hosts = authority.rpartition("@")
    if "@" in database or (not has_login and "@" in query):
        # A password with a / or ? in it: the rest of it would be taken for the database, and shown.
        raise StoreRefusedError(f"{_UNREADABLE}: an @ stands behind the host; {_HINT}")
    user, _, password = login.partition(":")
    given = {"user": user, "password": password, "dbname": database, **_hosts(hosts), **_options(query)}
    parameters = {name: _decoded(value, is_shown=name not in _SECRETS) for name, value in given.items() if value}
    schema = parameters.pop("schema", DEFAULT_SCHEMA)
    if not _SCHEMA_NAME.fullmatch(schema):
        raise StoreRefusedError(f"schema={schema} is no name for one; use a-z, 0-9 and _, at most 41 of them")
    shown = f"{scheme.lower()}://{user}{'@' if user else ''}{hosts}{'/' if database else ''}{database}"
    shown_parts = [part for part in query.split("&") if part and part.partition("=")[0] not in _SECRETS]
    return PostgresAddress(parameters, schema, f"{shown}?{'&'.join(shown_parts)}" if shown_parts else shown)


def _hosts(text: str) -> dict[str, str]:
    """One host or, for a database that fails over, several: libpq tries them in turn."""
    found = [_HOST.fullmatch(one) for one in text.split(",")]
    if not all(found):
        raise StoreRefusedError(f"{_UNREADABLE}: a host is wrong; {_HINT}")
    hosts = [match["host"].strip("[]") for match in found if match]
    ports = [match["port"] or "" for match in found if match]
    if any(port and not 0 < int(port) < 65_536 for port in ports):
        raise StoreRefusedError("the address of the store names a port that is none; ports are 1 to 65535")
    return {"host": ",".join(hosts).strip(","), "port": ",".join(ports) if any(ports) else ""}


def _options(query: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in filter(None, query.split("&")):
        name, separator, value = part.partition("=")
        if not separator or not _OPTION_NAME.fullmatch(name):
            raise StoreRefusedError(f"{_UNREADABLE}: after ? come name=value pairs; {_HINT}")
        found[name] = value
    return found


def _decoded(text: str, *, is_shown: bool) -> str:
    if _BAD_ESCAPE.search(text):
        raise StoreRefusedError(f"{_UNREADABLE}: a % is not followed by two digits; {_HINT}")
    try:
        found = unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise StoreRefusedError(f"{_UNREADABLE}: it is not UTF-8; {_HINT}") from None
    if "\0" in found or (is_shown and not found.isprintable()):
        raise StoreRefusedError(f"{_UNREADABLE}: it has a character that cannot be shown; {_HINT}")
    return found
