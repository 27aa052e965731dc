"""Universal Binary JSON, only as far as XGBoost writes it.

A value is a marker and its bytes, big-endian: ``Z`` null, ``T`` and ``F`` truth, ``i U I l L`` whole numbers of 8 to 64
bits, ``d D`` floats, ``S`` a text, ``{ }`` an object, ``[#`` length an array, ``[$`` type ``#`` length one of numbers.
Lengths are always 64-bit (``L``). What XGBoost does not write is refused, so that its own parser cannot interpret a
file differently.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

_MOST_NESTED = 30
_LENGTH = b"L"
_NUMBERS = {"i": ">i1", "U": ">u1", "I": ">i2", "l": ">i4", "L": ">i8", "d": ">f4", "D": ">f8"}
_DTYPES = {marker.encode(): np.dtype(name) for marker, name in _NUMBERS.items()}
_CONSTANTS = {b"Z": None, b"T": True, b"F": False}
_LENGTH_HEAD = struct.Struct(">cQ")
_LARGEST_LENGTH = 2**63 - 1


def read_ubjson(data: bytes) -> Any:
    """Return the value that the bytes describe; arrays of numbers become numpy arrays.

    Parameters
    ----------
    data : bytes
        A whole document.

    Raises
    ------
    ValueError
        If it is not what XGBoost writes: cut off, longer than the value, nested too deeply, with another marker, or
        with a key twice.
    """
    try:
        value, end = _value(data, 0, 0)
    except struct.error as error:
        raise ValueError(f"it is cut off after {len(data)} bytes") from error
    if end != len(data):
        raise ValueError(f"{len(data) - end} bytes follow the end of the document")
    return value


# A document has an array or a text for each property of each of thousands of trees. So the functions below take a
# position and return the next one, instead of asking a reader for the next bytes, which takes half as long again.


def _value(data: bytes, start: int, depth: int) -> tuple[Any, int]:
    marker = data[start : start + 1]
    if (read := _READERS.get(marker)) is not None:
        if depth > _MOST_NESTED:
            raise ValueError("it is nested too deeply")
        return read(data, start + 1, depth)
    if (dtype := _DTYPES.get(marker)) is not None:
        (number,), end = _numbers(data, start + 1, dtype, 1)
        return number.item(), end
    if marker in _CONSTANTS:
        return _CONSTANTS[marker], start + 1
    raise ValueError(f"the marker {marker.decode('latin-1')!r} at byte {start} is unknown")


def _numbers(data: bytes, start: int, dtype: np.dtype[Any], n: int) -> tuple[Any, int]:
    end = start + n * dtype.itemsize
    if end > len(data):
        raise ValueError(f"{n} numbers are announced at byte {start}, more than there are")
    return np.frombuffer(data, dtype, n, start) if n else np.empty(0, dtype), end


def _length(data: bytes, start: int) -> tuple[int, int]:
    marker, n = _LENGTH_HEAD.unpack_from(data, start)
    if marker != _LENGTH or n > _LARGEST_LENGTH:
        raise ValueError(f"a length at byte {start} is not a 64-bit number from 0 on")
    start += _LENGTH_HEAD.size
    if n > len(data) - start:  # every item takes a byte at least
        raise ValueError(f"{n} items are announced at byte {start}, more than there are bytes")
    return n, start


def _text(data: bytes, start: int, depth: int = 0) -> tuple[str, int]:
    n, start = _length(data, start)
    return data[start : start + n].decode(), start + n


def _object(data: bytes, start: int, depth: int) -> tuple[dict[str, Any], int]:
    found: dict[str, Any] = {}
    while data[start : start + 1] != b"}":
        key, start = _text(data, start)
        if key in found:
            raise ValueError(f"the key {key!r} occurs twice in an object")
        found[key], start = _value(data, start, depth + 1)
    return found, start + 1


def _array(data: bytes, start: int, depth: int) -> tuple[Any, int]:
    if data[start : start + 1] == b"#":
        n, start = _length(data, start + 1)
        values = []
        for _ in range(n):
            value, start = _value(data, start, depth + 1)
            values.append(value)
        return values, start
    dtype = _DTYPES.get(data[start + 1 : start + 2])
    if data[start : start + 1] != b"$" or dtype is None or data[start + 2 : start + 3] != b"#":
        raise ValueError(f"an array at byte {start} has an unknown form")
    n, start = _length(data, start + 3)
    return _numbers(data, start, dtype, n)


_READERS: dict[bytes, Callable[[bytes, int, int], tuple[Any, int]]] = {b"{": _object, b"[": _array, b"S": _text}
