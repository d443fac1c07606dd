"""TRACEPARENT: its form, and what its ids follow from."""

from __future__ import annotations

import re

import pytest

from chronex.run import environment
from chronex.run.environment import TRACE_VARIABLE, chronex_variables, secrets_of_process, trace_id, trace_parent
from tests.run.requests import request

FORM = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-(00|01)", re.ASCII)


def parent(occurrence: str = "occ_1", attempt: str = "attempt_1", store: str = "/s", is_traced: bool = False) -> str:
    return trace_parent(
        request(
            ("true",),
            occurrence_id=occurrence,
            attempt_id=attempt,
            extra_environment={"CHRONEX_STORE": store},
            is_traced=is_traced,
        )
    )


@pytest.mark.parametrize("store", ["/var/lib/chronex", "", "postgresql://db/app", "/srv/\udcff"])
@pytest.mark.parametrize("is_traced", [False, True])
def test_it_has_the_form_of_the_standard_and_is_sampled_where_the_span_is_told(store: str, is_traced: bool) -> None:
    found = parent(store=store, is_traced=is_traced)
    assert FORM.fullmatch(found)
    assert found.endswith("01" if is_traced else "00")
    assert found == parent(store=store, is_traced=is_traced)


def test_attempts_of_one_occurrence_share_a_trace_and_nothing_else_does() -> None:
    first, again, other = (
        parent(occurrence, attempt).split("-")[1:3]
        for occurrence, attempt in (("occ_1", "attempt_1"), ("occ_1", "attempt_2"), ("occ_2", "attempt_3"))
    )
    assert first[0] == again[0] != other[0]
    assert len({first[1], again[1], other[1]}) == 3


def test_machines_with_the_same_job_have_traces_of_their_own_but_share_those_of_a_shared_store(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def ids(machine: str) -> tuple[int, int]:
        monkeypatch.setattr(environment, "machine_name", lambda: machine)
        return trace_id("occ_1", "/var/lib/chronex"), trace_id("occ_1", "postgresql://db/app")

    (here, shared_here), (there, shared_there) = ids("here"), ids("there")
    assert here != there
    assert shared_here == shared_there


def test_nothing_but_zeros_is_no_id(monkeypatch: pytest.MonkeyPatch) -> None:
    class Zeros:
        def __init__(self, _data: bytes, digest_size: int) -> None:
            self.size = digest_size

        def digest(self) -> bytes:
            return bytes(self.size)

    monkeypatch.setattr(environment, "blake2b", Zeros)
    assert FORM.fullmatch(parent())


def test_a_command_has_it_and_one_that_is_adopted_is_still_known_by_its_variables() -> None:
    asked = request(("true",), is_traced=True, extra_environment={"CHRONEX_STORE": "/s"})
    given = chronex_variables(asked)[TRACE_VARIABLE]
    assert given == trace_parent(asked)
    assert secrets_of_process(asked, f"TRACEPARENT={given}\0CHRONEX_STORE=/s\0".encode()) == ()
