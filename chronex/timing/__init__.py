"""Meaning and instant to instants: calendar, zones, DST policy, and the one search.

expression     the public value: text to it, with every error and warning; next, previous, upcoming, matches
occurrences    the instants of every kind of schedule, as milliseconds and in bulk
search         the one search for cron expressions, on seconds
calendar       which days match; steps by months and days
dst            zone and DST policy as spans; single wall times to instants
zones, tzif    offsets and clock changes from compiled zone data; the zone of this host
clock_changes  what a clock change does to an expression, for people
calendar_days, calendar_schedule, calendar_words   what the calendars of a job leave, move and say
recurrence     the days of a recurrence rule (RRULE), with a bound on its work
advice         warnings on a valid expression
job_schedule   the instants of a job: of its expression, or of a schedule that a program registers
"""

from __future__ import annotations

from chronex.timing.expression import Expression, parse, parse_and_validate, read, validate

__all__ = ["Expression", "parse", "parse_and_validate", "read", "validate"]
