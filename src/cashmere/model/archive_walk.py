"""Check the nodes of an archive in one pass, and refuse the first that no archive of cashmere has."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, NoReturn

import numpy as np

from cashmere.model.archive_nodes import BY_NAME, FIELDS, MAX_TEXT, PLAIN, Node, is_short, plain_value, same, shown
from cashmere.model.archive_places import (
    ANYWHERE,
    FILE_NAMES,
    INSIDE,
    KEYS,
    SPECIAL_NAMES,
    THREAD_NAMES,
    TOP,
    TUPLE_STATE,
    Place,
    attribute_place,
    closed_list,
    state_place,
)
from cashmere.model.array_entries import array_form, check_sparse
from cashmere.model.trusted import KEY_TYPES, TRUSTED_OBJECTS, TUPLE
from cashmere.model.zip_entries import SCHEMA

MAX_NODES = 10_000_000
"""Gradient boosting of 300 rounds, 26 classes and 5 folds has 39 thousand trees, 3 million nodes and 1 GiB of text."""

MAX_DEPTH = 64
"""Archives of cashmere are 20 nodes deep."""

PROTOCOLS = (1, 2)
"""Versions of skops' format: 0.11 to 0.16."""

MAX_THREADS = 1024

_COMPARED_WHOLE = frozenset({"JsonNode", "TypeNode", "FunctionNode", "SliceNode", "SparseMatrixNode"})
_VERSION = re.compile(r"[0-9][0-9A-Za-z.+]{0,40}")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,100}(?:\.[A-Za-z_][A-Za-z0-9_]{0,100}){0,20}")


class RefusedError(Exception):
    """What was found and what to do; the caller adds the name of the file."""


def _refuse(found: str, advice: str = "name the type that it belongs to in `trusted_types` and `trusted`") -> NoReturn:
    raise RefusedError(
        f"{found} Models of cashmere never do: do not use the file unless you know who made it. If it holds an "
        f"algorithm of yours, {advice}."
    )


