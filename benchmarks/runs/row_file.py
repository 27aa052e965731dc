"""A CSV file of flat records that only grows, so that an interrupted command continues where it stopped.

Every setting that changes a row is one of its columns. So a command finds what was made with its own settings, and
makes and shows nothing else: `RowFile.frame`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import pandas as pd

R = TypeVar("R")


class RowFile(Generic[R]):
    """The rows in one file, all of one dataclass of plain data.

    Parameters
    ----------
    path : Path
        The file, which need not exist yet.
    record : type
        The dataclass.

    Raises
    ------
    SystemExit
        If the file has other columns: it was made by another version, and says less, or other things.
    """

    def __init__(self, path: Path, record: type[R]) -> None:
        self.path = path
        self._types = {field.name: field.type for field in fields(record)}  # type: ignore[arg-type]  # a dataclass
        self._columns = list(self._types)
        if path.exists():
            with path.open(newline="", encoding="utf-8") as file:
                self._check(file.readline())

    def read(self) -> list[dict[str, str]]:
        """Return all rows as texts by column; a row cut short by a crash is left out."""
        return read_rows(self.path)

    def frame(self, **settings: Any) -> pd.DataFrame:
        """Return the rows made with some settings, by default all rows.

        Parameters
        ----------
        **settings
            The value of a column, or several of which each row has one.

        Returns
        -------
        DataFrame
            With numbers as floats: whatever the dataclass annotates neither as text nor as bool.
        """
        frame = pd.DataFrame(self.read(), columns=self._columns)
        for name, kind in self._types.items():
            if kind in ("bool", bool):
                frame[name] = frame[name] == "True"
            elif kind not in ("str", str):
                frame[name] = frame[name].replace("", "nan").astype(float)
        for name, value in settings.items():
            several = isinstance(value, Collection) and not isinstance(value, str)
            frame = frame[frame[name].isin(value if several else [value])]
        return frame

    def frame_of(self, keys: Iterable[tuple[Any, ...]], *columns: str) -> pd.DataFrame:
        """Return the rows in which some columns together have one of these values, see `frame`."""
        frame, wanted = self.frame(), set(keys)
        there = [key in wanted for key in frame[list(columns)].itertuples(index=False, name=None)]
        return frame[np.array(there, dtype=np.bool_)]

    def keys(self, *columns: str, **settings: Any) -> set[tuple[Any, ...]]:
        """Return the values that some columns have together in the rows made with some settings, see `frame`."""
        return set(self.frame(**settings)[list(columns)].itertuples(index=False, name=None))

    def add(self, rows: Iterable[R]) -> None:
        """Append rows, all or none if making them is interrupted."""
        rows = list(rows)  # a generator may be interrupted: some of its rows would count as all
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+", newline="", encoding="utf-8") as file:
            file.seek(0)
            text = file.read()
            if not text.endswith("\n"):  # cut short by a crash: the next row would become a part of it
                text = text[: text.rfind("\n") + 1]
                file.truncate(len(text.encode()))
            self._check(text)
            writer = csv.DictWriter(file, self._columns, lineterminator="\n")
            if not text:
                writer.writeheader()
            for row in rows:
                writer.writerow(asdict(row))  # type: ignore[call-overload]  # a dataclass

    def _check(self, text: str) -> None:
        """Raise an error if the first line is complete and has other columns."""
        header = next(csv.reader(text.splitlines()), None)
        if text.endswith("\n") and header != self._columns:
            raise SystemExit(f"{self.path} has other columns than current rows. Move it away, or choose another --out.")


def write_anew(path: Path, rows: Sequence[object]) -> None:
    """Write rows of one dataclass to a file, instead of those that it holds."""
    path.unlink(missing_ok=True)
    RowFile(path, type(rows[0])).add(rows)


def read_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file as texts by column; a row cut short by a crash is left out."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        text = file.read()  # at once: another process may complete the last row meanwhile
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    if rows and not text.endswith("\n"):  # its last cell may be incomplete
        rows.pop()
    return [row for row in rows if None not in row.values()]
