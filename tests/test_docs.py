"""The documentation is true: its commands run or at least exist, its links lead somewhere, its pictures are there,
and the source files and names that it mentions exist.

A `console` block is run, one document after another in a directory of its own, and must print what is shown
(CHRONEX_UPDATE_DOCS=1 rewrites it). Of a `sh` block, which may need a terminal or a machine of one's own, every chronex
command must exist with its options. A `toml` block of the job file must be one.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import shlex
from pathlib import Path

import pytest

from benchmarks import record
from chronex.cli.reference import CommandInfo
from tests.kit.command_tree import command_tree
from tests.kit.forked import run_python
from tests.test_readme import CONSOLE, ENVIRONMENT, ROOT, executed

DOCUMENTS = sorted(
    [
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("docs/tasks/*.md"),
        *ROOT.glob("specs/*.md"),
        ROOT / "README.md",
        ROOT / "CHANGELOG.md",
    ]
)
WITH_CONSOLE = [
    path
    for path in sorted([*ROOT.glob("docs/*.md"), *ROOT.glob("docs/tasks/*.md")])
    if "```console" in path.read_text()
]
SHELL = re.compile(r"```(?:sh|bash)\n(.*?)```", re.DOTALL)
COMMANDS = {command.name: command for command in command_tree().commands}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", WITH_CONSOLE, ids=name_of)
def test_every_console_block_shows_what_its_commands_print(path: Path, tmp_path: Path) -> None:
    text = path.read_text()
    fresh = CONSOLE.sub(lambda match: f"```console\n{executed(match[1], tmp_path)}```", text)
    if os.environ.get("CHRONEX_UPDATE_DOCS"):
        path.write_text(fresh)
    assert path.read_text() == fresh


PROGRAMS = [
    pytest.param(text, id=f"{name_of(path)}-{number}")
    for path in sorted(ROOT.glob("docs/*.md"))
    for number, text in enumerate(re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL), 1)
]


@pytest.mark.parametrize("text", PROGRAMS)
def test_every_program_prints_what_its_comments_say(text: str, tmp_path: Path) -> None:
    if "import fastapi" in text and importlib.util.find_spec("fastapi") is None:
        pytest.skip("tests/daemon/test_web_lifespan.py runs it with what takes the place of FastAPI")
    (tmp_path / "program.py").write_text(text)
    done = run_python(["program.py"], text=True, env=ENVIRONMENT, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    promised = [line.partition("  # ")[2] for line in text.splitlines() if line.lstrip().startswith("print(")]
    assert done.stdout.splitlines()[: len(promised)] == promised


def chronex_lines(path: Path) -> list[str]:
    lines = "\n".join(SHELL.findall(path.read_text())).replace("\\\n", " ").splitlines()
    return [line.strip().removeprefix("$ ") for line in lines if re.match(r"\s*(\$ )?chronex ", line)]


@pytest.mark.parametrize(("path", "line"), [(path, line) for path in DOCUMENTS for line in chronex_lines(path)])
def test_every_command_of_a_shell_block_exists_with_its_options(path: Path, line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    words = words[: next((i for i, word in enumerate(words) if word in ("|", "&&", ">", ";", "&", "--")), len(words))]
    if words[0].startswith("-"):
        return
    command = COMMANDS[words[0]]
    below: dict[str, CommandInfo] = {each.name: each for each in command.commands}
    if below and words[1] in below:
        command = below[words[1]]
    known = {name for option in command.options for name in option.names} | {"--help", "-h"}
    used = {word.partition("=")[0] for word in words[1:] if re.match(r"--?[a-zA-Z]", word)}
    assert used <= known, f"{name_of(path)}: {line}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_links_and_pictures_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
        place, _, anchor = target.partition("#")
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        found = (path.parent / place).resolve() if place else path
        assert found.exists(), f"{name_of(path)} points to {target}"
        if anchor and found.suffix == ".md":
            assert anchor in anchors(found), f"{name_of(path)} points to {target}"


SOURCES = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in ("chronex", "chronex_tui", "store", "tests", "benchmarks", "packaging", "scripts")
    for path in (ROOT / folder).rglob("*.py")
)
FOLDERS = {parent.as_posix() for source in SOURCES for parent in Path(source).parents}
SPOKEN = sorted([*DOCUMENTS, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"])


@pytest.mark.parametrize("path", SPOKEN, ids=name_of)
def test_every_source_file_and_folder_that_is_named_exists(path: Path) -> None:
    """A file may be named by the end of its path: `loop.py`, `model/states.py`."""
    text = path.read_text()
    ends = tuple(f"/{source}" for source in SOURCES)
    files = {name.removeprefix("../") for name in re.findall(r"[\w./-]*\w\.py\b", text)}
    missing = [name for name in files if not any(source.endswith(f"/{name}") for source in ends)]
    folders = set(re.findall(r"`((?:chronex|chronex_tui|store|tests)(?:/\w+)+)/?`", text))
    missing += [name for name in folders if name not in FOLDERS and name not in SOURCES]
    assert sorted(missing) == [], name_of(path)


@pytest.mark.parametrize("path", SPOKEN, ids=name_of)
def test_every_dotted_name_exists(path: Path) -> None:
    """`chronex.text.terminal.cell_safe` is a name of the module `chronex/text/terminal.py`."""
    names = set(re.findall(r"\bchronex(?:_store|_tui)?(?:\.\w+)+", path.read_text()))
    missing = [name for name in names if not name.endswith((".toml", ".backup")) and not is_defined(name)]
    assert sorted(missing) == [], name_of(path)


def is_defined(dotted: str) -> bool:
    module, _, name = dotted.rpartition(".")
    if importlib.util.find_spec(module) is None:
        return False
    try:
        return hasattr(importlib.import_module(module), name) or importlib.util.find_spec(dotted) is not None
    except ModuleNotFoundError:
        return False


def test_the_figures_are_those_that_were_recorded() -> None:
    figures = record.load()
    assert record.PAGE.read_text() == record.page(figures)
    assert record.README.read_text() == record.with_table(record.README.read_text(), figures)
    assert len(record.table(figures).splitlines()) == 2 + len(record.SHOWN)


def anchors(path: Path) -> set[str]:
    """Headings as they are linked to: lower case, blanks as hyphens, other signs left out."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
