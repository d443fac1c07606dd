"""Starts on record: in batches, and refused where the claim was taken away."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from chronex.daemon.embedded import EmbeddedEngine
from chronex.daemon.store_writes import StartRecorder
from chronex.engine.engine import AttemptStart
from chronex.model.job import Call, Job, Task
from chronex.model.states import AttemptState
from chronex.storage.records import Reading, Records
from chronex_store import LmdbStore
from tests.daemon.test_embedded import SOON, begun
from tests.kit.waits import until_async


@pytest.mark.parametrize("kind", ["command", "function"])
async def test_what_was_taken_away_between_claim_and_start_never_runs(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A node that stood still (SIGSTOP) may have been declared dead, and its work done elsewhere."""
    witness = tmp_path / "witness"
    record = StartRecorder.record

    async def taken_away(self: StartRecorder, start: AttemptStart) -> None:
        gone = replace(start.attempt, state=AttemptState.CRASHED, finished_ms=start.at_ms)
        self.store.update(lambda tx: Records(tx, start.at_ms).put(gone))
        await record(self, start)

    monkeypatch.setattr(StartRecorder, "record", taken_away)
    work = Call("touch") if kind == "function" else ("touch", str(witness))
    with LmdbStore.open(tmp_path / "store") as store:
        async with EmbeddedEngine(store, calls={"touch": lambda _context: witness.touch()}) as engine:
            engine.apply([Job(id="job", schedule=SOON, tasks=(Task(name="main", run=work),))])
            await until_async(lambda: "its claim was taken away" in caplog.text, "the refusal")
        (occurrence,) = begun(store)
        (attempt,) = store.view(lambda tx: Reading(tx).attempts("job", occurrence.nominal_ms))
    assert (attempt.state, attempt.started_ms) == (AttemptState.CRASHED, None)
    assert not witness.exists()
    await until_async(lambda: not list((tmp_path / "store").glob("keepers/*")), "the end of the keeper")
