"""One node of a campaign: a real daemon with a state directory, a relay and processes of its own, as on a machine."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from random import Random
from urllib.parse import quote

from chronex.torture.relay import Relay, Upstream
from chronex.torture_settings import CLOCK_VARIABLE, PACE_VARIABLE
from chronex_store.postgres.pg_address import PostgresAddress

# A network of one node's own: a namespace of the kernel and a cable to it that can be pulled. For root on Linux.

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


_LEAVE_WITHIN_S = 60
# What libpq reads itself, and what a program needs to be found.
_PASSED_ON = ("PATH", "HOME", "LANG", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "TMPDIR", "TZ")


def own_program() -> list[str]:
    """The program that runs now; a frozen one is its own interpreter."""
    return [sys.executable] if getattr(sys, "frozen", False) else [sys.executable, "-m", "chronex"]


def upstream_of(address: PostgresAddress, environ: Mapping[str, str] = os.environ) -> Upstream:
    """Where the database listens: the first host of the address, a socket where that is a directory."""
    host = (address.parameters.get("host") or environ.get("PGHOST") or "localhost").split(",")[0]
    port = int((address.parameters.get("port") or environ.get("PGPORT") or "5432").split(",")[0])
    return f"{host}/.s.PGSQL.{port}" if host.startswith("/") else (host, port)


def address_by_relay(
    address: PostgresAddress, port: int, schema: str, host: str = "127.0.0.1", program: str = "chronex"
) -> str:
    """The same database by way of the relay, without a password, which goes into the environment.

    The server knows whose sessions they are by the name of the `program`.

    The relay is not the host that a certificate names, so `verify-full` becomes `verify-ca` on this way.
    """
    given = dict(address.parameters)
    user, database = given.pop("user", ""), given.pop("dbname", "")
    for name in ("host", "port", "password", "hostaddr"):
        given.pop(name, None)
    if given.get("sslmode") == "verify-full":
        given["sslmode"] = "verify-ca"
    options = "&".join(
        f"{name}={quote(value, safe='')}"
        for name, value in {**given, "application_name": program, "schema": schema}.items()
    )
    login = f"{quote(user, safe='')}@" if user else ""
    return f"postgresql://{login}{host}:{port}/{quote(database, safe='')}?{options}"


class TormentedNode:
    """`number` names it; `program` may be changed between two starts, as an upgrade does."""

    def __init__(
        self, number: int, directory: Path, address: PostgresAddress, schema: str, pace: int,
        network: NodeNetwork | None = None,
    ) -> None:  # fmt: skip
        self.name = f"node-{number}"
        self.directory = directory / self.name
        self.directory.mkdir()
        self.network = network
        self.relay = Relay(upstream_of(address), network.near if network else "127.0.0.1")
        self.url = address_by_relay(address, self.relay.port, schema, self.relay.host, self.name)
        self.own_program = self.program = own_program()
        self.clock_ahead_ms = 0
        self.variables: dict[str, str] = {}  # further ones, from its next start on
        self._pace = pace
        self._password = address.parameters.get("password", "")
        self._daemon: subprocess.Popen[bytes] | None = None

    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        kept |= {name: value for name, value in os.environ.items() if name.startswith("PG")}
        password = {"PGPASSWORD": self._password} if self._password else {}
        return {
            **kept, **password, PACE_VARIABLE: str(self._pace), CLOCK_VARIABLE: str(self.clock_ahead_ms),
            "CHRONEX_STORE": self.url, "CHRONEX_STATE_DIR": str(self.directory / "state"), "CHRONEX_NODE": self.name,
            **self.variables,
        }  # fmt: skip

    @property
    def is_running(self) -> bool:
        return self._daemon is not None and self._daemon.poll() is None

    def start(self) -> None:
        """Its log is kept beside its state, for whoever looks into a campaign that failed."""
        within = self.network.enter() if self.network else ()
        with (self.directory / "log").open("ab") as log:
            self._daemon = subprocess.Popen(  # noqa: S603  our own program
                [*within, *self.program, "run", "--headless"], cwd=self.directory, env=self.environment(),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def signal(self, number: int) -> None:
        if self._daemon is not None and self.is_running:
            self._daemon.send_signal(number)

    def signal_all(self, number: int) -> None:
        """The daemon, its keeper and every command; again until no new one is found."""
        seen: set[int] = set()
        while found := self.processes() - seen:
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            seen |= found

    def unplug(self) -> None:
        if self.network is not None:
            self.network.unplug()

    def plug_in(self) -> None:
        """Whatever was between it and its database passes again."""
        self.relay.heal()
        if self.network is not None:
            self.network.plug_in()

    def kill(self) -> None:
        """kill -9 of the daemon alone; its keeper and its commands go on."""
        self.signal(signal.SIGKILL)
        self._wait()

    def leave(self) -> None:
        """As a person stops it."""
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        self._wait()

    def switch_off(self) -> None:
        """The whole machine: the daemon, its keeper, and every command."""
        while found := self.processes():
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._wait()

    def _wait(self) -> None:
        if self._daemon is not None:
            try:
                self._daemon.wait(_LEAVE_WITHIN_S)
            except subprocess.TimeoutExpired:
                self._daemon.kill()
                self._daemon.wait()

    def processes(self) -> set[int]:
        """Every living process that has this node's way to the store in its environment."""
        mark = f"@{self.relay.host}:{self.relay.port}/".encode()
        found: set[int] = set()
        for path in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                stores = [one for one in path.read_bytes().split(b"\0") if one.startswith(b"CHRONEX_STORE=")]
                if any(mark in one or mark.removeprefix(b"@") in one for one in stores):
                    found.add(int(path.parent.name))
        return found - {os.getpid()}

    def close(self) -> None:
        self.switch_off()
        self.relay.close()
        if self.network is not None:
            self.network.close()
