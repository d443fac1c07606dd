"""The layout: imports run one way, one module reads clocks, names are given once, files and functions stay readable.

Each rule is one test that lists every offender.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import pytest

from tests.kit.source_trees import nodes_of

ROOT = Path(__file__).parent.parent
TREES = ("chronex", "store/chronex_store", "chronex_tui")

MOST_LINES_OF_A_FILE = 600
MOST_LINES_OF_A_FUNCTION = 60

# A package may import the packages listed beside it (and itself), nothing else of ours.
FOUNDATION = {"errors", "version", "clock", "failpoints", "text", "torture_settings"}
BELOW_EXPR = FOUNDATION | {"model"}
BELOW_TIMING = BELOW_EXPR | {"expr"}
BELOW_DECISION = BELOW_TIMING | {"timing"}
BELOW_JOBFILE = BELOW_DECISION | {"decision"}
BELOW_ENGINE = BELOW_JOBFILE | {"storage"}
BELOW_VIEWS = BELOW_ENGINE | {"engine"}
BELOW_DAEMON = BELOW_VIEWS | {"jobfile", "views", "run", "keeper", "store", "verify", "channels"}
BELOW_CLI = BELOW_DAEMON | {"daemon", "declarative", "lint", "lsp", "imports", "testing", "chronex"}
ALLOWED: dict[str, set[str]] = {
    "version": set(),
    "torture_settings": set(),
    "clock": {"torture_settings"},
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
    "keeper": FOUNDATION | {"model", "run"},
    "store": FOUNDATION | {"model", "storage"},
    "verify": BELOW_VIEWS | {"jobfile"},
    "channels": BELOW_VIEWS | {"jobfile", "run"},
    "daemon": BELOW_DAEMON,
    "declarative": BELOW_DAEMON | {"daemon"},
    "lint": BELOW_JOBFILE | {"jobfile"},
    "lsp": BELOW_JOBFILE | {"jobfile", "lint", "views"},  # what will start is said by one function, also in editors
    "imports": BELOW_VIEWS | {"jobfile", "lint"},
    "testing": BELOW_DAEMON | {"daemon"},
    "chronex": BELOW_VIEWS | {"declarative", "daemon", "jobfile", "run"},  # the front door: chronex/__init__.py
    "torture": BELOW_DAEMON | {"daemon"},
    "cli": BELOW_CLI | {"chronex_tui", "torture"},
    "chronex_tui": BELOW_CLI,
    "__main__": {"cli"},
}

# Inside the engine a module may import those of the rows above its own. `commands` and `update` stand beside each other.
ENGINE_ROWS: list[set[str]] = [
    {"execution_report", "usual", "group_limits"},
    {"orders", "plan", "outbox"},
    {
        "admit",
        "checked_ends",
        "task_state",
        "idempotency",
        "notices",
        "clock_steps",
        "membership",
        "shared_logs",
        "task_graph",
        "retries",
        "chains",
        "handed_values",
    },
    {"following", "lines"},
    {"lifecycle"},
    {"takeover", "update"},
    {"commands"},
    {"decisions"},
    {"engine"},
]

CLOCK_READERS = {
    "time.time", "time.time_ns", "time.monotonic", "time.monotonic_ns", "time.clock_gettime", "time.clock_gettime_ns",
    "time.perf_counter", "datetime.now", "datetime.utcnow", "datetime.today", "date.today", "time.localtime", "time.gmtime",
}  # fmt: skip
CLOCK_METHODS = {reader.partition(".")[2] for reader in CLOCK_READERS}
THE_CLOCK = "chronex/clock.py"

# Names that two files may share, each with its reason.
SHARED_CLASSES: dict[str, str] = {}
_COMMAND = "a command of the command line has the name of what it does"
SHARED_MODULES = {
    "app": "the application of the command line, and that of the dashboard",
    "apply": _COMMAND,
    "backfill": _COMMAND,
    "backup": _COMMAND,
    "doctor": _COMMAND,
    "groups": _COMMAND,
    "nodes": _COMMAND,
    "notify": _COMMAND,
    "reload": _COMMAND,
    "state": _COMMAND,
    "status": _COMMAND,
    "trigger": _COMMAND,
    "clock": "chronex.testing has the fake of the module of the same name",
    "records": "the records, and their storage",
}
# The terminal program is both: `run` opens the dashboard where there is a terminal, and the dashboard can run the daemon.
COMMANDS_TOGETHER = {("run", "tui"), ("tui", "run")}

LOOKED_AT = (
    ast.Import, ast.ImportFrom, ast.Call, ast.Attribute, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef,
)  # fmt: skip


@dataclass(frozen=True)
class Source:
    path: str  # from the root of the repository
    module: str  # dotted

    @cached_property
    def text(self) -> str:
        return (ROOT / self.path).read_text()

    @property
    def nodes(self) -> list[ast.AST]:
        return _all_nodes()[ROOT / self.path]


def _source(path: Path) -> Source:
    name = path.relative_to(ROOT).as_posix()
    module = name.removeprefix("store/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return Source(name, module)


SOURCES = [_source(path) for tree in TREES for path in sorted((ROOT / tree).rglob("*.py"))]
MODULES = {source.module for source in SOURCES}


@cache
def _all_nodes() -> dict[Path, list[ast.AST]]:
    """Read by whoever runs these tests: every worker collects this file, and one of them needs the trees."""
    return nodes_of((ROOT / source.path for source in SOURCES), LOOKED_AT)


def package_of(module: str) -> str:
    """The package that a dotted name of ours belongs to, as ALLOWED names it."""
    head, *rest = module.split(".")
    if head != "chronex":
        return {"chronex_store": "store"}.get(head, head)
    is_package = bool(rest) and f"chronex.{rest[0]}" in MODULES
    return rest[0] if is_package else "chronex"


def imported(source: Source) -> Iterator[tuple[int, str]]:
    """The line and the dotted name of every import of ours, also by `import_module` with a written name."""
    for node in source.nodes:
        match node:
            case ast.Import():
                names = [alias.name for alias in node.names]
            case ast.ImportFrom():
                found = [f"{node.module}.{alias.name}" for alias in node.names]
                names = [name if name in MODULES else str(node.module) for name in found]
            case ast.Call(func=ast.Name(id="import_module") | ast.Attribute(attr="import_module")) if node.args:
                names = [_written(node.args[0])]
            case _:
                continue
        yield from (
            (node.lineno, name) for name in names if name.split(".")[0] in {"chronex", "chronex_store", "chronex_tui"}
        )


def _written(argument: ast.expr) -> str:
    """A constant name, or the constant beginning of one that is put together."""
    if isinstance(argument, ast.JoinedStr) and argument.values:
        argument = argument.values[0]
    return str(argument.value).rstrip(".") if isinstance(argument, ast.Constant) else ""


def test_imports_run_one_way() -> None:
    wrong = []
    for source in SOURCES:
        package = package_of(source.module)
        for line, name in imported(source):
            target = package_of(name)
            if target != package and target not in ALLOWED[package]:
                wrong.append(f"{source.path}:{line}: {package} may not import {target}")
    assert wrong == []


def test_no_import_is_relative() -> None:
    wrong = [
        f"{source.path}:{node.lineno}"
        for source in SOURCES
        for node in source.nodes
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert wrong == []


def _row_of(module: str) -> int | None:
    part = module.removeprefix("chronex.engine").lstrip(".").partition(".")[0]
    return next((number for number, row in enumerate(ENGINE_ROWS) if part in row), None)


def _part_of(module: str) -> str:
    return ".".join(module.split(".")[:3])


def test_imports_run_one_way_inside_the_engine() -> None:
    wrong = []
    for source in SOURCES:
        if not source.module.startswith("chronex.engine."):
            continue
        own = _row_of(source.module)
        if own is None:
            wrong.append(f"{source.path}: give it a row of ENGINE_ROWS")
            continue
        for line, name in imported(source):
            row = _row_of(name) if name.startswith("chronex.engine.") else None
            if row is not None and row >= own and _part_of(name) != _part_of(source.module):
                wrong.append(f"{source.path}:{line}: may not import {name}")
    assert wrong == []


def test_commands_of_the_command_line_do_not_import_each_other() -> None:
    commands = "chronex.cli.commands."
    wrong = [
        f"{source.path}:{line}: imports {name}"
        for source in SOURCES
        if source.module.startswith(commands)
        for line, name in imported(source)
        if name.startswith(commands) and _may_not_meet(_cli_command(source.module), _cli_command(name))
    ]
    assert wrong == []


def _may_not_meet(own: str, other: str) -> bool:
    return own != other and (own, other) not in COMMANDS_TOGETHER


def _cli_command(module: str) -> str:
    return module.split(".")[3]


def test_only_the_clock_module_reads_clocks() -> None:
    wrong = []
    for source in SOURCES:
        for node in source.nodes:
            if not isinstance(node, ast.Attribute) or node.attr not in CLOCK_METHODS or source.path == THE_CLOCK:
                continue
            dotted = ast.unparse(node)
            if any(dotted == reader or dotted.endswith(f".{reader}") for reader in CLOCK_READERS):
                wrong.append(f"{source.path}:{node.lineno}: {dotted}")
    assert wrong == []


def test_a_class_name_is_given_once() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for source in SOURCES:
        for node in source.nodes:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(source.path)
    assert {name: paths for name, paths in places.items() if len(paths) > 1 and name not in SHARED_CLASSES} == {}


def test_a_module_name_is_given_once() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for source in SOURCES:
        stem = Path(source.path).stem
        if stem not in {"__init__", "__main__"}:
            places[stem].append(source.path)
    assert {name: paths for name, paths in places.items() if len(paths) > 1 and name not in SHARED_MODULES} == {}


def test_no_name_is_shared_in_the_tables_alone() -> None:
    """A name that has become unique leaves its table."""
    classes = [node.name for source in SOURCES for node in source.nodes if isinstance(node, ast.ClassDef)]
    modules = [Path(source.path).stem for source in SOURCES]
    stale = [name for name in SHARED_CLASSES if classes.count(name) < 2]
    stale += [name for name in SHARED_MODULES if modules.count(name) < 2]
    assert stale == []


def test_files_and_functions_stay_short() -> None:
    wrong = []
    for source in SOURCES:
        lines = source.text.count("\n")
        if lines > MOST_LINES_OF_A_FILE:
            wrong.append(f"{source.path}: {lines} lines; split it by subject")
        for node in source.nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > MOST_LINES_OF_A_FUNCTION:
                    wrong.append(f"{source.path}:{node.lineno}: {node.name} has {length} lines")
    assert wrong == []


def test_whoever_has_a_store_open_goes_by_its_clock() -> None:
    """On several machines the store's clock is the only one that all have; a command's own may be wrong."""
    commands = [
        source for source in SOURCES if source.module.startswith(("chronex.cli.commands.", "chronex.daemon."))
    ]
    wrong = []
    for source in commands:
        names = {name for _, name in imported(source)}
        if any("store_session" in name for name in names) and any(name.startswith("chronex.clock") for name in names):
            wrong.append(str(source.path))
    assert wrong == []
    assert any("store_session" in name for source in commands for _, name in imported(source)), (
        "nothing was looked at"
    )


# Charming, and not how this trade talks: nobody searches for them (docs/glossary.md has the words to use instead).
NOT_OF_THE_TRADE = frozenset(
    [
        "muster",
        "foresight",
        "rehearsal",
        "tell",
        "tells",
        "told",
        "telling",
        "asker",
        "wish",
        "wishes",
        "desk",
        "room",
        "look",
        "looks",
        "looked",
        "looking",
        "settle",
        "settled",
        "fate",
        "owed",
        "heir",
        "mourn",
        "restless",
        "calm",
        "ballast",
        "frugal",
        "surroundings",
        "chore",
        "upkeep",
        "outlet",
        "patience",
        "docket",
        "painted",
    ]
)


def defined_names(node: ast.AST) -> Iterator[str]:
    match node:
        case (
            ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name)
        ):
            yield name
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            yield name


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("def tell_all(): ...", True),
        ("a.next_look = 1", True),
        ("LOOK_S = 1", True),
        ("overlook = fateful = 1", False),
    ],
)
def test_words_are_found_in_names(text: str, found: bool) -> None:
    names = [name for node in ast.walk(ast.parse(text)) for name in defined_names(node)]
    assert any(words_of_name(name) & NOT_OF_THE_TRADE for name in names) is found


def test_names_are_words_of_the_trade() -> None:
    wrong = [
        f"{source.path}: {name}"
        for source in SOURCES
        for node in source.nodes
        for name in defined_names(node)
        if words_of_name(name) & NOT_OF_THE_TRADE
    ]
    assert wrong == []


def words_of_name(name: str) -> set[str]:
    """`next_look_ms`, `NextLook` and `LOOK_S` all have the word `look`."""
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}
