"""TriggerDefinition JSON: one object with an id and an expression, or a list of them."""

from __future__ import annotations

import json

from chronex.jobfile.positions import TextNode, scan_json
from chronex.lint.assumptions import Assumptions
from chronex.lint.document import Document
from chronex.lint.findings import Found, Place
from chronex.lint.hosts import CHRONEX
from chronex.lint.strings import text_of


def find_triggers(document: Document, assume: Assumptions) -> Found:
    found = Found([], [])
    root = scan_json(document.text).root
    if document.text[root.value.start : root.value.start + 1] not in ("{", "["):
        return found
    is_list = document.text[root.value.start] == "["
    for node in root.children.values() if is_list else [root]:
        _trigger(node, document.text, assume, found)
    return found


def is_trigger_like(text: str) -> bool:
    """A file of another purpose that happens to be called triggers.json holds no expression."""
    return '"expression"' in text and '"id"' in text


def _trigger(node: TextNode, text: str, assume: Assumptions, found: Found) -> None:
    expression, identity = node.children.get("expression"), node.children.get("id")
    if expression is None or identity is None:
        return
    value = text_of(expression, text, json.loads)
    if value is None:
        return
    name = text_of(identity, text, json.loads) or "trigger"
    span = expression.value
    found.places.append(Place(value, span.start, span.end, expression.content, CHRONEX, assume.zone, name))
