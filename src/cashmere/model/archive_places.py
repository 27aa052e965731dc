"""Where the closed list allows a node of an archive: which attribute of which type may hold what."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cashmere.exceptions import InvalidParameterError
from cashmere.model.archive_nodes import BY_NAME, FIELDS
from cashmere.model.trusted import FIXED_VALUES, LOADERS_IN, LONG_TEXTS, TRUSTED, TRUSTED_OBJECTS

THREAD_NAMES = re.compile(r"n_jobs|n_threads|num_threads|nthread|thread_count")
FILE_NAMES = re.compile(r"(?:.*_)?(?:file|filename|path|dir|directory|url|memory|callbacks?)(?:_.*)?")
SPECIAL_NAMES = re.compile(r"__.*__", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node is, and what may be there."""

    loaders: frozenset[str]
    """Allowed loaders besides the plain ones."""
    owner: str = ""
    attribute: str = ""
    is_state: bool = False
    """Whether it is the whole state of `owner`: a dictionary of attributes."""
    values: tuple[Any, ...] = ()
    """The only allowed values, if the list names any."""
    has_rule: bool = False
    """Whether the value of the attribute must be checked."""
    long_text: bool = False

    def __str__(self) -> str:
        return f"attribute {self.attribute!r} of {self.owner}" if self.owner else "the top of the archive"


TOP = Place(frozenset({"ObjectNode", "FunctionNode"}))
ANYWHERE = Place(frozenset(FIELDS), long_text=True)
INSIDE = Place(frozenset(), owner="a random state, tree, loss or type", attribute="state")
KEYS = Place(frozenset({"TypeNode"}), owner="a dictionary", attribute="key_types")
TUPLE_STATE = Place(frozenset({"ObjectNode"}), owner="a tree of neighbours", attribute="state")


@functools.lru_cache(maxsize=10_000)
def attribute_place(owner: str, attribute: str) -> Place:
    """Return what an attribute of a type on the list may hold."""
    holds = attribute in _attributes_with_objects()[owner]
    values = FIXED_VALUES.get(owner, {}).get(attribute, ())
    named = SPECIAL_NAMES.fullmatch(attribute) or FILE_NAMES.fullmatch(attribute) or THREAD_NAMES.fullmatch(attribute)
    return Place(
        frozenset(LOADERS_IN.get(attribute, ("ObjectNode",))) if holds else frozenset(),
        owner=owner,
        attribute=attribute,
        values=values,
        has_rule=bool(values or named or attribute == "_sklearn_version"),
        long_text=attribute in LONG_TEXTS.get(owner, ()),
    )


@functools.cache
def state_place(owner: str) -> Place:
    """Return what the state of a type on the list may hold: its attributes, each with its own place."""
    return Place(frozenset(), owner=owner, is_state=True)


@functools.cache
def _attributes_with_objects() -> dict[str, frozenset[str]]:
    return {name: frozenset(attributes.split()) for name, attributes in TRUSTED_OBJECTS.items()}


@functools.cache
def closed_list() -> dict[tuple[str, str, str], str]:
    """Return the closed list: full names by loader, module and class."""
    pairs = [("ObjectNode", name) for name in TRUSTED_OBJECTS]
    pairs += [(loader, name) for loader, names in TRUSTED.items() for name in names]
    return {(loader, *_parts(name)): name for loader, name in pairs}


def declared_pairs(trusted: Iterable[str]) -> dict[tuple[str, str, str], str]:
    """Return what a reader trusts, in the form of `closed_list`."""
    if isinstance(trusted, str):
        raise InvalidParameterError("trusted", trusted, "a list of names", f"Write trusted=[{trusted!r}].")
    pairs = {}
    for pair in trusted:
        loader, _, name = pair.rpartition(":")
        if loader and loader not in FIELDS:
            raise InvalidParameterError(
                "trusted", pair, f"names of types, alone or behind one of the loaders {', '.join(sorted(FIELDS))}"
            )
        for each in (loader,) if loader else BY_NAME:
            pairs[each, *_parts(name)] = name
    return pairs


def _parts(name: str) -> tuple[str, str]:
    module, _, last = name.rpartition(".")
    return module, last
