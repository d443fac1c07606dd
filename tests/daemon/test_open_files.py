"""The daemon's limit of open files follows its pool, as far as the system allows."""

from __future__ import annotations

import resource

import pytest

from chronex.daemon.headless import raise_descriptor_limit

NO_LIMIT = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("slots", "before", "after", "is_logged"),
    [
        (50, (1024, 4096), (1024, 4096), False),
        (1000, (1024, 524_288), (4256, 524_288), False),
        (1000, (1024, 2048), (2048, 2048), True),
        (1000, (1024, NO_LIMIT), (4256, NO_LIMIT), False),
        (10_000, (NO_LIMIT, NO_LIMIT), (NO_LIMIT, NO_LIMIT), False),
    ],
)
def test_the_limit_is_raised_to_what_the_pool_needs(
    slots: int,
    before: tuple[int, int],
    after: tuple[int, int],
    is_logged: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = before

    def change(_which: int, limits: tuple[int, int]) -> None:
        nonlocal now
        now = limits

    monkeypatch.setattr(resource, "getrlimit", lambda _which: before)
    monkeypatch.setattr(resource, "setrlimit", change)
    raise_descriptor_limit(slots)
    assert now == after
    logged = [record.__dict__["fields"]["told"] for record in caplog.records]
    assert ["ulimit -n 4256" in text for text in logged] == [True] * is_logged
