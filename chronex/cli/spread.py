"""The --spread family of options as a spread of the decision core."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from chronex.cli.arguments import UsageError
from chronex.text.durations import parse_duration
from chronex.timing.zones import Zone

if TYPE_CHECKING:  # loaded only where a spread is asked for
    from chronex.decision.window_spread import Spread


class SpreadOptions(NamedTuple):
    window: str
    mode: str
    distribution: str
    seed: str
    salt: str
    only: str
    avoid: str


def read_spread(options: SpreadOptions, zone: Zone, identity: str | None) -> Spread:
    from chronex.decision import make_spread
    from chronex.decision.distributions import parse_distribution

    window = parse_duration(options.window)
    if window is None:
        raise UsageError(f"--spread: {options.window!r} is not a duration; write 2h or 90m")
    if not identity:
        raise UsageError("--spread needs --id: the chosen second depends on the job's identity")
    name, parameters = parse_distribution(options.distribution)
    return make_spread(
        identity=identity,
        timezone=zone.name,
        window_mode=options.mode,
        window_duration=timedelta(milliseconds=window),
        distribution=name,
        distribution_params=parameters,
        seed_strategy=options.seed,
        salt=options.salt,
        only=options.only,
        avoid=options.avoid,
    )
