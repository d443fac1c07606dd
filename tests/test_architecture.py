"""The layout: imports run one way, one module reads clocks, files and functions stay readable."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted(
    [
        *ROOT.glob("chronex/**/*.py"),
        *ROOT.glob("store/chronex_store/**/*.py"),
        *ROOT.glob("chronex_tui/**/*.py"),
    ]
)

# A package may import the packages listed beside it (and itself), nothing else of ours.
FOUNDATION = {"errors", "version", "clock", "failpoints", "text"}
BELOW_EXPR = FOUNDATION | {"model"}
BELOW_TIMING = BELOW_EXPR | {"expr"}
BELOW_DECISION = BELOW_TIMING | {"timing"}
BELOW_JOBFILE = BELOW_DECISION | {"decision"}
BELOW_ENGINE = BELOW_JOBFILE | {"storage"}
BELOW_VIEWS = BELOW_ENGINE | {"engine"}
BELOW_DAEMON = BELOW_VIEWS | {"jobfile", "views", "run", "store", "verify"}
BELOW_CLI = BELOW_DAEMON | {"daemon", "declarative", "lint", "lsp", "imports", "testing", "chronex"}
ALLOWED: dict[str, set[str]] = {
    "version": set(),
    "clock": set(),
    "failpoints": set(),
    "errors": {"expr"},  # for the type of a diagnostic only
    "text": {"errors"},
    "model": {"errors", "text"},
    "expr": BELOW_EXPR,
    "timing": BELOW_TIMING,
    "decision": BELOW_DECISION,
    "jobfile": BELOW_JOBFILE | {"storage"},  # a job must fit a record
    "storage": FOUNDATION | {"model"},
    "engine": BELOW_ENGINE,
    "views": BELOW_VIEWS,
    "run": BELOW_VIEWS,
    "store": FOUNDATION | {"model", "storage"},
    "verify": BELOW_VIEWS | {"jobfile"},
    "daemon": BELOW_DAEMON,
    "declarative": BELOW_DAEMON | {"daemon"},
    "lint": BELOW_JOBFILE | {"jobfile"},
    "lsp": BELOW_JOBFILE | {"jobfile", "lint"},
    "imports": BELOW_VIEWS | {"jobfile", "lint"},
    "testing": BELOW_DAEMON | {"daemon"},
    "chronex": BELOW_VIEWS | {"declarative"},  # the front door: chronex/__init__.py
    "cli": BELOW_CLI | {"chronex_tui"},
    "chronex_tui": BELOW_CLI,
    "__main__": {"cli"},
}
CLOCK_READERS = {
    "time.time", "time.time_ns", "time.monotonic", "time.monotonic_ns", "time.clock_gettime", "time.clock_gettime_ns",
    "time.perf_counter", "datetime.now", "datetime.utcnow", "datetime.today", "date.today", "time.localtime", "time.gmtime",
}  # fmt: skip
THE_CLOCK = ROOT / "chronex" / "clock.py"


def package_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    if parts[:2] == ("store", "chronex_store"):
        return "store"
    if parts[0] == "chronex_tui":
        return "chronex_tui"
    return "chronex" if parts[1] == "__init__" else parts[1]


def imported_packages(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            assert node.level == 0, f"{path}:{node.lineno} relative import"
            module = node.module or ""
            names = [f"{module}.{alias.name}" for alias in node.names] if module == "chronex" else [module]
        for name in names:
            head, _, rest = name.partition(".")
            if head == "chronex_store":
                yield node.lineno, "store"
            elif head == "chronex_tui":
                yield node.lineno, "chronex_tui"
            elif head == "chronex":
                package = rest.partition(".")[0]
                is_package = (ROOT / "chronex" / package).is_dir() or (ROOT / "chronex" / f"{package}.py").is_file()
                yield node.lineno, package if package and is_package else "chronex"


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_run_one_way(path: Path) -> None:
    package = package_of(path)
    for line, imported in imported_packages(path):
        assert imported == package or imported in ALLOWED[package], (
            f"{path}:{line}: {package} may not import {imported}"
        )


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_only_the_clock_module_reads_clocks(path: Path) -> None:
    if path == THE_CLOCK:
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute):
            dotted = ast.unparse(node)
            assert not any(dotted == r or dotted.endswith("." + r) for r in CLOCK_READERS), (
                f"{path}:{node.lineno}: {dotted}"
            )


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_and_functions_stay_short(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= 600, f"{path} has {text.count(chr(10))} lines; split it by idea"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            size = (node.end_lineno or node.lineno) - node.lineno + 1
            assert size <= 60, f"{path}:{node.lineno}: {node.name} has {size} lines"
