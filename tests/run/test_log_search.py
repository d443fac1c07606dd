"""Searching logs: every line exactly as it was printed, across pieces and rings, in bounded memory."""

from __future__ import annotations

import re
import uuid
from pathlib import Path

import pytest

from chronex.run.attempt_log import BoundedLog, LogDirectory
from chronex.run.log_search import LogQuery, matching_lines, names_with_matches, pieces_of, query_of


def found(query: LogQuery, *pieces: bytes, context: int = 0) -> list[str]:
    lines = matching_lines(pieces, query, context)
    return [f"{line.number}{':' if line.is_match else '-'}{line.text.decode()}" for line in lines]


def plain(text: str, **options: bool) -> LogQuery:
    return query_of(text, is_regex=options.get("is_regex", False), ignores_case=options.get("ignores_case", False))


@pytest.mark.parametrize(
    ("query", "data", "lines"),
    [
        (plain("b"), b"a\nb\nabc\n", ["2:b", "3:abc"]),
        (plain("b"), b"a\nb", ["2:b"]),
        (plain("b"), b"a\r\nb\r\n", ["2:b"]),
        (plain("a.c"), b"abc\na.c\n", ["2:a.c"]),
        (plain("a.c", is_regex=True), b"abc\na.c\n", ["1:abc", "2:a.c"]),
        (plain("^b$", is_regex=True), b"ab\nb\nbc\n", ["2:b"]),
        (plain("ERROR", ignores_case=True), b"error\nErrOr\nerr\n", ["1:error", "2:ErrOr"]),
        (
            plain("größe", ignores_case=True),
            "GRÖSSE Größe GRÖßE\nGRÖßE\ngross\n".encode(),
            ["1:GRÖSSE Größe GRÖßE", "2:GRÖßE"],
        ),
        (plain("a\nb"), b"a\nb\n", []),
        (plain("日本"), "x 日本 y\n".encode(), ["1:x 日本 y"]),
    ],
)
def test_a_line_is_found_as_it_was_printed(query: LogQuery, data: bytes, lines: list[str]) -> None:
    assert found(query, data) == lines
    assert found(query, *(data[at : at + 1] for at in range(len(data)))) == lines, "in pieces of one byte"


@pytest.mark.parametrize(
    ("context", "lines"),
    [
        (0, ["3:x", "6:x"]),
        (1, ["2-b", "3:x", "4-d", "5-e", "6:x", "7-g"]),
        (2, ["1-a", "2-b", "3:x", "4-d", "5-e", "6:x", "7-g", "8-h"]),
    ],
)
def test_the_lines_around_a_match_come_once(context: int, lines: list[str]) -> None:
    assert found(plain("x"), b"a\nb\nx\nd\ne\nx\ng\nh\ni\n", context=context) == lines


def test_an_expression_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(re.error):
        plain("(", is_regex=True)


def written(directory: LogDirectory, data: bytes, limit: int) -> BoundedLog:
    log = BoundedLog(directory, f"attempt_{uuid.uuid4()}", limit)
    for at in range(0, len(data), 700):
        log.write(data[at : at + 700])
    return log


def log_of(directory: LogDirectory, data: bytes, limit: int) -> str:
    return written(directory, data, limit).finish().name


@pytest.mark.parametrize("is_over", [True, False])
def test_a_log_beyond_its_limit_is_searched_in_the_order_of_its_lines(tmp_path: Path, is_over: bool) -> None:
    directory = LogDirectory(tmp_path / "logs")
    data = b"".join(b"line %05d\n" % number for number in range(5_000))
    log = written(directory, data, 4_096)
    if is_over:
        log.finish()
    lines = list(matching_lines(pieces_of(directory, log.name, 4_096, is_over=is_over), plain("line 0")))
    numbers = [int(match[1]) for line in lines if (match := re.fullmatch(rb"line (\d{5})", line.text))]
    assert numbers == sorted(numbers)
    assert numbers[0] == 0
    assert numbers[-1] == 4_999
    if not is_over:
        log.finish()
    directory.close()


def test_only_logs_with_a_match_are_named_whatever_their_size(tmp_path: Path) -> None:
    directory = LogDirectory(tmp_path / "logs")
    large = b"x" * 3_000_000 + b"\nneedle\n" + b"y" * 3_000_000
    across = b"z\n" * ((1 << 19) - 2) + b"zz" + b"needle\n"  # the first read ends inside the word
    names = [log_of(directory, data, 1 << 24) for data in (b"a needle\n", b"nothing\n", large, across)]
    wanted = [names[0], names[2], names[3]]
    for query in (plain("needle"), plain("NEEDLE", ignores_case=True), plain("ne+dle$", is_regex=True)):
        assert list(names_with_matches(directory, [*names, f"attempt_{uuid.uuid4()}.log"], query)) == wanted
    directory.close()
