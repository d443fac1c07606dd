"""Where a file says that a job follows another one, for an update that is refused because of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from chronex.cli.commands.apply import ApplyOptions, run_apply
from chronex.errors import JobChainError
from chronex.jobfile.graph_tables import position_of_parent

ETL = '[jobs.etl]\nschedule = "0 3 * * *"\nrun = ["true"]\n'
REPORT = '[jobs.report]\nafter = {}\nrun = ["true"]\n'


@pytest.mark.parametrize(
    ("path", "text", "place"),
    [
        ("a.toml", REPORT.format('"nobody"'), "a.toml:2:9"),
        ("a.toml", ETL + REPORT.format('["etl", "nobody"]'), "a.toml:5:17"),
        ("a.toml", 'jobs.report = { run = "x", after = "nobody" }\n', "a.toml:1:36"),
        ("a.toml", '[jobs."report"]\r\nrun = "x"\r\nafter = [\r\n  "nobody",\r\n]\r\n', "a.toml:4:3"),
        ("a.json", '{"id": "report", "after": "nobody"}', "a.json:1:27"),
        ("a.json", '[{"id": "x"},\n {"id": "report", "after": ["x", "nobody"]}]', "a.json:2:34"),
        ("a.toml", REPORT.format('"etl"'), ""),
        ("a.toml", ETL, ""),
        ("a.toml", "report = [", ""),
        ("a.toml", "jobs = 3\nreport = 4\n", ""),
        ("a.json", '"report"', ""),
    ],
)
def test_the_name_of_a_parent_has_a_place(path: str, text: str, place: str) -> None:
    assert position_of_parent([(path, text.encode())], "report", "nobody") == place


def test_in_a_directory_it_is_in_the_file_of_the_child() -> None:
    files = [("a.toml", ETL.encode()), ("b.toml", REPORT.format('"nobody"').encode())]
    assert position_of_parent(files, "report", "nobody") == "b.toml:2:9"


REFUSED = {
    "a parent that nobody has": (
        {"a": REPORT.format('"nobody"')},
        ["a:2:9: report follows nobody, and there is no such job; apply that job first, or name another one"],
    ),
    "two at once": (
        {"a": ETL + REPORT.format('["elt", "x"]')},
        [
            "a:5:10: report follows elt, and there is no such job; did you mean etl?",
            "a:5:17: report follows x, and there is no such job; apply that job first, or name another one",
        ],
    ),
    "a circle by way of another file": (
        {"a": ETL, "b": REPORT.format('"etl"'), "a again": ETL + 'after = "report"\n'},
        ["a:4:9: the jobs follow each other: report -> etl -> report; one of them must not follow the next"],
    ),
    "a parent that goes": (
        {"a": ETL, "b": REPORT.format('"etl"'), "a again": ""},
        ["etl would be removed, and report of b follows it (report -> etl); remove both, or neither"],
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_chain_that_the_store_refuses_is_told_with_its_place(tmp_path: Path, case: str) -> None:
    files, expected = REFUSED[case]
    last = list(files)[-1]
    for name in files:
        (tmp_path / name.partition(" ")[0]).write_text(files[name])
        options = ApplyOptions(str(tmp_path / name.partition(" ")[0]), store=str(tmp_path / "store"), prune=True)
        if name != last:
            assert run_apply(options) == 0
    for dry_run in (True, False):
        with pytest.raises(JobChainError) as refused:
            run_apply(options._replace(dry_run=dry_run))
        assert str(refused.value).replace(f"{tmp_path}/", "").splitlines() == expected
        assert refused.value.names_position == expected[0].startswith("a:")
