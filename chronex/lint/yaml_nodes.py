"""YAML as a tree with positions, built from parser events.

PyYAML's own composer recurses in C, so that a file of a hundred thousand brackets ends the process. This one walks
the events with a stack, refuses such depth, and never resolves tags: `on` stays the text "on".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import yaml
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from chronex.jobfile.positions import LineIndex

_MAX_DEPTH = 100
# YAML 1.1 ends lines here, editors do not: read as spaces, so that both count the same lines.
_OTHER_LINE_ENDS = re.compile("\r(?!\n)|[\x85\u2028\u2029]")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class YamlScalar(NamedTuple):
    """`content` is where the value begins when each of its characters stands for itself.

    `has_anchor`: the value may stand for other places of the file too, so only its writer should change it.
    """

    value: str
    start: int
    end: int
    content: int | None
    has_anchor: bool = False

    @property
    def editable(self) -> int | None:
        """Where the value begins, None where it is not known or not for this place alone."""
        return None if self.has_anchor else self.content


class YamlMapping(NamedTuple):
    """`pairs` in the order of the file. `column` is where its keys begin, None in flow style and behind an anchor or
    a tag, where a key more would come to other places too, or the column is not known."""

    pairs: list[tuple[YamlNode, YamlNode]]
    start: int
    column: int | None

    def get(self, key: str) -> YamlNode | None:
        return next((value for name, value in self.pairs if isinstance(name, YamlScalar) and name.value == key), None)

    def text(self, key: str) -> YamlScalar | None:
        found = self.get(key)
        return found if isinstance(found, YamlScalar) else None

    def mapping(self, key: str) -> YamlMapping | None:
        found = self.get(key)
        return found if isinstance(found, YamlMapping) else None

    def sequence(self, key: str) -> list[YamlNode]:
        found = self.get(key)
        return found.items if isinstance(found, YamlSequence) else []


class YamlSequence(NamedTuple):
    items: list[YamlNode]
    start: int


class YamlAlias(NamedTuple):
    start: int


YamlNode: TypeAlias = YamlScalar | YamlMapping | YamlSequence | YamlAlias


class YamlProblem(NamedTuple):
    message: str
    offset: int


def read_yaml(text: str) -> tuple[list[YamlNode], YamlProblem | None]:
    """The documents up to the first fault, and the fault."""
    text = _OTHER_LINE_ENDS.sub(" ", text)
    lines = LineIndex(text)
    documents: list[YamlNode] = []
    try:
        documents.extend(_documents(text, lines))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = len(text) if mark is None else _offset(mark, lines, text)
        return documents, YamlProblem(error.problem or error.context or "not valid YAML", at)
    except (yaml.YAMLError, ValueError) as error:  # a character that YAML does not allow
        return documents, YamlProblem(str(error).partition("\n")[0], 0)
    return documents, None


def _documents(text: str, lines: LineIndex) -> Iterator[YamlNode]:
    open_nodes: list[YamlMapping | YamlSequence] = []
    keys: list[YamlNode | None] = []  # for each open mapping the key that waits for its value
    root: YamlNode | None = None
    for event in yaml.parse(text, Loader=_LOADER):
        node = _node(event, lines, text)
        if node is not None:
            if not open_nodes:
                root = node
            else:
                _attach(open_nodes[-1], keys, node)
        if isinstance(node, YamlMapping | YamlSequence):
            open_nodes.append(node)
            keys.append(None)
            if len(open_nodes) > _MAX_DEPTH:
                raise yaml.MarkedYAMLError(problem="nested too deeply", problem_mark=event.start_mark)
        elif isinstance(event, MappingEndEvent | SequenceEndEvent):
            open_nodes.pop()
            keys.pop()
        elif isinstance(event, DocumentEndEvent) and root is not None:
            yield root
            root = None


def _attach(parent: YamlMapping | YamlSequence, keys: list[YamlNode | None], node: YamlNode) -> None:
    if isinstance(parent, YamlSequence):
        parent.items.append(node)
    elif keys[-1] is None:
        keys[-1] = node
    else:
        parent.pairs.append((keys[-1], node))
        keys[-1] = None


def _node(event: Any, lines: LineIndex, text: str) -> YamlNode | None:
    mark: Any = event.start_mark
    if isinstance(event, ScalarEvent):
        return _scalar(event, lines, text)
    if isinstance(event, MappingStartEvent):
        is_open = not (event.flow_style or event.anchor or event.tag)
        return YamlMapping([], _offset(mark, lines, text), int(mark.column) if is_open else None)
    if isinstance(event, SequenceStartEvent):
        return YamlSequence([], _offset(event.start_mark, lines, text))
    if isinstance(event, AliasEvent):
        return YamlAlias(_offset(event.start_mark, lines, text))
    return None


def _scalar(event: Any, lines: LineIndex, text: str) -> YamlScalar:
    start, end = _offset(event.start_mark, lines, text), _offset(event.end_mark, lines, text)
    value: str = event.value
    if event.tag or event.anchor:
        content = _after_properties(text, start, end, value)
        return YamlScalar(value, start, end, content, has_anchor=event.anchor is not None)
    content = start + 1 if event.style in ("'", '"') else start
    return YamlScalar(value, start, end, content if text.startswith(value, content) else None)


def _after_properties(text: str, start: int, end: int, value: str) -> int | None:
    """Where the value stands behind an anchor or a tag; None when that is not known."""
    at = text.rfind(value, start, end)
    return at if value and at >= 0 else None


def _offset(mark: Any, lines: LineIndex, text: str) -> int:
    return min(lines.start_of_line(mark.line + 1) + int(mark.column), len(text))
