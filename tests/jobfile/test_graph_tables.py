"""needs, when, matrix, at_most, after and parameters in the job file: what they become, and what is refused where."""

from __future__ import annotations

import pytest

from chronex.jobfile import JobFileError, read_job_file
from chronex.jobfile.graph_tables import MOST_COMBINATIONS
from chronex.model.circles import circle_in
from chronex.model.job import Job
from chronex.model.job_parameters import Parameter, ParameterType, defaults_of, normal_text, problem_with
from chronex.model.policies import When
from tests.jobfile.marked import unmarked

HEAD = '[jobs.a]\nschedule = "0 9 * * *"\n'


def read(text: str) -> list[Job]:
    return list(read_job_file(text, "chronex.toml", "UTC").jobs)


def tasks(*tables: str) -> str:
    return HEAD + "".join(f'[[jobs.a.tasks]]\nrun = "true"\n{table}\n' for table in tables)


def test_needs_and_when_become_fields_of_the_task() -> None:
    (job,) = read(tasks('name = "x"', 'name = "y"\nneeds = ["x"]\nwhen = "done"', 'name = "z"\nneeds = []'))
    assert [(task.needs, task.when) for task in job.tasks] == [
        (None, When.SUCCESS),
        (("x",), When.DONE),
        ((), When.SUCCESS),
    ]
    assert job.has_needs


def test_a_matrix_becomes_one_task_for_each_combination() -> None:
    table = (
        'name = "load"\nmatrix = { region = ["eu", "us"], tier = [1, 2.5], full = [true] }\nat_most = 2\nretry = 3'
    )
    (job,) = read(tasks(table, 'name = "after"\nneeds = ["load"]'))
    found = job.tasks[:-1]
    assert [task.name for task in found] == [
        "load-eu-1-true",
        "load-eu-2-5-true",
        "load-us-1-true",
        "load-us-2-5-true",
    ]
    assert {task.matrix_of for task in found} == {"load"}
    assert found[1].combination == {"region": "eu", "tier": "2.5", "full": "true"}
    assert {(task.at_most, task.retry.max if task.retry else None) for task in found} == {(2, 3)}


@pytest.mark.parametrize(("written", "parents"), [('"etl"', ("etl",)), ('["etl", "bill"]', ("etl", "bill"))])
def test_a_job_that_follows_others_needs_no_schedule(written: str, parents: tuple[str, ...]) -> None:
    (job,) = read(f'[jobs.a]\nafter = {written}\nrun = "true"\n')
    assert (job.schedule, job.after, job.follows) == ("", parents, True)
    (both,) = read(f'{HEAD}after = {written}\nrun = "true"\n')
    assert (both.schedule, both.after, both.follows) == ("0 9 * * *", parents, False)


def test_parameters_have_a_type_and_a_default_as_text() -> None:
    (job,) = read(
        f'{HEAD}run = "true"\n[jobs.a.parameters]\nlevel = {{ type = "integer", default = 3 }}\n'
        'mode = { choices = ["full", 2], default = "full", required = true }\nfast = { type = "boolean", default = true }\nname = {}\n'
    )
    assert job.parameters == {
        "level": Parameter(type=ParameterType.INTEGER, default="3"),
        "mode": Parameter(type=ParameterType.CHOICE, default="full", choices=("full", "2"), required=True),
        "fast": Parameter(type=ParameterType.BOOLEAN, default="true"),
        "name": Parameter(),
    }
    assert defaults_of(job.parameters) == {"level": "3", "mode": "full", "fast": "true"}


