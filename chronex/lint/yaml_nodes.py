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
_MOST_MERGED = 100
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
    a tag, where a key more would come to other places too, or the column is not known. `is_shared`: it was reached by
    an alias, so that its values stand for other places too."""

    pairs: list[tuple[YamlNode, YamlNode]]
    start: int
    column: int | None
    is_shared: bool = False

    def get(self, key: str) -> YamlNode | None:
        """The value of the key, its own or else one that `<<` brings."""
        return next(self.every(key), None)

    def every(self, key: str) -> Iterator[YamlNode]:
        """More than one only where a template chooses between them, or a key has the place of a merged one."""
        for mapping in self._with_merged():
            found = [value for name, value in mapping.pairs if isinstance(name, YamlScalar) and name.value == key]
            yield from (_followed(value, is_shared=mapping.is_shared) for value in found)
            if found:
                return

    def names(self) -> list[str]:
        """Of all keys, also those that `<<` brings, each once."""
        keys = (name for mapping in self._with_merged() for name, _ in mapping.pairs)
        return list(dict.fromkeys(key.value for key in keys if isinstance(key, YamlScalar) and key.value != "<<"))

    def _with_merged(self) -> Iterator[YamlMapping]:
        """This mapping and those that it merges, each once: nothing keeps a file from merging in a circle."""
        waiting, seen = [self], set[int]()
        while waiting and len(seen) < _MOST_MERGED:
            mapping = waiting.pop(0)
            if id(mapping.pairs) in seen:
                continue
            seen.add(id(mapping.pairs))
            yield mapping
            for name, value in mapping.pairs:
                if isinstance(name, YamlScalar) and name.value == "<<":
                    merged = _followed(value, is_shared=mapping.is_shared)
                    parts = merged.items if isinstance(merged, YamlSequence) else [merged]
                    waiting.extend(part for part in parts[:_MOST_MERGED] if isinstance(part, YamlMapping))

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
    """`written` as it stands in the file; `items` with what its aliases stand for."""

    written: list[YamlNode]
    start: int
    is_shared: bool = False

    @property
    def items(self) -> list[YamlNode]:
        return [_followed(node, is_shared=self.is_shared) for node in self.written]


class YamlAlias(NamedTuple):
    """`target` is None for an anchor that is not there. It is followed when it is asked for, never copied: a file of
    a few lines can stand for millions of nodes."""

    start: int
    end: int
    target: YamlScalar | YamlMapping | YamlSequence | None


def _followed(node: YamlNode, *, is_shared: bool) -> YamlNode:
    """What the node stands for. A scalar behind an alias is found where the alias is; the values of a mapping behind
    one where they are written. Neither is for this place alone."""
    if isinstance(node, YamlAlias):
        if isinstance(node.target, YamlScalar):
            return YamlScalar(node.target.value, node.start, node.end, None, has_anchor=True)
        return node if node.target is None else _followed(node.target, is_shared=True)
    if not is_shared:
        return node
    if isinstance(node, YamlScalar):
        return node._replace(has_anchor=True)
    if isinstance(node, YamlSequence):
        return node._replace(is_shared=True)
    return node._replace(column=None, is_shared=True)


YamlNode: TypeAlias = YamlScalar | YamlMapping | YamlSequence | YamlAlias
_Anchors: TypeAlias = dict[str, YamlScalar | YamlMapping | YamlSequence]


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
    anchors: _Anchors = {}
    for event in yaml.parse(text, Loader=_LOADER):
        node = _node(event, lines, text, anchors)
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
            root, anchors = None, {}


def _attach(parent: YamlMapping | YamlSequence, keys: list[YamlNode | None], node: YamlNode) -> None:
    if isinstance(parent, YamlSequence):
        parent.written.append(node)
    elif keys[-1] is None:
        keys[-1] = node
    else:
        parent.pairs.append((keys[-1], node))
        keys[-1] = None


def _node(event: Any, lines: LineIndex, text: str, anchors: _Anchors) -> YamlNode | None:
    if isinstance(event, AliasEvent):
        start, end = _offset(event.start_mark, lines, text), _offset(event.end_mark, lines, text)
        return YamlAlias(start, end, anchors.get(event.anchor or ""))
    node = _anchored_node(event, lines, text)
    if node is not None and event.anchor:
        anchors[event.anchor] = node
    return node


def _anchored_node(event: Any, lines: LineIndex, text: str) -> YamlScalar | YamlMapping | YamlSequence | None:
    mark: Any = event.start_mark
    if isinstance(event, ScalarEvent):
        return _scalar(event, lines, text)
    if isinstance(event, MappingStartEvent):
        is_open = not (event.flow_style or event.anchor or event.tag)
        return YamlMapping([], _offset(mark, lines, text), int(mark.column) if is_open else None)
    if isinstance(event, SequenceStartEvent):
        return YamlSequence([], _offset(mark, lines, text))
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
