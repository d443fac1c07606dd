"""Discovery: the files we know, without those that git ignores. Git itself is the judge."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from chronex.lint.source_files import find_files

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


# Each row is a .gitignore and one file that it leaves out, or does not.
ROWS = [
    ("[ab].timer", "a.timer"), ("[ab].timer", "c.timer"), ("[!ab].timer", "c.timer"), ("[^ab].timer", "a.timer"),
    ("[a-c]x.timer", "bx.timer"), ("[a-c]x.timer", "dx.timer"), ("[]a].timer", "].timer"), ("[!]].timer", "a.timer"),
    ("[[]x.timer", "[x.timer"), ("[[a]x.timer", "[x.timer"), ("[&&a]x.timer", "&x.timer"), ("[a||b].timer", "|.timer"),
    ("[[:digit:]].timer", "7.timer"), ("[[:digit:]].timer", "x.timer"), ("[![:alpha:]].timer", "7.timer"),
    ("[[:upper:][:digit:]_].timer", "_.timer"), ("[x.timer", "[x.timer"), ("[x.timer", "x.timer"),
    ("a?b.timer", "axb.timer"), ("a?b.timer", "a/b.timer"), ("a[/]b.timer", "a/b.timer"),
    ("a\\*.timer", "a*.timer"), ("a\\*.timer", "ab.timer"), ("a\\?.timer", "a?.timer"), ("a\\[b].timer", "a[b].timer"),
    ("\\a.timer", "a.timer"), ("a\\\\.timer", "a\\.timer"), ("a.timer\\", "a.timer"), ("\\!a.timer", "!a.timer"),
    ("!a.timer", "!a.timer"), ("\\#a.timer", "#a.timer"), ("#a.timer", "#a.timer"), (" a.timer", " a.timer"),
    ("a.timer   ", "a.timer"), ("a\\ .d/  ", "a .d/x.timer"), ("a.d\\ ", "a.d /x.timer"), ("a.d\\  ", "a.d /x.timer"),
    ("a.d\\\\ ", "a.d\\/x.timer"), ("a.timer\r", "a.timer"), ("\ufeffa.timer", "a.timer"), ("a.timer\x0bb", "a.timer"),
    ("**/a.timer", "a.timer"), ("**/a.timer", "x/y/a.timer"), ("a/**", "a/x/y.timer"), ("a/**/b.timer", "a/b.timer"),
    ("a/**/b.timer", "a/x/y/b.timer"), ("a/**/b.timer", "x/a/b.timer"), ("a**b.timer", "axxb.timer"),
    ("a**b.timer", "ax/xb.timer"), ("**", "a/b.timer"), ("***", "b.timer"), ("**/", "b.timer"), ("**/", "a/b.timer"),
    ("a/**\n!a/b.timer", "a/b.timer"), ("a/**/\n!a/b/", "a/b/c.timer"), ("a/**/", "a/b.timer"),
    ("a/\n!a/b.timer", "a/b.timer"), ("a\n!a/", "a/b.timer"), ("a/\n!a", "a/b.timer"), ("b.timer\n!a", "a/b.timer"),
    ("*\n!*/\n!*.timer", "a/b/c.timer"), ("*/\n!/a/", "a/b.timer"), ("*/\n!/a/", "a/b/c.timer"), ("/*\n!/a", "a/b.timer"),
    ("/", "a.timer"), ("//", "a.timer"), ("a//b.timer", "a/b.timer"), ("a/", "a.timer"), ("/a.timer", "b/a.timer"),
]  # fmt: skip


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


@pytest.mark.skipif(GIT is None, reason="git is not installed")
def test_git_reads_each_pattern_in_the_same_way(tmp_path: Path) -> None:
    subprocess.run([GIT or "", "init", "-q", "."], cwd=tmp_path, check=True, capture_output=True)
    for number, (ignores, name) in enumerate(ROWS):
        root = tmp_path / str(number)
        (root / name).parent.mkdir(parents=True)
        (root / name).write_text("")
        (root / ".gitignore").write_bytes(ignores.encode() + b"\n")
        command = [GIT or "", "check-ignore", "--quiet", "--", name]
        is_ignored = subprocess.run(command, cwd=root, check=False).returncode == 0
        assert found_in(root) == (set() if is_ignored else {name}), (ignores, name)


def test_a_pattern_of_a_deeper_directory_names_that_directory_and_not_what_is_below_it(tmp_path: Path) -> None:
    make(tmp_path, {".gitignore": "crontab\n", "a/.gitignore": "!b\n"})
    assert "a/b/crontab" not in found_in(tmp_path), "as git has it: only the directory was brought back"


def test_directories_of_tools_are_not_entered(tmp_path: Path) -> None:
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


@pytest.mark.parametrize(("ignores", "is_loaded"), [({}, False), ({".gitignore": "build\n"}, True)])
def test_the_matcher_is_loaded_only_for_a_gitignore(ignores: dict[str, str], is_loaded: bool, tmp_path: Path) -> None:
    make(tmp_path, ignores)
    program = (
        "import sys, pathlib, chronex.cli.commands.lint\n"
        "from chronex.lint.source_files import find_files\n"
        f"list(find_files(pathlib.Path({str(tmp_path)!r})))\n"
        "print('pathspec' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, timeout=60, capture_output=True, text=True)
    assert done.stdout.strip() == str(is_loaded)
