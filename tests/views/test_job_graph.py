"""The graph of a job: how it is drawn, which path its length depends on, and what `why` says of chains."""

from __future__ import annotations

from random import Random

import pytest

from chronex.model.job import Job, Task
from chronex.model.policies import TaskMode, When
from chronex.model.states import AttemptState
from chronex.testing import HOUR, MINUTE
from chronex.views.graph_drawing import draw
from chronex.views.job_graph import GraphStep, graph_of, latest_occurrence, longest_path, usual_path
from chronex.views.simulation import simulate_runs
from chronex.views.why import why
from tests.engine.test_chains import AT, BAD, ETL, GOOD, HOURLY, MAIL, REPORT, Chain, job
from tests.kit.machine import FIRST, START, SteppedEngine

S = GraphStep


def drawn(*steps: GraphStep, width: int = 80, is_unicode: bool = True) -> list[str]:
    return ["".join(text for text, _ in line) for line in draw(steps, width, is_unicode=is_unicode)]


PICTURES = {
    "a chain goes straight down": (
        (S("a"), S("b", ("a",))),
        ["┌─────┐", "│ ○ a │", "└─────┘", "   │", "┌─────┐", "│ ○ b │", "└─────┘"],
    ),
    "one that needs two is below both": (
        (S("a"), S("b"), S("c", ("a", "b"))),
        [
            "┌─────┐  ┌─────┐",
            "│ ○ a │  │ ○ b │",
            "└─────┘  └─────┘",
            "   └──┐     │",
            "      │ ┌───┘",
            "    ┌─────┐",
            "    │ ○ c │",
            "    └─────┘",
        ],
    ),
    "a line passes the row that it does not stop in": (
        (S("a"), S("b", ("a",)), S("c", ("a", "b"))),
        [
            " ┌─────┐",
            " │ ○ a │",
            " └─────┘",
            "    ├────┐",
            "┌─────┐  │",
            "│ ○ b │  │",
            "└─────┘  │",
            "   │ ┌───┘",
            " ┌─────┐",
            " │ ○ c │",
            " └─────┘",
        ],
    ),
    "heavy boxes are the critical path": (
        (S("a", state="success", duration_ms=3000, is_critical=True),),
        ["┏━━━━━━━━━━┓", "┃ ● a 3.0s ┃", "┗━━━━━━━━━━┛"],
    ),
    "a matrix says how many of it are over": (
        (S("m", state="running", combinations=4, over=1), S("n", combinations=4), S("u", when=When.FAILURE)),
        ["┌─────────┐  ┌────────┐  ┌───────────────┐", "│ ▶ m 1/4 │  │ ○ n x4 │  │ ○ u (failure) │", "└─────────┘  └────────┘  └───────────────┘"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PICTURES)
def test_it_is_drawn_with_boxes_and_lines(name: str) -> None:
    steps, picture = PICTURES[name]
    assert drawn(*steps) == picture


def test_a_terminal_without_such_characters_gets_others() -> None:
    assert drawn(S("a"), S("b", ("a",), is_critical=True), is_unicode=False) == [
        "+-----+", "| . a |", "+-----+", "   |", "#=====#", "# . b #", "=======",
    ]  # fmt: skip


def random_steps(chance: Random, most: int) -> list[GraphStep]:
    return [
        S(f"task-{n}", tuple(f"task-{m}" for m in range(n) if chance.random() < 0.25))
        for n in range(chance.randrange(1, most))
    ]


# On which sides a line leaves a cell.
UP, DOWN, LEFT, RIGHT = (-1, 0), (1, 0), (0, -1), (0, 1)
SIDES = {
    "│": (UP, DOWN), "─": (LEFT, RIGHT), "┐": (LEFT, DOWN), "┘": (LEFT, UP), "┌": (RIGHT, DOWN), "└": (RIGHT, UP),
    "├": (UP, DOWN, RIGHT), "┤": (UP, DOWN, LEFT), "┬": (LEFT, RIGHT, DOWN), "┴": (LEFT, RIGHT, UP), "┼": (UP, DOWN, LEFT, RIGHT),
}  # fmt: skip


def reached(lines: list[str], row: int, column: int) -> set[tuple[int, int]]:
    """The cells above boxes to which a line leads that leaves the cell upwards: as one reads it, by its turns and
    branches; a line that goes down is crossed, not joined."""
    found, seen, left = set(), {(row, column)}, [(row, column)]
    while left:
        row, column = left.pop()
        for down, right in SIDES[lines[row][column]]:
            below = (row + down, column + right)
            while right and lines[below[0]][below[1]] == "│":
                below = (below[0], below[1] + right)
            char = lines[below[0]][below[1] : below[1] + 1]
            if down and char not in SIDES:
                continue
            if (down, right) == DOWN and char == "─":
                found.add((row, column))
            elif below not in seen and (-down, -right) in SIDES[char]:
                seen.add(below)
                left.append(below)
    return found


def read_back(lines: list[str], names: list[str]) -> dict[str, set[str]]:
    """Who comes after whom, by the picture alone."""
    width = max(len(line) for line in lines) + 1
    lines = [f"{line:{width}}" for line in lines]
    boxes: dict[str, tuple[int, range]] = {}
    for row, line in enumerate(lines):
        for name in names:
            if f" {name} " in line:
                at = line.index(f" {name} ")
                boxes[name] = (row, range(line.rindex("│", 0, at), line.index("│", at) + 1))
    below: dict[str, set[str]] = {name: set() for name in names}
    for name, (row, columns) in boxes.items():
        ends = set()
        for column in columns if row + 2 < len(lines) else ():
            if UP in SIDES.get(lines[row + 2][column], ()):
                ends |= reached(lines, row + 2, column)
        for end_row, column in ends:
            below[name] |= {one for one, (at, inside) in boxes.items() if at == end_row + 2 and column in inside}
    return below


@pytest.mark.parametrize("seed", range(60))
def test_who_comes_after_whom_can_be_read_from_the_picture(seed: int) -> None:
    """Lines that cross are told from lines that join: whoever follows a line comes to those that need its task."""
    steps = random_steps(Random(f"read {seed}"), 12)
    lines = drawn(*steps, width=200)
    assert "after" not in "".join(lines)
    wanted = {one.name: {other.name for other in steps if one.name in other.needs} for one in steps}
    assert read_back(lines, [one.name for one in steps]) == wanted, "\n".join(lines)


@pytest.mark.parametrize("seed", range(40))
def test_any_graph_fits_and_shows_every_step(seed: int) -> None:
    chance = Random(seed)
    steps = random_steps(chance, 25)
    width = chance.choice((60, 80, 120))
    lines = drawn(*steps, width=width)
    is_list = any("after" in line for line in lines)
    assert is_list or max(len(line) for line in lines) <= width
    text = "\n".join(lines)
    assert all(f" task-{n} " in f"{text} ".replace("\n", " \n") for n in range(len(steps)))


def test_the_critical_path_is_what_the_end_of_the_run_waited_for() -> None:
    tasks = (
        Task(name="a"),
        Task(name="long", needs=("a",)),
        Task(name="short", needs=("a",)),
        Task(name="z", needs=("long", "short")),
    )
    machine = SteppedEngine(tasks=tasks)
    (a,) = machine.tick(FIRST)
    long, short = machine.launches_after(a, AttemptState.SUCCESS, FIRST + 10)
    machine.end(short, AttemptState.SUCCESS, FIRST + 20)
    (z,) = machine.launches_after(long, AttemptState.SUCCESS, FIRST + 500)
    machine.end(z, AttemptState.SUCCESS, FIRST + 600)
    graph = machine.read(lambda reading: graph_of(reading, machine.job, latest_occurrence(reading, "job")))
    assert (graph.critical, graph.critical_ms) == (("a", "long", "z"), 600)
    assert [step.name for step in graph.steps if step.is_critical] == ["a", "long", "z"]


@pytest.mark.parametrize(("mode", "path"), [(TaskMode.SEQUENTIAL, ("a", "b", "c")), (TaskMode.PARALLEL, ("b",))])
def test_by_the_usual_durations_it_is_the_longest_way(mode: TaskMode, path: tuple[str, ...]) -> None:
    short = Job(id="job", schedule=HOURLY, tasks=tuple(Task(name=name) for name in "abc"), mode=mode)
    found = usual_path(short, {"a": 1, "b": 5, "c": 2}, 100)
    assert (found.names, found.total_ms) == (path, sum({"a": 1, "b": 5, "c": 2}[name] for name in path))


def test_a_task_for_failures_is_on_no_usual_path() -> None:
    tasks = (Task(name="a", needs=()), Task(name="undo", needs=("a",), when=When.FAILURE))
    assert usual_path(Job(id="job", schedule=HOURLY, tasks=tasks), {}, 7).names == ("a",)
    assert longest_path([], lambda name: (), lambda name: 1).names == ()


# -- why and simulate ------------------------------------------------------------------------------------------


def facts(chain: Chain, name: str, at: int, now: int) -> list[str]:
    answer = chain.read(lambda reading: why(reading, name, at, now))
    assert answer is not None
    return [answer.summary, *(link.fact for link in answer.links)]


def test_why_follows_the_chain_in_both_directions() -> None:
    chain = Chain(ETL, REPORT, MAIL)
    chain.go(AT)
    assert "report follows, when this has completed" in facts(chain, "etl", AT, AT + 1)
    chain.over("etl", AT + 5, BAD)
    said = facts(chain, "report", AT, AT + 9)
    assert said[0].startswith("it was skipped: etl failed: occ_")
    assert "etl of 2027-01-01 01:00+00:00 failed (one: exit code 1), so it was skipped" in said
    assert any(
        fact.startswith("report of 2027-01-01 01:00+00:00 was skipped") for fact in facts(chain, "etl", AT, AT + 9)
    )
    assert any("mail" in fact for fact in said)


def test_why_says_for_whom_one_waits() -> None:
    chain = Chain(job("aa", HOURLY, ["etl"]), ETL)
    chain.go(AT)
    said = facts(chain, "aa", AT, AT + 1)
    assert said[0] == "it waits for etl"
    chain.over("etl", AT + 5, GOOD)
    assert "etl of 2027-01-01 01:00+00:00 completed" in facts(chain, "aa", AT, AT + 6)


def test_a_simulation_starts_what_follows_as_the_engine_would() -> None:
    jobs = [
        ETL,
        REPORT,
        job("both", after=["etl", "report"]),
        job("late", "5 * * * *", ["etl"]),
        job("soon", f"{HOURLY} {{window:5m}}", ["etl"]),
    ]
    takes = {"etl": 10 * MINUTE}
    played = list(simulate_runs(jobs, START, START + 2 * HOUR, lambda name: takes.get(name, MINUTE), 50, Random(0)))
    found = {(one.occurrence.job, one.occurrence.nominal_ms): one for one in played}
    assert found["report", AT].started_ms == AT + 10 * MINUTE
    assert found["both", AT].started_ms == AT + 11 * MINUTE
    assert found["late", AT + 5 * MINUTE].started_ms == AT + 10 * MINUTE
    assert str(found["soon", AT].reason) == "etl had not completed within the window"
    assert len(played) == len(found)
