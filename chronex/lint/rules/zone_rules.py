"""The rules on zones that a file names or leaves out: unknown ones, and those that are only an offset."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chronex.errors import UnknownZoneError
from chronex.expr.diagnostics import INFO, WARNING, Message, Rule
from chronex.expr.syntax_rules import E011
from chronex.lint.cron_programs import SUPERCRONIC, CronProgram
from chronex.lint.findings import Edit, Fix, LintFinding, ScheduleSite, finding
from chronex.lint.rules import cronjob
from chronex.text.terminal import quoted
from chronex.timing.zones import load_zone, meant_zone, zone_example, zone_names

# The offset of these zones is fixed, though the countries that use the abbreviation change their clocks.
_ABBREVIATION = re.compile(r"EST|MST|HST|CET|MET|EET|WET|[ECMP]ST[0-9][A-Z]DT|Etc/GMT[+-][0-9]+")
_BETTER = {
    "EST": "America/New_York", "EST5EDT": "America/New_York", "MST": "America/Denver", "MST7MDT": "America/Denver",
    "CST6CDT": "America/Chicago", "PST8PDT": "America/Los_Angeles", "HST": "Pacific/Honolulu",
    "CET": "Europe/Berlin", "MET": "Europe/Berlin", "EET": "Europe/Helsinki", "WET": "Europe/Lisbon",
}  # fmt: skip
_NAME_A_PLACE = "name a place such as {better}"

W113 = Rule(
    "W113",
    "zone by abbreviation or fixed offset",
    WARNING,
    "An abbreviation such as EST is a fixed offset or an alias that zone data may change; it "
    "does not follow the clocks of any place. Etc/GMT+5 lies west of Greenwich, against all expectation.",
    bad=cronjob('"30 9 * * *"', "EST"),
    good=cronjob('"30 9 * * *"', "America/New_York"),
    messages={
        "offset": Message(
            "{zone} is a fixed offset, hours {side} of Greenwich whatever its sign suggests", _NAME_A_PLACE
        ),
        "abbreviation": Message(
            "{zone} is an abbreviation that no place answers for: what its clock does depends on the zone data",
            _NAME_A_PLACE,
        ),
    },
)


def zone_findings(
    name: str, start: int, end: int, *, fixable: bool = True, is_refused: bool = True
) -> Iterator[LintFinding]:
    """What is wrong with a zone's name that stands between these offsets.

    `is_refused` is False where the host takes an unknown name for UTC: another spelling then changes its times.
    """
    try:
        load_zone(name)
    except UnknownZoneError:
        yield _unknown_zone(name, start, end, fixable=fixable, is_refused=is_refused)
        return
    yield from zone_abbreviation(name, start, end)


def _unknown_zone(name: str, start: int, end: int, *, fixable: bool, is_refused: bool) -> LintFinding:
    meant = meant_zone(name, zone_names())
    case = "misspelt beside the expression" if meant else "unknown beside the expression"
    fix = Fix(f"write {meant}", (Edit(start, end, meant),)) if meant and fixable else None
    return finding(
        E011,
        start,
        end,
        case,
        fix=fix,
        replaced=name if is_refused else "",
        value=quoted(name),
        meant=meant,
        example=zone_example(name),
    )


# `UTC+2`, `EST5`: a name and hours WEST of Greenwich, which the C library reads and zone data does not have.
_POSIX_ZONE = re.compile(r"[A-Za-z]{3,}([+-]?)([0-9]{1,2})")


def posix_zone(name: str) -> str | None:
    """The fixed offset that the C library makes of such a name; None for any other name."""
    match = _POSIX_ZONE.fullmatch(name)
    if match is None or int(match[2]) > (14 if match[1] == "-" else 12):
        return None
    return f"Etc/GMT{match[1] or '+'}{int(match[2])}"


def name_in_crontab(value: str, program: CronProgram) -> str:
    """The zone that a value of CRON_TZ names: the C library also knows offsets, and a colon in front."""
    return value if program is SUPERCRONIC else posix_zone(value) or value.removeprefix(":")


def zone_of_crontab(written: str, name: str, start: int, host: str) -> Iterator[LintFinding]:
    """CRON_TZ where cron reads it: the C library takes what it does not know for UTC, and says nothing."""
    end = start + len(written)
    try:
        load_zone(name)
    except UnknownZoneError:
        meant = meant_zone(name, zone_names())
        case = "misspelt in a crontab" if meant else "unknown in a crontab"
        fix = Fix(f"write {meant}", (Edit(start, end, meant),)) if meant else None
        names = {"value": quoted(name), "meant": meant, "example": zone_example(name), "host": host}
        yield finding(E011, start, end, case, fix=fix, replaced="", site=None, severity=None, **names)
        return
    yield from zone_abbreviation(name, start, end)


def zone_abbreviation(name: str, start: int, end: int, site: ScheduleSite | None = None) -> Iterator[LintFinding]:
    """W113, for a zone that is known."""
    if not _ABBREVIATION.fullmatch(name):
        return
    case = "offset" if name.startswith("Etc/") else "abbreviation"
    side = "west" if "+" in name else "east"
    better = _BETTER.get(name, "Europe/Berlin")
    yield finding(W113, start, end, case, site=site, zone=name, side=side, better=better)


def zone_abbreviation_inside(site: ScheduleSite, name: str | None) -> Iterator[LintFinding]:
    """W113, for the zone that is written in the expression itself."""
    if name is not None:
        at = site.text.find(name)
        start, end = site.span(at, at + len(name))
        yield from zone_abbreviation(name, start, end, site)


W114 = Rule(
    "W114",
    "zone left to the host",
    INFO,
    "A CronJob without timeZone is read in the zone of the cluster's controller manager. That is "
    "mostly UTC, but nothing in the file says so. Not told of what runs in every hour.",
    bad=cronjob('"30 9 * * *"', ""),
    good=cronjob('"30 9 * * *"'),
    messages={"": Message("no timeZone: the times are read in the zone of the cluster's controller, mostly UTC")},
)


def zone_left_to_the_host(site: ScheduleSite) -> LintFinding:
    return finding(W114, site.start, site.end, site=site)


ZONE_RULES = (W113, W114)
