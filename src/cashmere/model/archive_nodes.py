"""The nodes of ``schema.json`` in a skops archive: their kinds, and the plain values that some of them describe."""

from __future__ import annotations

import json
from typing import Any

Node = dict[str, Any]
"""A node of ``schema.json``, from which skops makes one object."""

PLAIN = frozenset(
    {"BytearrayNode", "BytesNode", "DTypeNode", "DefaultDictNode", "DictNode", "JsonNode", "ListNode", "NdArrayNode"}
    | {"RandomGeneratorNode", "RandomStateNode", "SliceNode", "SparseMatrixNode", "TupleNode"}
)
"""Loaders of data, which nothing calls, so every attribute may hold them."""

_BASE = ("__class__", "__module__", "__loader__", "__id__")
FIELDS: dict[str, tuple[frozenset[str], ...]] = {
    loader: tuple(frozenset((*_BASE, *more.split())) for more in alternatives)
    for loader, alternatives in {
        "BytearrayNode": ("file",),
        "BytesNode": ("file",),
        "DTypeNode": ("content",),
        "DefaultDictNode": ("content",),
        "DictNode": ("content key_types",),
        "FunctionNode": ("",),
        "JsonNode": ("content is_json",),
        "ListNode": ("content",),
        "LossNode": ("__reduce__ content",),
        "NdArrayNode": ("type file", "type content shape"),
        "ObjectNode": ("content",),
        "RandomGeneratorNode": ("content",),
        "RandomStateNode": ("content",),
        "SliceNode": ("content",),
        "SparseMatrixNode": ("type file",),
        "TreeNode": ("__reduce__ content",),
        "TupleNode": ("content",),
        "TypeNode": ("",),
    }.items()
}
"""Fields of a node, for each loader that archives of cashmere use. All others are refused."""

BY_NAME = ("ObjectNode", "FunctionNode", "TypeNode")
"""Loaders covered by declaring a bare name: none of them calls what it loads."""

MAX_TEXT = 1000
"""Longest text, unless a rule allows longer ones."""


class NotPlain:
    """What `plain_value` returns for objects and arrays."""


def plain_value(node: Any) -> Any:
    """Return the number, text, truth value, None or tuple of these that a node describes."""
    loader = node.get("__loader__") if type(node) is dict else None
    content = node.get("content") if type(node) is dict else None
    if loader == "JsonNode" and type(content) is str and len(content) < 2 * MAX_TEXT:
        return json.loads(content)
    if loader in ("TupleNode", "ListNode") and type(content) is list and len(content) <= 16:
        return tuple(plain_value(item) for item in content)
    return NotPlain


def shown(node: Any) -> str:
    """Return what a node describes, for a message."""
    value = plain_value(node)
    return "an object" if value is NotPlain else ascii(value)[:100]


def is_short(text: str) -> bool:
    """Return whether any attribute may hold a text: it is printable, and not long."""
    return len(text) <= MAX_TEXT and text.isprintable()


def same(first: Any, second: Any) -> bool:
    """Return whether two nodes describe the same, apart from object numbers and entry names."""
    if type(first) is not type(second):
        return False
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(
            (key in ("__id__", "file") and not isinstance(value, dict)) or same(value, second[key])
            for key, value in first.items()
        )
    if isinstance(first, list):
        return len(first) == len(second) and all(map(same, first, second))
    return bool(first == second)
