"""Universal Binary JSON, only as far as XGBoost writes it.

A value is a marker and its bytes, big-endian: ``Z`` null, ``T`` and ``F`` truth, ``i U I l L`` whole numbers of 8 to 64
bits, ``d D`` floats, ``S`` a text, ``{ }`` an object, ``[#`` length an array, ``[$`` type ``#`` length one of numbers.
Lengths are always 64-bit (``L``). What XGBoost does not write is refused, so that its own parser cannot interpret a
file differently.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_MOST_NESTED = 30
_LENGTH = ord("L")
_NUMBERS = {"i": ">i1", "U": ">u1", "I": ">i2", "l": ">i4", "L": ">i8", "d": ">f4", "D": ">f8"}


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
    reader = _Reader(data)
    value = reader.value(reader.marker(), 0)
    if reader.position != len(data):
        raise ValueError(f"{len(data) - reader.position} bytes follow the end of the document")
    return value


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0

    def take(self, n: int) -> bytes:
        if n > len(self._data) - self.position:
            raise ValueError(f"{n} bytes are announced at byte {self.position}, more than there are")
        taken = self._data[self.position : self.position + n]
        self.position += n
        return taken

    def marker(self) -> str:
        return chr(self.take(1)[0])

    def length(self) -> int:
        announced = self.take(9)
        if announced[0] != _LENGTH or announced[1] > 127:
            raise ValueError(f"a length at byte {self.position - 9} is not a 64-bit number from 0 on")
        return int.from_bytes(announced[1:], "big")

    def text(self) -> str:
        return self.take(self.length()).decode()

    def value(self, marker: str, depth: int) -> Any:
        if depth > _MOST_NESTED:
            raise ValueError("it is nested too deeply")
        if marker in ("Z", "T", "F"):
            return {"Z": None, "T": True, "F": False}[marker]
        if marker in _NUMBERS:
            kind = np.dtype(_NUMBERS[marker])
            return np.frombuffer(self.take(kind.itemsize), dtype=kind)[0].item()
        if marker == "S":
            return self.text()
        if marker == "{":
            return self._object(depth)
        if marker == "[":
            return self._array(depth)
        raise ValueError(f"the marker {marker!r} at byte {self.position - 1} is unknown")

    def _object(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while self._data[self.position : self.position + 1] != b"}":
            key = self.text()
            if key in found:
                raise ValueError(f"the key {key!r} occurs twice in an object")
            found[key] = self.value(self.marker(), depth + 1)
        self.take(1)
        return found

    def _array(self, depth: int) -> Any:
        marker = self.marker()
        if marker == "#":
            n = self.length()
            if n > len(self._data) - self.position:  # every item takes a byte at least
                raise ValueError(f"{n} items are announced at byte {self.position}, more than there are bytes")
            return [self.value(self.marker(), depth + 1) for _ in range(n)]
        kind = np.dtype(_NUMBERS.get(self.marker(), "V"))
        if marker != "$" or kind.kind == "V" or self.marker() != "#":
            raise ValueError(f"an array at byte {self.position} has an unknown form")
        return np.frombuffer(self.take(self.length() * kind.itemsize), dtype=kind)