class Walk:
    """One pass over the nodes of a schema."""

    def __init__(self, entries: Mapping[str, memoryview], declared: Mapping[tuple[str, str, str], str]) -> None:
        self.entries = entries
        self.allowed = {**closed_list(), **declared}
        self.declared = set(declared.values())
        self.types: set[str] = set()
        self.untrusted: set[str] = set()
        self.used: set[str] = set()
        self.first: dict[int, Node] = {}
        self.in_repeat = False
        self.n_nodes = 0
        self.forms: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {}
        self.sparse: set[tuple[str, str]] = set()
        self.short_texts: set[str] = set()
        self.handlers: dict[str, Callable[[Node, Place, int], None]] = {
            "BytearrayNode": self._bytes,
            "BytesNode": self._bytes,
            "DTypeNode": self._dtype,
            "DefaultDictNode": self._default_dict,
            "DictNode": self._dict,
            "FunctionNode": self._nothing_inside,
            "JsonNode": self._json,
            "ListNode": self._list,
            "LossNode": self._loss,
            "NdArrayNode": self._array,
            "ObjectNode": self._object,
            "RandomGeneratorNode": self._generator,
            "RandomStateNode": self._random_state,
            "SliceNode": self._slice,
            "SparseMatrixNode": self._sparse,
            "TreeNode": self._tree,
            "TupleNode": self._list,
            "TypeNode": self._nothing_inside,
        }

    def root(self, schema: Node) -> None:
        """Check the whole schema."""
        content = dict(schema)
        protocol, version = content.pop("protocol", None), content.pop("_skops_version", None)
        if type(protocol) is not int or protocol not in PROTOCOLS or type(version) is not str:
            raise RefusedError(
                f"was written in version {str(protocol)[:20]!r} of the archive format; this cashmere reads {PROTOCOLS}."
                " Use a cashmere that is as new as the one that wrote it."
            )
        self.visit(content, TOP, 0)
        if self.untrusted:
            raise RefusedError(
                f"holds types that are not trusted: {', '.join(sorted(self.untrusted))}. If they belong to an "
                "algorithm of yours, name them in its `trusted_types`, and pass them as `trusted` when you load a "
                "model whose origin you know."
            )
        if unused := self.entries.keys() - self.used:
            raise ValueError(f"entries belong to no object: {', '.join(sorted(unused)[:3])}")

    def visit(self, node: Any, place: Place, depth: int) -> None:
        """Check a node and everything inside it."""
        self.n_nodes += 1
        if type(node) is dict and node.get("__loader__") == "JsonNode" and self._is_known(node):
            return
        if depth > MAX_DEPTH or self.n_nodes > MAX_NODES:
            raise ValueError(f"it has more than {MAX_NODES} objects, or objects nested more than {MAX_DEPTH} deep")
        loader, known = self._kind(node)
        if loader not in PLAIN and loader not in place.loaders:
            _refuse(f"holds {known} ({loader}) in {place}.")
        if self.in_repeat or not self._repeats(node, loader):
            self.handlers[loader](node, place, depth + 1)
        else:
            self.in_repeat = True
            self.handlers[loader](node, place, depth + 1)
            self.in_repeat = False

    def _is_known(self, node: Node) -> bool:
        """Return whether a node equals one that has been checked, as most numbers and texts do."""
        number = node.get("__id__")
        return type(number) is int and self.first.get(number) == node and node["content"] in self.short_texts

    def _kind(self, node: Any) -> tuple[str, str]:
        """Return the loader and the full name of a node, which must be on the list."""
        if type(node) is not dict:
            raise ValueError(f"{SCHEMA!r} has {str(node)[:50]!r} where an object is expected")
        loader, module, name = node.get("__loader__"), node.get("__module__"), node.get("__class__")
        if type(loader) is not str or type(module) is not str or type(name) is not str:
            raise ValueError("an object has a loader, module or class that is not a text")
        known = self.allowed.get((loader, module, name))
        if known is None:
            known = self._unknown(loader, f"{module}.{name}")
        if node.keys() not in FIELDS[loader]:
            raise ValueError(f"a {loader} has the fields {sorted(node)}")
        self.types.add(known)
        return loader, known

    def _unknown(self, loader: str, name: str) -> str:
        """Note a type that is not on the list, for one message that names all; refuse what nobody may declare."""
        if loader not in FIELDS:
            _refuse(
                f"holds {name[:100]!r} for the loader {loader[:50]!r}, which is never trusted.",
                "keep only numbers, texts, arrays, lists, dictionaries and estimators in its attributes",
            )
        if not _WORD.fullmatch(name):
            raise ValueError(f"a type is named {name[:100]!r}")
        self.untrusted.add(name if loader in BY_NAME else f"{loader}:{name}")
        self.declared.add(name)
        return name

    def _repeats(self, node: Node, loader: str) -> bool:
        """Return whether the node describes an object again; both descriptions must agree.

        skops loads an object once and ignores other nodes with the same number.
        """
        number = node["__id__"]
        if type(number) is not int or number <= 0:
            raise ValueError(f"an object has the number {str(number)[:50]!r}")
        first = self.first.setdefault(number, node)
        if first is node:
            return False
        whole = loader in _COMPARED_WHOLE
        if not (first == node if whole else same(first, node)):
            raise ValueError(f"two different objects have the number {number}")
        return not whole

    def _nothing_inside(self, node: Node, place: Place, depth: int) -> None:
        """Accept a type or function, as its name is on the list."""

    def _json(self, node: Node, place: Place, depth: int) -> None:
        text = node["content"]
        if type(text) is not str or node["is_json"] is not True:
            raise ValueError("a JsonNode does not hold a text")
        if text in self.short_texts or (place.long_text and text.startswith('"')):
            return
        value = json.loads(text) if len(text) < 2 * MAX_TEXT else []
        if isinstance(value, (list, dict)) or (isinstance(value, str) and not is_short(value)):
            raise ValueError(f"{place} holds the text {text[:50]!r}...: too long, or with control characters")
        self.short_texts.add(text)

    def _list(self, node: Node, place: Place, depth: int) -> None:
        if type(node["content"]) is not list:
            raise ValueError("a list is not a list")
        for item in node["content"]:
            self.visit(item, place, depth)

    def _dict(self, node: Node, place: Place, depth: int) -> None:
        content = node["content"]
        if type(content) is not dict:
            raise ValueError("a dictionary is not a dictionary")
        self._key_types(node["key_types"], len(content), depth)
        for key, value in content.items():
            self.visit(value, self._place_of(place, key, value), depth)

    def _place_of(self, place: Place, key: str, value: Node) -> Place:
        """Return what a value of a dictionary may be; the values of a state are attributes."""
        if not place.is_state:
            return place
        attribute = attribute_place(place.owner, key)
        if not attribute.has_rule:
            return attribute
        if SPECIAL_NAMES.fullmatch(key):
            _refuse(f"sets {attribute}.")
        if attribute.values and plain_value(value) not in attribute.values:
            _refuse(f"sets {attribute} to {shown(value)}; expected {' or '.join(map(repr, attribute.values))}.")
        # Floats do not name files: LightGBM has one called `path_smooth`.
        if FILE_NAMES.fullmatch(key) and not isinstance(plain_value(value), (float, NoneType)):
            _refuse(f"sets {attribute} to {shown(value)}; expected None.")
        if THREAD_NAMES.fullmatch(key):
            threads = plain_value(value)
            if threads is not None and not (isinstance(threads, int) and -1 <= threads <= MAX_THREADS):
                _refuse(f"sets {attribute} to {shown(value)} threads; expected at most {MAX_THREADS}.")
        if key == "_sklearn_version" and not _VERSION.fullmatch(str(plain_value(value))):
            raise ValueError(f"{attribute} is {shown(value)}")
        return attribute

    def _key_types(self, node: Any, n_keys: int, depth: int) -> None:
        """Check the types of keys, as skops calls these types with the keys."""
        self.visit(node, KEYS, depth)
        types = node["content"]
        if node["__loader__"] != "ListNode" or len(types) != n_keys:
            raise ValueError("a dictionary has not one type for each key")
        for each in types:
            if each["__loader__"] != "TypeNode" or f"{each['__module__']}.{each['__class__']}" not in KEY_TYPES:
                _refuse(f"has a dictionary with keys of the type {each['__module__']}.{each['__class__']}.")

    def _object(self, node: Node, place: Place, depth: int) -> None:
        name, state = f"{node['__module__']}.{node['__class__']}", node["content"]
        if name in self.declared:
            return self.visit(state, ANYWHERE, depth)
        loader = state.get("__loader__") if type(state) is dict else None
        if TRUSTED_OBJECTS[name] == TUPLE:
            if loader != "TupleNode":
                raise ValueError(f"the state of {name} is not a tuple")
            return self.visit(state, TUPLE_STATE, depth)
        if loader != "DictNode" and plain_value(state) is not None:
            raise ValueError(f"the state of {name} has no attributes")
        return self.visit(state, state_place(name), depth)

    def _array(self, node: Node, place: Place, depth: int) -> None:
        name = node["__class__"]
        if node["type"] == "json" and "content" in node:
            return self._object_array(node, place, depth)
        if node["type"] != "numpy" or "file" not in node:
            raise ValueError("an array is neither numbers nor objects")
        dtype, shape = self._form(node)
        if name != "ndarray" and (shape or dtype.name != name.rstrip("_")):
            raise ValueError(f"a {name} is stored as an array of shape {shape} and type {dtype}")
        return None

    def _form(self, node: Node) -> tuple[np.dtype[Any], tuple[int, ...]]:
        """Return the dtype and shape of a node's array."""
        file = self._entry(node, ".npy")
        if file not in self.forms:
            self.forms[file] = array_form(self.entries[file])
        return self.forms[file]

    def _object_array(self, node: Node, place: Place, depth: int) -> None:
        """Check an array of objects: rows of trees, nested as deeply as it has dimensions."""
        if "ObjectNode" not in place.loaders or type(node["content"]) is not list:
            _refuse(f"holds an array of objects in {place}.")
        self.visit(node["shape"], INSIDE, depth)
        shape = plain_value(node["shape"])
        if type(shape) is not tuple or not 1 <= len(shape) <= 2 or shape[0] != len(node["content"]):
            raise ValueError(f"an array of objects has the shape {shown(node['shape'])}")
        for item in node["content"]:
            self.visit(item, place, depth)
            expected = "ListNode" if len(shape) == 2 else "ObjectNode"
            if item["__loader__"] != expected or (len(shape) == 2 and len(item["content"]) != shape[1]):
                raise ValueError("an array of objects does not have the shape it states")

    def _entry(self, node: Node, suffix: str) -> str:
        """Return the name of the entry that belongs to a node."""
        file = node["file"]
        if type(file) is not str or not file.endswith(suffix) or file not in self.entries:
            raise ValueError(f"the entry {str(file)[:100]!r} is missing or not of the kind {suffix!r}")
        self.used.add(file)
        return file

    def _bytes(self, node: Node, place: Place, depth: int) -> None:
        self._entry(node, ".bin")

    def _sparse(self, node: Node, place: Place, depth: int) -> None:
        file = self._entry(node, ".npz")
        if node["type"] != "scipy":
            raise ValueError("a sparse array is not of scipy")
        if (file, node["__class__"]) not in self.sparse:
            check_sparse(self.entries[file], node["__class__"])
            self.sparse.add((file, node["__class__"]))

    def _dtype(self, node: Node, place: Place, depth: int) -> None:
        self.visit(node["content"], INSIDE, depth)
        if node["content"]["__loader__"] != "NdArrayNode":
            raise ValueError("the type of an array is not stored as an array")

    def _slice(self, node: Node, place: Place, depth: int) -> None:
        content = node["content"]
        if type(content) is not dict or content.keys() != {"start", "stop", "step"}:
            raise ValueError("a slice has not start, stop and step")
        for number in content.values():
            if number is not None and (type(number) is not int or abs(number) > 2**53):
                raise ValueError(f"a slice is cut at {str(number)[:50]!r}")

    def _default_dict(self, node: Node, place: Place, depth: int) -> None:
        content = self._raw(node["content"], {"main", "default_factory"})
        self.visit(content["main"], place, depth)
        self.visit(content["default_factory"], KEYS, depth)
        if content["main"]["__loader__"] != "DictNode" or content["default_factory"]["__loader__"] != "TypeNode":
            raise ValueError("a defaultdict is not made of a dictionary and a type")

    def _loss(self, node: Node, place: Place, depth: int) -> None:
        arguments = self._raw(node["__reduce__"], {"args"})["args"]
        self.visit(arguments, INSIDE, depth)
        self.visit(node["content"], INSIDE, depth)
        values = plain_value(arguments)
        if type(values) is not tuple or len(values) > 2 or not all(isinstance(v, (int, float)) for v in values):
            raise ValueError("a loss is made from other values than numbers")
        if node["content"]["content"]:
            raise ValueError("a loss has a state")

    def _tree(self, node: Node, place: Place, depth: int) -> None:
        arguments = self._raw(node["__reduce__"], {"args"})["args"]
        self.visit(arguments, INSIDE, depth)
        self.visit(node["content"], INSIDE, depth)
        parts = arguments["content"] if arguments["__loader__"] == "TupleNode" else []
        if [part["__loader__"] for part in parts] != ["JsonNode", "NdArrayNode", "JsonNode"]:
            raise ValueError("a tree is not made from columns, classes and outputs")
        n_columns, n_outputs = plain_value(parts[0]), plain_value(parts[2])
        form = self._form(parts[1]) if "file" in parts[1] else None
        if type(n_columns) is not int or type(n_outputs) is not int or min(n_columns, n_outputs) < 0:
            raise ValueError("a tree has not a number of columns and of outputs")
        # The constructor reads one number of classes per output, without checking how many there are.
        if form is None or form[0] != np.dtype(np.intp) or form[1] != (n_outputs,):
            raise ValueError(f"a tree of {n_outputs} outputs has not {n_outputs} numbers of classes")

    def _random_state(self, node: Node, place: Place, depth: int) -> None:
        """Check a Mersenne twister, as numpy does not check that its position lies within its key."""
        self.visit(node["content"], INSIDE, depth)
        content = self._fields(node["content"], {"bit_generator", "state", "has_gauss", "gauss"})
        state = self._fields(content["state"], {"key", "pos"})
        position, has_gauss = plain_value(state["pos"]), plain_value(content["has_gauss"])
        if (
            plain_value(content["bit_generator"]) != "MT19937"
            or state["key"]["__loader__"] != "NdArrayNode"
            or "file" not in state["key"]
            or self._form(state["key"]) != (np.dtype(np.uint32), (624,))
            or type(position) is not int
            or not 0 <= position <= 624
            or has_gauss not in (0, 1)
            or type(plain_value(content["gauss"])) is not float
        ):
            raise ValueError("a random state is not one of numpy's Mersenne twister")

    def _generator(self, node: Node, place: Place, depth: int) -> None:
        """Check a permuted congruential generator, including `pool_size`, the memory of its seed."""
        content = node["content"]
        if type(content) is not dict or content.keys() not in ({"bit_generator"}, {"bit_generator", "seed_seq"}):
            raise ValueError("a random generator has not a state and a seed")
        for part in content.values():
            self.visit(part, INSIDE, depth)
        state = self._fields(content["bit_generator"], {"bit_generator", "state", "has_uint32", "uinteger"})
        numbers = [*self._fields(state["state"], {"state", "inc"}).values(), state["has_uint32"], state["uinteger"]]
        sizes = [2**128, 2**128, 2, 2**32]
        known = plain_value(state["bit_generator"]) == "PCG64" and all(
            type(number := plain_value(each)) is int and 0 <= number < size
            for each, size in zip(numbers, sizes, strict=True)
        )
        if "seed_seq" in content:
            seed = self._fields(content["seed_seq"], {"entropy", "spawn_key", "pool_size", "n_children_spawned"})
            entropy, spawn_key, children = (
                plain_value(seed[k]) for k in ("entropy", "spawn_key", "n_children_spawned")
            )
            if seed["entropy"]["__loader__"] == "NdArrayNode" and seed["entropy"]["__class__"] in ("uint64", "int64"):
                entropy = 0  # a number of numpy is short enough
            known = (
                known
                and plain_value(seed["pool_size"]) == 4
                and type(entropy) is int
                and 0 <= entropy < 2**256
                and type(spawn_key) is tuple
                and len(spawn_key) <= 16
                and all(type(number) is int and 0 <= number < 2**64 for number in (*spawn_key, children))
            )
        if not known:
            raise ValueError("a random generator is not numpy's PCG64 with a seed of usual size")

    def _raw(self, content: Any, fields: set[str]) -> dict[str, Any]:
        if type(content) is not dict or content.keys() != fields:
            raise ValueError(f"an object is not described by {sorted(fields)}")
        return content

    def _fields(self, node: Any, fields: set[str]) -> dict[str, Any]:
        """Return the values of a dictionary that was visited."""
        if node["__loader__"] != "DictNode":
            raise ValueError(f"a dictionary is expected for {sorted(fields)}")
        return self._raw(node["content"], fields)
