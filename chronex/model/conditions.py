"""What a job waits for before it starts: words, and what they mean to whoever looks."""

from __future__ import annotations

from typing import NamedTuple

MOST_CONDITIONS = 16
MAINS, NETWORK, TCP, PATH, COMMAND = "mains", "network", "tcp", "path", "command"
WORDS = (MAINS, NETWORK, TCP, PATH, COMMAND)
_MOST_PORT = 65_535


class Condition(NamedTuple):
    """`kind` is one of WORDS; `what` is the host, the path or the command line, `port` of `tcp` alone."""

    kind: str
    what: str = ""
    port: int = 0


def read_condition(written: str) -> Condition:
    """Raises ValueError with what to write instead."""
    kind, colon, rest = written.partition(":")
    if kind in (MAINS, NETWORK):
        if colon:
            raise ValueError(f"write {kind} alone")
        return Condition(kind)
    if kind == TCP:
        host, _, port = rest.rpartition(":")
        if not host.strip("[]") or not (port.isascii() and port.isdigit()) or not 0 < int(port) <= _MOST_PORT:
            raise ValueError("write tcp:HOST:PORT, such as tcp:db:5432")
        return Condition(TCP, host.strip("[]"), int(port))
    if kind in (PATH, COMMAND) and rest.strip():
        return Condition(kind, rest)
    if kind in (PATH, COMMAND):
        raise ValueError(f"write {kind}: and behind it the {'path' if kind == PATH else 'command line'}")
    raise ValueError("write mains, network, tcp:HOST:PORT, path:/DIRECTORY or command:LINE")


class Found(NamedTuple):
    """What was found of the conditions of a job, all of them together, and when; `lacking` is the first that does not
    hold, with what was seen."""

    holds: bool
    at_ms: int
    lacking: str = ""
