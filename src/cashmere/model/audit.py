"""What a skops archive would load, checked before skops sees it.

skops trusts hundreds of types by itself, among them some that read files or call what the file names, and rebuilds
the state of each with whatever the file says. So every node of ``schema.json`` is read here first, against the closed
list of `cashmere.model.trusted`:

- each pair of a loader of skops and a type is one that archives of cashmere contain;
- objects, functions and types stand only in attributes that hold some in archives of cashmere; all else is plain:
  numbers, texts, arrays, random states, and lists, tuples and dictionaries of these;
- attributes that name a file, a number of threads or how text is read have the values they have in our archives;
- arrays are as long as their headers say, random states within their bounds, sparse indices within their shapes;
- an object that stands in two places is written the same in both, and contains neither itself nor a longer version
  of itself, so what is loaded is not larger than what is written;
- every entry of the archive belongs to a node.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from cashmere.exceptions import InvalidParameterError, ModelFileError
from cashmere.model.array_entries import array_form, check_sparse
from cashmere.model.moved_types import mentions_moved_types, with_present_names
from cashmere.model.trusted import (
    FIXED_VALUES,
    KEY_TYPES,
    LOADERS_IN,
    LONG_TEXTS,
    TRUSTED,
    TRUSTED_OBJECTS,
    TUPLE,
)
from cashmere.model.zip_entries import SCHEMA, stored_entries, with_schema

MAX_SCHEMA_BYTES = 2**32
MAX_NODES = 10_000_000
"""Gradient boosting of 300 rounds, 26 classes and 5 folds has 39 thousand trees, 3 million nodes and 1 GiB of text."""

MAX_DEPTH = 64
"""Archives of cashmere are 20 nodes deep."""

PROTOCOLS = (1, 2)
"""Versions of skops' format: 0.11 to 0.16."""

MAX_THREADS = 1024

