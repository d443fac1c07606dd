"""specs/conformance.md is what the table of requirements says, and every test that it names exists.

CHRONEX_UPDATE_SPECS=1 writes the page anew.
"""

from __future__ import annotations

import os
import re
from collections import Counter

from tests.kit.conformance import PAGE, SPECIFICATIONS, STATUSES, is_there, names_of_tests, page_of, read_table

ROWS = read_table()


def test_the_page_is_the_text_of_the_table() -> None:
    fresh = page_of(ROWS)
    if os.environ.get("CHRONEX_UPDATE_SPECS"):
        PAGE.write_text(fresh, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == fresh


def test_every_test_that_is_named_exists() -> None:
    assert [f"{row.id} {test}" for row in ROWS for test in row.tests if not is_there(test)] == []


def test_what_works_names_a_test_and_what_does_not_says_why() -> None:
    assert [row.id for row in ROWS if row.status not in STATUSES] == []
    assert [row.id for row in ROWS if row.status == "works" and not row.tests] == []
    assert [row.id for row in ROWS if row.status != "works" and not row.reason] == []


def test_no_requirement_is_lost_or_listed_twice() -> None:
    names = [row.id for row in ROWS]
    assert [name for name, count in Counter(names).items() if count > 1] == []
    for letter, specification in SPECIFICATIONS.items():
        own = [name for name in names if name.startswith(letter)]
        assert own == [f"{letter}{number}" for number in range(1, len(own) + 1)], "in order, without a gap"
        assert len(own) >= specification.rows
    assert len(names) == sum(1 for name in names if name[0] in SPECIFICATIONS)


def test_cells_are_plain_text() -> None:
    for row in ROWS:
        assert re.fullmatch(r"\S(.*\S)?", row.requirement), row.id
        assert not row.reason.endswith("."), row.id
        assert len(set(row.tests)) == len(row.tests), row.id


def test_a_test_that_is_gone_is_noticed() -> None:
    here = "tests/test_conformance_page.py"
    assert is_there(f"{here}::test_a_test_that_is_gone_is_noticed")
    assert not is_there(f"{here}::test_that_nobody_wrote")
    assert not is_there("tests/no_such_file.py::test_x")
    assert not is_there("tests/store/test_model_machine.py::test_the_stores_agree_for_long"), "a long campaign"
    in_a_class = "TestAtomicity::test_all_writes_of_an_update_appear_together"
    assert in_a_class in names_of_tests(PAGE.parents[1] / "tests" / "store" / "test_contract.py")
