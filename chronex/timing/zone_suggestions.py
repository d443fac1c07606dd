"""What an unknown zone was meant to be. The nearest spelling is no evidence for an abbreviation: PST is not EST."""

from __future__ import annotations

from collections.abc import Iterable

from chronex.text.suggestions import is_respelling, nearest

# Abbreviations that zone data does not have, or not as what people mean by them, and that one place stands for.
_PLACES = {
    "Z": "UTC", "ZULU": "UTC",
    "PST": "America/Los_Angeles", "PDT": "America/Los_Angeles", "MDT": "America/Denver", "CDT": "America/Chicago",
    "EDT": "America/New_York", "AKST": "America/Anchorage", "AKDT": "America/Anchorage", "NST": "America/St_Johns",
    "NDT": "America/St_Johns", "BRT": "America/Sao_Paulo", "ART": "America/Argentina/Buenos_Aires",
    "CEST": "Europe/Berlin", "EEST": "Europe/Helsinki", "WEST": "Europe/Lisbon", "MSK": "Europe/Moscow",
    "TRT": "Europe/Istanbul", "JST": "Asia/Tokyo", "KST": "Asia/Seoul", "HKT": "Asia/Hong_Kong",
    "SGT": "Asia/Singapore", "PKT": "Asia/Karachi", "WIB": "Asia/Jakarta", "PHT": "Asia/Manila",
    "AEST": "Australia/Sydney", "AEDT": "Australia/Sydney", "ACST": "Australia/Adelaide",
    "ACDT": "Australia/Adelaide", "AWST": "Australia/Perth", "NZST": "Pacific/Auckland", "NZDT": "Pacific/Auckland",
    "SAST": "Africa/Johannesburg",
}  # fmt: skip
# Abbreviations of several places: naming one would be a guess, so that a message names them all.
_SEVERAL = {
    "CST": "America/Chicago or Asia/Shanghai",
    "IST": "Asia/Kolkata, Europe/Dublin or Asia/Jerusalem",
    "BST": "Europe/London or Asia/Dhaka",
    "AST": "America/Halifax or Asia/Riyadh",
    "GST": "Asia/Dubai or Atlantic/South_Georgia",
}
_SHORTEST_GUESSED = 6
_MOST_EDITS = 2  # what the nearest spelling allows


def meant_zone(name: str, known: Iterable[str]) -> str | None:
    """The zone that an unknown name most likely means, None where nothing speaks for one."""
    if (place := _PLACES.get(name.upper())) is not None:
        return place
    names = [zone for zone in known if abs(len(zone) - len(name)) <= _MOST_EDITS]
    if (
        same := next((zone for zone in names if len(zone) == len(name) and is_respelling(name, zone)), None)
    ) is not None:
        return same
    letters = name.replace("/", "").replace("_", "").replace("-", "").replace(" ", "")
    if not letters.isalpha() or ("/" not in name and len(name) < _SHORTEST_GUESSED):
        return None  # an offset such as UTC+2, or an abbreviation
    return nearest(name, names)


def is_of_several_places(name: str) -> bool:
    return name.upper() in _SEVERAL


def zone_example(name: str) -> str:
    """Names to show beside an unknown one: the places that it may stand for, or any."""
    return _SEVERAL.get(name.upper(), "Europe/Berlin")
