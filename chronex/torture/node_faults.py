"""What is done to a node of a campaign, by name. Times are those of the protocol, at the pace of the campaign."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

from chronex.torture.tormented_node import TormentedNode

if TYPE_CHECKING:
    from chronex.torture.campaign import Campaign

Fault = Callable[["Campaign", TormentedNode], None]
_HOUR_MS = 3_600_000
_MINUTE_MS = 60_000
# A node decides for some milliseconds of each second: it is stopped again and again until that was in the middle.
_TRIES, _SETTLED_MS = 1_000, 5
_BEYOND_MS = 5_000


def _kill(campaign: Campaign, victim: TormentedNode) -> None:
    victim.kill()
    campaign.pause(campaign.random.randrange(0, campaign.silent_ms()))
    victim.start()


def _stop(campaign: Campaign, victim: TormentedNode) -> None:
    """SIGSTOP, also for longer than its lease."""
    _stop_for(campaign, victim, campaign.random.randrange(200, 2 * campaign.silent_ms()))


def _stop_a_minute(campaign: Campaign, victim: TormentedNode) -> None:
    """Others have given it up long before it goes on, and have not taken over what it runs."""
    _stop_for(campaign, victim, _MINUTE_MS // campaign.settings.pace)


def _stop_for(campaign: Campaign, victim: TormentedNode, ms: int) -> None:
    victim.signal(signal.SIGSTOP)
    campaign.pause(ms)
    victim.signal(signal.SIGCONT)
    _restart_if_gone(victim)


def _halt(campaign: Campaign, victim: TormentedNode) -> None:
    """SIGSTOP in the middle of a transaction, for longer than the others may have to do without what it holds."""
    for _ in range(_TRIES):
        victim.signal(signal.SIGSTOP)
        campaign.pause(_SETTLED_MS)
        if campaign.is_deciding(victim):
            break
        victim.signal(signal.SIGCONT)
        campaign.pause(campaign.random.randrange(1, 20))
    _stop_for(campaign, victim, campaign.longest_pause_ms + _BEYOND_MS)


def _freeze(campaign: Campaign, victim: TormentedNode) -> None:
    """A whole machine stands still for a minute, as a virtual one does: its daemon, its keeper, every command."""
    victim.signal_all(signal.SIGSTOP)
    campaign.pause(_MINUTE_MS // campaign.settings.pace)
    victim.signal_all(signal.SIGCONT)
    _restart_if_gone(victim)


def _cut(campaign: Campaign, victim: TormentedNode) -> None:
    victim.relay.cut()
    campaign.pause(campaign.random.randrange(200, 2 * campaign.silent_ms()))
    victim.relay.heal()
    _restart_if_gone(victim)


def _unplug(campaign: Campaign, victim: TormentedNode) -> None:
    """Its network cable, by the kernel: no packet passes, and no connection is told."""
    victim.unplug()
    campaign.pause(campaign.random.randrange(200, 2 * campaign.silent_ms()))
    victim.plug_in()
    _restart_if_gone(victim)


def _reset(campaign: Campaign, victim: TormentedNode) -> None:
    for _ in range(5):
        victim.relay.reset()
        campaign.pause(campaign.random.randrange(20, 300))
    _restart_if_gone(victim)


def _mute(campaign: Campaign, victim: TormentedNode) -> None:
    """What it commits is committed, and it never hears of it."""
    victim.relay.mute()
    campaign.pause(campaign.random.randrange(50, 1_000))
    victim.relay.heal()
    _restart_if_gone(victim)


def _switch_off(campaign: Campaign, victim: TormentedNode) -> None:
    victim.switch_off()
    campaign.pause(campaign.random.randrange(0, campaign.silent_ms()))
    victim.start()


def _clock(campaign: Campaign, victim: TormentedNode) -> None:
    """Its own clock is an hour off from its next start on."""
    victim.leave()
    victim.clock_ahead_ms = campaign.random.choice((_HOUR_MS, -_HOUR_MS, 0))
    victim.start()


def _leave(_campaign: Campaign, victim: TormentedNode) -> None:
    """In good order, and back."""
    victim.leave()
    victim.start()


def _flap(campaign: Campaign, victim: TormentedNode) -> None:
    """It is stopped again and again in its first moments: while it registers, takes over, or starts something."""
    for _ in range(4):
        victim.leave()
        victim.start()
        campaign.pause(campaign.random.randrange(200, 1_500))


def _restart_if_gone(victim: TormentedNode) -> None:
    if not victim.is_running:
        victim.start()


def upgrade_to(program: str) -> Fault:
    """One node after the other leaves, and comes back with the other program; then back to this one."""

    def act(_campaign: Campaign, victim: TormentedNode) -> None:
        victim.leave()
        victim.program = victim.own_program if victim.program == [program] else [program]
        victim.start()

    return act


# What a campaign goes through where nothing is named.
USUAL = ("kill", "stop", "cut", "reset", "mute", "off", "clock", "leave", "flap")
FAULTS: dict[str, Fault] = {
    "kill": _kill,
    "stop": _stop,
    "stop60": _stop_a_minute,
    "freeze": _freeze,
    "halt": _halt,
    "cut": _cut,
    "unplug": _unplug,
    "reset": _reset,
    "mute": _mute,
    "off": _switch_off,
    "clock": _clock,
    "leave": _leave,
    "flap": _flap,
}
