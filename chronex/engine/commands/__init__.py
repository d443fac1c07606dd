"""What a person may ask for, each a function inside one update:

    store.update(lambda tx: trigger(Records(tx, now_ms), "backup", asker))

They need no daemon. A trigger is an occurrence that is due; whoever runs the engine starts it. A cancel of what runs
is a wish in the record, which its daemon sees with the next tick, and the heir of a dead one when it takes over.
"""

from __future__ import annotations

from chronex.engine.commands.actor import Asker
from chronex.engine.commands.cancel import Canceled, cancel
from chronex.engine.commands.dead_letters import (
    DeadLetter,
    bound_dead_letters,
    dead_letter,
    dead_letters,
    drop_dead_letter,
    replay_dead_letter,
)
from chronex.engine.commands.names import job_named, occurrence_named
from chronex.engine.commands.pause import pause, resume
from chronex.engine.commands.trigger import AsOf, Replayed, TriggerAnswer, Triggered, replay, trigger

__all__ = [
    "AsOf",
    "Asker",
    "Canceled",
    "DeadLetter",
    "Replayed",
    "TriggerAnswer",
    "Triggered",
    "bound_dead_letters",
    "cancel",
    "dead_letter",
    "dead_letters",
    "drop_dead_letter",
    "job_named",
    "occurrence_named",
    "pause",
    "replay",
    "replay_dead_letter",
    "resume",
    "trigger",
]
