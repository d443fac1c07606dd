"""Meaning and instant to instants: calendar, zones, DST policy, and the one search."""

from __future__ import annotations

from chronex.timing.expression import Expression, epoch_ms
from chronex.timing.reading import parse, parse_and_validate, read, validate

__all__ = ["Expression", "epoch_ms", "parse", "parse_and_validate", "read", "validate"]
