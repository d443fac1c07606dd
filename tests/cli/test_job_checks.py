"""The doctor of what jobs need: users, directories, files of variables, secrets."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from chronex.cli.machine_checks import Check, CheckVerdict, NotExecutable, job_checks, programs_of
from chronex.model.job import Call, Job, Task
from chronex.run.accounts import Rights
from tests.kit.users import needs_root


def found(environ: dict[str, str] | None = None, **task: Any) -> list[Check]:
    job = Job(id="j", schedule="@daily", tasks=(Task(**{"name": "t", "run": ("true",), **task}),))
    return list(job_checks([job], environ or {}))


def told(environ: dict[str, str] | None = None, **task: Any) -> str:
    (check,) = found(environ, **task)
    assert check.verdict is CheckVerdict.WRONG
    return f"{check.topic}: {check.message}; {check.advice}".removesuffix("; ")


def test_a_job_that_needs_nothing_is_not_mentioned() -> None:
    assert found() == []


def test_a_function_needs_nothing_of_the_machine() -> None:
    assert found(run=Call("f"), directory="/no/such") == []


def test_users_and_groups_that_are_not_there() -> None:
    assert told(user="no-such-user") == (
        "users: job j: no user 'no-such-user' on this machine; make one, or name another in user"
    )
    assert told(group="no-such-group").startswith("users: job j: no group 'no-such-group' on this machine")


def test_a_user_that_only_root_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 65_534)
    assert told(user="root").startswith(
        "users: job j: user = 'root' needs a scheduler that runs as root; chronex service"
    )


def test_directories(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert found(directory=str(tmp_path)) == [Check("directories", CheckVerdict.FINE, "1 looked for")]
    assert told(directory=f"{tmp_path}/none") == (
        f"directories: job j: the directory {tmp_path}/none: no such file or directory; make it, or name another"
    )
    assert "is a file" in told(directory=f"{tmp_path}/file")


@needs_root
def test_a_directory_that_the_user_cannot_enter(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(0o700)
    place = f"{tmp_path}/closed"
    users, directory = found(user="nobody", directory=place)
    assert users == Check("users", CheckVerdict.FINE, "1 looked for")
    assert directory.message == f"job j: the directory {place} is closed to nobody"


@needs_root
def test_a_program_that_the_user_cannot_execute(tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o700)
    for run, expected in (((str(tool),), NotExecutable(str(tool))), (("true",), None)):
        job = Job(id="j", schedule="@daily", tasks=(Task(name="t", run=run, user="nobody"),))
        ((_, program),) = programs_of([job], "/elsewhere", "/elsewhere")
        assert (program.finding, program.user) == (expected, "nobody")


def test_files_of_variables(tmp_path: Path) -> None:
    file = tmp_path / "app.env"
    assert "no such file" in told(env_file=(str(file),))
    file.write_text("A=1\nhunter2\n")
    assert (
        told(env_file=(str(file),))
        == f"variables: job j: env_file {file}: line 2 is not NAME=value; make it, or mend it"
    )
    file.write_text("A=1\n")
    assert found(env_file=(str(file),)) == [Check("variables", CheckVerdict.FINE, "1 looked for")]


def test_secrets(tmp_path: Path) -> None:
    assert told(secrets=("TOKEN",)) == (
        "secrets: job j: the secret 'TOKEN' is not in the daemon's environment; set it and restart the daemon"
    )
    assert found({"TOKEN": "x"}, secrets=("TOKEN",)) == [Check("secrets", CheckVerdict.FINE, "1 looked for")]
    file = f"file:{tmp_path}/key"
    assert told(secrets=("KEY",), secret_sources={"KEY": file}) == (
        f"secrets: job j: the secret 'KEY': {tmp_path}/key: no such file or directory; put it there, or name another source"
    )
    assert "was given no credentials" in told(secrets=("KEY",), secret_sources={"KEY": "credential:key"})


def test_commands_of_secrets_are_not_run(tmp_path: Path) -> None:
    (check,) = found(secrets=("KEY",), secret_sources={"KEY": f"command:touch {tmp_path}/ran; echo x"})
    assert check.verdict is CheckVerdict.FINE
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("mode", "uid", "groups", "expected"),
    [
        (0o755, 4242, (), True),
        (0o750, 4242, (), False),
        (0o750, 4242, ("own",), True),
        (0o705, 4242, ("own",), False),  # the mode of the group counts for its members, not that of others
        (0o700, "own", (), True),
        (0o077, "own", (), False),
        (0o600, 0, (), False),
        (0o601, 0, (), True),
    ],
)
def test_rights_by_mode(tmp_path: Path, mode: int, uid: int | str, groups: tuple[str, ...], expected: bool) -> None:
    tool = tmp_path / "tool"
    tool.touch()
    tool.chmod(mode)
    if os.geteuid() == 0:
        os.chown(tool, 1111, 2222)
    owner = tool.stat()
    rights = Rights(owner.st_uid if isinstance(uid, str) else uid, frozenset({owner.st_gid} if groups else ()))
    assert rights._may_execute(tool.stat(), is_program=True) is expected
