"""The engine on a thread of its own, beside something that needs the main one: a dashboard.

Each has its own event loop, so a slow paint never delays a start. They end together: when the main part is over the
engine is stopped in good order, and when the engine has died the main part can see it.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable

from chronex.daemon.loop import Daemon
from chronex.daemon.metrics import serve_metrics
from chronex.daemon.reload import Reloader, Reread
from chronex.jobfile import SchedulerSettings

_LOOK_S = 0.2


class EngineThread:
    """A daemon at work. `stop` may be called from any thread."""

    def __init__(self, daemon: Daemon, settings: SchedulerSettings, file: Reread | None = None) -> None:
        self._daemon, self._settings, self._file = daemon, settings, file
        self._loop: asyncio.AbstractEventLoop | None = None
        self._began = threading.Event()
        self._thread = threading.Thread(target=self._main, name="chronex-engine")
        self.problem: BaseException | None = None

    def start(self) -> None:
        self._thread.start()
        self._began.wait()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        """No new claim from now on; what runs is asked to end."""
        loop = self._loop
        if loop is not None and self.is_alive:
            # It may end between the question and the call: then there is nothing left to stop.
            try:
                loop.call_soon_threadsafe(self._daemon.stop)
            except RuntimeError:
                return

    def join(self) -> None:
        """Until what ran has ended. A second Ctrl-C leaves at once: what is recorded can be taken up again."""
        try:
            while self.is_alive:
                self._thread.join(_LOOK_S)
        except KeyboardInterrupt:
            os._exit(1)

    def _main(self) -> None:
        try:
            asyncio.run(self._run())
        except BaseException as problem:
            self.problem = problem
        finally:
            self._began.set()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._began.set()
        if self._file is not None:
            Reloader(self._daemon, self._file).attach()
        async with serve_metrics(self._daemon, self._settings):
            await self._daemon.run()


def run_beside(
    daemon: Daemon, settings: SchedulerSettings, file: Reread | None, main: Callable[[EngineThread], int]
) -> int:
    """Run both; the main part's exit code, unless the engine died, which is raised."""
    engine = EngineThread(daemon, settings, file)
    engine.start()
    try:
        code = main(engine)
    finally:
        engine.stop()
        engine.join()
    if engine.problem is not None:
        raise engine.problem
    return code
