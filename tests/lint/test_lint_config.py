"""Settings beside the files: which findings count where, on the command line and in an editor."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chronex.jobfile.lint_table import CRONS, LintSettings
from chronex.lint.cron_programs import CRON_PROGRAMS
from chronex.lint.lint_config import LintConfig, config_above, lint_configured
from chronex.lint.rules import FORMER_CODES, rule_named, rules
from chronex.lint.source_files import open_document
from tests.cli.conftest import Chronex, chronex
from tests.lint.linting import assume

__all__ = ["chronex"]

NOW = ("--now", "2027-01-01", "--tz", "UTC")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / "legacy").mkdir()
    (tmp_path / "a.crontab").write_text("*/7 * * * * /a\n0 0 13 * 5 /b\n")
    (tmp_path / "legacy/b.crontab").write_text("*/7 * * * * /a\n0/15 * * * * /b\n")
    return tmp_path


def found(chronex: Chronex, folder: Path, *more: str) -> list[str]:
    done = chronex("lint", str(folder), "--format", "json", *NOW, *more, CHRONEX_CRON="debian")
    assert done.code in (0, 1), done.err
    return [f"{Path(row['file']).name} {row['code']}" for row in json.loads(done.out)]


EVERYTHING = ["a.crontab W103", "a.crontab W102", "b.crontab W103", "b.crontab E130"]


@pytest.mark.parametrize(
    ("settings", "more", "expected"),
    [
        ("", (), EVERYTHING),
        ('ignore = ["W103"]', (), ["a.crontab W102", "b.crontab E130"]),
        ('ignore = ["w1"]', (), ["b.crontab E130"]),
        ('ignore = ["W130"]', (), EVERYTHING[:3]),  # the code that E130 had before
        ('select = ["E"]', (), ["b.crontab E130"]),
        ('select = ["E"]', ("--select", "W102"), ["a.crontab W102"]),
        ('select = ["E"]', ("--isolated",), EVERYTHING),
        ('per_file_ignores = { "legacy/" = ["W103", "E130"] }', (), EVERYTHING[:2]),
        ('per_file_ignores = { "*.crontab" = ["W1"], "/a.crontab" = ["E"] }', (), ["b.crontab E130"]),
        ('ignore = ["W102"]\nper_file_ignores = { "b.*" = ["W103"] }', ("--ignore", "E"),
         ["a.crontab W103", "a.crontab W102"]),
        ('exclude = ["legacy"]', (), EVERYTHING[:2]),
        ('exclude = ["*.crontab"]', (), []),
        ('cron = "bsd"', (), EVERYTHING[:3]),
        ('cron = "bsd"', ("--cron", "cronie"), EVERYTHING),
    ],
)  # fmt: skip
@pytest.mark.parametrize("where", [".chronex-lint.toml", "chronex.toml"])
def test_settings_hold_for_the_files_below_them(
    chronex: Chronex, folder: Path, where: str, settings: str, more: tuple[str, ...], expected: list[str]
) -> None:
    (folder / where).write_text(settings if where[0] == "." else f"[lint]\n{settings}\n")
    assert found(chronex, folder, *more) == expected


def test_a_named_file_is_read_though_it_is_excluded(chronex: Chronex, folder: Path) -> None:
    (folder / ".chronex-lint.toml").write_text('exclude = ["*"]')
    assert chronex("lint", str(folder / "a.crontab"), *NOW).code == 1
    assert chronex("lint", str(folder), *NOW).code == 0


def test_the_nearest_settings_hold_and_the_top_of_the_repository_ends_the_search(folder: Path) -> None:
    (folder / ".chronex-lint.toml").write_text('ignore = ["W1"]')
    (folder / "legacy/chronex.toml").write_text('[lint]\nignore = ["E"]\n')
    assert config_above(str(folder / "a.crontab")).settings.ignore == ("W1",)
    assert config_above(str(folder / "legacy/b.crontab")).settings.ignore == ("E",)
    (folder / "legacy/.git").mkdir()
    (folder / "legacy/chronex.toml").write_text("[scheduler]\n")
    assert config_above(str(folder / "legacy/b.crontab")) == LintConfig()


def test_changed_settings_are_read_again(folder: Path) -> None:
    path = folder / ".chronex-lint.toml"
    path.write_text('ignore = ["W1"]')
    assert config_above(str(folder)).settings == LintSettings(ignore=("W1",))
    path.write_text('ignore = ["W10", "E"]')
    assert config_above(str(folder)).settings == LintSettings(ignore=("W10", "E"))


def test_an_editor_shows_what_the_settings_leave(folder: Path) -> None:
    (folder / ".chronex-lint.toml").write_text('ignore = ["W103"]\nexclude = ["legacy"]\n')
    shown = {}
    for path in (folder / "a.crontab", folder / "legacy/b.crontab"):
        document = open_document(str(path), path.read_text())
        analysis = lint_configured(document, assume(), config_above(str(path)))
        shown[path.name] = [finding.code for finding in analysis.findings]
    assert shown == {"a.crontab": ["W102"], "b.crontab": []}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('ignor = ["W1"]', ".chronex-lint.toml:1:1: unknown key 'ignor'; did you mean ignore?"),
        ("ignore = 5", ".chronex-lint.toml:1:10: ignore takes a list, not a whole number"),
        ('ignore = ["all"]', "'all' is no code of a rule; write W111, or W11 for all that begin so"),
        ('ignore = ["W999"]', "no rule begins with 'W999'"),
        ('per_file_ignores = { "x" = ["X1"] }', "no rule begins with 'X1'"),
        ('cron = "vixie"', "cron cannot be 'vixie'; it is one of debian, cronie, bsd, busybox, supercronic, bcron"),
        ("ignore = [", ".chronex-lint.toml:1:11: "),
    ],
)
def test_a_mistake_in_the_settings_is_told_with_its_place(
    chronex: Chronex, folder: Path, text: str, words: str
) -> None:
    (folder / ".chronex-lint.toml").write_text(text)
    done = chronex("lint", str(folder), *NOW)
    assert done.code == 2
    assert words in done.err


def test_a_job_file_with_settings_for_the_linter_is_valid_and_their_mistakes_are_found(
    chronex: Chronex, tmp_path: Path
) -> None:
    path = tmp_path / "chronex.toml"
    path.write_text('[lint]\nignore = ["W153"]\n\n[jobs.a]\nschedule = "17 4 * * *"\nrun = "x"\n')
    assert chronex("apply", str(path), "--dry-run", "--store", str(tmp_path / "store")).code == 0
    path.write_text('[lint]\nignroe = ["W153"]\n')
    assert "unknown key 'ignroe'; did you mean ignore?" in chronex("apply", str(path), "--dry-run").err


def test_the_names_of_crons_are_the_same_in_settings_and_options() -> None:
    assert tuple(CRON_PROGRAMS) == CRONS


# -- statistics, rules, letters -----------------------------------------------------------------------------------


def test_statistics_count_each_rule(chronex: Chronex, folder: Path) -> None:
    (folder / "c.crontab").write_text("0 4 * * Monday /a\n")
    done = chronex("lint", str(folder), "--statistics", *NOW, CHRONEX_CRON="debian")
    assert done.out.splitlines() == [
        "2  W103  step does not divide the field",
        "1  E006  day of week out of range or not understood [1 by --fix]",
        "1  E130  refused by the program that reads the file",
        "1  W102  day of month OR day of week",
    ]
    assert done.code == 1
    rows = json.loads(chronex("lint", str(folder), "--statistics", "--format", "json", *NOW).out)
    assert rows[0] == {"code": "W103", "count": 2, "fixable": 0, "title": "step does not divide the field"}


def test_a_rule_is_shown_by_its_code_in_any_case_and_by_the_one_it_had(chronex: Chronex) -> None:
    pages = Path(__file__).parents[2] / "docs" / "rules"
    assert chronex("rule", "w111").out == (pages / "W111.md").read_text()
    assert chronex("rule", "W130").out == (pages / "E130.md").read_text()
    assert json.loads(chronex("rule", "W111", "--format", "json").out)["title"] == "falls in a clock gap"
    assert "W111  warning  falls in a clock gap\n" in chronex("rule").out
    done = chronex("rule", "W999")
    assert (done.code, "there is no rule 'W999'" in done.err) == (2, True)


def test_the_letter_of_a_code_tells_its_severity() -> None:
    by_the_language = {"E022", "E025"}
    for rule in rules().values():
        if rule.code[0] != "J" and rule.code not in by_the_language:
            assert (rule.code[0] == "E") is (rule.severity == "error"), rule.code


def test_codes_of_before_name_a_rule_and_nothing_else() -> None:
    assert all(rule_named(old) is rules()[new] for old, new in FORMER_CODES.items())
    assert not set(FORMER_CODES) & set(rules())


def test_sarif_has_what_code_scanning_asks_for(
    chronex: Chronex, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from importlib import metadata

    from chronex.lint import formats

    done = chronex("lint", str(folder), "--format", "sarif", *NOW)
    for rule in json.loads(done.out)["runs"][0]["tool"]["driver"]["rules"]:
        assert rule["fullDescription"]["text"]
        assert rule["name"].isalnum()
        assert rule["help"]["markdown"].startswith(f"# {rule['id']}: ")
    formats.rule_pages.cache_clear()
    monkeypatch.setattr(metadata, "metadata", lambda name: _Named())
    assert formats.rule_address("W111") == "https://docs.example/chronex/rules/W111"
    formats.rule_pages.cache_clear()


class _Named:
    """The metadata of a package that names its documentation."""

    def get_all(self, name: str) -> list[str]:
        return ["Homepage, https://example.org", "Documentation, https://docs.example/chronex/"]
