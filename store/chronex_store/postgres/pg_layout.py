"""Which layouts of the tables this program works with."""

from __future__ import annotations

# The tables as this program makes them. One that is newer is refused; the one before is worked with as it is, so that
# machines can be brought to a new version one after the other. `chronex store migrate` then raises it.
LAYOUT = 2
OLDEST_LAYOUT = 1
