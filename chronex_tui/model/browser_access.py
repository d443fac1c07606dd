"""Who may see the dashboard in a browser: the address, the token of the URL, and the page that a request comes from.

Everything that is served, the socket too, is below a path that begins with the token, so a page that does not know
the token gets nothing. The socket also wants to be opened by a page of this very server: a browser tells where the
page came from, and another site that learned the URL is still refused.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from typing import NamedTuple
from urllib.parse import urlsplit

from chronex.errors import ChronexError

_TOKEN_BYTES = 24
_LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")
_EXAMPLE = "write 127.0.0.1:8787"


class ServeAddressError(ChronexError):
    """The text of --serve names no address."""


class ServeAddress(NamedTuple):
    """Where the dashboard is served."""

    host: str  # without brackets
    port: int

    @property
    def is_loopback(self) -> bool:
        """Can only this machine reach it?"""
        return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback

    @property
    def is_any(self) -> bool:
        return self.host != "localhost" and ipaddress.ip_address(self.host).is_unspecified

    @property
    def shown(self) -> str:
        return f"{self.shown_host}:{self.port}"

    def allows_host(self, host: str) -> bool:
        """May a request name this host? On loopback only its own names: a name of another site may point here too."""
        return not self.is_loopback or host in {f"{name}:{self.port}" for name in (*_LOCAL_NAMES, self.shown_host)}

    @property
    def shown_host(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host


def read_address(text: str) -> ServeAddress:
    """HOST:PORT or PORT; a host is an IP address or localhost, because a name may mean any machine tomorrow."""
    host, colon, port = text.rpartition(":")
    host = host.strip("[]") if colon else "127.0.0.1"
    if not port.isascii() or not port.isdecimal() or not 0 <= int(port) <= 65535:
        raise ServeAddressError(f"{port!r} is not a port; {_EXAMPLE}")
    if host != "localhost":
        try:
            ipaddress.ip_address(host)
        except ValueError:
            raise ServeAddressError(f"{host!r} is not an IP address; {_EXAMPLE}") from None
    return ServeAddress(host, int(port))


def new_token() -> str:
    return secrets.token_urlsafe(_TOKEN_BYTES)


def is_token(given: str, token: str) -> bool:
    """Compared in a time that does not tell how much of it was right."""
    return hmac.compare_digest(given.encode(), token.encode())


def is_own_page(origin: str, host: str) -> bool:
    """Was the page that sends this request served by the host that the request goes to? Without an origin it was not.

    Before a proxy that speaks https the page has another scheme, so only the host is compared.
    """
    parts = urlsplit(origin)
    return parts.scheme in ("http", "https") and bool(host) and parts.netloc.lower() == host.lower()
