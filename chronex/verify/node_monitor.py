"""Which schedulers are active, by the events of their nodes (IS, IE, SS, SE, Crash; S4, S5, S7, S8, L1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from chronex.verify.results import JournalLine, PropertyCheck, PropertyFinding


class NodeState:
    """One scheduler. Each field is the event that began this state, or None while it is not in it."""

    __slots__ = ("active", "ended", "initializing", "stopping")

    def __init__(self) -> None:
        self.initializing: JournalLine | None = None
        self.active: JournalLine | None = None
        self.stopping: JournalLine | None = None
        self.ended: JournalLine | None = None

    @property
    def has_crashed(self) -> bool:
        return self.ended is not None and self.ended[1].name == "SchedulerCrashed"


class NodeMonitor:
    """The states of all schedulers of a store, by the name of the node."""

    def __init__(self, checks: Mapping[str, PropertyCheck]) -> None:
        self._checks = checks
        self.states: dict[str, NodeState] = {}
        self.active_since_ms: int | None = None

    def forget(self) -> None:
        self.states.clear()

    def _state_of(self, line: JournalLine) -> NodeState:
        return self.states.setdefault(str(line[1].data.get("node", "")), NodeState())

    # -- events ------------------------------------------------------------------------------------------

    def initialization_started(self, line: JournalLine) -> None:
        state = self._state_of(line)
        self._check_none_open(state, line)
        self._checks["S8"].checked += 1
        state.initializing = line

    def initialization_completed(self, line: JournalLine) -> None:
        """IE: active from here on."""
        state = self._state_of(line)
        state.initializing = state.stopping = state.ended = None
        state.active = line
        self.active_since_ms = line[1].at_ms

    def initialization_failed(self, line: JournalLine) -> None:
        """The initialization has ended, and the scheduler is inactive as before its first one."""
        state = self._state_of(line)
        state.initializing = state.active = None

    def started(self, line: JournalLine) -> None:
        """A daemon's start is IS and IE at once, unless it is a part of a longer initialization."""
        state = self._state_of(line)
        if state.initializing is None:
            self.initialization_started(line)
            self.initialization_completed(line)

    def stop_requested(self, line: JournalLine) -> None:
        state = self._state_of(line)
        self._checks["S7"].checked += 1
        self._checks["L1"].checked += 1
        state.active = None
        state.stopping = state.stopping or line

    def stopped(self, line: JournalLine) -> None:
        state = self._state_of(line)
        self._checks["S4a"].checked += 1
        self._checks["S4b"].checked += 1
        if state.initializing is not None:
            message = "a stop ended while an initialization had not"
            self._checks["S8"].violate(message, state.initializing, line)
        state.active = state.stopping = state.initializing = None
        state.ended = line

    def crashed(self, line: JournalLine) -> None:
        state = self._state_of(line)
        state.active = state.initializing = state.stopping = None
        state.ended = line

    def _check_none_open(self, state: NodeState, line: JournalLine) -> None:
        """S7, S8, L1: what has begun again before its end can never end any more."""
        if state.initializing is not None:
            self._checks["S8"].violate("an initialization began inside another", state.initializing, line)
        if state.stopping is not None:
            message = "an initialization began before the stop had ended"
            for name in ("S7", "L1"):
                self._checks[name].violate(message, state.stopping, line)
            state.stopping = None

    # -- queries -----------------------------------------------------------------------------------------

    def last_departure(self) -> JournalLine | None:
        """The last stop or crash, when every scheduler that was seen has ended; None while one may be active."""
        last: JournalLine | None = None
        for state in self.states.values():
            if state.ended is None:
                return None
            last = state.ended if last is None or state.ended[0] > last[0] else last
        return last

    def still_open(self) -> Iterator[tuple[str, PropertyFinding]]:
        for name, state in self.states.items():
            label = name or "the scheduler"
            if state.initializing is not None:
                yield "S8", PropertyFinding(f"{label} has not finished its initialization", (state.initializing,))
            if state.stopping is not None:
                for property_name in ("S7", "L1"):
                    yield property_name, PropertyFinding(f"{label} has not finished stopping", (state.stopping,))
