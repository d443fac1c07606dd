"""Deciding, recording and handing out work: ports, clock, records of the store, journal."""
