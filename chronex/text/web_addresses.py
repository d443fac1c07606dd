"""Addresses of the web: which can be asked, and how one is shown that may hold a secret."""

from __future__ import annotations

from urllib.parse import urlsplit

LONGEST_URL = 2_000


def url_problem(written: str) -> str:
    """What keeps a text from being an address that can be asked; empty where nothing does."""
    if len(written) > LONGEST_URL:
        return f"an address has at most {LONGEST_URL} characters"
    if not written.isascii() or not written.isprintable() or " " in written:
        return "an address has no spaces, control or other than ASCII characters"
    try:
        parts = urlsplit(written)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "this is no address"
    if parts.scheme not in ("http", "https") or not host or port == 0:
        return "this is no address of http: or https:"
    if parts.username is not None or parts.password is not None:
        return "a name and a password in an address would be stored; keep the address in a file"
    return "an address has no # here" if parts.fragment else ""


def shown_host(written: str) -> str:
    """The scheme and the host of an address: its path may be all that keeps strangers out."""
    try:
        parts = urlsplit(written)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "…"
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}{f':{port}' if port else ''}/…"
