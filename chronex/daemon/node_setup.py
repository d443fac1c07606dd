"""What a new node on a store needs to know: where this machine keeps its own work on it, and by whose clock it goes.

The same for the daemon of `chronex run` and for a program with an engine of its own.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from msgspec.structs import replace

from chronex import torture_settings
from chronex.clock import SYSTEM_CLOCK, Clock
from chronex.daemon.log_handlers import log_event
from chronex.daemon.registration import this_node
from chronex.errors import ChronexError
from chronex.jobfile import SchedulerSettings
from chronex.model.records import Node
from chronex.storage.ports import Store
from chronex_store.opening import StoreLocation, host_identity, state_directory
from chronex_store.postgres.pg_address import PostgresAddress
from chronex_store.postgres.pg_layout import LAYOUT

log = logging.getLogger(__name__)


@runtime_checkable
class _HasClock(Protocol):
    def clock(self) -> Clock: ...


class Workplace(NamedTuple):
    """`state` is where this machine keeps logs and keepers, `named` the store as commands are told of it, without a
    password. `host_id` and `layout` are those of a store that machines share, whose clock counts then."""

    state: Path
    named: str
    clock: Clock
    host_id: str = ""
    layout: int = 0


def location_of(store: Store) -> StoreLocation | None:
    """Where an open store lies, for one that lies anywhere."""
    address, path = getattr(store, "address", None), getattr(store, "path", None)
    if isinstance(address, PostgresAddress):
        return address
    return None if path is None else Path(path)


def workplace_on(store: Store, location: StoreLocation, clock: Clock = SYSTEM_CLOCK) -> Workplace:
    """For a node that is about to work on `store`, which lies at `location`."""
    refuse_torture_settings(location)
    state = state_directory(location)
    if not isinstance(location, PostgresAddress):
        return Workplace(state, str(state.resolve()), clock)
    if not location.is_guarded:
        fields = {"store": location.shown, "so": "add sslmode=verify-full to the address"}
        log_event(log, "the connection to the database is not checked", fields, logging.WARNING)
    assert isinstance(store, _HasClock)
    return Workplace(state, location.shown, store.clock(), host_identity(state), LAYOUT)


def node_at(place: Workplace, settings: SchedulerSettings, program: str = "") -> Node:
    """A new node there; `program` is the name of the one that it is a part of."""
    node = this_node(settings.max_concurrent_jobs, place.clock, place.host_id, settings.labels)
    return replace(node, layout=place.layout, program=program)


def refuse_torture_settings(location: StoreLocation) -> None:
    """Leases that run out faster than those of other nodes would take running work away from them."""
    if torture_settings.IS_SET and not _is_torture_store(location):
        names = f"{torture_settings.PACE_VARIABLE} and {torture_settings.CLOCK_VARIABLE}"
        raise ChronexError(f"{names} are for the daemons of chronex torture alone; take them out of the environment")


def _is_torture_store(location: StoreLocation) -> bool:
    return isinstance(location, PostgresAddress) and location.schema.startswith(torture_settings.SCHEMA_PREFIX)
