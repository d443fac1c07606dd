"""Who is active: the lives of schedulers as the trace tells them (IS, IE, SS, SE, Crash; S4, S5, S7, S8, L1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from chronex.verify.verdicts import Docket, Finding, Line


class NodeLife:
    """One scheduler. Each field is the event that put it there; None before and after."""

    __slots__ = ("active", "gone", "initializing", "stopping")

    def __init__(self) -> None:
        self.initializing: Line | None = None
        self.active: Line | None = None
        self.stopping: Line | None = None
        self.gone: Line | None = None

    @property
    def has_crashed(self) -> bool:
        return self.gone is not None and self.gone[1].name == "SchedulerCrashed"


class Nodes:
    """The lives of all schedulers of a store, by the name of the node."""

    def __init__(self, dockets: Mapping[str, Docket]) -> None:
        self._dockets = dockets
        self.lives: dict[str, NodeLife] = {}
        self.active_since_ms: int | None = None

    def forget(self) -> None:
        self.lives.clear()

    def life(self, line: Line) -> NodeLife:
        return self.lives.setdefault(str(line[1].data.get("node", "")), NodeLife())

    # -- events ------------------------------------------------------------------------------------------

    def initialization_started(self, line: Line) -> None:
        life = self.life(line)
        self._must_not_be_open(life, line)
        self._dockets["S8"].checked += 1
        life.initializing = line

    def initialization_completed(self, line: Line) -> None:
        """IE: active from here on."""
        life = self.life(line)
        life.initializing = life.stopping = life.gone = None
        life.active = line
        self.active_since_ms = line[1].at_ms

    def initialization_failed(self, line: Line) -> None:
        """It has ended, and the scheduler is where it was before its first initialization."""
        life = self.life(line)
        life.initializing = life.active = None

    def started(self, line: Line) -> None:
        """A daemon's start is IS and IE at once, unless it is a part of a longer initialization."""
        life = self.life(line)
        if life.initializing is None:
            self.initialization_started(line)
            self.initialization_completed(line)

    def stop_requested(self, line: Line) -> None:
        life = self.life(line)
        self._dockets["S7"].checked += 1
        self._dockets["L1"].checked += 1
        life.active = None
        life.stopping = life.stopping or line

    def stopped(self, line: Line) -> None:
        life = self.life(line)
        self._dockets["S4a"].checked += 1
        self._dockets["S4b"].checked += 1
        if life.initializing is not None:
            message = "a stop ended while an initialization had not"
            self._dockets["S8"].violate(message, life.initializing, line)
        life.active = life.stopping = life.initializing = None
        life.gone = line

    def crashed(self, line: Line) -> None:
        life = self.life(line)
        life.active = life.initializing = life.stopping = None
        life.gone = line

    def _must_not_be_open(self, life: NodeLife, line: Line) -> None:
        """Begun again before the end: that end can never come any more."""
        if life.initializing is not None:
            self._dockets["S8"].violate("an initialization began inside another", life.initializing, line)
        if life.stopping is not None:
            message = "an initialization began before the stop had ended"
            for name in ("S7", "L1"):
                self._dockets[name].violate(message, life.stopping, line)
            life.stopping = None

    # -- questions ---------------------------------------------------------------------------------------

    def nobody_left(self) -> Line | None:
        """The last departure, where every scheduler that was seen is gone; None while any may be there."""
        last: Line | None = None
        for life in self.lives.values():
            if life.gone is None:
                return None
            last = life.gone if last is None or life.gone[0] > last[0] else last
        return last

    def still_open(self) -> Iterator[tuple[str, Finding]]:
        for name, life in self.lives.items():
            who = name or "the scheduler"
            if life.initializing is not None:
                yield "S8", Finding(f"{who} has not finished its initialization", (life.initializing,))
            if life.stopping is not None:
                for rule in ("S7", "L1"):
                    yield rule, Finding(f"{who} has not finished stopping", (life.stopping,))
