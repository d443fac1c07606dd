"""Where the values of secrets come from, that they are read anew each time, and that none is ever told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chronex.model import AttemptState
from chronex.run import EndReason, Hooks, LogDirectory, RunContext, run_attempt, secret_values
from tests.kit.waits import is_gone, until_async
from tests.run.conftest import forbid_threads
from tests.run.requests import outcome, output, request

SECRET = "hunter2-and-more"


def context(logs: LogDirectory, **environ: str) -> RunContext:
    return RunContext.of_this_process(logs, environ={"PATH": "/usr/bin:/bin", **environ})


async def printed(run_context: RunContext, source: str, command: str = 'printf "<%s>" "$S" | od -An -c') -> str:
    """What the command sees, letter by letter, so that it is not taken out."""
    result = await outcome(run_context, command, secrets=("S",), secret_sources={"S": source})
    assert result.state is AttemptState.SUCCESS, result.error
    return "".join(output(run_context, result).decode().split())


async def test_every_source(logs: LogDirectory, tmp_path: Path) -> None:
    (tmp_path / "pg").write_text(f"{SECRET}\n")
    run_context = context(logs, OTHER=SECRET, CREDENTIALS_DIRECTORY=str(tmp_path))
    sources = (f"file:{tmp_path}/pg", "env:OTHER", "credential:pg", f"command:echo {SECRET}")
    for source in sources:
        assert await printed(run_context, source) == f"<{SECRET}>", source


async def test_a_file_is_read_at_every_start(logs: LogDirectory, tmp_path: Path) -> None:
    run_context, file = context(logs), tmp_path / "token"
    for value in ("first", "second"):
        file.write_text(value)
        assert await printed(run_context, f"file:{file}") == f"<{value}>"


async def test_values_are_taken_out_of_the_output(logs: LogDirectory, tmp_path: Path) -> None:
    key = "-----BEGIN KEY-----\nMIIEpAIBAAKCAQEA\n{\nx7Zq0b9Kk1v0\n-----END KEY-----\n"
    (tmp_path / "key").write_text(key)
    asked: dict[str, Any] = {
        "secrets": ("KEY", "TOKEN"),
        "secret_sources": {"KEY": f"file:{tmp_path}/key", "TOKEN": f"command:echo {SECRET}"},
    }
    shown = 'echo "$KEY"; echo "$KEY" | sed "s/^/  /"; echo "t=$TOKEN."; echo "{"'
    result = await outcome(context(logs), shown, **asked)
    text = output(context(logs), result).decode()
    assert SECRET not in text
    assert "MIIE" not in text
    assert "x7Zq" not in text
    assert text.endswith("t=[redacted].\n{\n")


MISSING: dict[str, tuple[str, str]] = {
    "no such variable": ("env:NOT_THERE", "the secret 'S': the variable 'NOT_THERE' is not in the daemon's environment"),
    "no such file": ("file:{tmp}/none", "the secret 'S': {tmp}/none: no such file or directory"),
    "a directory": ("file:{tmp}", "the secret 'S': {tmp}: not a regular file"),
    "an empty file": ("file:{tmp}/empty", "the secret 'S' is empty"),
    "a NUL": ("file:{tmp}/nul", "the secret 'S' has a NUL character"),
    "too long": ("file:{tmp}/long", "the secret 'S': {tmp}/long: longer than 65536 bytes"),
    "no credentials": ("credential:pg", "the secret 'S': the daemon was given no credentials"),
    "a command that fails": (f"command:echo {SECRET}; echo {SECRET} >&2; exit 3",
                             "the secret 'S': its command ended with exit code 3; try it by hand"),
    "a command that dies": ("command:kill -KILL $$", "the secret 'S': its command ended with signal 9"),
    "a command that is silent": ("command:true", "the secret 'S' is empty"),
    "a command without an end": ("command:cat /dev/zero", "the secret 'S': its command printed more than 65536 bytes"),
}  # fmt: skip


@pytest.mark.parametrize("case", MISSING)
async def test_a_secret_that_is_missing_starts_nothing(logs: LogDirectory, tmp_path: Path, case: str) -> None:
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "nul").write_bytes(b"a\0b")
    (tmp_path / "long").write_bytes(b"x" * 70_000)
    source, expected = (text.replace("{tmp}", str(tmp_path)) for text in MISSING[case])
    ran = tmp_path / "ran"
    result = await outcome(context(logs), f"touch {ran}", secrets=("S",), secret_sources={"S": source})
    assert (result.state, result.reason) == (AttemptState.FAILED, EndReason.NOT_STARTED)
    assert result.error.startswith(expected)
    assert SECRET not in result.error
    assert not ran.exists()


async def test_a_command_that_hangs_is_ended_with_its_children(
    logs: LogDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secret_values, "COMMAND_WITHIN_S", 0.2)
    pids = tmp_path / "pids"
    source = f"command:sleep 100 & echo $! > {pids}; wait"
    result = await outcome(context(logs), "true", secrets=("S",), secret_sources={"S": source})
    assert result.error == "the secret 'S': its command still ran after 0.2 s"
    pid = int(pids.read_text())
    await until_async(lambda: _has_ended(pid), "the end of what it had started")


def _has_ended(pid: int) -> bool:
    """Nobody may be there to reap it."""
    try:
        return b") Z " in Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return True


async def test_what_is_canceled_meanwhile_does_not_begin(logs: LogDirectory, tmp_path: Path) -> None:
    hooks, ran = Hooks(), tmp_path / "ran"
    asked = request(f"touch {ran}", secrets=("S",), secret_sources={"S": "command:echo secret"})
    hooks.cancellation.request("asked to")
    result = await run_attempt(asked, hooks, context(logs))
    assert (result.state, ran.exists()) == (AttemptState.CANCELED, False)


async def test_where_no_thread_can_be_started_a_command_that_prints_a_secret_is_ended_and_it_says_so(
    logs: LogDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was an error that nobody expects: the attempt never ended, and that command went on."""
    pid = tmp_path / "pid"
    source = f"command:echo $$ > {pid}; exec sleep 100"
    with monkeypatch.context() as patched:
        forbid_threads(patched)
        result = await outcome(context(logs), "true", secrets=("S",), secret_sources={"S": source})
    assert result.error == "the secret 'S': no thread can be started for what its command prints"
    assert result.retryable
    assert not pid.exists() or not pid.read_text() or is_gone(int(pid.read_text()))
