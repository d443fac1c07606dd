"""Addresses of the web: which can be asked, and how one is shown that may hold a secret."""

from __future__ import annotations

from urllib.parse import parse_qsl, unquote, urlsplit

LONGEST_URL = 2_000
# A shorter part of a path is a word such as `ping`, which stands in every page.
_LEAST_SECRET = 6


def url_problem(written: str, *, is_kept: bool = False) -> str:
    """What keeps a text from being an address that can be asked; empty where nothing does. `is_kept`: it comes from
    where secrets are kept, so it may have a name and a password."""
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
    if not is_kept and (parts.username is not None or parts.password is not None):
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


def without_address(text: str, url: str) -> str:
    """The text without the parts of the address that may be secret: a server's page often repeats what was asked."""
    for part in sorted(_secret_parts(url), key=len, reverse=True):
        text = text.replace(part, "[redacted]")
    return text


def _secret_parts(url: str) -> set[str]:
    parts = urlsplit(url)
    path = [each for each in parts.path.split("/") if len(each) >= _LEAST_SECRET]
    query = [value for _, value in parse_qsl(parts.query) if value]
    whole = [each for each in (parts.path, parts.query) if len(each) >= _LEAST_SECRET]
    found = {*path, *query, *whole, *((parts.password,) if parts.password else ())}
    return found | {unquote(each) for each in found}
