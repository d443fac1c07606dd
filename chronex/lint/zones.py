"""Zones that a file names: unknown ones, and those that are only an offset in disguise."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chronex.errors import UnknownZoneError
from chronex.expr.diagnostics import ERROR, WARNING
from chronex.lint.findings import Edit, Finding, Fix
from chronex.text.suggestions import nearest
from chronex.text.terminal import quoted
from chronex.timing.zones import load_zone, zone_names

# Fixed for ever, though the places they are named after change their clocks or have changed their offset.
_ABBREVIATION = re.compile(r"EST|MST|HST|CET|MET|EET|WET|[ECMP]ST[0-9][A-Z]DT|Etc/GMT[+-][0-9]+")
_BETTER = {
    "EST": "America/New_York", "EST5EDT": "America/New_York", "MST": "America/Denver", "MST7MDT": "America/Denver",
    "CST6CDT": "America/Chicago", "PST8PDT": "America/Los_Angeles", "HST": "Pacific/Honolulu",
    "CET": "Europe/Berlin", "MET": "Europe/Berlin", "EET": "Europe/Helsinki", "WET": "Europe/Lisbon",
}  # fmt: skip


def zone_findings(name: str, start: int, end: int, *, fixable: bool = True) -> Iterator[Finding]:
    """What is wrong with a zone's name that stands between these offsets."""
    try:
        load_zone(name)
    except UnknownZoneError:
        meant = nearest(name, zone_names())
        hint = f"; did you mean {meant}?" if meant else "; use an IANA name such as Europe/Berlin"
        fix = Fix(f"write {meant}", (Edit(start, end, meant),)) if meant and fixable else None
        yield Finding("E011", ERROR, f"unknown time zone {quoted(name)}{hint}", start, end, fix)
        return
    if _ABBREVIATION.fullmatch(name):
        yield Finding("W113", WARNING, abbreviation_message(name), start, end)


def is_abbreviation(name: str) -> bool:
    return _ABBREVIATION.fullmatch(name) is not None


def abbreviation_message(name: str) -> str:
    better = _BETTER.get(name)
    hint = f"; name a place such as {better}" if better else "; name a place such as Europe/Berlin"
    if name.startswith("Etc/"):
        sign = "west" if "+" in name else "east"
        return f"{name} is a fixed offset, hours {sign} of Greenwich whatever its sign suggests{hint}"
    return f"{name} is an abbreviation that no place answers for: what its clock does depends on the zone data{hint}"
