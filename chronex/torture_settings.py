"""What `chronex torture` sets for the daemons that it torments, by variables that nobody else sets.

The leases of nodes are measured in seconds and minutes, and a campaign has hundreds of rounds: it runs them faster.
And it gives a node a clock that is wrong. Both are honoured on the stores that a campaign makes for itself alone.
"""

from __future__ import annotations

import os

PACE_VARIABLE = "CHRONEX_TORTURE_PACE"
CLOCK_VARIABLE = "CHRONEX_TORTURE_CLOCK_MS"
SCHEMA_PREFIX = "chronex_torture_"


def _number(variable: str, otherwise: int) -> int:
    text = os.environ.get(variable, "")
    return int(text) if text.lstrip("-").isdecimal() and len(text) <= 12 else otherwise


# So many times faster than usual do leases run out.
PACE = max(1, min(_number(PACE_VARIABLE, 1), 100))
# By so much is this machine's own clock ahead of the truth.
CLOCK_AHEAD_MS = _number(CLOCK_VARIABLE, 0)


IS_SET = PACE != 1 or CLOCK_AHEAD_MS != 0


def paced(ms: int) -> int:
    """A time of the protocol of nodes, at the pace of the campaign."""
    return ms // PACE
