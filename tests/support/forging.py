"""Archives forged from real ones: change what they describe, keep the rest."""

from __future__ import annotations

import io
import itertools
import json
import zipfile
from typing import Any

import numpy as np

_numbers = itertools.count(10**6)

Node = dict[str, Any]


def node(loader: str, name: str, **fields: Any) -> Node:
    """Return a node of any loader and type."""
    module, _, last = name.rpartition(".")
    return {"__class__": last, "__module__": module, "__loader__": loader, **fields, "__id__": next(_numbers)}


def plain(value: Any) -> Node:
    """Return the node of a number, text, list, tuple, dictionary; nodes inside stay as they are."""
    if isinstance(value, dict) and "__loader__" in value:
        return value
    if isinstance(value, dict):
        keys = node("ListNode", "builtins.list", content=[node("TypeNode", "builtins.str") for _ in value])
        content = {key: plain(item) for key, item in value.items()}
        return node("DictNode", "builtins.dict", content=content, key_types=keys)
    if isinstance(value, list):
        return node("ListNode", "builtins.list", content=[plain(item) for item in value])
    if isinstance(value, tuple):
        return node("TupleNode", "builtins.tuple", content=[plain(item) for item in value])
    return node("JsonNode", "builtins.str", content=json.dumps(value), is_json=True)


def thing(name: str, **attributes: Any) -> Node:
    """Return an object with attributes."""
    return node("ObjectNode", name, content=plain(attributes))


def function(name: str) -> Node:
    """Return a function."""
    return node("FunctionNode", name)


def npy(array: Any) -> bytes:
    """Return an array as numpy writes it."""
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def npy_with_header(header: str, data: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    """Return an array with any header."""
    text = header.encode() + b"\n"
    return b"\x93NUMPY" + version + len(text).to_bytes(2, "little") + text + data


class Forgery:
    """A real archive that can be changed."""

    def __init__(self, data: bytes) -> None:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            self.entries = {name: archive.read(name) for name in archive.namelist()}
        self.schema: Node = json.loads(self.entries.pop("schema.json"))

    def nodes(self, loader: str, name: str = "") -> list[Node]:
        """Return all nodes of a loader, and of a type if one is given."""
        found = []
        stack: list[Any] = [self.schema]
        while stack:
            value = stack.pop(0)
            if isinstance(value, dict):
                if value.get("__loader__") == loader and f"{value['__module__']}.{value['__class__']}".endswith(name):
                    found.append(value)
                stack.extend(value.values())
            elif isinstance(value, list):
                stack.extend(value)
        return found

    def set(self, name: str, attribute: str, value: Any) -> Forgery:
        """Set an attribute of the first object of a type."""
        state = self.nodes("ObjectNode", name)[0]["content"]
        if attribute not in state["content"]:
            state["key_types"]["content"].append(node("TypeNode", "builtins.str"))
        state["content"][attribute] = plain(value)
        self.forget()
        return self

    def replace(self, old: Node, new: Node) -> Forgery:
        """Let another node stand where one stood."""
        extra = {key: old[key] for key in ("protocol", "_skops_version") if key in old}
        old.clear()
        old.update(new, **extra)
        self.forget()
        return self

    def step(self, value: Node) -> Forgery:
        """Put an object before the first step of the pipeline."""
        steps = self.nodes("ObjectNode", "Pipeline")[0]["content"]["content"]["steps"]
        steps["content"].insert(0, plain(("forged", value)))
        return self

    def entry_of(self, found: Node, data: bytes) -> Forgery:
        """Replace the bytes that belong to a node."""
        self.entries[found["file"]] = data
        return self

    def forget(self) -> None:
        """Leave out the entries that no node names any more."""
        text = json.dumps(self.schema)
        self.entries = {name: data for name, data in self.entries.items() if f'"{name}"' in text}

    def data(self, **options: Any) -> bytes:
        """Return the archive."""
        return zipped({**self.entries, "schema.json": json.dumps(self.schema).encode()}, **options)


def zipped(entries: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """Return a zip file."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression, compresslevel=1) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return file.getvalue()
