"""[scheduler] otlp: the collector that is told of every run as a span."""

from __future__ import annotations

from urllib.parse import urlsplit

from msgspec import Struct

from chronex.jobfile.entries import Entry, Reader, RefusedError, read_table
from chronex.jobfile.notify_table import web_address
from chronex.jobfile.process_table import secret_source
from chronex.model.channels import is_reference
from chronex.text.terminal import quoted

MOST_HEADERS = 20
_PATH = "/v1/traces"
_HEADER_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")


class OtlpSettings(Struct, frozen=True):
    """Where the collector is; `headers` say where their values are kept, and never the values themselves."""

    url: str
    headers: dict[str, str] = {}

    @property
    def is_kept_elsewhere(self) -> bool:
        return is_reference(self.url)


def with_path(url: str) -> str:
    """The address of traces; most people write that of the collector alone."""
    parts = urlsplit(url)
    return parts._replace(path=_PATH).geturl() if parts.path in ("", "/") else url


def _headers(entry: Entry) -> dict[str, str]:
    table = entry.expect_table(entry.assignment('{ Authorization = "file:/etc/chronex/otlp-token" }'))
    if len(table) > MOST_HEADERS:
        entry.refuse(f"there are more than {MOST_HEADERS} headers", "remove some", "J014", entry.key_span)
    found: dict[str, str] = {}
    for name in table:
        child = entry.child(name)
        if not name or not set(name) <= _HEADER_LETTERS:
            child.refuse(f"{quoted(name)} is not the name of a header", "write letters and -", "J013", child.key_span)
        source = secret_source(child)
        if not is_reference(source):
            hint = f'write {child.label} = "file:/etc/chronex/otlp-token"'
            child.refuse(f"{child.label} comes from file:, env: or credential:", hint, "J013")
        found[name] = source
    return found


OTLP: dict[str, Reader] = {"url": web_address, "headers": _headers}


def otlp(entry: Entry) -> OtlpSettings:
    """An address, or a table with one."""
    if isinstance(entry.value, str):
        return OtlpSettings(web_address(entry))
    example = entry.assignment('{ url = "http://127.0.0.1:4318" }')
    given = read_table(entry, OTLP, example)
    if "url" not in entry.expect_table():
        entry.report("otlp has no url", f"write {example}", "J012")
    if "url" not in given:
        raise RefusedError
    return OtlpSettings(given["url"], given.get("headers", {}))
