"""The benchmark harness runs, at the smallest size: figures are not judged here, only that it cannot rot."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from benchmarks import decision, engine, expression, lint, logs
from benchmarks.__main__ import main
from benchmarks.filled import fill
from benchmarks.measure import TINY, Row, geometric_mean, show
from benchmarks.peers import CHRONEX, PEERS
from chronex.clock import wall_ms
from chronex.storage.records import Reading
from chronex_store import LmdbStore
from chronex_store.doctor import examine


def test_every_topic_yields_rows_and_every_target_of_the_table_is_among_them() -> None:
    rows = [*expression.run(TINY), *decision.run(TINY)]
    judged = [row.what for row in rows if row.holds is not None]
    for words in (
        "next, UTC: cronsim",
        "next, America/New_York: croniter",
        "upcoming, UTC: croniter-rs",
        "parse: over cronsim",
    ):
        assert words in judged
    assert all(row.value > 0 for row in rows)


def test_the_engine_is_measured_from_what_is_due_to_what_is_handed_out(tmp_path: Path) -> None:
    rows = list(engine.due_at_once(tmp_path, 40))
    assert rows[0].value > 0
    assert asyncio.run(engine.callable_lags(tmp_path / "callables", 5))


def test_a_filled_store_is_sound_and_nothing_in_it_is_due(tmp_path: Path) -> None:
    fill(tmp_path / "store", jobs=7, past=20)
    assert examine(tmp_path / "store").is_sound
    with LmdbStore.open(tmp_path / "store") as store:
        assert len(store.view(lambda tx: Reading(tx).finished())) == 20
        assert store.view(lambda tx: Reading(tx).due(wall_ms())) == []


def test_the_linter_is_measured_on_files_of_a_thousand_lines() -> None:
    assert all(990 <= text.count("\n") <= 1010 for text in lint.LONG_FILES.values())
    assert all(row.value > 0 for row in lint.run(TINY))


def test_a_search_of_all_logs_is_measured_beside_ripgrep_where_that_is_installed() -> None:
    names = [row.what for row in logs.run(TINY)]
    assert names == ["logs --grep, 20 attempts", *(["logs --grep: times ripgrep"] if shutil.which("rg") else [])]


def test_json_has_one_object_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    main(["decision", "--json", "--tiny"])
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert {"topic", "what", "value", "unit", "at_least", "at_most", "holds"} <= set(rows[0])


def test_the_table_is_printed_with_its_notes(capsys: pytest.CaptureFixture[str]) -> None:
    main(["decision", "--tiny"])
    printed = capsys.readouterr().out
    assert "decide uniform" in printed
    assert "targets met" in printed


def test_an_unknown_topic_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["expresion"])
    assert "the topics are" in capsys.readouterr().err


def test_peers_agree_with_chronex_where_they_do_the_same_work() -> None:
    after = expression.instants(3, "UTC")[0]
    for text in ("* * * * *", "0 9 * * MON-FRI", "0 0 L * *", "0 0 * * 5#2"):
        expected = CHRONEX.single(text, "UTC")(after)
        for peer in PEERS:
            if peer.name != "croniter-rs":
                assert peer.single(text, "UTC")(after) == expected, (peer.name, text)


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        (Row("t", "w", 21, "×", at_least=20), "met"),
        (Row("t", "w", 19, "×", at_least=20), "MISSED"),
        (Row("t", "w", 0.3, " µs", at_most=0.4), "met"),
        (Row("t", "w", 0.5, " µs", at_most=0.4), "MISSED"),
        (Row("t", "w", 0.5, " µs"), ""),
    ],
)
def test_a_verdict_follows_from_value_and_target(row: Row, verdict: str) -> None:
    assert row.verdict == verdict
    assert verdict in show([row])


def test_the_mean_is_geometric() -> None:
    assert geometric_mean([1, 100]) == pytest.approx(10)
