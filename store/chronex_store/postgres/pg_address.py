"""The address of a store on PostgreSQL: what is handed to libpq, in which schema it lies, and how it is shown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from chronex.errors import StoreRefusedError

SCHEMES = ("postgresql://", "postgres://")
DEFAULT_SCHEMA = "chronex"
_SCHEMA_NAME = re.compile(r"[a-z_][a-z0-9_]{0,40}")


@dataclass(frozen=True)
class PostgresAddress:
    """`url` may hold a password; `shown` never does."""

    url: str
    schema: str
    shown: str

    def __repr__(self) -> str:
        return f"PostgresAddress({self.shown!r})"


def is_postgres(text: str) -> bool:
    return text.startswith(SCHEMES)


def read_address(text: str) -> PostgresAddress:
    """The address that a `--store` names; StoreRefusedError with what is wrong, and never with the password."""
    try:
        parts = urlsplit(text)
        _ = parts.port
        options = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        raise StoreRefusedError(
            "the address of the store cannot be read; write it as postgresql://user@host:5432/database, and an @, : "
            "or / inside a password as %40, %3A or %2F"
        ) from None
    schema = next((value for name, value in options if name == "schema"), DEFAULT_SCHEMA)
    if not _SCHEMA_NAME.fullmatch(schema):
        raise StoreRefusedError(
            f"schema={schema} is no name that can be used; use a-z, 0-9 and _, at most 41 of them"
        )
    query = urlencode([(name, value) for name, value in options if name != "schema"])
    url = urlunsplit(("postgresql", parts.netloc, parts.path, query, ""))
    return PostgresAddress(url, schema, _without_password(text))


def _without_password(text: str) -> str:
    parts = urlsplit(text)
    user, at, host = parts.netloc.rpartition("@")
    shown = [(name, "…" if name == "password" else value) for name, value in parse_qsl(parts.query)]
    return urlunsplit((parts.scheme, user.partition(":")[0] + at + host, parts.path, urlencode(shown, safe="/…"), ""))
