"""Rows and groups of another table that a run has learned from."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cashmere.base.arrays import AnyArray
from cashmere.data.other_columns import read_labels
from cashmere.data.row_structure import group_digests
from cashmere.storage.directory import TrainingRows, read_schema, read_structure

_FACTOR = np.uint64(1_000_003)

_REPETITIONS, _SHARE = 1.5, 0.01
"""More rows count than this many times those that repetition explains, and this share of all."""


def count_learned_rows(folder: Path, X: Any, y: Any) -> int:
    """Return how many rows of another table a run has learned from, or 0 if chance may explain them.

    Rows count as the same if their features, as models see them, and their target are. Where the rows of the run
    repeat each other, as those with few distinct values do, new ones repeat them, too; only rows far beyond that
    count.

    Parameters
    ----------
    folder : Path
        The run directory.
    X : (n_rows, n_columns) table
        The other rows.
    y : (n_rows,) array-like
        Their target.

    Raises
    ------
    CorruptStoreError
        If a file of the run is damaged.
    SchemaError, DataError
        If the other rows do not have the columns of the run, or their target has other labels.
    """
    schema, target = read_schema(folder)
    learned = TrainingRows.read(folder / "table.npz", mapped=True)
    coded = schema.code(schema.frame_of(X), compact=learned.are_compact)
    given = _keys(coded.values, (text[:] for text in coded.texts), target.encode(y))
    keys, counts = np.unique(_keys(learned.values, (text[:] for text in learned.texts), learned.y), return_counts=True)
    found = int(np.isin(given, keys).sum())
    repeated = float(counts[counts > 1].sum()) / len(learned.y)
    return found if found > (_REPETITIONS * repeated + _SHARE) * len(given) else 0


def count_learned_groups(folder: Path, groups: pd.Series[Any]) -> tuple[int | None, int]:
    """Return how many groups of another table have names of groups that a run has learned from, and how many there are.

    Parameters
    ----------
    folder : Path
        The run directory.
    groups : (n_rows,) Series
        The other groups; missing ones do not count.

    Returns
    -------
    int or None
        How many are known; None if the run has no digests of its groups, as those of earlier versions.
    int
        How many there are.

    Raises
    ------
    CorruptStoreError
        If a file of the run is damaged.
    """
    names = pd.unique(read_labels(groups, str(groups.name)))
    given = group_digests(names[names != ""])
    structure = read_structure(folder / "table.npz")
    if structure is None or structure.digests is None:
        return None, len(given)
    return int(np.isin(given, structure.digests).sum()), len(given)


def _keys(values: AnyArray, texts: Iterable[AnyArray], y: AnyArray) -> NDArray[np.uint64]:
    """Return a number for each row; the same for rows with the same content."""
    keys = np.zeros(len(y), np.uint64)
    for column in (*values.T, y):
        numbers = np.array(column, dtype=np.float64) + 0.0  # -0.0 is 0.0
        numbers[np.isnan(numbers)] = np.nan  # in one of its many forms
        keys = keys * _FACTOR + pd.util.hash_array(numbers)
    for text in texts:
        keys = keys * _FACTOR + np.fromiter(map(hash, text), np.int64, len(text)).view(np.uint64)
    return keys