NAMED = 'name = "y"'
REFUSED = [
    (tasks(NAMED, 'name = "x"\nneeds = [«"zebra"»]'), "J026", "no task is called 'zebra'; the tasks here are x, y"),
    (tasks('name = "extract"', 'name = "x"\nneeds = [«"extrat"»]'), "J026", "did you mean extract?"),
    (tasks('name = "x"\nneeds = [«"x"»]'), "J026", "'x' needs itself"),
    (tasks('name = "x"\nneeds = «["y"]»', 'name = "y"\nneeds = ["x"]'), "J026", "the tasks wait for each other: x -> y -> x"),
    (tasks('name = "x"\n«when» = "done"'), "J024", "when says how the needs must have ended, and there are none"),
    (tasks(NAMED, 'name = "x"\nneeds = []\n«when» = "done"'), "J024", "and there are none"),
    (tasks('name = "x"\nneeds = ["y"]\nwhen = «"sucess"»', NAMED), "J013", "did you mean success?"),
    (tasks('name = "x"\nneeds = «"y"»', NAMED), "J011", "needs takes a list, not text"),
    (tasks('name = "x"\nneeds = ["y", «"y"»]', NAMED), "J018", "'y' is given twice"),
    (tasks('name = "x"\n«at_most» = 2'), "J024", "at_most is for the runs of a matrix, and there is none"),
    (tasks('name = "x"\nmatrix = «{}»'), "J013", "matrix is empty"),
    (tasks('name = "x"\nmatrix = { r = «[]» }'), "J013", "r is empty"),
    (tasks('name = "x"\nmatrix = { r = [«{}»] }'), "J011", "takes text or a number"),
    (tasks('name = "x"\nmatrix = { «"a b"» = [1] }'), "J017", "cannot name the values of a matrix"),
    (tasks('name = "x"\nmatrix = «{ r = ["a b", "a-b"] }»'), "J018", "two combinations would be called x-a-b"),
    (tasks(f'name = "x"\nmatrix = «{{ a = {list(range(11))}, b = {list(range(10))} }}»'), "J014", f"at most {MOST_COMBINATIONS}"),
    (tasks('name = "x"\nmatrix = { r = [1], «R» = [2] }'), "J018", "'r' and 'R' would both be CHRONEX_MATRIX_R"),
    (tasks('name = "x"\nmatrix = { r = [«nan»] }'), "J014", "r[0] is no number that every program reads alike"),
    (tasks('name = "x"\nmatrix = { r = [«99999999999999999999»] }'), "J014", "r[0] is no number that every program reads alike"),
    (tasks('name = "x"\nneeds = []').replace(HEAD, HEAD + '«mode» = "parallel"\n'), "J024", "the tasks say by needs"),
    ('[jobs.a]\nafter = «"a"»\nrun = "true"\n', "J026", "the jobs follow each other: a -> a"),
    ('[jobs.a]\nafter = «["b"]»\nrun = "true"\n[jobs.b]\nafter = "a"\nrun = "true"\n', "J026", "a -> b -> a"),
    ('[jobs.a]\nafter = «7»\nrun = "true"\n', "J011", "after takes the name of a job, or a list of them"),
    ('[jobs.a]\nafter = «[]»\nrun = "true"\n', "J014", "name 1 to 20"),
    ('[jobs.a]\nafter = [«"a b"»]\nrun = "true"\n', "J017", "is not a name"),
    ('[jobs.a]\nafter = "b"\nrun = "true"\n«spread» = { duration = "1h" }\n', "J024", "spread is for schedules"),
    ('[jobs.a]\nafter = "b"\nrun = "true"\n«recovery» = "execute_all"\n', "J024", "recovery is for schedules"),
    (f'{HEAD}run = "true"\n[jobs.a.parameters]\nx = {{ type = «"integr"» }}\n', "J013", "did you mean integer?"),
    (f'{HEAD}run = "true"\n[jobs.a.parameters]\nx = {{ type = "integer", default = «"1.5"» }}\n', "J013", "is not a whole number"),
    (f'{HEAD}run = "true"\n[jobs.a.parameters]\nx = {{ type = "choice", choices = ["a"], default = «"b"» }}\n', "J013", "is none of a"),
    (f'{HEAD}run = "true"\n[jobs.a.parameters]\nx = «{{ type = "choice" }}»\n', "J012", "x is a choice without choices"),
    (f'{HEAD}run = "true"\n[jobs.a.parameters]\nx = {{ type = "number", «choices» = [1] }}\n', "J024", "choices do not go with the type number"),
    (f'{HEAD}run = "true"\n[jobs.a.parameters]\nx = {{ «required» = true }}\n', "J024", "add a default for those runs"),
    (f'{HEAD}run = "true"\n[jobs.a.parameters]\n«"1x"» = {{}}\n', "J017", "cannot name a parameter"),
    (f'{HEAD}run = "true"\n[jobs.a.parameters]\nx-y = {{}}\n«X_y» = {{}}\n', "J018", "'x-y' and 'X_y' would both be CHRONEX_PARAM_X_Y"),
    (f'{HEAD}run = "true"\n[jobs.a.parameters]\nx = {{ default = «inf» }}\n', "J014", "default is no number that every program reads alike"),
    (f'{HEAD}run = "true"\n[jobs.a.parameters]\nx = «3»\n', "J011", "x takes a table"),
]  # fmt: skip


