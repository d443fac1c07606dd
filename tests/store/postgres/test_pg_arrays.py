"""Columns as binary arrays: what the server reads is what was given, and what does not fit is refused as before."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from chronex_store.postgres.pg_address import read_address
from chronex_store.postgres.pg_arrays import ArrayColumn
from chronex_store.postgres.pg_connections import Connections


@pytest.mark.parametrize(
    ("kind", "items"),
    [
        ("bytea", [b"", b"\0\xff", None, b"x" * 70_000]),
        ("text", ["", 'a "quoted" \\ {word},', None, "NULL", "null", "żółć \U0001f600", "\n\t "]),
        ("bigint", [0, -1, None, 2**63 - 1, -(2**63)]),
        ("int", [0, -1, None, 2**31 - 1, -(2**31)]),
        ("bool", [True, False, None]),
        ("text", []),
    ],
)
def test_a_column_is_read_as_it_was_given(postgres_url: str, kind: str, items: list[Any]) -> None:
    with Connections(read_address(postgres_url)).connect() as connection:
        rows = connection.execute(f"SELECT unnest(%b::{kind}[])", (ArrayColumn(kind, items),), binary=True).fetchall()
    assert [row[0] for row in rows] == items


def test_json_is_read_as_json(postgres_url: str) -> None:
    with Connections(read_address(postgres_url)).connect() as connection:
        column = ArrayColumn("jsonb", ['{"a": "ż"}', None])
        assert connection.execute("SELECT unnest(%b::jsonb[])", (column,)).fetchall() == [({"a": "ż"},), (None,)]


@pytest.mark.parametrize(("kind", "item"), [("bigint", 2**63), ("int", 2**31), ("text", "\ud800"), ("text", "a\0b")])
def test_what_does_not_fit_is_refused(postgres_url: str, kind: str, item: Any) -> None:
    with Connections(read_address(postgres_url)).connect() as connection, pytest.raises(psycopg.DataError):
        connection.execute(f"SELECT unnest(%b::{kind}[])", (ArrayColumn(kind, [item]),))
