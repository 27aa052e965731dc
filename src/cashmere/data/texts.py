"""The texts of a column as two arrays of numbers, which can be stored in files and read from any row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from cashmere.base.array_files import map_archived
from cashmere.base.arrays import AnyArray, IntArray

_ERRORS = "surrogatepass"
"""Keeps lone surrogates, which UTF-8 does not allow."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PackedTexts:
    """Texts one after the other; unlike in numpy's arrays of texts, a long one does not make the others longer.

    Attributes
    ----------
    content : (n_bytes,) array of uint8
        All texts in UTF-8.
    ends : (n_texts,) array of int64
        Where each ends in `content`; the next begins there.

    Examples
    --------
    >>> packed = PackedTexts.pack(["one", "", "three"])
    >>> packed[np.array([2, 0])].tolist()
    ['three', 'one']
    """

    content: NDArray[np.uint8]
    ends: NDArray[np.int64]

    @classmethod
    def pack(cls, texts: Sequence[str] | AnyArray) -> Self:
        """Pack texts into this form."""
        encoded = [text.encode("utf-8", _ERRORS) for text in texts]
        ends = np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)))
        return cls(content=np.frombuffer(b"".join(encoded), np.uint8), ends=ends)

    def __post_init__(self) -> None:
        """Reject arrays that do not fit together: they may come from a file.

        Raises
        ------
        ValueError
            If the arrays do not fit together.
        """
        content, ends = self.content, self.ends
        if content.ndim != 1 or content.dtype != np.uint8 or ends.ndim != 1 or ends.dtype != np.int64:
            raise ValueError(f"texts have the types {content.dtype} and {ends.dtype}; expected uint8 and int64")
        if int(ends[-1] if len(ends) else 0) != len(content) or np.any(np.diff(ends, prepend=0) < 0):
            raise ValueError("texts end before they begin, or after their content")

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, rows: IntArray | slice) -> AnyArray:
        """Return the texts of some rows as an object array."""
        chosen = np.arange(len(self))[rows]
        stops = self.ends[chosen]
        starts = np.where(chosen == 0, 0, self.ends[chosen - 1])
        texts = np.empty(len(chosen), dtype=object)
        for i, (start, stop) in enumerate(zip(starts.tolist(), stops.tolist(), strict=True)):
            texts[i] = self.content[start:stop].tobytes().decode("utf-8", _ERRORS)
        return texts


def map_texts(path: Path, number: int) -> PackedTexts:
    """Map the texts of a column in a ``.npz`` file, its arrays ``textN.content`` and ``textN.ends``.

    Raises
    ------
    OSError, ValueError, KeyError, zipfile.BadZipFile
        As for `map_archived`, and if the arrays do not fit together.
    """
    content, ends = (map_archived(path, f"text{number}.{part}") for part in ("content", "ends"))
    return PackedTexts(content=content, ends=ends)
