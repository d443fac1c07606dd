"""Whether a condition holds, by looking: at the mains, for a route, a port, a path. Each look is for a thread."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from chronex.model.policies import MAINS, NETWORK, PATH, TCP, Condition

CHECK_S = 5.0
_SUPPLIES = Path("/sys/class/power_supply")
_STORED = ("Battery", "UPS")
# Addresses that belong to nobody (RFC 5737 and 3849). Nothing is sent: the system is asked for a route alone.
_BEYOND = ((socket.AF_INET, "198.51.100.1"), (socket.AF_INET6, "2001:db8::1"))
_DISCARD = 9


def check_condition(condition: Condition, directory: str | None, supplies: Path = _SUPPLIES) -> str:
    """What is lacking; empty where it holds. `command` is not looked at here, because it takes a process."""
    if condition.kind == MAINS:
        return "" if is_on_mains(supplies) else "it runs on its battery"
    if condition.kind == NETWORK:
        return "" if any(_has_route(family, host) for family, host in _BEYOND) else "there is no route to anywhere"
    if condition.kind == TCP:
        return _port(condition.what, condition.port)
    assert condition.kind == PATH, f"{condition.kind} is not looked at in a thread"
    try:
        (Path(directory or ".") / condition.what).stat()
    except OSError as error:
        return os.strerror(error.errno or 0).lower()
    return ""


def is_on_mains(supplies: Path) -> bool:
    """As the kernel's page on power supplies has it. A machine that knows of no battery of its own is no notebook.

    The battery of a mouse is known too, as one of a device. A port that takes power (USB-C) is off where nothing is
    plugged in, on a machine without batteries as well, and 2 where its voltage can be chosen.
    """
    of_machine = [supply for supply in supplies.glob("*") if _read(supply / "scope") != "Device"]
    batteries = [supply for supply in of_machine if _read(supply / "type") in _STORED]
    feeds = [_read(supply / "online") for supply in of_machine if supply not in batteries]
    present = [_read(battery / "status") for battery in batteries if _read(battery / "present") != "0"]
    if any(online not in ("", "0") for online in feeds) or not present:
        return True
    if "Charging" in present and "Discharging" not in present:
        return True  # by a feed that the system does not know
    return not ("0" in feeds or "Discharging" in present)


def _read(path: Path) -> str:
    try:
        return path.read_text("ascii", "replace").strip()
    except OSError:
        return ""


def _has_route(family: socket.AddressFamily, host: str) -> bool:
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((host, _DISCARD))
    except OSError:
        return False
    return True


def _port(host: str, port: int) -> str:
    try:
        with socket.create_connection((host, port), timeout=CHECK_S):
            return ""
    except TimeoutError:
        return f"no answer within {CHECK_S:g} s"
    except UnicodeError:
        return "no host can have this name"
    except OSError as error:
        return (error.strerror or str(error)).lower()