Node = dict[str, Any]
"""A node of ``schema.json``: what skops makes one object of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedArchive:
    """An archive that holds nothing but what the closed list allows.

    Attributes
    ----------
    name : str
        What messages call it.
    data : bytes
        What skops may load: the bytes that were checked.
    schema : dict
        ``schema.json``, parsed.
    entries : mapping of str to memoryview
        The other entries: arrays and bytes, by the names under which nodes refer to them.
    types : frozenset of str
        Full names of all types in the archive.
    """

    name: str
    data: bytes
    schema: Node
    entries: Mapping[str, memoryview]
    types: frozenset[str]

    def nodes(self) -> Iterator[Node]:
        """Yield all nodes, each before those inside it."""
        stack: list[Any] = [self.schema]
        while stack:
            value = stack.pop()
            if isinstance(value, dict):
                if "__loader__" in value:
                    yield value
                stack.extend(value.values())
            elif isinstance(value, list):
                stack.extend(value)


def audit(data: bytes, name: str, *, trusted: Iterable[str] = ()) -> AuditedArchive:
    """Check an archive against the closed list.

    Parameters
    ----------
    data : bytes
        The archive.
    name : str
        Name of the archive, for the error message.
    trusted : iterable of str
        What the reader trusts besides, see `cashmere.model.trusted`.

    Raises
    ------
    InvalidParameterError
        If `trusted` does not list names, or lists a loader that cannot be declared.
    ModelFileError
        If the archive is damaged or holds anything that is not on the list.
    """
    declared = _declared(trusted)
    try:
        data, entries, schema = _opened(data)
        walk = _Walk(entries, declared)
        walk.root(schema)
        return AuditedArchive(name=name, data=data, schema=schema, entries=entries, types=frozenset(walk.types))
    except _RefusedError as error:
        raise ModelFileError(name, str(error)) from None
    except RecursionError:
        raise ModelFileError(name, "is not read because it is nested too deeply. Was it made by cashmere?") from None
    except ValueError as error:
        raise ModelFileError(
            name, f"is not read because {error}. It is damaged or was not made by cashmere; restore it from a copy."
        ) from None


def _opened(data: bytes) -> tuple[bytes, dict[str, memoryview], Node]:
    """Return the archive with present names of types, its entries and its schema."""
    entries = stored_entries(data)
    text = bytes(entries[SCHEMA])
    schema = _parsed(text)
    if mentions_moved_types(text):
        schema = with_present_names(schema)
        data = with_schema(entries, schema)
        entries = stored_entries(data)
    del entries[SCHEMA]
    return data, entries, schema


def _parsed(text: bytes) -> Node:
    """Return the schema, after bounding what parsing it can cost."""
    if len(text) > MAX_SCHEMA_BYTES:
        raise ValueError(f"{SCHEMA!r} has {len(text)} bytes; at most {MAX_SCHEMA_BYTES} are expected")
    nodes = text.count(b'"__loader__"')
    if nodes > MAX_NODES:
        raise ValueError(f"{SCHEMA!r} describes {nodes} objects; at most {MAX_NODES} are expected")
    # A node has up to two brackets and seven commas of its own; the rest may stand in texts.
    if text.count(b"[") + text.count(b"{") > 4 * nodes + 500_000 or text.count(b",") > 8 * nodes + 500_000:
        raise ValueError(f"{SCHEMA!r} holds more lists or values than its {nodes} objects need")
    if not text.startswith(b"{") or b"\0" in text:
        raise ValueError(f"{SCHEMA!r} is not JSON in UTF-8")
    schema = json.loads(text.decode(), object_pairs_hook=_unique, parse_constant=_no_constant)
    if not isinstance(schema, dict):
        raise ValueError(f"{SCHEMA!r} is not a JSON object")
    return schema


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError(f"{SCHEMA!r} gives a name twice in one object")
    return content


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{SCHEMA!r} holds {text}, which is not JSON")


class _RefusedError(Exception):
    """What was found and what to do; the name of the file is added outside."""


def _refuse(found: str, advice: str = "name the type that it belongs to in `trusted_types` and `trusted`") -> NoReturn:
    raise _RefusedError(
        f"{found} Models of cashmere never do: do not use the file unless you know who made it. If it holds an "
        f"algorithm of yours, {advice}."
    )


PLAIN = frozenset(
    {"BytearrayNode", "BytesNode", "DTypeNode", "DefaultDictNode", "DictNode", "JsonNode", "ListNode", "NdArrayNode"}
    | {"RandomGeneratorNode", "RandomStateNode", "SliceNode", "SparseMatrixNode", "TupleNode"}
)
"""Loaders of data, which nothing calls: they may stand in every attribute."""

_BASE = ("__class__", "__module__", "__loader__", "__id__")
_FIELDS: dict[str, tuple[frozenset[str], ...]] = {
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
"""What a node says, for each loader that archives of cashmere use. All others are refused."""

_BY_NAME = ("ObjectNode", "FunctionNode", "TypeNode")
"""Loaders that declaring a bare name covers: none of them calls what it loads."""

_COMPARED_WHOLE = frozenset({"JsonNode", "TypeNode", "FunctionNode", "SliceNode", "SparseMatrixNode"})
_MAX_TEXT = 1000
_THREADS = re.compile(r"n_jobs|n_threads|num_threads|nthread|thread_count")
_FILES = re.compile(r"(?:.*_)?(?:file|filename|path|dir|directory|url|memory|callbacks?)(?:_.*)?")
_DUNDER = re.compile(r"__.*__", re.DOTALL)
_VERSION = re.compile(r"[0-9][0-9A-Za-z.+]{0,40}")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,100}(?:\.[A-Za-z_][A-Za-z0-9_]{0,100}){0,20}")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a node stands, and what may stand there."""

    loaders: frozenset[str]
    """Besides the plain ones."""
    owner: str = ""
    attribute: str = ""
    is_state: bool = False
    """Whether it is the whole state of `owner`: a dictionary of attributes."""
    values: tuple[Any, ...] = ()
    """The only values, if there are any."""
    has_rule: bool = False
    """Whether the value of the attribute must be looked at."""
    long_text: bool = False

    def __str__(self) -> str:
        return f"attribute {self.attribute!r} of {self.owner}" if self.owner else "the top of the archive"


_TOP = _Place(frozenset({"ObjectNode", "FunctionNode"}))
_ANYWHERE = _Place(frozenset(_FIELDS), long_text=True)
_INSIDE = _Place(frozenset(), owner="a random state, tree, loss or type", attribute="state")
_KEYS = _Place(frozenset({"TypeNode"}), owner="a dictionary", attribute="key_types")
_TUPLE_STATE = _Place(frozenset({"ObjectNode"}), owner="a tree of neighbours", attribute="state")


