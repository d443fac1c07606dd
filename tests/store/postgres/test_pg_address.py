"""What an address names, and that its password is shown nowhere."""

from __future__ import annotations

import pytest

from chronex.errors import StoreRefusedError
from chronex_store.postgres.pg_address import is_postgres, read_address


@pytest.mark.parametrize(
    ("text", "parameters", "schema", "shown"),
    [
        ("postgresql://", {}, "chronex", "postgresql://"),
        ("postgresql://db", {"host": "db"}, "chronex", "postgresql://db"),
        (
            "postgresql://ann:p@db:5433/jobs",
            {"user": "ann", "password": "p", "host": "db", "port": "5433", "dbname": "jobs"},
            "chronex",
            "postgresql://ann@db:5433/jobs",
        ),
        (
            "postgres://ann:a%40b%2F%25@db/jobs?schema=team_a&sslmode=verify-full",
            {"user": "ann", "password": "a@b/%", "host": "db", "dbname": "jobs", "sslmode": "verify-full"},
            "team_a",
            "postgres://ann@db/jobs?schema=team_a&sslmode=verify-full",
        ),
        (
            "postgresql://ann@/jobs?host=/run/pg&password=s3cret",
            {"user": "ann", "dbname": "jobs", "host": "/run/pg", "password": "s3cret"},
            "chronex",
            "postgresql://ann@/jobs?host=/run/pg",
        ),
        (
            "postgresql://h1:1,h2/jobs",
            {"host": "h1,h2", "port": "1,", "dbname": "jobs"},
            "chronex",
            "postgresql://h1:1,h2/jobs",
        ),
        ("PostgreSQL://db/x", {"host": "db", "dbname": "x"}, "chronex", "postgresql://db/x"),
        (
            "postgresql://ann:%09@db",
            {"user": "ann", "password": "\t", "host": "db"},
            "chronex",
            "postgresql://ann@db",
        ),
        (
            "postgresql://ann@db/x?user=a@b",
            {"user": "a@b", "host": "db", "dbname": "x"},
            "chronex",
            "postgresql://ann@db/x?user=a@b",
        ),
        ("postgresql://[::1]:7/x", {"host": "::1", "port": "7", "dbname": "x"}, "chronex", "postgresql://[::1]:7/x"),
    ],
)
def test_what_an_address_names(text: str, parameters: dict[str, str], schema: str, shown: str) -> None:
    found = read_address(text)
    assert (found.parameters, found.schema, found.shown) == (parameters, schema, shown)
    assert is_postgres(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("postgresql://ann:s3cret@db:99999/x", "a port that is none"),
        ("postgresql://ann:s3cret@db:port/x", "a host is wrong"),
        ("postgresql://ann:s3cret@[::1/x", "a host is wrong"),
        ("postgresql://ann:s3c%ret@db/x", "a % is not followed by two digits"),
        ("postgresql://ann:s3cret%ff@db/x", "not UTF-8"),
        ("postgresql://ann:s3cret@db/x?s3cret", "name=value pairs"),
        ("postgresql://ann:12/s3cret@db/x", "an @ stands behind the host"),
        ("postgresql://ann:12?x=s3cret@db/x", "an @ stands behind the host"),
        ("postgresql://ann:s3cret@db/x\ny", "a character that cannot be shown"),
        ("postgresql://ann:s3cret@db/x%00y", "a character that cannot be shown"),
        ("postgresql://ann:s3cret@db/x?schema=a%1b", "a character that cannot be shown"),
        ("postgresql://ann:s3cret@db/x?schema=No-Name", "is no name for one"),
        ("postgresql://ann:s3cret@db/x?schema=a;drop table x", "is no name for one"),
    ],
)
def test_what_cannot_be_read_is_one_sentence_without_the_password(text: str, why: str) -> None:
    with pytest.raises(StoreRefusedError, match=why) as refused:
        read_address(text)
    assert "s3c" not in str(refused.value)


def test_an_address_that_is_printed_by_accident_tells_no_password() -> None:
    found = read_address("postgresql://ann:s3cret@db/jobs?sslpassword=s3cret2&passfile=s3cret3")
    assert "s3cret" not in repr(found) + str(found) + found.shown
    assert found.without_secrets('invalid token "s3cret" in "s3cret2"') == 'invalid token "…" in "…2"'
