"""Files that a worker may see at the coordinator's paths: on the same machine, or on shared storage."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cashmere.execution.file_bundle import filled_chunks, write_chunks


@dataclass(frozen=True, slots=True)
class FilesInPlace:
    """Where some files are, and what distinguishes them from other files at the same paths.

    Attributes
    ----------
    files : mapping
        For each path below a folder, the absolute path of the file, its size in bytes, and the time of its last change
        in nanoseconds.
    """

    files: Mapping[str, tuple[Path, int, int]]

    @classmethod
    def describe(cls, paths: Mapping[str, Path]) -> Self:
        """Describe files, given by their paths below the folder that they will be copied to.

        Raises
        ------
        OSError
            If one cannot be found.
        """
        found = {name: (path.absolute(), path.stat()) for name, path in paths.items()}
        return cls({name: (path, info.st_size, info.st_mtime_ns) for name, (path, info) in found.items()})

    def are_visible(self) -> bool:
        """Return whether this process can read all of them."""
        return all(_is_visible(*file) for file in self.files.values())

    def write(self, folder: Path) -> None:
        """Copy the files below a folder, with holes where there are only zeros."""
        for name, (path, size, _) in self.files.items():
            write_chunks(folder / name, size, filled_chunks(path))


def _is_visible(path: Path, size: int, changed: int) -> bool:
    try:
        info = path.stat()
    except OSError:
        return False
    is_same = stat.S_ISREG(info.st_mode) and (info.st_size, info.st_mtime_ns) == (size, changed)
    return is_same and os.access(path, os.R_OK)
