"""Check what a skops archive would load before skops sees it.

skops by itself trusts hundreds of types, including some that read files or call what the file names, and rebuilds the
state of each with whatever the file contains. So every node of ``schema.json`` is first checked here against the closed
list of `cashmere.model.trusted`:

- each pair of a loader of skops and a type is one that archives of cashmere contain;
- objects, functions and types occur only in attributes that hold some in archives of cashmere; all else is plain:
  numbers, texts, arrays, random states, and lists, tuples and dictionaries of these;
- attributes that name a file, a number of threads or how to read text have the values of our archives;
- arrays are as long as their headers say, random states within their bounds, sparse indices within their shapes;
- an object that occurs in two places is written the same in both, and contains neither itself nor a longer version
  of itself, so what is loaded is not larger than what is written;
- every entry of the archive belongs to a node.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from cashmere.exceptions import ModelFileError
from cashmere.model.archive_nodes import Node
from cashmere.model.archive_places import declared_pairs
from cashmere.model.archive_walk import MAX_NODES, RefusedError, Walk
from cashmere.model.moved_types import mentions_moved_types, with_present_names
from cashmere.model.zip_entries import MOST_BYTES, SCHEMA, stored_entries, unpacked, with_schema

MAX_SCHEMA_BYTES = MOST_BYTES
"""Limit of the whole archive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedArchive:
    """An archive that holds nothing but what the closed list allows.

    Attributes
    ----------
    name : str
        Name of the archive in messages.
    data : bytes
        What skops may load: the checked bytes, unpacked.
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
        return nodes_of(self.schema)


def nodes_of(schema: Node) -> Iterator[Node]:
    """Yield all nodes of a schema, each before those inside it."""
    stack: list[Any] = [schema]
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
        What the reader trusts in addition, see `cashmere.model.trusted`.

    Raises
    ------
    InvalidParameterError
        If `trusted` does not list names, or lists a loader that cannot be declared.
    ModelFileError
        If the archive is damaged or holds anything that is not on the list.
    """
    declared = declared_pairs(trusted)
    try:
        data, entries, schema = _opened(data)
        walk = Walk(entries, declared)
        walk.root(schema)
        return AuditedArchive(name=name, data=data, schema=schema, entries=entries, types=frozenset(walk.types))
    except RefusedError as error:
        raise ModelFileError(name, str(error)) from None
    except RecursionError:
        raise ModelFileError(name, "is not read because it is nested too deeply. Was it made by cashmere?") from None
    except ValueError as error:
        raise ModelFileError(
            name, f"is not read because {error}. It is damaged or was not made by cashmere; restore it from a copy."
        ) from None


def _opened(data: bytes) -> tuple[bytes, dict[str, memoryview], Node]:
    """Return the archive with present names of types, its entries and its schema."""
    data = unpacked(data)
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
    """Return the schema, after limiting the cost of parsing it."""
    if len(text) > MAX_SCHEMA_BYTES:
        raise ValueError(f"{SCHEMA!r} has {len(text)} bytes; at most {MAX_SCHEMA_BYTES} are expected")
    nodes = text.count(b'"__loader__"')
    if nodes > MAX_NODES:
        raise ValueError(f"{SCHEMA!r} describes {nodes} objects; at most {MAX_NODES} are expected")
    # A node has up to two brackets and seven commas; more may be in texts.
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