@functools.lru_cache(maxsize=10_000)
def _attribute_place(owner: str, attribute: str) -> _Place:
    """Return what an attribute of a type on the list may hold."""
    holds = attribute in _attributes_with_objects()[owner]
    values = FIXED_VALUES.get(owner, {}).get(attribute, ())
    named = _DUNDER.fullmatch(attribute) or _FILES.fullmatch(attribute) or _THREADS.fullmatch(attribute)
    return _Place(
        frozenset(LOADERS_IN.get(attribute, ("ObjectNode",))) if holds else frozenset(),
        owner=owner,
        attribute=attribute,
        values=values,
        has_rule=bool(values or named or attribute == "_sklearn_version"),
        long_text=attribute in LONG_TEXTS.get(owner, ()),
    )


@functools.cache
def _state_place(owner: str) -> _Place:
    return _Place(frozenset(), owner=owner, is_state=True)


@functools.cache
def _attributes_with_objects() -> dict[str, frozenset[str]]:
    return {name: frozenset(attributes.split()) for name, attributes in TRUSTED_OBJECTS.items()}


@functools.cache
def _listed() -> dict[tuple[str, str, str], str]:
    """Return the closed list: full names by loader, module and class."""
    pairs = [("ObjectNode", name) for name in TRUSTED_OBJECTS]
    pairs += [(loader, name) for loader, names in TRUSTED.items() for name in names]
    return {(loader, *_parts(name)): name for loader, name in pairs}


def _declared(trusted: Iterable[str]) -> dict[tuple[str, str, str], str]:
    """Return what a reader trusts in the form of `_listed`."""
    if isinstance(trusted, str):
        raise InvalidParameterError("trusted", trusted, "a list of names", f"Write trusted=[{trusted!r}].")
    pairs = {}
    for pair in trusted:
        loader, _, name = pair.rpartition(":")
        if loader and loader not in _FIELDS:
            raise InvalidParameterError(
                "trusted", pair, f"names of types, alone or behind one of the loaders {', '.join(sorted(_FIELDS))}"
            )
        for each in (loader,) if loader else _BY_NAME:
            pairs[each, *_parts(name)] = name
    return pairs


def _parts(name: str) -> tuple[str, str]:
    module, _, last = name.rpartition(".")
    return module, last


