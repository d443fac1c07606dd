"""What the values of arguments mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from chronex.cli.options import UsageError, read_duration, read_instant, store_path
from chronex.text.durations import DAY_MS, HOUR_MS
from chronex.timing.zones import load_zone


@pytest.mark.parametrize(("text", "why"), [("0s", "is no time at all"), ("2 hours", "is not a duration")])
def test_a_duration_must_be_one_and_longer_than_nothing(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        read_duration("--for", text)


def test_days_may_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the zone of the question: in Seoul the second of January has begun."""
    monkeypatch.setattr("chronex.clock.wall_ms", lambda: DAY_MS + 20 * HOUR_MS)
    seoul, utc = load_zone("Asia/Seoul"), load_zone("UTC")
    assert read_instant("today", utc) == DAY_MS
    assert read_instant("yesterday 03:30", utc) == 3 * HOUR_MS + HOUR_MS // 2
    assert read_instant("tomorrow", seoul) == 3 * DAY_MS - 9 * HOUR_MS
    with pytest.raises(UsageError, match="--to: 'yesterday noon' is not a time; write"):
        read_instant("yesterday noon", utc, "--to")


@pytest.mark.parametrize(
    ("option", "environ", "what"),
    [
        (
            "postgresql://ann:s3cret@db/jobs",
            {},
            "for a store in a directory, and postgresql://ann@db/jobs is a database",
        ),
        ("mysql://ann:s3cret@db/jobs", {}, "--store is a mysql address"),
        ("postgresql:/ann:s3cret@db/jobs", {}, "--store is not written as an address; .* postgresql://user@host"),
        ("postgres//ann:s3cret@db/jobs", {}, "--store is not written as an address"),
        ("//ann:s3cret@db/jobs", {}, "--store is not written as an address"),
        ("ann:s3cret@db:5432/jobs", {}, "--store is not written as an address"),
        ("ann:s3/cret@db:5432/jobs", {}, "--store is not written as an address"),
        ("jdbc:postgresql://ann:s3cret@db/jobs", {}, "--store is not written as an address"),
        (" postgresql://ann:s3cret@db/jobs", {}, "--store is not written as an address"),
        ("'postgresql://ann:s3cret@db/jobs'", {}, "--store is not written as an address"),
        (None, {"CHRONEX_STORE": "host=db password=s3cret"}, "CHRONEX_STORE is not written as an address"),
        (None, {"CHRONEX_STORE": "redis+tls://:s3cret@db"}, "CHRONEX_STORE is a redis\\+tls address"),
    ],
)
def test_an_address_is_not_taken_for_a_directory(option: str | None, environ: dict[str, str], what: str) -> None:
    """It would be made, with the password in its name."""
    with pytest.raises(UsageError, match=what) as refused:
        store_path(option, environ)
    assert "s3cret" not in str(refused.value)


def test_a_directory_that_is_there_may_have_any_name(tmp_path: Path) -> None:
    odd = tmp_path / "a:b@c"
    odd.mkdir()
    assert store_path(str(odd), {}) == odd


@pytest.mark.parametrize("path", ["/a/b", "store", "./odd:/name", "C:/x", "a b://c", "ann@home/store", "a@b:c"])
def test_any_path_is_a_store(path: str) -> None:
    assert store_path(path, {}) == Path(path)
