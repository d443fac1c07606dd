"""Whether a condition holds: real ports on loopback, real paths, and a machine's power supplies as files."""

from __future__ import annotations

import asyncio
import socket
import threading
from pathlib import Path

import pytest

from chronex.model.policies import Condition, read_condition
from chronex.run import condition_check
from chronex.run.condition_check import check_condition, is_on_mains
from chronex.run.side_threads import NoAnswerError, SideThreads


def supply(root: Path, name: str, **facts: str) -> None:
    (root / name).mkdir(parents=True)
    for fact, value in facts.items():
        (root / name / fact).write_text(f"{value}\n")


@pytest.mark.parametrize(
    ("case", "supplies", "on_mains"),
    [
        ("a server knows of none", {}, True),
        ("plugged in", {"AC": {"type": "Mains", "online": "1"}, "BAT0": {"type": "Battery", "status": "Full"}}, True),
        ("unplugged", {"AC": {"type": "Mains", "online": "0"}, "BAT0": {"type": "Battery", "status": "Full"}}, False),
        ("by USB", {"usb": {"type": "USB", "online": "1"}, "BAT0": {"type": "Battery"}}, True),
        ("a battery alone, in use", {"BAT0": {"type": "Battery", "status": "Discharging"}}, False),
        ("a battery alone, charging", {"BAT0": {"type": "Battery", "status": "Charging"}}, True),
        (
            "two batteries, the second in use",
            {
                "BAT0": {"type": "Battery", "status": "Not charging"},
                "BAT1": {"type": "Battery", "status": "Discharging"},
            },
            False,
        ),
        ("a mouse", {"hid": {"type": "Battery", "scope": "Device", "status": "Discharging"}}, True),
        (
            "a mouse and a port",
            {
                "hid": {"type": "Battery", "scope": "Device", "status": "Discharging"},
                "ucsi": {"type": "USB", "online": "0"},
            },
            True,
        ),
        (
            "a mouse that charges, unplugged",
            {
                "AC": {"type": "Mains", "online": "0"},
                "BAT0": {"type": "Battery", "scope": "System", "status": "Discharging"},
                "hid": {"type": "Battery", "scope": "Device", "status": "Charging"},
            },
            False,
        ),
        ("no notebook, an idle port", {"ucsi": {"type": "USB", "online": "0"}}, True),
        (
            "by a port that chooses its voltage",
            {
                "AC": {"type": "Mains", "online": "0"},
                "ucsi": {"type": "USB", "online": "2"},
                "BAT0": {"type": "Battery", "status": "Charging"},
            },
            True,
        ),
        (
            "by a port that nobody tells of",
            {"AC": {"type": "Mains", "online": "0"}, "BAT0": {"type": "Battery", "status": "Charging"}},
            True,
        ),
        (
            "a wireless feed",
            {"pad": {"type": "Wireless", "online": "1"}, "BAT0": {"type": "Battery", "status": "Full"}},
            True,
        ),
        ("its battery taken out", {"BAT0": {"type": "Battery", "present": "0", "status": "Unknown"}}, True),
        ("a UPS that is in use", {"ups": {"type": "UPS", "status": "Discharging"}}, False),
        ("a UPS that is full", {"ups": {"type": "UPS", "status": "Full", "online": "1"}}, True),
    ],
)
def test_a_machine_is_on_mains(
    tmp_path: Path, case: str, supplies: dict[str, dict[str, str]], on_mains: bool
) -> None:
    for name, facts in supplies.items():
        supply(tmp_path, name, **facts)
    assert is_on_mains(tmp_path) is on_mains
    assert check_condition(Condition("mains"), None, tmp_path) == ("" if on_mains else "it runs on its battery")


def test_a_port_that_answers_holds_and_one_that_does_not_says_why() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert check_condition(read_condition(f"tcp:127.0.0.1:{port}"), None) == ""
    assert check_condition(read_condition(f"tcp:127.0.0.1:{port}"), None) == "connection refused"


def test_a_host_that_does_not_exist_says_so() -> None:
    assert check_condition(read_condition("tcp:no-such-host.invalid:80"), None) != ""


@pytest.mark.parametrize("host", ["a..b", "a" * 64, "\u0130" * 40])
def test_a_host_that_nobody_can_be_called_is_no_fault(host: str) -> None:
    """Two of them are refused in a file, but may be stored already."""
    assert check_condition(Condition("tcp", host, 80), None) == "no host can have this name"


def test_a_path_is_looked_for_from_the_directory_of_the_task(tmp_path: Path) -> None:
    here = read_condition("path:mounted/file")
    assert check_condition(here, str(tmp_path)) == "no such file or directory"
    (tmp_path / "mounted").mkdir()
    (tmp_path / "mounted" / "file").touch()
    assert check_condition(here, str(tmp_path)) == ""


def test_a_machine_without_a_route_has_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(condition_check, "_has_route", lambda family, host: False)
    assert check_condition(Condition("network"), None) == "there is no route to anywhere"
    monkeypatch.setattr(condition_check, "_has_route", lambda family, host: family == socket.AF_INET6)
    assert check_condition(Condition("network"), None) == ""


# -- looks that may never come back ------------------------------------------------------------------------------


async def test_a_look_that_hangs_is_left_behind() -> None:
    go_on, threads = threading.Event(), SideThreads(most=2)
    with pytest.raises(NoAnswerError, match=r"no answer within 0\.01 s"):
        await threads.run(go_on.wait, 0.01)
    assert await threads.run(lambda: "another", 5) == "another"
    go_on.set()


async def test_where_too_many_hang_nobody_looks_until_one_is_back() -> None:
    go_on, threads = threading.Event(), SideThreads(most=1)
    with pytest.raises(NoAnswerError):
        await threads.run(go_on.wait, 0.01)
    with pytest.raises(NoAnswerError, match="have not come back"):
        await threads.run(lambda: "another", 5)
    go_on.set()
    for _ in range(1_000):
        try:
            assert await threads.run(lambda: "another", 5) == "another"
            return
        except NoAnswerError:
            await asyncio.sleep(0.005)
    pytest.fail("the place of the one that came back is not given again")


async def test_what_a_look_raises_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        await SideThreads().run(lambda: 1 // 0, 5)