class _Walk:
    """One pass over the nodes of a schema."""

    def __init__(self, entries: Mapping[str, memoryview], declared: Mapping[tuple[str, str, str], str]) -> None:
        self.entries = entries
        self.allowed = {**_listed(), **declared}
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
        self.handlers: dict[str, Callable[[Node, _Place, int], None]] = {
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
            raise _RefusedError(
                f"was written in version {str(protocol)[:20]!r} of the archive format; this cashmere reads {PROTOCOLS}."
                " Use a cashmere that is as new as the one that wrote it."
            )
        self.visit(content, _TOP, 0)
        if self.untrusted:
            raise _RefusedError(
                f"holds types that are not trusted: {', '.join(sorted(self.untrusted))}. If they belong to an "
                "algorithm of yours, name them in its `trusted_types`, and pass them as `trusted` when you load a "
                "model whose origin you know."
            )
        if unused := self.entries.keys() - self.used:
            raise ValueError(f"entries belong to no object: {', '.join(sorted(unused)[:3])}")

    def visit(self, node: Any, place: _Place, depth: int) -> None:
        """Check a node and all inside it."""
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
        """Return whether a node says the same as one that has been checked, as most numbers and texts do."""
        number = node.get("__id__")
        return type(number) is int and self.first.get(number) == node and node["content"] in self.short_texts

    def _kind(self, node: Any) -> tuple[str, str]:
        """Return the loader and the full name of a node after finding both on the list."""
        if type(node) is not dict:
            raise ValueError(f"{SCHEMA!r} has {str(node)[:50]!r} where an object is expected")
        loader, module, name = node.get("__loader__"), node.get("__module__"), node.get("__class__")
        if type(loader) is not str or type(module) is not str or type(name) is not str:
            raise ValueError("an object has a loader, module or class that is not a text")
        known = self.allowed.get((loader, module, name))
        if known is None:
            known = self._unknown(loader, f"{module}.{name}")
        if node.keys() not in _FIELDS[loader]:
            raise ValueError(f"a {loader} has the fields {sorted(node)}")
        self.types.add(known)
        return loader, known

    def _unknown(self, loader: str, name: str) -> str:
        """Note a type that is not on the list, so that one message can name all; refuse what nobody may declare."""
        if loader not in _FIELDS:
            _refuse(
                f"holds {name[:100]!r} for the loader {loader[:50]!r}, which is never trusted.",
                "keep only numbers, texts, arrays, lists, dictionaries and estimators in its attributes",
            )
        if not _WORD.fullmatch(name):
            raise ValueError(f"a type is named {name[:100]!r}")
        self.untrusted.add(name if loader in _BY_NAME else f"{loader}:{name}")
        self.declared.add(name)
        return name

    def _repeats(self, node: Node, loader: str) -> bool:
        """Return whether the node is the second description of an object; both must say the same.

        skops loads an object once and ignores what other nodes of the same number say.
        """
        number = node["__id__"]
        if type(number) is not int or number <= 0:
            raise ValueError(f"an object has the number {str(number)[:50]!r}")
        first = self.first.setdefault(number, node)
        if first is node:
            return False
        whole = loader in _COMPARED_WHOLE
        if not (first == node if whole else _same(first, node)):
            raise ValueError(f"two different objects have the number {number}")
        return not whole

    def _nothing_inside(self, node: Node, place: _Place, depth: int) -> None:
        """Accept a type or function: its name has been found on the list."""

    def _json(self, node: Node, place: _Place, depth: int) -> None:
        text = node["content"]
        if type(text) is not str or node["is_json"] is not True:
            raise ValueError("a JsonNode does not hold a text")
        if text in self.short_texts or (place.long_text and text.startswith('"')):
            return
        value = json.loads(text) if len(text) < 2 * _MAX_TEXT else []
        if isinstance(value, (list, dict)) or (isinstance(value, str) and not _is_short(value)):
            raise ValueError(f"{place} holds the text {text[:50]!r}...: too long, or with control characters")
        self.short_texts.add(text)

    def _list(self, node: Node, place: _Place, depth: int) -> None:
        if type(node["content"]) is not list:
            raise ValueError("a list is not a list")
        for item in node["content"]:
            self.visit(item, place, depth)

    def _dict(self, node: Node, place: _Place, depth: int) -> None:
        content = node["content"]
        if type(content) is not dict:
            raise ValueError("a dictionary is not a dictionary")
        self._key_types(node["key_types"], len(content), depth)
        for key, value in content.items():
            self.visit(value, self._place_of(place, key, value), depth)

    def _place_of(self, place: _Place, key: str, value: Node) -> _Place:
        """Return what the value of a dictionary may be; values of a state are attributes."""
        if not place.is_state:
            return place
        attribute = _attribute_place(place.owner, key)
        if not attribute.has_rule:
            return attribute
        if _DUNDER.fullmatch(key):
            _refuse(f"sets {attribute}.")
        if attribute.values and _plain(value) not in attribute.values:
            _refuse(f"sets {attribute} to {_shown(value)}; expected {' or '.join(map(repr, attribute.values))}.")
        if _FILES.fullmatch(key) and _plain(value) is not None:
            _refuse(f"sets {attribute} to {_shown(value)}; expected None.")
        if _THREADS.fullmatch(key):
            threads = _plain(value)
            if threads is not None and not (isinstance(threads, int) and -1 <= threads <= MAX_THREADS):
                _refuse(f"sets {attribute} to {_shown(value)} threads; expected at most {MAX_THREADS}.")
        if key == "_sklearn_version" and not _VERSION.fullmatch(str(_plain(value))):
            raise ValueError(f"{attribute} is {_shown(value)}")
        return attribute

    def _key_types(self, node: Any, n_keys: int, depth: int) -> None:
        """Check the types of keys, which skops calls with the keys."""
        self.visit(node, _KEYS, depth)
        types = node["content"]
        if node["__loader__"] != "ListNode" or len(types) != n_keys:
            raise ValueError("a dictionary has not one type for each key")
        for each in types:
            if each["__loader__"] != "TypeNode" or f"{each['__module__']}.{each['__class__']}" not in KEY_TYPES:
                _refuse(f"has a dictionary with keys of the type {each['__module__']}.{each['__class__']}.")

    def _object(self, node: Node, place: _Place, depth: int) -> None:
        name, state = f"{node['__module__']}.{node['__class__']}", node["content"]
        if name in self.declared:
            return self.visit(state, _ANYWHERE, depth)
        loader = state.get("__loader__") if type(state) is dict else None
        if TRUSTED_OBJECTS[name] == TUPLE:
            if loader != "TupleNode":
                raise ValueError(f"the state of {name} is not a tuple")
            return self.visit(state, _TUPLE_STATE, depth)
        if loader != "DictNode" and _plain(state) is not None:
            raise ValueError(f"the state of {name} has no attributes")
        return self.visit(state, _state_place(name), depth)

    def _array(self, node: Node, place: _Place, depth: int) -> None:
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
        """Return dtype and shape of a node's array."""
        file = self._entry(node, ".npy")
        if file not in self.forms:
            self.forms[file] = array_form(self.entries[file])
        return self.forms[file]

    def _object_array(self, node: Node, place: _Place, depth: int) -> None:
        """Check an array of objects: rows of trees, nested as deeply as it has dimensions."""
        if "ObjectNode" not in place.loaders or type(node["content"]) is not list:
            _refuse(f"holds an array of objects in {place}.")
        self.visit(node["shape"], _INSIDE, depth)
        shape = _plain(node["shape"])
        if type(shape) is not tuple or not 1 <= len(shape) <= 2 or shape[0] != len(node["content"]):
            raise ValueError(f"an array of objects has the shape {_shown(node['shape'])}")
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

    def _bytes(self, node: Node, place: _Place, depth: int) -> None:
        self._entry(node, ".bin")

    def _sparse(self, node: Node, place: _Place, depth: int) -> None:
        file = self._entry(node, ".npz")
        if node["type"] != "scipy":
            raise ValueError("a sparse array is not of scipy")
        if (file, node["__class__"]) not in self.sparse:
            check_sparse(self.entries[file], node["__class__"])
            self.sparse.add((file, node["__class__"]))

    def _dtype(self, node: Node, place: _Place, depth: int) -> None:
        self.visit(node["content"], _INSIDE, depth)
        if node["content"]["__loader__"] != "NdArrayNode":
            raise ValueError("the type of an array is not stored as an array")

    def _slice(self, node: Node, place: _Place, depth: int) -> None:
        content = node["content"]
        if type(content) is not dict or content.keys() != {"start", "stop", "step"}:
            raise ValueError("a slice has not start, stop and step")
        for number in content.values():
            if number is not None and (type(number) is not int or abs(number) > 2**53):
                raise ValueError(f"a slice is cut at {str(number)[:50]!r}")

    def _default_dict(self, node: Node, place: _Place, depth: int) -> None:
        content = self._raw(node["content"], {"main", "default_factory"})
        self.visit(content["main"], place, depth)
        self.visit(content["default_factory"], _KEYS, depth)
        if content["main"]["__loader__"] != "DictNode" or content["default_factory"]["__loader__"] != "TypeNode":
            raise ValueError("a defaultdict is not made of a dictionary and a type")

    def _loss(self, node: Node, place: _Place, depth: int) -> None:
        arguments = self._raw(node["__reduce__"], {"args"})["args"]
        self.visit(arguments, _INSIDE, depth)
        self.visit(node["content"], _INSIDE, depth)
        values = _plain(arguments)
        if type(values) is not tuple or len(values) > 2 or not all(isinstance(v, (int, float)) for v in values):
            raise ValueError("a loss is made from other values than numbers")
        if node["content"]["content"]:
            raise ValueError("a loss has a state")

    def _tree(self, node: Node, place: _Place, depth: int) -> None:
        arguments = self._raw(node["__reduce__"], {"args"})["args"]
        self.visit(arguments, _INSIDE, depth)
        self.visit(node["content"], _INSIDE, depth)
        parts = arguments["content"] if arguments["__loader__"] == "TupleNode" else []
        if [part["__loader__"] for part in parts] != ["JsonNode", "NdArrayNode", "JsonNode"]:
            raise ValueError("a tree is not made from columns, classes and outputs")
        n_columns, n_outputs = _plain(parts[0]), _plain(parts[2])
        form = self._form(parts[1]) if "file" in parts[1] else None
        if type(n_columns) is not int or type(n_outputs) is not int or min(n_columns, n_outputs) < 0:
            raise ValueError("a tree has not a number of columns and of outputs")
        # The constructor reads as many classes as there are outputs, without looking how many there are.
        if form is None or form[0] != np.dtype(np.intp) or form[1] != (n_outputs,):
            raise ValueError(f"a tree of {n_outputs} outputs has not {n_outputs} numbers of classes")

    def _random_state(self, node: Node, place: _Place, depth: int) -> None:
        """Check a Mersenne twister; numpy does not look whether its position lies within its key."""
        self.visit(node["content"], _INSIDE, depth)
        content = self._fields(node["content"], {"bit_generator", "state", "has_gauss", "gauss"})
        state = self._fields(content["state"], {"key", "pos"})
        position, has_gauss = _plain(state["pos"]), _plain(content["has_gauss"])
        if (
            _plain(content["bit_generator"]) != "MT19937"
            or state["key"]["__loader__"] != "NdArrayNode"
            or "file" not in state["key"]
            or self._form(state["key"]) != (np.dtype(np.uint32), (624,))
            or type(position) is not int
            or not 0 <= position <= 624
            or has_gauss not in (0, 1)
            or type(_plain(content["gauss"])) is not float
        ):
            raise ValueError("a random state is not one of numpy's Mersenne twister")

    def _generator(self, node: Node, place: _Place, depth: int) -> None:
        """Check a permuted congruential generator; `pool_size` is memory that its seed would take."""
        content = node["content"]
        if type(content) is not dict or content.keys() not in ({"bit_generator"}, {"bit_generator", "seed_seq"}):
            raise ValueError("a random generator has not a state and a seed")
        for part in content.values():
            self.visit(part, _INSIDE, depth)
        state = self._fields(content["bit_generator"], {"bit_generator", "state", "has_uint32", "uinteger"})
        numbers = [*self._fields(state["state"], {"state", "inc"}).values(), state["has_uint32"], state["uinteger"]]
        sizes = [2**128, 2**128, 2, 2**32]
        known = _plain(state["bit_generator"]) == "PCG64" and all(
            type(number := _plain(each)) is int and 0 <= number < size
            for each, size in zip(numbers, sizes, strict=True)
        )
        if "seed_seq" in content:
            seed = self._fields(content["seed_seq"], {"entropy", "spawn_key", "pool_size", "n_children_spawned"})
            entropy, spawn_key, children = (_plain(seed[k]) for k in ("entropy", "spawn_key", "n_children_spawned"))
            if seed["entropy"]["__loader__"] == "NdArrayNode" and seed["entropy"]["__class__"] in ("uint64", "int64"):
                entropy = 0  # a number of numpy is as short as it should be
            known = (
                known
                and _plain(seed["pool_size"]) == 4
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
        """Return the values of a dictionary that has been visited."""
        if node["__loader__"] != "DictNode":
            raise ValueError(f"a dictionary is expected for {sorted(fields)}")
        return self._raw(node["content"], fields)


class _NotPlain:
    """What `_plain` returns for objects and arrays."""


def _plain(node: Any) -> Any:
    """Return the number, text, truth value, None or tuple of these that a node describes."""
    loader = node.get("__loader__") if type(node) is dict else None
    content = node.get("content") if type(node) is dict else None
    if loader == "JsonNode" and type(content) is str and len(content) < 2 * _MAX_TEXT:
        return json.loads(content)
    if loader in ("TupleNode", "ListNode") and type(content) is list and len(content) <= 16:
        return tuple(_plain(item) for item in content)
    return _NotPlain


def _shown(node: Any) -> str:
    value = _plain(node)
    return "an object" if value is _NotPlain else ascii(value)[:100]


def _is_short(text: str) -> bool:
    return len(text) <= _MAX_TEXT and text.isprintable()


def _same(first: Any, second: Any) -> bool:
    """Return whether two nodes describe the same, apart from numbers of objects and names of entries."""
    if type(first) is not type(second):
        return False
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(
            (key in ("__id__", "file") and not isinstance(value, dict)) or _same(value, second[key])
            for key, value in first.items()
        )
    if isinstance(first, list):
        return len(first) == len(second) and all(map(_same, first, second))
    return bool(first == second)
