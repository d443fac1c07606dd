"""Meaning and instant to instants: calendar, zones, DST policy, and the one search.

validation     text to an Expression, with every error and warning
expression     the public value: next, previous, upcoming, matches on datetimes
occurrences    the instants of every kind of schedule, as milliseconds and in bulk
search         the one search for cron expressions, on seconds
calendar       which days match; steps by months and days
dst            zone and DST policy as spans; single wall times to instants
zones, tzif    offsets and clock changes from compiled zone data
clock_changes  what a clock change does to an expression, for people
advice         warnings on a valid expression
host_zone      the zone of this host
"""

from __future__ import annotations

from chronex.timing.expression import Expression
from chronex.timing.validation import parse, parse_and_validate, read, validate

__all__ = ["Expression", "parse", "parse_and_validate", "read", "validate"]
