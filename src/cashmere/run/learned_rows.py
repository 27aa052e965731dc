"""Rows of another table that a run has learned from."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cashmere.base.arrays import AnyArray
from cashmere.storage.directory import TrainingRows, read_schema

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
