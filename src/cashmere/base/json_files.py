"""JSON files: bounded in size, number of values and depth, and checked against the types they should have."""

from __future__ import annotations

import json
import re
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from cashmere.base.files import read_file, write_atomically

JSON_BYTES = 2**26
"""Size of the largest JSON file, 64 MiB: a schema with a million levels of categories takes half of it."""

_MOST_VALUES = 4_000_000
_MOST_NESTED = 500_000
"""Most lists and objects: each takes up to 40 times as much memory as its text."""

_MOST_DEPTH = 64

Kind = TypeVar("Kind")

Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""A number of things, or a size in bytes."""

Finite = Annotated[float, msgspec.Meta(ge=-1.7e308, le=1.7e308)]
"""A number that is neither NaN nor infinite."""

Positive = Annotated[float, msgspec.Meta(ge=0.0, le=1.7e308)]
"""A finite number of at least 0."""

Seconds = Annotated[float, msgspec.Meta(ge=0.0, le=1e12)]
"""A time of at most thirty thousand years, so that the sum of many is finite, too."""

ShortText = Annotated[str, msgspec.Meta(max_length=10_000)]
"""A name, or a line of text."""

_TEXTS_AND_REST = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[^][{}"]++', re.DOTALL)


def parse_json(data: bytes | str) -> Any:
    """Return the content of a JSON text.

    Raises
    ------
    ValueError
        If it is not JSON, or has too many or too deeply nested parts.
    """
    text = data.encode() if isinstance(data, str) else data
    check_size(text)
    brackets = _TEXTS_AND_REST.sub(b"", text)
    depth = max(accumulate((1 if bracket in b"[{" else -1 for bracket in brackets), initial=0))
    if depth > _MOST_DEPTH:
        raise ValueError(f"it is nested {depth} deep; expected at most {_MOST_DEPTH}")
    return json.loads(text)


def check_size(data: bytes) -> None:
    """Reject a JSON text that is too large for `parse_json`.

    Raises
    ------
    ValueError
        If it has too many bytes, values, lists or objects.
    """
    if len(data) > JSON_BYTES:
        raise ValueError(f"it holds {len(data)} bytes; expected at most {JSON_BYTES}")
    if data.count(b",") > _MOST_VALUES or data.count(b"[") + data.count(b"{") > _MOST_NESTED:
        raise ValueError(f"it holds more than {_MOST_VALUES} values, or {_MOST_NESTED} lists and objects")


def checked(content: Any, kind: type[Kind]) -> Kind:
    """Return plain data as `kind`, whose annotations define types, ranges and lengths; unknown keys are dropped.

    Raises
    ------
    ValueError
        Naming the first value that does not fit, what was expected and what was found.
    """
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error


def read_json(path: Path, kind: type[Kind]) -> Kind:
    """Read a JSON file as `kind`, see `checked`.

    Raises
    ------
    OSError, ValueError
        If it is not a regular file, too large, not JSON, or does not fit.
    """
    return checked(parse_json(read_file(path, limit=JSON_BYTES)), kind)


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file atomically.

    Raises
    ------
    ValueError
        If it would be too large to be read again.
    """
    data = json.dumps(content, indent=1, default=str).encode()
    check_size(data)
    write_atomically(path, data)
