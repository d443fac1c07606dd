"""Output is bounded and private, and nobody waits for it."""

from __future__ import annotations

import asyncio
import os
import resource
from pathlib import Path

import pytest

from chronex.model import AttemptState
from chronex.run import Hooks, LogDirectory, RunContext, run_attempt
from chronex.run.attempt_log import DEFAULT_LIMIT
from chronex.run.environment import Inheritance
from tests.run.requests import outcome, output, python, request

MIB = 1024 * 1024
FLOODS = {
    "lines": "yes 'a line of output that repeats itself' | head -c {}",
    "no newline": "head -c {} /dev/zero",
}


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.parametrize(
    "size", [200 * MIB, pytest.param(10 * 1024 * MIB, marks=pytest.mark.torture)], ids=["200M", "10G"]
)
@pytest.mark.parametrize("kind", FLOODS)
async def test_a_flood_is_bounded_and_others_have_their_turns(run_context: RunContext, kind: str, size: int) -> None:
    before, grown, turns, on_disk = resident(), 0, 0, 0
    flood = asyncio.create_task(outcome(run_context, FLOODS[kind].format(size)))
    while not flood.done():
        await asyncio.sleep(0.01)
        turns += 1
        grown = max(grown, resident() - before)
        on_disk = max(on_disk, sum(os.stat(entry).st_blocks * 512 for entry in os.scandir(run_context.logs.path)))
    result = await flood
    assert result.state is AttemptState.SUCCESS
    assert on_disk <= DEFAULT_LIMIT + MIB
    assert result.log.size <= DEFAULT_LIMIT + MIB
    assert result.log.dropped + result.log.size == pytest.approx(size, abs=200)
    assert grown <= 32 * MIB
    assert turns >= 10, "a loop that is held up by the flood comes round once"
    assert f"{result.log.dropped} bytes of output dropped here".encode() in output(run_context, result)


async def test_one_byte_at_a_time_loses_nothing(run_context: RunContext) -> None:
    code = "import os\nfor i in range(20000): os.write(1 + i % 2, b'%d' % (i % 10))"
    result = await outcome(run_context, python(code))
    assert output(run_context, result) == b"0123456789" * 2000


async def test_a_silent_command_leaves_no_file(run_context: RunContext) -> None:
    result = await outcome(run_context, ("true",))
    assert result.log.name == ""
    assert os.listdir(run_context.logs.path) == []


async def test_a_child_that_closes_its_output_is_still_waited_for(run_context: RunContext) -> None:
    result = await outcome(run_context, "exec >/dev/null 2>&1; sleep 0.2; exit 5")
    assert (result.exit_code, result.duration_ms >= 190) == (5, True)


async def test_output_that_cannot_be_kept_does_not_fail_the_command(
    run_context: RunContext, logs: LogDirectory
) -> None:
    os.rmdir(logs.path)
    result = await outcome(run_context, "echo hi; exit 0")
    assert (result.state, result.log.name, result.log.dropped) == (AttemptState.SUCCESS, "", 3)
    assert "output could not be kept" in result.log.error


CANARIES = {f"CANARY_{i}": f"s3cret-{i:02d}-{'x' * i}$({i})'\"" for i in range(20)}
LEAKS = {
    "at once": "import os, sys\nfor v in VALUES: sys.stdout.write(f'<{v}>')",
    "byte by byte": "import os, time\nfor v in VALUES:\n  for b in f'<{v}>'.encode(): os.write(1, bytes([b])); time.sleep(0.0002)",
    "on both outputs": "import os\nfor v in VALUES: os.write(2, f'<{v}>'.encode())",
}


@pytest.mark.parametrize("how", LEAKS)
async def test_declared_secrets_are_nowhere_but_in_the_child(logs: LogDirectory, tmp_path: Path, how: str) -> None:
    run_context = RunContext(logs, Inheritance({**os.environ, **CANARIES, "UNDECLARED": "seen-by-nobody"}))
    code = f"VALUES = [__import__('os').environ[f'CANARY_{{i}}'] for i in range(20)]\n{LEAKS[how]}"
    asked = request(python(code), secrets=tuple(CANARIES))
    result = await run_attempt(asked, Hooks(), run_context)
    assert result.exit_code == 0
    assert output(run_context, result) == b"<[redacted]>" * 20
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert not any(value.encode() in path.read_bytes() for value in CANARIES.values())
    assert not any(value in repr(asked) + repr(result) for value in CANARIES.values())
    environment = await outcome(run_context, "env")
    assert b"seen-by-nobody" not in output(run_context, environment)
    assert b"s3cret" not in output(run_context, environment)


async def test_secrets_are_not_in_the_process_list(logs: LogDirectory) -> None:
    run_context = RunContext(logs, Inheritance({**os.environ, **CANARIES}))
    result = await outcome(run_context, "tr '\\0' ' ' </proc/$$/cmdline", secrets=tuple(CANARIES), directory="/")
    shown = output(run_context, result)
    assert b"cmdline" in shown
    assert b"redacted" not in shown


@pytest.mark.parametrize("size", [1, 4096, 65536, 65537, 262144, 1_000_000])
async def test_every_size_of_output_arrives_whole(run_context: RunContext, size: int) -> None:
    result = await outcome(run_context, python(f"import os\nos.write(1, b'') or print('x' * {size - 1})"))
    assert output(run_context, result) == b"x" * (size - 1) + b"\n"
    assert (result.log.size, result.log.dropped) == (size, 0)
