"""The commands of people and programs, each a function inside one update:

    store.update(lambda tx: trigger(Records(tx, now_ms), "backup", actor))

They need no daemon. A trigger writes an occurrence that is due, and the next tick of any daemon starts it. A cancel
of what runs is a request in the record: its daemon reads it with the next tick, or the successor of a dead daemon
when it takes over.
"""

from __future__ import annotations

from chronex.engine.commands.actor import Actor
from chronex.engine.commands.control import Canceled, cancel, cancel_job, pause, resume
from chronex.engine.commands.dead_letters import (
    DeadLetter,
    bound_dead_letters,
    dead_letter,
    dead_letters,
    drop_dead_letter,
    replay_dead_letter,
)
from chronex.engine.commands.names import job_named, occurrence_named
from chronex.engine.commands.nodes import ask_to_stop
from chronex.engine.commands.trigger import (
    AsOf,
    Replayed,
    TriggerAnswer,
    Triggered,
    TriggerRequest,
    replay,
    trigger,
    trigger_all,
)

__all__ = [
    "Actor",
    "AsOf",
    "Canceled",
    "DeadLetter",
    "Replayed",
    "TriggerAnswer",
    "TriggerRequest",
    "Triggered",
    "ask_to_stop",
    "bound_dead_letters",
    "cancel",
    "cancel_job",
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
    "trigger_all",
]
