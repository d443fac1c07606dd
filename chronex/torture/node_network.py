"""A network of one node's own: a namespace of the kernel and a cable to it that can be pulled. For root on Linux."""

from __future__ import annotations

import os
import shutil
import subprocess
from random import Random

# The addresses 10.231.0.0 to 10.231.255.255, four for each node.
_MOST_NETWORKS = 1 << 14
_TRIES = 20


def why_no_networks() -> str:
    """Why no node can have a network of its own here; empty where it can."""
    if os.geteuid() != 0:
        return "only root can give each node a network of its own"
    return "" if shutil.which("ip") else "the program `ip` is missing (Debian: apt-get install iproute2)"


class NodeNetwork:
    """`near` is this machine's end of the cable, where the node's relay listens; the node has the other one."""

    def __init__(self, random: Random) -> None:
        for _ in range(_TRIES):
            number = random.randrange(_MOST_NETWORKS)
            self.name, self._link = f"chronex-{number:04x}", f"cx{number:04x}"
            self.near, far = (f"10.231.{number >> 6}.{((number & 63) << 2) + end}" for end in (1, 2))
            if _ip("netns", "add", self.name, check=False) == 0:
                break
        else:
            raise OSError("no network namespace could be made")
        inside = f"{self._link}p"
        _ip("link", "add", self._link, "type", "veth", "peer", "name", inside, "netns", self.name)
        _ip("addr", "add", f"{self.near}/30", "dev", self._link)
        _ip("-n", self.name, "addr", "add", f"{far}/30", "dev", inside)
        for link in ("lo", inside):
            _ip("-n", self.name, "link", "set", link, "up")
        self.plug_in()

    def enter(self) -> list[str]:
        """What comes before a command that is to run in it."""
        return ["ip", "netns", "exec", self.name]

    def unplug(self) -> None:
        _ip("link", "set", self._link, "down")

    def plug_in(self) -> None:
        _ip("link", "set", self._link, "up")

    def close(self) -> None:
        _ip("link", "del", self._link, check=False)
        _ip("netns", "del", self.name, check=False)


def _ip(*arguments: str, check: bool = True) -> int:
    done = subprocess.run(  # noqa: S603  names of ours alone
        ["ip", *arguments],  # noqa: S607  wherever the system has it
        check=check, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=30,
    )  # fmt: skip
    return done.returncode
