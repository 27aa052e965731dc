"""Files as one value that travels to another machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_CHUNK_BYTES = 2**24


@dataclass(frozen=True, slots=True)
class FileBundle:
    """The contents of some files. Chunks of zeros are left out: matrices that are encoded later are mostly holes.

    Attributes
    ----------
    files : mapping
        For each path below a folder, the size of the file and its nonzero chunks with their offsets.
    """

    files: Mapping[str, tuple[int, tuple[tuple[int, bytes], ...]]]

    @classmethod
    def read(cls, paths: Mapping[str, Path]) -> Self:
        """Read files, given by their paths below the folder that they will be written to."""
        return cls({name: (path.stat().st_size, tuple(filled_chunks(path))) for name, path in paths.items()})

    def write(self, folder: Path) -> None:
        """Write the files below a folder, with holes where there were only zeros."""
        for name, (size, chunks) in self.files.items():
            write_chunks(folder / name, size, chunks)


def filled_chunks(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the nonzero chunks of a file with their offsets."""
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            if chunk.count(0) < len(chunk):
                yield file.tell() - len(chunk), chunk


def write_chunks(path: Path, size: int, chunks: Iterable[tuple[int, bytes]]) -> None:
    """Write a file of the given size, with holes between the chunks; create the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(size)
        for offset, chunk in chunks:
            file.seek(offset)
            file.write(chunk)
