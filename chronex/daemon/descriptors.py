"""A full pool needs descriptors: three for each command that runs, some for ourselves."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Callable
from typing import Any

_EACH, _OURS = 4, 256


def make_room(places: int, tell: Callable[[str, dict[str, Any]], None]) -> None:
    """Raise our own limit as far as `places` ask for and the system allows, and say where that is not far enough.

    Commands inherit it, so it is left alone where it is enough: programs that were written for 1,024 descriptors
    find them, unless the user asks for a pool of some two hundred and more.
    """
    needed = places * _EACH + _OURS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft in (resource.RLIM_INFINITY, -1) or soft >= needed:
        return
    allowed = needed if hard in (resource.RLIM_INFINITY, -1) else min(needed, hard)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed < needed:
        told = f"max_concurrent_jobs = {places} may need {needed} open files, and the system allows {allowed}"
        tell("few descriptors", {"told": f"{told}; raise it with: ulimit -n {needed}"})
