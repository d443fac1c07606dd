"""`chronex torture`: what it cannot do is refused before anything is started, in one sentence."""

from __future__ import annotations

import os
from typing import Any

import pytest

from chronex.cli.commands.torture import torture
from chronex.cli.options import UsageError

SHARED = "postgresql://nobody@127.0.0.1:1/jobs"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"store": "/tmp/store"}, "torture needs a database that machines share"),
        ({"faults": "kil", "store": SHARED}, "no fault 'kil'; did you mean kill?"),
        (
            {"faults": "earthquake", "store": SHARED},
            r"no fault 'earthquake'; there are kill, stop, stop60, freeze, halt, cut",
        ),
        ({"faults": "upgrade", "store": SHARED}, "upgrade needs another version; name its program with --upgrade-to"),
        ({"upgrade_to": "no-such-program", "store": SHARED}, "there is no program 'no-such-program'"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_cannot_be_done_is_refused(arguments: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why.replace("?", r"\?")):
        torture(**arguments)


def test_only_root_pulls_cables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UsageError, match=r"unplug cannot be done here: only root .*; cut does the same by a relay"):
        torture(faults="unplug", store=SHARED)
