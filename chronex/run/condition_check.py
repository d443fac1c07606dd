"""Whether a condition holds, by looking: at the mains, for a route, a port, a path. Each look is for a thread."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from chronex.model.policies import MAINS, NETWORK, PATH, TCP, Condition

CHECK_S = 5.0
_SUPPLIES = Path("/sys/class/power_supply")
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
    """A machine that knows of no mains and of no battery is no notebook."""
    kinds: dict[str, list[bool]] = {}
    for supply in sorted(supplies.glob("*")):
        kind, online = _read(supply / "type"), _read(supply / "online")
        kinds.setdefault(kind, []).append(online == "1")
    mains = [*kinds.get("Mains", []), *kinds.get("USB", [])]
    return any(mains) if mains else "Battery" not in kinds or _read_all(supplies, "status") != {"Discharging"}


def _read(path: Path) -> str:
    try:
        return path.read_text("ascii", "replace").strip()
    except OSError:
        return ""


def _read_all(supplies: Path, name: str) -> set[str]:
    return {_read(supply / name) for supply in supplies.glob("*")} - {""}


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
    except OSError as error:
        return (error.strerror or str(error)).lower()