@pytest.mark.parametrize(("marked", "code", "words"), REFUSED)
def test_what_cannot_be_is_refused_at_its_place(marked: str, code: str, words: str) -> None:
    text, (place,) = unmarked(marked)
    with pytest.raises(JobFileError) as caught:
        read(text)
    (found,) = caught.value.problems
    assert (found.line, found.column, found.end_column) == place
    assert found.code == code
    assert words in found.text


@pytest.mark.parametrize("is_matrix_first", [True, False])
def test_a_combination_and_a_task_cannot_have_one_name(is_matrix_first: bool) -> None:
    """With the matrix first it was taken, and of two runs of one name one was lost."""
    pair = ['name = "x"\nneeds = []\nmatrix = { r = [1, 2] }', 'name = "X-1"\nneeds = []']
    with pytest.raises(JobFileError) as caught:
        read(tasks(*(pair if is_matrix_first else pair[::-1])))
    (found,) = caught.value.problems
    assert found.code == "J018"
    assert found.message.lower() == "two tasks would be called x-1"


def test_a_parent_that_is_not_in_the_file_is_no_mistake_and_is_told_where_it_is_named() -> None:
    """It may be of another source: the store knows, and refuses it with the same words."""
    other = read_job_file('[jobs.a]\nafter = "nightly"\nrun = "true"\n', "x", "UTC")
    assert [(one.code, one.line, one.column, one.text) for one in other.warnings] == [
        (
            "J104",
            2,
            9,
            "a follows nightly, and there is no such job in this file; apply that job first, or name another one",
        )
    ]
    near = read_job_file(f'{HEAD}run = "true"\n[jobs.nightly]\nafter = ["a", "aa"]\nrun = "true"\n', "x", "UTC")
    assert [(one.column, one.text) for one in near.warnings] == [
        (15, "nightly follows aa, and there is no such job in this file; did you mean a?")
    ]


@pytest.mark.parametrize(
    ("order", "circle"),
    [
        ({}, None),
        ({"a": ["b"], "b": []}, None),
        ({"a": ["b", "c"], "b": ["c"], "c": []}, None),
        ({"a": ["gone"]}, None),
        ({"a": ["a"]}, ["a", "a"]),
        ({"a": ["b"], "b": ["c"], "c": ["b"]}, ["b", "c", "b"]),
        ({"x": [], "a": ["x", "b"], "b": ["x", "a"]}, ["a", "b", "a"]),
    ],
)
def test_a_circle_is_found_with_its_way(order: dict[str, list[str]], circle: list[str] | None) -> None:
    assert circle_in(order) == circle


def test_a_long_chain_is_no_circle_and_takes_no_stack() -> None:
    order = {str(n): [str(n + 1)] for n in range(20_000)}
    assert circle_in(order) is None
    assert circle_in({**order, "20000": ["0"]}) is not None


_T = ParameterType
VALUES = [
    (_T.STRING, "any thing", True), (_T.INTEGER, "-12", True), (_T.INTEGER, "1.0", False), (_T.INTEGER, "", False),
    (_T.INTEGER, "9" * 40, False), (_T.NUMBER, "1e3", True), (_T.NUMBER, "nan", False), (_T.NUMBER, "1_0", False),
    (_T.NUMBER, " 1", False), (_T.NUMBER, "٣", False), (_T.NUMBER, "-.5", True), (_T.NUMBER, "1.", True), (_T.NUMBER, "1e999", False),
    (_T.NUMBER, "infinity", False), (_T.INTEGER, " 1", False), (_T.INTEGER, "٣", False), (_T.INTEGER, "9" * 18, True),
    (_T.NUMBER, "x", False), (_T.BOOLEAN, "YES", True), (_T.BOOLEAN, "2", False), (_T.CHOICE, "a", True), (_T.CHOICE, "A", False),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "value", "is_right"), VALUES)
def test_a_value_is_of_its_type_or_the_sentence_says_why_not(kind: ParameterType, value: str, is_right: bool) -> None:
    assert (problem_with(Parameter(type=kind, choices=("a", "b")), value) == "") == is_right


def test_true_is_written_one_way() -> None:
    yes = Parameter(type=_T.BOOLEAN)
    assert [normal_text(yes, text) for text in ("true", "Yes", "on", "1", "off")] == ["true"] * 4 + ["false"]
