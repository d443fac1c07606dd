"""The judge of a campaign must find what it is there to find: each row is a journal of commands with one thing wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from chronex.torture.witness import (
    Span,
    begun_twice,
    fences_went_back,
    longest_pause,
    overlaps,
    read_witness,
    witness_command,
)

GOOD = """\
start occ_1 attempt_1 1 10.00
alive occ_1 attempt_1 1 10.20
end occ_1 attempt_1 1 10.40
start occ_2 attempt_2 2 10.10
end occ_2 attempt_2 2 10.90
start occ_1 attempt_3 3 10.40
end occ_1 attempt_3 3 10.80
"""


@pytest.mark.parametrize(
    ("lines", "overlapping", "twice", "back"),
    [
        (GOOD, 0, 0, 0),
        # The first one still lived when the second began: a node that was given up went on.
        (GOOD.replace("end occ_1 attempt_1 1 10.40", "alive occ_1 attempt_1 1 10.60"), 1, 0, 0),
        # It was killed, which nobody can write down: until its last line it lived, and no longer.
        (GOOD.replace("end occ_1 attempt_1 1 10.40\n", ""), 0, 0, 0),
        # One attempt began twice.
        (GOOD + "start occ_2 attempt_2 2 11.00\n", 0, 1, 1),
        # The number that guards a resource went back.
        (GOOD.replace("attempt_3 3", "attempt_3 1"), 0, 0, 1),
        # A line that was cut off by a kill is nothing.
        (GOOD + "star", 0, 0, 0),
    ],
)
def test_what_the_commands_wrote_is_judged(
    tmp_path: Path, lines: str, overlapping: int, twice: int, back: int
) -> None:
    file = tmp_path / "witness"
    file.write_text(lines)
    found = read_witness(file)
    assert len(list(overlaps(found))) == overlapping
    assert len(begun_twice(found)) == twice
    assert len(fences_went_back(found)) == back


def test_a_command_that_writes_is_plain_shell(tmp_path: Path) -> None:
    import subprocess

    file = tmp_path / "it's here"
    variables = {"CHRONEX_OCCURRENCE": "occ_1", "CHRONEX_ATTEMPT": "attempt_1", "CHRONEX_FENCE": "7", "PATH": "/bin"}
    subprocess.run(["/bin/sh", "-c", witness_command(file, 1)], env=variables, check=True)
    (found,) = read_witness(file)
    assert (found.occurrence, found.attempt, found.fence, found.ended) == ("occ_1", "attempt_1", 7, True)
    assert found.last - found.begun >= 0.19


@pytest.mark.parametrize(
    ("since", "until", "cannot", "longest"),
    [
        (10.0, 11.0, [], (10.4, 11.0)),
        (10.0, 10.5, [], (10.1, 10.4)),
        # What began before or after it was watched counts for nothing.
        (10.2, 10.3, [], (10.2, 10.3)),
        # Nothing can begin while the database is away; before that and afterwards it must.
        (10.0, 14.0, [(10.5, 13.5)], (13.5, 14.0)),
        (10.0, 14.0, [(10.0, 14.0)], (10.0, 10.0)),
        (10.0, 14.0, [(10.2, 13.0), (12.0, 13.9)], (10.0, 10.1)),
    ],
)
def test_how_long_nothing_began_is_judged(
    tmp_path: Path, since: float, until: float, cannot: list[tuple[float, float]], longest: tuple[float, float]
) -> None:
    file = tmp_path / "witness"
    file.write_text(GOOD)
    found = longest_pause(read_witness(file), Span(since, until), [Span(*one) for one in cannot])
    assert found == longest
