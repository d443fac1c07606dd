"""`chronex service` as a user types it, with a service manager that answers, refuses, or is not there."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from chronex.clock import wall_ms
from chronex.timing.zones import load_zone, machine_zone, show_one_time, utc_zone
from tests.cli.conftest import Chronex, Done

pytestmark = pytest.mark.binary

UNIT = ".config/systemd/user/chronex.service"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "chronex.toml").write_text('[jobs.a]\nschedule = "@daily"\nrun = "true"\n')
    (tmp_path / "bin").mkdir()
    return tmp_path


def service(chronex: Chronex, home: Path, *arguments: str, **environment: str) -> Done:
    where = {"HOME": str(home), "CHRONEX_CONFIG": str(home / "chronex.toml"), "PATH": f"{home / 'bin'}"}
    return chronex("service", *arguments, **where, **environment)


def systemctl(home: Path, script: str) -> None:
    """A manager in the real one's place, which cannot run here: it notes what it is told."""
    tool = home / "bin" / "systemctl"
    tool.write_text(f'#!/bin/sh\necho "$*" >> "{home}/told"\n{script}\n')
    tool.chmod(0o755)


def test_install_writes_the_unit_for_its_owner_alone_and_starts_it(chronex: Chronex, home: Path) -> None:
    systemctl(home, "exit 0")
    done = service(chronex, home, "install")
    assert done.code == 0, done.err
    assert stat.S_IMODE(os.stat(home / UNIT).st_mode) == 0o600
    assert str(home / "chronex.toml") in (home / UNIT).read_text()
    assert (home / "told").read_text().splitlines() == [
        "--version", "--user daemon-reload", "--user enable chronex.service", "--user restart chronex.service",
    ]  # fmt: skip


def test_installing_again_changes_nothing_but_the_time(chronex: Chronex, home: Path) -> None:
    systemctl(home, "exit 0")
    service(chronex, home, "install")
    before = (home / UNIT).read_text()
    assert service(chronex, home, "install").code == 0
    assert (home / UNIT).read_text() == before


def test_a_directory_of_job_files_is_installed_as_one(chronex: Chronex, home: Path) -> None:
    """As docs/migrating.md has it; it was refused, with the words that there is no job file at its place."""
    (home / "conf.d").mkdir()
    done = service(chronex, home, "install", "--config", str(home / "conf.d"), "--dry-run")
    assert (done.code, str(home / "conf.d") in done.out) == (0, True), done.err


def test_a_service_of_the_system_has_a_path_of_the_system(chronex: Chronex, home: Path) -> None:
    """It had that of the shell in which root had installed it, with the directories of root's home."""
    own = service(chronex, home, "install", "--dry-run").out
    assert f"PATH={home / 'bin'}" in own
    of_system = service(chronex, home, "install", "--system", "--dry-run").out
    assert (str(home / "bin") in of_system, "/usr/local/bin:/usr/sbin:/usr/bin" in of_system) == (False, True)


def test_the_zone_of_the_shell_comes_along_or_is_told_as_left_behind(chronex: Chronex, home: Path) -> None:
    """Schedules without a zone were shown in that of the shell, and run in that of the machine."""
    machine, now = machine_zone() or utc_zone(), wall_ms() // 1000
    others = (load_zone(name) for name in ("Asia/Tokyo", "America/Lima"))
    other = next(zone for zone in others if not show_one_time(zone, machine, now, now + 86_400)).name
    own = service(chronex, home, "install", "--dry-run", TZ=other)
    assert (f"TZ={other}" in own.out, own.err) == (True, "")
    of_system = service(chronex, home, "install", "--system", "--dry-run", TZ=other)
    assert "TZ=" not in of_system.out
    assert f'timezone = "{other}" under [scheduler] of the job file keeps them' in of_system.err
    assert "TZ=" not in service(chronex, home, "install", "--dry-run", TZ=":/etc/localtime").out


def test_what_is_not_installed_is_said_with_the_command_for_it(chronex: Chronex, home: Path) -> None:
    assert "chronex service install sets it up" in service(chronex, home, "status").out
    if not Path("/etc/systemd/system/chronex.service").exists():
        assert "chronex service install --system sets it up" in service(chronex, home, "status", "--system").out


def test_a_refusal_is_told_in_the_managers_own_words(chronex: Chronex, home: Path) -> None:
    systemctl(home, "echo 'Failed to connect to bus' >&2; exit 1")
    done = service(chronex, home, "install")
    assert done.code == 1
    assert "Failed to connect to bus" in done.err


def test_without_a_manager_the_file_is_written_and_the_user_told(chronex: Chronex, home: Path) -> None:
    done = service(chronex, home, "install")
    assert done.code == 1
    assert "systemctl is not installed" in done.err
    assert (home / UNIT).exists()


def test_a_dry_run_writes_nothing(chronex: Chronex, home: Path) -> None:
    done = service(chronex, home, "install", "--dry-run")
    assert done.code == 0
    assert "ExecStart=" in done.out
    assert not (home / ".config").exists()


def test_install_needs_a_job_file(chronex: Chronex, home: Path) -> None:
    done = service(chronex, home, "install", "--config", str(home / "none.toml"))
    assert done.code == 2
    assert "chronex init" in done.err


@pytest.mark.parametrize(
    ("script", "code", "words"), [("exit 0", 0, "running:"), ("echo failed; exit 3", 1, "not running (failed):")]
)
def test_status_says_what_the_manager_says(chronex: Chronex, home: Path, script: str, code: int, words: str) -> None:
    systemctl(home, script)
    service(chronex, home, "install", "--no-start")
    done = service(chronex, home, "status")
    assert (done.code, done.out.startswith(words)) == (code, True)


def test_uninstall_stops_and_removes_and_says_so_when_there_is_nothing(chronex: Chronex, home: Path) -> None:
    systemctl(home, "exit 0")
    service(chronex, home, "install")
    assert service(chronex, home, "uninstall").code == 0
    assert not (home / UNIT).exists()
    assert (home / "told").read_text().splitlines()[-1] == "--user disable --now chronex.service"
    assert "nothing to do" in service(chronex, home, "uninstall").out
    assert service(chronex, home, "status").code == 1


def test_a_password_in_the_address_of_the_store_does_not_get_into_the_unit(chronex: Chronex, home: Path) -> None:
    systemctl(home, "exit 0")
    done = service(chronex, home, "install", "--store", "postgresql://ann:hush-hush@db.example/jobs")
    assert done.code == 2
    assert "put it into ~/.pgpass" in done.err
    assert "hush-hush" not in done.err + done.out
    assert not (home / UNIT).exists()


def test_the_unit_of_a_node_of_a_shared_store_names_the_database(chronex: Chronex, home: Path) -> None:
    done = service(chronex, home, "install", "--dry-run", "--store", "postgresql://ann@db.example/jobs?schema=work")
    assert done.code == 0, done.err
    assert '"--store" "postgresql://ann@db.example/jobs?schema=work"' in done.out
