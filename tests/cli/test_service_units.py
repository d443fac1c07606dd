"""What the service managers are given: every word whole, nothing expanded, the shell's own PATH."""

from __future__ import annotations

import plistlib
import shutil
import subprocess
from pathlib import Path

import pytest

from chronex.cli.service_units import Service, launchd_plist, manager_of, systemd_unit

PLAIN = Service(("/opt/chronex",), Path("/home/ann/chronex.toml"), "/home/ann/store", "/usr/bin:/bin", Path("/l"))
ODD = PLAIN._replace(job_file=Path('/home/ann/100% "mine" $HOME/a b.toml'))


def test_the_unit_starts_the_headless_daemon_with_the_shells_path() -> None:
    unit = systemd_unit(PLAIN)
    assert (
        'ExecStart="/opt/chronex" "run" "--headless" "--config" "/home/ann/chronex.toml" "--store" "/home/ann/store"\n'
        in unit
    )
    assert 'Environment="PATH=/usr/bin:/bin"\n' in unit


@pytest.mark.parametrize(("char", "escaped"), [("%", "%%"), ("$", "$$"), ('"', '\\"'), ("\\", "\\\\"), ("\n", "\\n")])
def test_a_path_cannot_become_anything_else_in_the_unit(char: str, escaped: str) -> None:
    unit = systemd_unit(PLAIN._replace(job_file=Path(f"/home/a{char}b.toml")))
    assert f'"/home/a{escaped}b.toml"' in unit
    assert unit.count("\n") == systemd_unit(PLAIN).count("\n")


def test_another_daemon_on_the_store_is_no_reason_to_start_again() -> None:
    assert "RestartPreventExitStatus=2 75\n" in systemd_unit(PLAIN)


def test_a_database_that_does_not_answer_is_one() -> None:
    """It is soon back; whoever is not started again meanwhile is missing from then on."""
    unit = systemd_unit(PLAIN._replace(store="postgresql://chronex@db.example/jobs"))
    assert "Restart=on-failure\n" in unit
    assert "RestartPreventExitStatus=2\n" in unit


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_itself_accepts_the_unit(tmp_path: Path) -> None:
    file = tmp_path / "chronex.service"
    file.write_text(systemd_unit(ODD._replace(program=("/bin/true",))))
    done = subprocess.run(["systemd-analyze", "verify", str(file)], capture_output=True, text=True, check=False)
    assert "chronex.service" not in done.stderr, done.stderr


def test_the_agent_is_a_property_list_with_every_argument_whole() -> None:
    agent = plistlib.loads(launchd_plist(ODD))
    assert agent["ProgramArguments"] == list(ODD.command)
    assert agent["EnvironmentVariables"] == {"PATH": "/usr/bin:/bin"}


@pytest.mark.parametrize(
    ("platform", "environ", "file"),
    [
        ("linux", {}, "/home/ann/.config/systemd/user/chronex.service"),
        ("linux", {"XDG_CONFIG_HOME": "/x"}, "/x/systemd/user/chronex.service"),
        ("darwin", {}, "/home/ann/Library/LaunchAgents/dev.chronex.scheduler.plist"),
    ],
)
def test_each_manager_finds_its_file_where_it_looks(platform: str, environ: dict[str, str], file: str) -> None:
    assert str(manager_of(Path("/home/ann"), environ, platform).file) == file


def test_only_the_daemon_is_stopped_and_its_commands_go_on() -> None:
    """With KillMode=mixed or control-group systemd would end what the next daemon is to take up."""
    unit = systemd_unit(PLAIN)
    assert "KillMode=process\n" in unit
    assert "OOMPolicy=continue\n" in unit
    assert plistlib.loads(launchd_plist(PLAIN))["AbandonProcessGroup"] is True


@pytest.mark.parametrize(("version", "expected"), [(0, False), (253, False), (254, True), (258, True)])
def test_commands_can_have_control_groups_where_systemd_leaves_them_to_us(version: int, expected: bool) -> None:
    unit = systemd_unit(PLAIN, version=version)
    assert "Delegate=yes\n" in unit
    assert ("DelegateSubgroup=scheduler\n" in unit) is expected


def test_the_unit_of_the_system_waits_for_clock_and_network() -> None:
    unit = systemd_unit(PLAIN, is_of_system=True)
    assert "After=time-sync.target network-online.target\n" in unit
    assert "WantedBy=multi-user.target\n" in unit
    assert "time-sync" not in systemd_unit(PLAIN)
    manager = manager_of(Path("/root"), {}, "linux", is_of_system=True)
    assert manager.file == Path("/etc/systemd/system/chronex.service")
    assert "--user" not in {word for command in (*manager.start, *manager.stop, manager.ask) for word in command}


def test_a_node_of_a_shared_store_needs_no_job_file_and_keeps_its_name() -> None:
    node = PLAIN._replace(
        job_file=None, store="postgresql://chronex@db/jobs", environment=(("CHRONEX_NODE", "db-1"),)
    )
    unit = systemd_unit(node)
    assert 'ExecStart="/opt/chronex" "run" "--headless" "--store" "postgresql://chronex@db/jobs"\n' in unit
    assert 'Environment="CHRONEX_NODE=db-1"\n' in unit
    assert b"CHRONEX_NODE" in launchd_plist(node)
