"""Finished runs on disk: a file of JSON lines that only grows.

A run is a record with a key, itself a record, and plain data. It is appended as soon as it is known, so that an
interrupted command continues where it stopped. A line cut short by a crash loses only that run, and lines of an older
version that no longer fit the record are skipped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from filelock import FileLock

from cashmere.base.files import write_atomically

K = TypeVar("K")
K_co = TypeVar("K_co", covariant=True)


class FinishedRun(Protocol[K_co]):
    """A finished run: a frozen dataclass whose `key` says which run it is."""

    @property
    def key(self) -> K_co:
        """A frozen dataclass of plain data."""


R = TypeVar("R", bound="FinishedRun[Any]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure(Generic[K]):
    """A run that raised an error.

    Attributes
    ----------
    key : object
        Which run.
    error : str
        The traceback.
    cause : str
        Type and text of the error, in one line.
    """

    key: K
    error: str
    cause: str


class FinishedRuns(Generic[K, R]):
    """The finished runs in one file, all of one kind.

    Parameters
    ----------
    path : Path
        The file, which need not exist yet.
    run, key : type
        The records, as dataclasses of plain data; `run` has the field ``key``.
    """

    def __init__(self, path: Path, run: type[R], key: type[K]) -> None:
        self.path = path
        self._run, self._key = run, key
        self._known: dict[K, list[R]] = {}
        for _, found in self._lines():
            if found is not None:
                self._known.setdefault(found.key, []).append(found)

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self._known)

    def find(self, key: K) -> R | None:
        """Return the latest run with this key, if there is one."""
        found = self.find_all(key)
        return found[-1] if found else None

    def find_all(self, key: K) -> list[R]:
        """Return all runs with this key, the oldest first."""
        return self._known.get(key, [])

    def add(self, run: R) -> None:
        """Append a run."""
        line = json.dumps(asdict(run))  # type: ignore[call-overload]  # a dataclass, which a protocol cannot require
        with self._lock(), self.path.open("a+b") as file:
            if file.tell() and not _ends_line(self.path):  # a crash cut the last line short
                file.write(b"\n")
            file.write(line.encode() + b"\n")
        self._known.setdefault(run.key, []).append(run)

    def forget(self, keys: Iterable[K]) -> int:
        """Remove the runs with these keys from the file; return how many there were."""
        gone = set(keys)
        if not self.path.exists():
            return 0
        with self._lock():
            lines = list(self._lines())
            kept = [line for line, run in lines if run is None or run.key not in gone]
            write_atomically(self.path, b"".join(kept))
        for key in gone:
            self._known.pop(key, None)
        return len(lines) - len(kept)

    def _lock(self) -> FileLock:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        return FileLock(f"{self.path}.lock")

    def _lines(self) -> Iterator[tuple[bytes, R | None]]:
        for line in self.path.read_bytes().splitlines(keepends=True) if self.path.exists() else []:
            yield line, self._parse(line)

    def _parse(self, line: bytes) -> R | None:
        try:
            values = json.loads(line)
            if "key" in values:
                key = values.pop("key")
            else:  # earlier replays have the fields of the key beside the others
                names = [field.name for field in fields(self._key)]  # type: ignore[arg-type]
                key = {name: values.pop(name) for name in names if name in values}
            return self._run(key=self._key(**key), **values)  # type: ignore[call-arg]  # a dataclass, as above
        except (ValueError, KeyError, TypeError, AttributeError):  # cut short, or of an older version
            return None


def _ends_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read(1) == b"\n"
