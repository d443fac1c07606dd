"""Discovery: the files we know, without those that git ignores. Git itself is the judge."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from chronex.lint.discovery import find_files

GIT = shutil.which("git")
FILES = [
    "crontab", "a/crontab", "a/b/crontab", "a/b/x.crontab", "build/crontab", "a/build/crontab", "log/x.timer", "x.timer",
    "a/keep.timer", "a/drop.timer", "chronex.toml", "deep/er/chronex.toml", "sp ace/crontab", "[odd]/crontab", "q1.timer",
    "q22.timer", "doc/x.timer", "doc/sub/x.timer", ".github/workflows/ci.yml", "k8s/job.yaml", "#hash.timer", "!bang.timer",
]  # fmt: skip
IGNORES = {
    "nothing": {},
    "names and folders": {".gitignore": "build\n*.crontab\nlog/\n"},
    "anchored": {".gitignore": "/crontab\n/a/b/crontab\n"},
    "negated": {".gitignore": "*.timer\n!keep.timer\n"},
    "below": {"a/.gitignore": "drop.timer\n/b\n", ".gitignore": "# a comment\n\n"},
    "deeper wins": {".gitignore": "crontab\n", "a/.gitignore": "!crontab\n"},
    "two stars": {".gitignore": "**/build/\ndoc/**\n!doc/x.timer\na/**/x.crontab\n"},
    "classes": {".gitignore": "q[0-9].timer\nq??.timer\n[!a-z]hash.timer\n"},
    "escapes": {".gitignore": "\\#hash.timer\n\\!bang.timer\nsp\\ ace/\n"},
    "everything but": {".gitignore": "/*\n!/a\n!/.github\n"},
    "trailing blanks": {".gitignore": "crontab   \nlog/ \n"},
}


def make(root: Path, ignores: dict[str, str]) -> None:
    for name in FILES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("kind: CronJob\n")
    for name, text in ignores.items():
        (root / name).write_text(text)


def found_in(root: Path, start: Path | None = None) -> set[str]:
    return {path.relative_to(root).as_posix() for path in find_files(start or root)}


@pytest.mark.skipif(GIT is None, reason="git is not installed")
@pytest.mark.parametrize("ignores", IGNORES.values(), ids=IGNORES)
def test_git_would_leave_out_the_same(ignores: dict[str, str], tmp_path: Path) -> None:
    make(tmp_path, ignores)
    subprocess.run([GIT or "", "init", "-q", "."], cwd=tmp_path, check=True, capture_output=True)
    listing = [GIT or "", "ls-files", "-z", "--others", "--exclude-standard"]
    listed = subprocess.run(listing, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    expected = {name for name in listed.split("\0") if name and not name.endswith(".gitignore")}
    assert found_in(tmp_path) == expected & set(FILES)
    inner = tmp_path / "a"
    assert found_in(tmp_path, inner) == {name for name in expected & set(FILES) if name.startswith("a/")}


def test_places_that_nobody_writes_in_are_not_entered(tmp_path: Path) -> None:
    for folder in (".git", "node_modules/x", ".venv", "src/__pycache__"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "crontab").write_text("")
    (tmp_path / "crontab").write_text("")
    (tmp_path / "loop").symlink_to(tmp_path)
    assert found_in(tmp_path) == {"crontab"}


def test_a_gitignore_that_is_no_text_ignores_nothing(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_bytes(b"\xff\xfe[\n[z-a]\n")
    (tmp_path / "crontab").write_text("")
    assert found_in(tmp_path) == {"crontab"}
