"""Where a file's values lie, so that what looks like a comment inside one is not taken for one."""

from __future__ import annotations

import io
import tokenize
from bisect import bisect_right
from collections.abc import Callable, Iterator

from chronex.jobfile.positions import LineIndex, TextNode
from chronex.lint.document import Document

Spans = list[tuple[int, int]]


def comment_test(document: Document) -> Callable[[int], bool]:
    """Does a comment begin at this offset? In a crontab and a unit file only at the start of a line."""
    match document.kind:
        case "trigger" | "posix" | None:
            return lambda offset: False
        case "crontab" | "cron.d" | "systemd" | "expressions":
            return lambda offset: not document.text[document.text.rfind("\n", 0, offset) + 1 : offset].strip()
        case "python":
            return set(_python_comments(document.text)).__contains__
        case "chronex":
            return _outside(list(_toml_strings(document.text)))
        case _:
            return _outside(list(_yaml_scalars(document.text)))


def _outside(spans: Spans) -> Callable[[int], bool]:
    spans.sort()
    starts = [start for start, _ in spans]

    def test(offset: int) -> bool:
        at = bisect_right(starts, offset) - 1
        return at < 0 or offset >= spans[at][1]

    return test


def _python_comments(text: str) -> Iterator[int]:
    lines = LineIndex(text)
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="\n").readline):
            if token.type == tokenize.COMMENT:
                yield lines.start_of_line(token.start[0]) + token.start[1]
    except (tokenize.TokenError, SyntaxError, ValueError):
        return  # half typed: the comments up to here


def _toml_strings(text: str) -> Iterator[tuple[int, int]]:
    from chronex.lint.finders.job_files import scan_job_file

    waiting: list[TextNode] = [scan_job_file(text)]
    while waiting:
        node = waiting.pop()
        waiting.extend(node.children.values())
        if text[node.value.start : node.value.start + 1] in ("'", '"'):
            yield node.value


def _yaml_scalars(text: str) -> Iterator[tuple[int, int]]:
    from chronex.lint.yaml_nodes import Mapping, Scalar, Sequence, read_yaml

    waiting, _ = read_yaml(text)
    while waiting:
        node = waiting.pop()
        if isinstance(node, Scalar):
            yield node.start, node.end
        elif isinstance(node, Mapping):
            waiting.extend(part for pair in node.pairs for part in pair)
        elif isinstance(node, Sequence):
            waiting.extend(node.items)
