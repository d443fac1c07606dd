"""The snippets for editors, the hooks and the matcher: each is read by its own reader, or at least parsed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from chronex.lint.source_files import UNSURE_CRON_D, kind_by_name
from tests.cli.conftest import Chronex, chronex
from tests.lint.golden import CASES

__all__ = ["chronex"]

ROOT = Path(__file__).parent.parent.parent
EDITORS = ROOT / "packaging" / "editors"


def without_comments(text: str) -> str:
    return re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)


@pytest.mark.parametrize("path", sorted(EDITORS.rglob("*.toml")), ids=lambda path: path.name)
def test_toml_parses(path: Path) -> None:
    tomllib.loads(path.read_text())


@pytest.mark.parametrize(
    "path",
    [*sorted(EDITORS.rglob("*.json")), *sorted(EDITORS.rglob("*.sublime-settings"))],
    ids=lambda path: path.name,
)
def test_json_parses(path: Path) -> None:
    json.loads(without_comments(path.read_text()))


def test_helix_and_sublime_start_the_server() -> None:
    helix = tomllib.loads((EDITORS / "helix" / "languages.toml").read_text())
    assert helix["language-server"]["chronex"] == {"command": "chronex", "args": ["lsp"]}
    assert all("chronex" in language["language-servers"] for language in helix["language"])
    sublime = json.loads((EDITORS / "sublime" / "LSP.sublime-settings").read_text())
    assert sublime["clients"]["chronex"]["command"] == ["chronex", "lsp"]


@pytest.mark.skipif(shutil.which("nvim") is None, reason="nvim is not installed")
def test_the_neovim_snippet_starts_the_server_for_a_job_file(tmp_path: Path) -> None:
    """With a program called chronex on the path that is this one."""
    program = tmp_path / "bin" / "chronex"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT}:{ROOT}/store exec {sys.executable} -m chronex "$@"\n')
    program.chmod(0o755)
    (tmp_path / "chronex.toml").write_text('[jobs.a]\nschedule = "0 25 * * *"\nrun = "x"\n')
    snippet = EDITORS / "neovim" / "chronex.lua"
    wait = "lua vim.wait(100000, function() return #vim.diagnostic.get(0) > 0 end, 20)"
    show = "lua vim.fn.writefile({ vim.diagnostic.get(0)[1].message }, 'found')"
    # -u NONE sets no file types; `filetype on` does, as any user's configuration has it.
    commands = ["filetype on", f"luafile {snippet}", "edit chronex.toml", "setfiletype toml", wait, show, "qa!"]
    command = ["nvim", "--headless", "-u", "NONE", "-i", "NONE", *(x for c in commands for x in ("-c", c))]
    environment = {
        "PATH": f"{program.parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "LC_ALL": "C.UTF-8",
    }
    subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, timeout=120, check=False)
    assert (tmp_path / "found").read_text() == "hour: value 25 out of range [0, 23]\n"


def test_the_emacs_snippet_is_balanced_and_provides_its_name() -> None:
    text = (EDITORS / "emacs" / "chronex.el").read_text()
    code = re.sub(r'"(?:[^"\\]|\\.)*"', '""', re.sub(r"^\s*;.*$", "", text, flags=re.MULTILINE))
    depth = 0
    for char in code:
        depth += (char == "(") - (char == ")")
        assert depth >= 0
    assert depth == 0
    assert "(provide 'chronex)" in text
    if emacs := shutil.which("emacs"):
        command = [emacs, "--batch", "-Q", "-l", str(EDITORS / "emacs" / "chronex.el")]
        subprocess.run(command, check=True, capture_output=True, timeout=60)


_EMACS = """
(setq chronex-program %(program)s)
(load %(snippet)s nil t)
(defun await (test) (let ((n 0)) (while (and (not (funcall test)) (< n 600)) (accept-process-output nil 0.1) (setq n (1+ n)))))
(defun say (kind) (princ (format "%%s %%s\n" kind (mapconcat #'flymake-diagnostic-text (flymake-diagnostics) "|"))))
(with-current-buffer (find-file-noselect ".github/workflows/a.yml")
  (chronex-flymake-mode 1)
  (flymake-start)
  (await #'flymake-diagnostics)
  (say "flymake"))
(when (require 'eglot nil t)
  (setq eglot-connect-timeout 60 eglot-sync-connect t)
  (with-current-buffer (find-file-noselect "chronex.toml")
    (apply #'eglot (eglot--guess-contact))
    (await (lambda () (flymake-start) (flymake-diagnostics)))
    (say "eglot")))
"""


@pytest.mark.skipif(not shutil.which("emacs"), reason="Emacs is not installed")
def test_emacs_shows_what_is_wrong_with_a_workflow_and_a_job_file(tmp_path: Path) -> None:
    """Flymake beside the server of a mode, and eglot where this Emacs has it (29 and newer)."""
    workflow = tmp_path / ".github/workflows/a.yml"
    workflow.parent.mkdir(parents=True)
    workflow.write_text('on:\n  schedule:\n    - cron: "0 25 * * *"\n')
    (tmp_path / "chronex.toml").write_text('[jobs.a]\nschedule = "0 25 * * *"\nrun = "true"\n')
    program = Path(sys.executable).with_name("chronex")
    names = {"program": json.dumps(str(program)), "snippet": json.dumps(str(EDITORS / "emacs" / "chronex.el"))}
    (tmp_path / "try.el").write_text(_EMACS % names)
    command = ["emacs", "--batch", "-Q", "-l", "try.el"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    expected = [
        "flymake hour: value 25 out of range [0, 23] [E003]",
        "eglot chronex [E003]: hour: value 25 out of range [0, 23]",
    ]
    assert done.stdout.splitlines() in (expected, expected[:1]), done.stderr


def test_the_vscode_client_names_what_it_needs_and_is_locked() -> None:
    package = json.loads((EDITORS / "vscode" / "package.json").read_text())
    lock = json.loads((EDITORS / "vscode" / "package-lock.json").read_text())
    assert lock["packages"][""]["dependencies"] == package["dependencies"]
    assert lock["packages"][""]["devDependencies"] == package["devDependencies"]
    source = (EDITORS / "vscode" / "src" / "extension.ts").read_text()
    for setting in package["contributes"]["configuration"]["properties"]:
        assert f'"{setting.removeprefix("chronex.")}"' in source
    activated = {event.removeprefix("onLanguage:") for event in package["activationEvents"]}
    assert set(re.findall(r'\{ language: "([^"]+)" \}', source)) <= activated


def test_the_problem_matcher_reads_text_and_gcc(chronex: Chronex, tmp_path: Path) -> None:
    path = tmp_path / "a.crontab"
    path.write_text("@wekly /usr/bin/a\n")
    matcher = json.loads((EDITORS / "github" / "problem-matcher.json").read_text())
    for form, entry in zip(("text", "gcc"), matcher["problemMatcher"], strict=True):
        line = chronex("lint", str(path), "--format", form).out.splitlines()[0]
        pattern = entry["pattern"][0]
        match = re.match(pattern["regexp"], line)
        assert match, line
        assert (match[pattern["file"]], match[pattern["line"]], match[pattern["column"]], match[pattern["code"]]) == (
            str(path), "1", "1", "E130",
        )  # fmt: skip


def test_the_hooks_are_given_every_file_that_is_recognised_by_name_once() -> None:
    hooks = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    pattern = re.compile(hooks["chronex-lint"]["files"])
    paths = [*(case.path for case in CASES), "chronex-nightly.json", ".azure-pipelines/deep/a.yml", "my-trigger.json"]
    for path in paths:
        known = kind_by_name(path)
        if known in (None, "yaml", "python"):
            assert not pattern.search(path), path
        elif known != UNSURE_CRON_D:
            assert pattern.search(path), path
    assert (
        hooks["chronex-lint-k8s"]["exclude"] == hooks["chronex-lint"]["files"] == hooks["chronex-lint-fix"]["files"]
    )
    assert {hook["entry"] for hook in hooks.values()} == {"chronex lint", "chronex lint --fix"}
    assert all(hook["language"] == "python" for hook in hooks.values())
